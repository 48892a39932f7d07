// Parameters that a function takes one by one, and that are freed as it goes.
#include <set>

#include "passes/graph/graph.h"
#include "relax/outline.h"
#include "relax/rebind.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The items of a tuple by the binding that reads them last; without those that the function returns.
std::map<RVarRef, std::vector<int>> last_use_of_items(const Function& f, const RVarRef& tuple) {
  const SeqExpr& body = *f.body.as<SeqExpr>();
  std::map<RVarRef, int> item_of;
  std::map<int, RVarRef> last;
  std::set<int> returned;
  for (const BindingBlockRef& block : body.blocks) {
    for (const Binding& b : block->bindings) {
      const RVarRef var = bound_var(b);
      const TupleGetItem* item = bound_value(b).as<TupleGetItem>();
      if (item && item->tuple == tuple) item_of[var] = item->index;
      for (const RVarRef& v : rvars_in(bound_value(b))) {
        auto at = item_of.find(v);
        if (at == item_of.end()) continue;
        last[at->second] = var;
        if (bound_value(b).as<Tuple>() || bound_value(b).as<RVar>()) returned.insert(at->second);
      }
    }
  }
  for (const RVarRef& v : rvars_in(body.body))
    if (auto at = item_of.find(v); at != item_of.end()) returned.insert(at->second);
  std::map<RVarRef, std::vector<int>> out;
  for (const auto& [index, var] : last)
    if (!returned.contains(index)) out[var].push_back(index);
  return out;
}

class Streamer final : public GraphRewriter {
 public:
  Streamer(BlockBuilder& builder, const Function& f)
      : GraphRewriter(builder),
        tuple_(f.params.back()),
        source_(make_rvar(tuple_->name, object_info())),
        last_use_(last_use_of_items(f, tuple_)) {}

  const RVarRef& source() const { return source_; }

 private:
  RExpr value(const RVarRef& var, const RExpr& value) override {
    const TupleGetItem* item = value.as<TupleGetItem>();
    if (!item || item->tuple != tuple_) return value;
    auto [at, fresh] = items_.emplace(item->index, var);
    if (!fresh) return at->second;
    return packed_call("vm.builtin.take_param", {source_, prim_value(int_imm(item->index))}, value->sinfo);
  }
  void after(const RVarRef& var) override {
    auto at = last_use_.find(var);
    if (at == last_use_.end()) return;
    for (int index : at->second)
      builder().emit(op_call("vm.kill_object", {current(items_.at(index))}, tuple_info({})), "_");
  }

  RVarRef tuple_, source_;
  std::map<RVarRef, std::vector<int>> last_use_;
  std::map<int, RVarRef> items_;
};

}  // namespace

ModuleRef stream_params(const ModuleRef& module, const PassContext&) {
  return rewrite_functions(module, [](const FuncRef& f, BlockBuilder& builder) {
    if (int_attr(f->attrs, "streams_params").value_or(0) == 0) return f;
    Streamer streamer(builder, *f);
    FuncRef out = streamer.function(*f);
    std::vector<RVarRef> params = f->params;
    params.back() = streamer.source();
    return with(out, &Function::params, std::move(params));
  });
}

}  // namespace sator::passes
