// for i in vectorized 0..n: B[i] = A[i] + x   =>   B[ramp(0, 1, n)] = A[ramp(0, 1, n)] + broadcast(x, n)
//
// An expression of m lanes that depends on i becomes one of n * m lanes: the m lanes of the first i, then of the next.
// Where the target has Arm's SVE, n may be `T.vscale() * 4`: then vectors have as many lanes as the machine decides.
#include <unordered_set>

#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/vectorizer.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Thrown inside this file alone: the loop has to run serially.
struct CannotVectorize {
  std::string why;
  bool is_scalable = false;  ///< a vector of the body's is: such programs are refused
};

Expr widen(const Expr& e, Lanes lanes) { return make<Broadcast>(e, lanes); }

/// Each lane of e repeated `times` times in a row.
Expr repeat_each(const Expr& e, int times) {
  if (times == 1) return e;
  if (e->dtype.is_scalable) throw CannotVectorize{"a vector inside depends on it, and the loop's are scalable", true};
  if (const Broadcast* b = e.as<Broadcast>(); b && b->value->dtype.lanes == 1)
    return make<Broadcast>(b->value, b->lanes * Lanes(times));
  if (const Ramp* r = e.as<Ramp>(); r && r->base->dtype.lanes == 1)
    return make<Ramp>(widen(r->base, times), widen(r->stride, times), Lanes(r->lanes));
  std::vector<Expr> indices;
  for (int i = 0; i < e->dtype.lanes; ++i)
    for (int j = 0; j < times; ++j) indices.push_back(int_imm(i));
  return make<Shuffle>(std::vector<Expr>{e}, std::move(indices));
}

/// Thrown inside this file alone: the innermost statement around runs its iterations one after the other.
struct NeedsLoop {};

class Vectorizer {
 public:
  /// With `serial_conditions`, statements under a condition that differs between lanes stay loops; with `predicates` too, those
  /// whose accesses all follow a condition `i < n` are predicated instead.
  Vectorizer(const For& loop, Lanes lanes, bool serial_conditions = false, bool predicates = false)
      : loop_(loop), lanes_(lanes), serial_conditions_(serial_conditions), predicates_(predicates) {
    let_[loop.var] = make<Ramp>(loop.min, int_imm(1, loop.var->dtype), Lanes(lanes));
  }

  Expr expr(const Expr& e) {
    if (auto at = done_.find(e); at != done_.end()) return at->second;
    Expr out = rewritten(e);
    done_.emplace(e, out);
    return out;
  }

  /// The expression for all iterations; an invariant one is repeated.
  Expr wide(const Expr& e) {
    Expr w = expr(e);
    return w == e ? widen(e, lanes_) : w;
  }

  /// What a variable is bound to. A vector of an inner loop is repeated: without that its lanes look like this loop's.
  Expr bound(const Expr& e) { return e->dtype.lanes > 1 ? wide(e) : expr(e); }

  Stmt stmt(const Stmt& s) {
    if (!serial_conditions_) return widened(s);
    try {
      return widened(s);
    } catch (const NeedsLoop&) {
      for (const auto& [var, value] : let_) {
        if (var != loop_.var && uses_var(s, *var))
          throw CannotVectorize{
              text("a condition depends on the loop, and the vector ", var->name, " stands around it")};
      }
      VarRef one = make_var(text(loop_.var->name, "_s"), loop_.var->dtype);
      return make<For>(
          one, loop_.min, loop_.extent, LoopKind::serial, std::string(), Attrs{}, substitute(s, {{loop_.var, one}}));
    }
  }

 private:
  Stmt widened(const Stmt& s) {
    auto refuse = [](const char* what) -> Stmt { throw CannotVectorize{what}; };
    return match(
        s,
        [&](const BufferStore& n) -> Stmt {
          std::vector<Expr> indices = place(n.indices);
          Expr value = expr(n.value);
          if (indices == n.indices) {
            if (value != n.value)
              throw CannotVectorize{text("every iteration stores to the same place of ", n.buffer->name)};
            if (masked_)
              throw CannotVectorize{
                  text("a store to ", n.buffer->name, " does not depend on the loop, its condition does")};
            return s;
          }
          if (n.buffer->dtype.lanes != 1)
            throw CannotVectorize{text("buffer ", n.buffer->name, " has vectors as elements"),
                                  n.buffer->dtype.is_scalable};
          if (value == n.value) value = widen(value, lanes_);
          return make<BufferStore>(n.buffer, value, std::move(indices));
        },
        [&](const Seq& n) -> Stmt {
          std::vector<Stmt> all;
          for (const Stmt& inner : n.stmts) all.push_back(stmt(inner));
          return seq(std::move(all));
        },
        [&](const IfThenElse& n) -> Stmt {
          Expr condition = expr(n.condition);
          if (serial_conditions_ && condition != n.condition) {
            if (Stmt predicated = predicates_ && !n.else_case ? predicate(condition, stmt(n.then_case)) : nullptr)
              return predicated;
            throw NeedsLoop{};
          }
          bool outer = masked_;
          masked_ |= condition != n.condition;
          Stmt then = stmt(n.then_case), otherwise = n.else_case ? stmt(n.else_case) : nullptr;
          masked_ = outer;
          if (condition == n.condition && then == n.then_case && otherwise == n.else_case) return s;
          // The lanes of an inner loop decide alike in each iteration of this one.
          if (condition == n.condition && condition->dtype.lanes != 1) condition = widen(condition, lanes_);
          return make<IfThenElse>(condition, then, otherwise);
        },
        [&](const For& n) -> Stmt {
          if (expr(n.min) != n.min || expr(n.extent) != n.extent)
            throw CannotVectorize{text("the range of loop ", n.var->name, " depends on it")};
          if (n.kind == LoopKind::parallel) throw CannotVectorize{"there is a parallel loop inside"};
          return with(n, &For::body, stmt(n.body));
        },
        [&](const LetStmt& n) -> Stmt {
          Expr value = bound(n.value);
          if (value == n.value) return with(n, &LetStmt::body, stmt(n.body));
          VarRef wide = make_var(n.var->name, value->dtype);
          let_[n.var] = wide;
          return make<LetStmt>(value, wide, stmt(n.body));
        },
        [&](const AttrStmt& n) -> Stmt { return with(n, &AttrStmt::body, stmt(n.body)); },
        [&](const DeclBuffer& n) -> Stmt { return with(n, &DeclBuffer::body, stmt(n.body)); },
        [&](const Evaluate& n) -> Stmt {
          if (expr(n.value) != n.value || masked_) throw CannotVectorize{"a call for its effect depends on the loop"};
          return s;
        },
        [&](const Allocate&) -> Stmt { return refuse("a buffer is allocated inside"); },
        [&](const AllocateConst&) -> Stmt { return refuse("a buffer is allocated inside"); },
        [&](const While&) -> Stmt { return refuse("there is a while loop inside"); },
        [&](const AssertStmt& n) -> Stmt {
          if (expr(n.condition) != n.condition || masked_) return refuse("there is an assertion inside");
          return with(n, &AssertStmt::body, stmt(n.body));
        },
        [&](const Block&) -> Stmt { return refuse("there is a block inside"); },
        [&](const BlockRealize&) -> Stmt { return refuse("there is a block inside"); });
  }

  Expr rewritten(const Expr& e) {
    return match(
        e,
        [&](const Var& v) -> Expr {
          auto at = let_.find(ref(v));
          return at == let_.end() ? e : at->second;
        },
        [&](const Add& n) -> Expr { return sum(n, e, 1); },
        [&](const Sub& n) -> Expr { return sum(n, e, -1); },
        [&](const Mul& n) -> Expr {
          Expr a = expr(n.a), b = expr(n.b);
          if (a == n.a && b == n.b) return e;
          for (auto [ramp, factor] : {std::pair(a, b), std::pair(b, a)})
            if (const Ramp* r = scalar_ramp(ramp); r && factor->dtype.lanes == 1)
              return make<Ramp>(r->base * factor, r->stride * factor, Lanes(r->lanes));
          return rebuilt(e);
        },
        [&](const BufferLoad& n) -> Expr {
          std::vector<Expr> indices = place(n.indices);
          if (indices == n.indices) return e;
          if (n.buffer->dtype.lanes != 1)
            throw CannotVectorize{text("buffer ", n.buffer->name, " has vectors as elements"),
                                  n.buffer->dtype.is_scalable};
          return make<BufferLoad>(n.buffer, std::move(indices));
        },
        [&](const Let& n) -> Expr {
          Expr value = bound(n.value);
          if (value == n.value) return with(n, &Let::body, expr(n.body));
          VarRef wide = make_var(n.var->name, value->dtype);
          let_[n.var] = wide;
          return make<Let>(value, wide, expr(n.body));
        },
        [&](const Ramp& n) -> Expr {
          Expr base = expr(n.base), stride = expr(n.stride);
          if (base == n.base && stride == n.stride) return e;
          if (stride != n.stride || n.base->dtype.lanes != 1)
            throw CannotVectorize{"a ramp of vectors depends on the loop"};
          // lane (i, j): base(i) + stride * j
          if (const Ramp* r = scalar_ramp(base)) {
            one_scalable(n.lanes);
            auto outer = as_int(r->stride), inner = as_int(stride);
            if (outer && inner && *outer == *inner * n.lanes.count)
              return make<Ramp>(r->base, stride, r->lanes * n.lanes);
            return make<Ramp>(make<Ramp>(r->base, stride, Lanes(n.lanes)), widen(r->stride, n.lanes), Lanes(r->lanes));
          }
          one_scalable(n.lanes);
          Expr steps = make<Ramp>(int_imm(0, stride->dtype), stride, Lanes(n.lanes));
          return make<Add>(repeat_each(base, n.lanes.count), widen(steps, lanes_));
        },
        [&](const Broadcast& n) -> Expr {
          Expr value = expr(n.value);
          if (value == n.value) return e;
          if (n.value->dtype.lanes != 1) throw CannotVectorize{"a broadcast vector depends on the loop"};
          one_scalable(n.lanes);
          return repeat_each(value, n.lanes.count);
        },
        [&](const Shuffle& n) -> Expr {
          if (!changes(n.vectors)) return e;
          throw CannotVectorize{"a shuffle depends on the loop"};
        },
        [&](const Call& n) -> Expr {
          if (!changes(n.args)) return e;
          const Builtin* row = find_builtin(n.op);
          if (n.op == "tir.if_then_else") return choice(n);
          const bool is_llvms = n.op == "tir.call_llvm_pure_intrin";  // of vectors it computes each lane
          if (!is_llvms && (!row || !row->is_lanewise))
            throw CannotVectorize{text("a call of ", n.op, " depends on the loop")};
          std::vector<Expr> args;
          // Those of LLVM's begin with the function's name and the number of its types.
          for (const Expr& a : n.args) args.push_back(is_llvms && args.size() < 2 ? a : wide(a));
          return make<Call>(n.dtype.with_lanes(n.dtype.all_lanes() * lanes_), n.op, std::move(args));
        },
        [&](const Select& n) -> Expr {
          if (!changes({n.condition, n.true_value, n.false_value})) return e;
          const Lanes all = n.true_value->dtype.all_lanes() * lanes_;
          Expr condition = decides(n.condition, all);
          if (serial_conditions_ && condition->dtype.lanes == 1) condition = widen(condition, all);  // TVM's form
          return make<Select>(condition, wide(n.true_value), wide(n.false_value));
        },
        [&](const Cast& n) -> Expr {
          Expr value = expr(n.value);
          if (value == n.value) return e;
          return make<Cast>(n.dtype.with_lanes(n.dtype.all_lanes() * lanes_), value);
        },
        [&](const ExprNode&) -> Expr { return rebuilt(e); });
  }

  static const Ramp* scalar_ramp(const Expr& e) {
    const Ramp* r = e.as<Ramp>();
    return r && r->base->dtype.lanes == 1 ? r : nullptr;
  }

  bool changes(const std::vector<Expr>& all) {
    for (const Expr& e : all)
      if (expr(e) != e) return true;
    return false;
  }

  /// Indices of a place; at most the last one becomes a vector.
  std::vector<Expr> place(const std::vector<Expr>& indices) {
    std::vector<Expr> out;
    for (size_t i = 0; i < indices.size(); ++i) {
      out.push_back(expr(indices[i]));
      if (out.back() != indices[i] && i + 1 < indices.size())
        throw CannotVectorize{"a buffer of several dimensions was not flattened"};
    }
    return out;
  }

  template <class N>
  Expr sum(const N& n, const Expr& e, int sign) {
    Expr a = expr(n.a), b = expr(n.b);
    if (a == n.a && b == n.b) return e;
    const Ramp *r = scalar_ramp(a), *q = scalar_ramp(b);
    bool scalar_a = a->dtype.lanes == 1, scalar_b = b->dtype.lanes == 1;
    if (n.dtype.is_integer()) {
      if (r && scalar_b) return make<Ramp>(sign > 0 ? r->base + b : r->base - b, r->stride, Lanes(r->lanes));
      if (q && scalar_a)
        return make<Ramp>(sign > 0 ? a + q->base : a - q->base, sign > 0 ? q->stride : -q->stride, Lanes(q->lanes));
      if (r && q && a != n.a && b != n.b)
        return make<Ramp>(sign > 0 ? r->base + q->base : r->base - q->base,
                          sign > 0 ? r->stride + q->stride : r->stride - q->stride,
                          Lanes(r->lanes));
    }
    return rebuilt(e);
  }

  /// The same node over all iterations: every operand as wide as the others.
  Expr rebuilt(const Expr& e) {
    bool changed = false;
    e->info().each_child(*e, [&](const NodeRef& child) {
      if (const ExprNode* c = child->as<ExprNode>()) changed |= expr(ref(*c)) != ref(*c);
    });
    if (!changed) return e;
    NodeRef out = e->info().map_children(*e, [&](const NodeRef& child) -> NodeRef {
      const ExprNode* c = child->as<ExprNode>();
      return c ? NodeRef(wide(ref(*c))) : child;
    });
    return cast<ExprNode>(out);
  }

  Expr choice(const Call& n) {
    if (serial_conditions_ && expr(n.args[0]) != n.args[0]) throw NeedsLoop{};
    const DType dtype = n.dtype.with_lanes(n.dtype.all_lanes() * lanes_);
    return make<Call>(
        dtype, n.op, std::vector<Expr>{decides(n.args[0], dtype.all_lanes()), wide(n.args[1]), wide(n.args[2])});
  }

  /// The condition of a choice between values of `lanes` lanes. One that no iteration changes stays a scalar, so that only
  /// one value is computed.
  Expr decides(const Expr& condition, Lanes lanes) {
    Expr c = expr(condition);
    if (c != condition) return repeat_each(c, lanes.count / c->dtype.lanes);
    return c->dtype.lanes == 1 ? c : widen(c, lanes_);
  }

  /// The vectors of a scalable loop have no vectors as elements, nor does one over scalable vectors.
  void one_scalable(Lanes inner) const {
    if (lanes_.scalable || inner.scalable)
      throw CannotVectorize{"there are vectors inside, and some are scalable", true};
  }

  /// The statement under `ramp(i, 1, n) < broadcast(limit)`, each of its accesses with that predicate; null where one of them
  /// is not at i.
  Stmt predicate(const Expr& condition, const Stmt& body) {
    const LT* compare = condition.as<LT>();
    const Ramp* at = compare ? scalar_ramp(compare->a) : nullptr;
    const Broadcast* limit = compare ? compare->b.as<Broadcast>() : nullptr;
    if (!at || !is_one(at->stride) || !limit || limit->value->dtype.lanes != 1) return nullptr;
    const Expr mask = make<Call>(
        DType::Bool(at->lanes), std::string("tir.get_active_lane_mask"), std::vector<Expr>{at->base, limit->value});
    auto follows = [&](const std::vector<Expr>& indices) {
      const Ramp* r = indices.empty() ? nullptr : scalar_ramp(indices.back());
      return r && is_one(r->stride) && r->lanes == at->lanes && equal(r->base, at->base);
    };
    bool all = true, any = false;
    walk(body, [&](const BufferLoad& n) { all &= follows(n.indices); });
    walk(body, [&](const BufferStore& n) { any = true, all &= follows(n.indices); });
    walk(body, [&](const Call& n) { all &= n.op != "tir.get_active_lane_mask"; });
    if (!all || !any) return nullptr;
    return transform(
        body,
        [&](const BufferLoad& n) -> Expr { return predicated_load(Expr(&n), mask); },
        [&](const BufferStore& n) -> Stmt { return make<IfThenElse>(mask, ref(n), Stmt()); });
  }

  const For& loop_;
  Lanes lanes_;
  bool serial_conditions_, predicates_;
  bool masked_ = false;  // under a condition that differs between lanes
  std::unordered_map<Expr, Expr> done_;
  VarMap let_;  // what the loop variable and the bindings that depend on it became
};

constexpr int64_t kMaxLanes = 1024;

}  // namespace

std::optional<Expr> vectorized(const Expr& e, const For& loop, int lanes) {
  try {
    return Vectorizer(loop, lanes).wide(e);
  } catch (const CannotVectorize&) {
    return {};
  }
}

PrimFuncRef vectorize_loop(const PrimFuncRef& func, const LowerOptions& options) {
  const bool serial = option(options, "VectorizeLoop.serial_conditions", 0) != 0;
  std::unordered_set<VarRef> for_sve;
  walk(func->body, [&](const AttrStmt& region) {
    if (region.key == "target" && has_scalable_vectors(target_attr({{"target", region.node}})))
      walk(region.body, [&](const For& loop) { for_sve.insert(loop.var); });
  });
  const bool whole_for_sve = has_scalable_vectors(options.target_of(*func));
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    if (loop.kind != LoopKind::vectorized) return ref(loop);
    const bool sve = whole_for_sve || for_sve.contains(loop.var);
    const std::optional<Lanes> lanes = as_lanes(loop.extent);
    if (lanes && lanes->scalable && !sve)
      fail({.what = text("loop ",
                         loop.var->name,
                         " has the extent ",
                         loop.extent,
                         ", a number of lanes that the machine decides"),
            .needs = "a target that has scalable vectors (Arm's SVE)",
            .hint = "vectorize a loop of a constant extent, or name a target with -mtriple=aarch64-... -mattr=+sve",
            .at = {{ref(loop), "scalable extent"}}});
    if (!lanes && !as_int(loop.extent))
      fail({.what = text("loop ", loop.var->name, " has a symbolic extent and cannot be vectorized"),
            .needs = "a constant extent",
            .hint = "split the loop by a constant factor and vectorize the inner loop",
            .at = {{ref(loop), "symbolic extent"}}});
    if (is_one(loop.extent)) return substitute(loop.body, {{loop.var, loop.min}});
    Reason why{.what = text("loop ", loop.var->name, " runs serially, not as a vector")};
    if (!lanes || lanes->count > kMaxLanes) {
      why.needs = text("an extent from 1 to ", kMaxLanes);
      why.hint = "split the loop by the lanes of a vector";
    } else {
      try {
        const bool predicates = option(options, "tir.enable_buffer_level_predication", sve) != 0;
        return Vectorizer(loop, *lanes, serial, predicates).stmt(loop.body);
      } catch (const CannotVectorize& reason) {
        if (lanes->scalable || reason.is_scalable)
          fail({.what = text(
                    "loop ", loop.var->name, " of ", loop.extent, " iterations cannot be vectorized: ", reason.why),
                .needs = "a body of scalars whose stores follow the loop variable",
                .hint = "vectorize an inner loop of a constant extent",
                .at = {{ref(loop), "scalable extent"}}});
        why.needs = "a body whose stores follow the loop variable";
        why.hint = reason.why;
      }
    }
    if (options.note) options.note(why);
    return with(loop, &For::kind, LoopKind::serial);
  });
  return with_body(func, body);
}

}  // namespace sator::passes
