// An index that is read from memory may lie anywhere: it is compared with its buffer's extent, and the kernel fails in words
// instead of reading beyond. Where the indices are arguments, all are looked at before the loops begin, which the loops that
// use them (one per token, against a row of the embedding each) do not notice:
//   for i, j: B[i, j] = A[ids[i], j]
//   =>
//   for i: assert 0 <= ids[i] < n
//   for i, j: B[i, j] = A[ids[i], j]
// What depends on memory that the function writes is looked at in front of the outermost loop that does not change it:
//   for j: if j < m: B[i, j] = A[own[i], j]
//   =>
//   if 0 < m: assert 0 <= own[i] < n
//   for j: if j < m: B[i, j] = A[own[i], j]
#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

#include "arith/analyzer.h"
#include "arith/kind.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "tir/copy.h"

namespace sator::passes {

using namespace tir;

namespace {

bool reads_memory(const Expr& e) {
  bool found = false;
  walk(e, [&](const BufferLoad&) { found = true; });
  return found;
}

class IndexChecker {
 public:
  explicit IndexChecker(const PrimFunc& func) {
    for (const auto& [param, buffer] : func.buffer_map) arguments_.insert(buffer.get());
    walk(func.body, [&](const BufferStore& n) { arguments_.erase(n.buffer.get()); });
  }

  Stmt run(const Stmt& body) {
    Stmt out = statement(body);
    checks_.push_back(out);
    return checks_.size() == 1 ? out : seq(std::move(checks_));
  }

 private:
  /// A loop or a condition around what is looked at now.
  struct Around {
    const For* loop = nullptr;
    Expr condition;                   ///< by values
    Expr written;                     ///< the condition as it stands
    Stmt body = {};                   ///< of the loop, or both branches; a condition within a statement has none
    std::vector<Stmt> in_front = {};  ///< checks that are to stand in front of the loop or the condition
  };

  Stmt statement(const Stmt& s) {
    in_statement_ = around_.size();
    if (const For* n = s.as<For>()) return loop(*n);
    if (const IfThenElse* n = s.as<IfThenElse>()) {
      std::vector<Stmt> own = accesses(n->condition);
      Stmt then_case = under(n->condition, [&] { return statement(n->then_case); }, &own, s);
      Stmt else_case =
          n->else_case ? under(logical_not(n->condition), [&] { return statement(n->else_case); }, &own, s) : Stmt();
      if (then_case == n->then_case && else_case == n->else_case) return behind(own, s);
      return behind(own, make<IfThenElse>(n->condition, then_case, else_case));
    }
    if (const LetStmt* n = s.as<LetStmt>()) {
      std::vector<Stmt> own = accesses(n->value);
      lets_.emplace(n->var, substitute(n->value, lets_));
      let_depths_.emplace(n->var.get(), around_.size());
      Stmt body = statement(n->body);
      return behind(own, body == n->body ? s : Stmt(with(*n, &LetStmt::body, body)));
    }
    if (const BufferStore* n = s.as<BufferStore>()) {
      std::vector<Stmt> own = accesses(n->value);
      for (const Expr& i : n->indices) append(own, accesses(i));
      for (size_t d = 0; d < n->indices.size(); ++d) append(own, check(n->buffer, d, n->indices[d]));
      return behind(own, s);
    }
    if (const Evaluate* n = s.as<Evaluate>()) return behind(accesses(n->value), s);
    if (const While* n = s.as<While>()) {  // how often it runs is not known in front of it
      const bool outer = std::exchange(in_while_, true);
      const size_t outermost = std::exchange(outermost_, around_.size());
      Stmt body = statement(n->body);
      in_while_ = outer, outermost_ = outermost;
      return body == n->body ? s : Stmt(with(*n, &While::body, body));
    }
    NodeRef out = s->info().map_children(*s, [&](const NodeRef& child) -> NodeRef {
      const StmtNode* inner = child->as<StmtNode>();
      return inner ? NodeRef(statement(ref(*inner))) : child;
    });
    return cast<StmtNode>(out);
  }

  Stmt loop(const For& n) {
    arith_.bind(n.var, make<Range>(n.min, n.extent));
    around_.push_back({.loop = &n, .condition = {}, .written = {}, .body = n.body});
    Stmt body = statement(n.body);
    std::vector<Stmt> own = std::move(around_.back().in_front);
    around_.pop_back();
    return behind(std::move(own), body == n.body ? Stmt(&n) : Stmt(with(n, &For::body, body)));
  }

  ///   own, whole  takes the checks that are to stand in front of the statement `whole`; a condition within one has neither
  template <class F>
  std::invoke_result_t<F> under(const Expr& condition, F run, std::vector<Stmt>* own = nullptr,
                                const Stmt& whole = {}) {
    around_.push_back({.condition = substitute(condition, lets_), .written = condition, .body = whole});
    auto scope = arith_.with_constraint(around_.back().condition);
    auto out = run();
    if (own) append(*own, std::move(around_.back().in_front));
    around_.pop_back();
    return out;
  }

  static void append(std::vector<Stmt>& to, std::vector<Stmt> more) {
    to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  static Stmt behind(std::vector<Stmt> checks, Stmt s) {
    if (checks.empty()) return s;
    checks.push_back(std::move(s));
    return seq(std::move(checks));
  }

  /// The checks that an expression needs in front of its statement; those that can stand before all loops are kept apart.
  std::vector<Stmt> accesses(const Expr& e) {
    std::vector<Stmt> out;
    if (const BufferLoad* n = e.as<BufferLoad>()) {
      for (const Expr& i : n->indices) append(out, accesses(i));
      for (size_t d = 0; d < n->indices.size(); ++d) append(out, check(n->buffer, d, n->indices[d]));
      return out;
    }
    auto choice = [&](const Expr& condition, const Expr& yes, const Expr& no) {
      append(out, accesses(condition));
      append(out, under(condition, [&] { return accesses(yes); }));
      append(out, under(logical_not(condition), [&] { return accesses(no); }));
    };
    if (const Select* n = e.as<Select>()) {
      choice(n->condition, n->true_value, n->false_value);
    } else if (const Call* n = e.as<Call>(); n && n->op == "tir.if_then_else") {
      choice(n->args[0], n->args[1], n->args[2]);
    } else if (const Let* n = e.as<Let>()) {
      append(out, accesses(n->value));
      lets_.emplace(n->var, substitute(n->value, lets_));
      append(out, accesses(n->body));
    } else if (const And* n = e.as<And>()) {
      append(out, accesses(n->a));
      append(out, under(n->a, [&] { return accesses(n->b); }));
    } else if (const Or* n = e.as<Or>()) {
      append(out, accesses(n->a));
      append(out, under(logical_not(n->a), [&] { return accesses(n->b); }));
    } else {
      e->info().each_child(*e, [&](const NodeRef& child) {
        if (Expr part = cast<ExprNode>(child)) append(out, accesses(part));
      });
    }
    return out;
  }

  std::vector<Stmt> check(const BufferRef& buffer, size_t dim, const Expr& written) {
    Expr index = substitute(written, lets_);
    if (!reads_memory(index)) return {};
    const Expr& extent = buffer->shape[dim];
    Expr wide = cast_to(i64, index), end = cast_to(i64, extent);
    if (arith_.prove_ge(index, 0) && arith_.prove(lt(wide, end))) return {};
    Stmt assertion = make<AssertStmt>(
        logical_and(le(int_imm(0, i64), wide), lt(wide, end)),
        string_imm(text("an index of ", buffer->name, " is out of range: ", index, " is not in [0, ", extent, ")")),
        make<Evaluate>(int_imm(0)));
    return placed(assertion);
  }

  bool are_arguments(const Stmt& s) const {
    bool all = true;
    walk(s, [&](const BufferLoad& n) { all &= arguments_.count(n.buffer.get()) > 0; });
    return all;
  }

  /// The assertion under those loops and conditions that it depends on: in front of everything where it reads arguments
  /// alone, else as far out as it can stand.
  std::vector<Stmt> placed(const Stmt& assertion) {
    Stmt whole = substitute(under_all(assertion, 0), lets_);
    if (in_while_ || !are_arguments(whole)) return placed_within(assertion);
    if (std::ranges::none_of(checks_, [&](const Stmt& c) { return equal(c, whole); }))
      checks_.push_back(fresh_copy(whole));
    return {};
  }

  /// Whether a part reads what a loop or a branch changes: memory, the loop's variable, or a name that it binds.
  bool is_changed_in(const NodeRef& part, size_t level) const {
    std::set<const Var*> read;  // buffers by their memory, which others may name too
    bool changed = false;
    walk(
        part,
        [&](const BufferLoad& n) { read.insert(n.buffer->data.get()); },
        [&](const Var& v) {
          const auto let = let_depths_.find(&v);
          changed |= let != let_depths_.end() && let->second > level;
          changed |= around_[level].loop && around_[level].loop->var.get() == &v;
        });
    if (changed || !around_[level].body) return changed;
    walk(
        around_[level].body,
        [&](const BufferStore& n) { changed |= read.contains(n.buffer->data.get()); },
        [&](const Evaluate& n) {
          changed |= !read.empty() && has_side_effect(n.value);
        });  // what it writes is not known
    return changed;
  }

  /// The condition that some iteration meets it: its value at the first one, where it does not begin to hold later.
  std::optional<Expr> in_some_iteration(const Expr& condition, const For& loop) {
    if (!uses_var(condition, *loop.var)) return condition;
    Expr a, b;
    if (const LT* n = condition.as<LT>()) a = n->a, b = n->b;
    if (const LE* n = condition.as<LE>()) a = n->a, b = n->b;
    if (!a || !a->dtype.is_int() || reads_memory(condition)) return {};
    auto at = [&](const Expr& value) { return substitute(a - b, VarMap{{loop.var, value}}); };
    if (!arith_.prove(le(at(loop.var), at(loop.var + int_imm(1, loop.var->dtype))))) return {};
    return arith_.rewrite(substitute(condition, VarMap{{loop.var, loop.min}}));
  }

  /// In front of the outermost loop or condition of those around it, which stay the same for all its iterations.
  std::vector<Stmt> placed_within(const Stmt& assertion) {
    size_t place = around_.size();
    std::vector<Expr> conditions, at_place;
    for (size_t level = around_.size(); level-- > outermost_;) {
      const Around& a = around_[level];
      if (a.loop) {
        std::vector<Expr> some;
        for (const Expr& c : conditions)
          if (const auto in_some = in_some_iteration(c, *a.loop)) some.push_back(*in_some);
        if (some.size() != conditions.size()) break;
        conditions = std::move(some);
        if (!arith_.prove(lt(int_imm(0, a.loop->extent->dtype), a.loop->extent)))
          conditions.push_back(lt(int_imm(0, a.loop->extent->dtype), a.loop->extent));
      } else {
        const std::vector<Expr> parts = arith::conjuncts(a.written);  // the first is asked first
        conditions.insert(conditions.end(), parts.rbegin(), parts.rend());
      }
      bool changed = is_changed_in(assertion, level);
      for (const Expr& c : conditions) changed |= is_changed_in(c, level);
      if (changed) break;
      if (level <= in_statement_) place = level, at_place = conditions;
    }
    if (place >= in_statement_) return {fresh_copy(under_all(assertion, in_statement_))};
    Stmt check = assertion;
    for (const Expr& c : at_place) check = make<IfThenElse>(c, check, Stmt());
    std::vector<Stmt>& in_front = around_[place].in_front;
    if (std::ranges::none_of(in_front, [&](const Stmt& c) { return equal(c, check); }))
      in_front.push_back(fresh_copy(check));
    return {};
  }

  Stmt under_all(Stmt s, size_t from) const {
    for (size_t k = around_.size(); k-- > from;) {
      const Around& a = around_[k];
      if (a.condition) s = make<IfThenElse>(a.condition, s, Stmt());
      if (a.loop && uses_var(s, *a.loop->var))
        s = make<For>(a.loop->var, a.loop->min, a.loop->extent, LoopKind::serial, std::string(), Attrs{}, s);
    }
    return s;
  }

  std::set<const Buffer*> arguments_;  ///< that nothing writes
  std::vector<Around> around_;
  std::vector<Stmt> checks_;
  VarMap lets_;
  std::map<const Var*, size_t> let_depths_;  ///< how many of around_ stand around the statement that binds a name
  size_t outermost_ = 0;                     ///< of around_: the first within the innermost `while`
  size_t in_statement_ = 0;                  ///< of around_: what stands around the statement that is looked at
  bool in_while_ = false;
  arith::Analyzer arith_;
};

}  // namespace

PrimFuncRef check_indices(const PrimFuncRef& func, const LowerOptions&) {
  if (func->attrs.count(kTrustedIndices)) return func;
  return with_body(func, IndexChecker(*func).run(func->body));
}

}  // namespace sator::passes
