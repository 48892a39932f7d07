// An index that is read from memory may lie anywhere: it is compared with its buffer's extent, and the kernel fails in words
// instead of reading beyond. Where the indices are arguments, all are looked at before the loops begin, which the loops that
// use them (one per token, against a row of the embedding each) do not notice:
//   for i, j: B[i, j] = A[ids[i], j]
//   =>
//   for i: assert 0 <= ids[i] < n
//   for i, j: B[i, j] = A[ids[i], j]
// An index that follows from sizes and other numbers that the caller gives is compared where its loops begin and end, if it can
// be out of range: `A[n]`, or `B[i]` under `for i in range((n + 2) // 3)` where B has n // 3 elements. A condition that
// depends on these loops is taken to keep it inside.
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

/// Whether a function outside of the program is called, which may give another value each time.
bool calls_outside(const Expr& e) {
  bool found = false;
  walk(e, [&](const Call& c) {
    const Builtin* row = find_builtin(c.op);
    found |= !row || row->effect == Effect::updates;
  });
  return found;
}

/// Lane k of a vector; null if it is none that is known.
Expr lane_of(const Expr& e, int k) {
  if (e->dtype.lanes == 1) return e;
  auto both = [&](const auto& n, auto op) {
    const Expr a = lane_of(n.a, k), b = lane_of(n.b, k);
    return a && b ? op(a, b) : Expr();
  };
  if (const Ramp* n = e.as<Ramp>()) return n->base + n->stride * int_imm(k, n->base->dtype);
  if (const Broadcast* n = e.as<Broadcast>()) return n->value;
  if (const Cast* n = e.as<Cast>()) {
    const Expr value = lane_of(n->value, k);
    return value ? cast_to(n->dtype.element(), value) : Expr();
  }
  if (const Add* n = e.as<Add>()) return both(*n, [](Expr a, Expr b) { return a + b; });
  if (const Sub* n = e.as<Sub>()) return both(*n, [](Expr a, Expr b) { return a - b; });
  if (const Mul* n = e.as<Mul>()) return both(*n, [](Expr a, Expr b) { return a * b; });
  if (const FloorDiv* n = e.as<FloorDiv>()) return both(*n, [](Expr a, Expr b) { return floordiv(a, b); });
  if (const FloorMod* n = e.as<FloorMod>()) return both(*n, [](Expr a, Expr b) { return floormod(a, b); });
  if (const BufferLoad* n = e.as<BufferLoad>(); n && n->buffer->dtype.lanes == 1) {
    std::vector<Expr> indices;
    for (const Expr& i : n->indices) {
      indices.push_back(lane_of(i, k));
      if (!indices.back()) return {};
    }
    return load(n->buffer, std::move(indices));
  }
  return {};
}

class IndexChecker {
 public:
  explicit IndexChecker(const PrimFunc& func) {
    for (const VarRef& param : func.params) given_.insert(param.get());
    for (const auto& [param, buffer] : func.buffer_map) {
      arguments_.insert(buffer.get());
      for (const Expr& extent : buffer->shape)
        for (const VarRef& v : vars_in(extent)) given_.insert(v.get());
    }
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
      bind(n->var, n->value);
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
      bind(n->var, n->value);
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
    const Expr index = substitute(written, lets_);
    if (index->dtype.lanes == 1) return check_one(*buffer, buffer->shape[dim], index);
    if (!reads_memory(index) && !is_called(index)) return {};
    std::vector<Stmt> out;
    for (int k = 0; k < index->dtype.lanes; ++k) {
      const Expr lane = lane_of(index, k);
      if (!lane)
        fail({.what = text("an index of ", buffer->name, " is a vector from memory that cannot be checked: ", index),
              .needs = "lanes of loads, ramps, sums, products and divisions",
              .hint = "write the access for each element, in a loop"});
      append(out, check_one(*buffer, buffer->shape[dim], lane));
    }
    return out;
  }

  std::vector<Stmt> check_one(const Buffer& buffer, const Expr& extent, const Expr& index) {
    const Expr wide = cast_to(i64, index), end = cast_to(i64, extent);
    if (arith_.prove_ge(index, 0) && arith_.prove(lt(wide, end))) return {};
    auto assert_within = [&](const Expr& least, const Expr& most) {
      const Expr above = le(int_imm(0, i64), least), below = lt(most, end);
      return make<AssertStmt>(
          arith_.prove(above)   ? below
          : arith_.prove(below) ? above
                                : logical_and(above, below),
          string_imm(text("an index of ", buffer.name, " is out of range: ", index, " is not in [0, ", extent, ")")),
          make<Evaluate>(int_imm(0)));
    };
    if (calls_outside(index))
      fail({.what = text("an index of ", buffer.name, " is what a call gives: ", index),
            .needs = "a name for it, which is checked and then used",
            .hint = text("x: T.int32 = ...; ", buffer.name, "[x]")});
    if (is_called(index)) return placed_within(assert_within(wide, wide));
    if (reads_memory(index)) return placed(assert_within(wide, wide));
    if (const auto range = range_over_loops(wide)) {
      const Stmt whole = under_all(assert_within(range->first, range->second), 0);
      if (std::ranges::none_of(checks_, [&](const Stmt& c) { return equal(c, whole); }))
        checks_.push_back(fresh_copy(whole));
    }
    return {};
  }

  /// The least and the greatest value of an index over the loops around it, all of which it takes: it rises or falls with each
  /// of those that it uses, and neither their extents nor a condition depend on memory or on these loops. Nothing otherwise.
  std::optional<std::pair<Expr, Expr>> range_over_loops(const Expr& index) {
    if (in_while_) return {};
    Expr least = index, most = index;
    for (size_t k = around_.size(); k-- > 0;) {
      const For* loop = around_[k].loop;
      if (!loop) {
        if (reads_memory(around_[k].condition)) return {};
        continue;
      }
      for (const Expr& bound : {loop->min, loop->extent})
        if (reads_memory(bound) || uses_names(bound)) return {};
      if (!uses_var(index, *loop->var)) continue;
      for (const Around& other : around_)
        if (other.condition && uses_var(other.condition, *loop->var)) return {};
      const VarRef& v = loop->var;
      const Expr one = int_imm(1, v->dtype), last = loop->min + loop->extent - one;
      const Expr step = arith_.simplify(substitute(index, VarMap{{v, v + one}}) - index);
      const bool rises = arith_.prove_ge(step, 0);
      if (!rises && !arith_.prove_ge(int_imm(0, step->dtype) - step, 0)) return {};
      least = substitute(least, VarMap{{v, rises ? loop->min : last}});
      most = substitute(most, VarMap{{v, rises ? last : loop->min}});
    }
    if (uses_names(least) || uses_names(most)) return {};
    return std::pair(arith_.simplify(least), arith_.simplify(most));
  }

  /// A name stands for its value, which is the same wherever it stands; what a call gives has the name alone.
  void bind(const VarRef& var, const Expr& value) {
    if (calls_outside(value) || is_called(value))
      called_.insert(var.get());
    else
      lets_.emplace(var, substitute(value, lets_));
  }

  bool is_called(const Expr& e) const {
    return std::ranges::any_of(vars_in(e), [&](const VarRef& v) { return called_.contains(v.get()); });
  }

  /// Whether an expression uses what no argument is: a loop's variable, or a name that a statement binds.
  bool uses_names(const Expr& e) const {
    const std::vector<VarRef> used = vars_in(e);
    return std::ranges::any_of(used, [&](const VarRef& v) { return !given_.contains(v.get()); });
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

  Stmt under_all(Stmt s, size_t from) {
    for (size_t k = around_.size(); k-- > from;) {
      const Around& a = around_[k];
      if (a.condition) s = make<IfThenElse>(a.condition, s, Stmt());
      if (!a.loop) continue;
      const Expr extent = a.loop->extent, none = int_imm(0, extent->dtype);
      if (uses_var(s, *a.loop->var))
        s = make<For>(a.loop->var, a.loop->min, extent, LoopKind::serial, std::string(), Attrs{}, s);
      else if (!arith_.prove(lt(none, extent)))
        s = make<IfThenElse>(lt(none, extent), s, Stmt());
    }
    return s;
  }

  std::set<const Buffer*> arguments_;  ///< that nothing writes
  std::set<const Var*> given_;         ///< parameters and sizes
  std::vector<Around> around_;
  std::vector<Stmt> checks_;
  VarMap lets_;
  std::set<const Var*> called_;              ///< names of what calls of functions outside gave
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
