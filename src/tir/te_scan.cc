// te::scan: rows that are computed from the rows before them.
#include <algorithm>

#include "base/error.h"
#include "tir/te.h"

namespace sator::te {

namespace {

using tir::Stmt;

/// The loops of a scan over the buffers that create_prim_func gives it.
class Scan {
 public:
  Scan(std::vector<Tensor> init, std::vector<Tensor> update, std::vector<Tensor> states)
      : init_(std::move(init)), update_(std::move(update)), states_(std::move(states)) {
    for (const Tensor& t : init_) add_input(t);
    for (const Tensor& t : update_) collect(t);
  }

  const std::vector<Tensor>& inputs() const { return inputs_; }

  /// `buffers`: of the inputs, then of the results.
  Stmt statement(const std::vector<BufferRef>& buffers) const {
    const std::vector<BufferRef> results(buffers.begin() + static_cast<int64_t>(inputs_.size()), buffers.end());
    std::vector<Stmt> out;
    for (size_t k = 0; k < init_.size(); ++k)
      out.push_back(over(init_[k].shape(), [&](const Indices& i) {
        return tir::store(results[k], load(input(buffers, init_[k]), i), i);
      }));
    const Expr begin = init_[0].dim(0);
    VarRef t = make_var("t", begin->dtype);
    std::vector<Stmt> row;
    for (size_t k = 0; k < update_.size(); ++k) {
      const std::vector<Expr>& shape = update_[k].shape();
      row.push_back(over({shape.begin() + 1, shape.end()}, [&](const Indices& rest) {
        Indices at = {t};
        at.insert(at.end(), rest.begin(), rest.end());
        return tir::store(results[k], element(update_[k], at, buffers, results), at);
      }));
    }
    out.push_back(make<tir::For>(
        t, begin, update_[0].dim(0) - begin, tir::LoopKind::serial, std::string(), Attrs{}, tir::seq(row)));
    return tir::seq(out);
  }

 private:
  static Stmt over(const std::vector<Expr>& extents, FunctionRef<Stmt(const Indices&)> body) {
    std::vector<VarRef> vars;
    Indices indices;
    for (size_t d = 0; d < extents.size(); ++d) {
      vars.push_back(make_var(text("i", d), extents[d]->dtype));
      indices.push_back(vars.back());
    }
    Stmt nest = body(indices);
    for (size_t d = extents.size(); d-- > 0;)
      nest = make<tir::For>(
          vars[d], int_imm(0, extents[d]->dtype), extents[d], tir::LoopKind::serial, std::string(), Attrs{}, nest);
    return nest;
  }

  void add_input(const Tensor& t) {
    if (std::ranges::find(inputs_, t) == inputs_.end()) inputs_.push_back(t);
  }
  bool reads_states(const Tensor& t) const {
    return std::ranges::find(states_, t) != states_.end() ||
           std::ranges::any_of(t.stage()->inputs, [&](const Tensor& i) { return reads_states(i); });
  }
  /// What the formula reads from outside of the scan; formulas over states are part of it.
  void collect(const Tensor& t) {
    if (t.stage()->bodies.empty())
      fail({.what = text("te.scan: ", t.name(), " is no formula of elements"),
            .needs = "updates by te.compute of an expression",
            .hint = "reduce outside of the scan"});
    for (const Tensor& i : t.stage()->inputs) {
      if (std::ranges::find(states_, i) != states_.end()) continue;
      if (reads_states(i))
        collect(i);
      else
        add_input(i);
    }
  }

  const BufferRef& input(const std::vector<BufferRef>& buffers, const Tensor& t) const {
    return buffers[static_cast<size_t>(std::ranges::find(inputs_, t) - inputs_.begin())];
  }

  /// The formula's value at the indices, over the buffers.
  Expr element(const Tensor& t, const Indices& at, const std::vector<BufferRef>& buffers,
               const std::vector<BufferRef>& results) const {
    VarMap axes;
    for (size_t d = 0; d < at.size(); ++d) axes.emplace(t.stage()->axes[d]->var, at[d]);
    const Expr body = substitute(t.stage()->bodies[static_cast<size_t>(t.output())], axes);
    return transform(body, [&](const TensorLoad& l) -> NodeRef {
      const Tensor read(l.stage, l.output);
      if (auto state = std::ranges::find(states_, read); state != states_.end())
        return load(results[static_cast<size_t>(state - states_.begin())], l.indices);
      return reads_states(read) ? element(read, l.indices, buffers, results) : load(input(buffers, read), l.indices);
    });
  }

  std::vector<Tensor> init_, update_, states_, inputs_;
};

}  // namespace

std::vector<Tensor> scan(const std::string& name, const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                         const std::vector<Tensor>& states) {
  if (init.empty() || init.size() != update.size() || init.size() != states.size())
    fail({.what = text(
              "te.scan of ", init.size(), " beginnings, ", update.size(), " updates and ", states.size(), " states"),
          .needs = "one of each for each result",
          .hint = "give lists of one length"});
  std::vector<ExternOutput> outputs;
  for (size_t k = 0; k < states.size(); ++k) {
    if (states[k].rank() == 0 || states[k].rank() != update[k].rank() || states[k].rank() != init[k].rank() ||
        states[k].dtype() != update[k].dtype() || states[k].dtype() != init[k].dtype())
      fail({.what = text("te.scan: the state ", states[k].name(), " has another rank or dtype than what it becomes"),
            .needs = "one rank, of 1 or more, and one dtype for a state, its beginning and its update",
            .hint = "make the state a placeholder of the update's shape and dtype"});
    outputs.push_back({states[k].shape(), states[k].dtype(), states.size() == 1 ? name : text(name, ".v", k)});
  }
  const Scan body(init, update, states);
  std::vector<Tensor> out =
      extern_stage(name, body.inputs(), std::move(outputs), [body](const std::vector<BufferRef>& buffers) {
        return body.statement(buffers);
      });
  Ref<Stage> stage(new Stage(*out.front().stage()));
  stage->is_scan = true;
  for (Tensor& t : out) t = Tensor(stage, t.output());
  return out;
}

}  // namespace sator::te
