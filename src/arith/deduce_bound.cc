#include "arith/deduce_bound.h"

#include "arith/analyzer.h"
#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/kind.h"
#include "arith/linear.h"

namespace sator::arith {
namespace {

int count(const Expr& e, const VarRef& var) {
  int n = 0;
  // walk() enters a variable once: what is shared would be counted once too.
  Kind kind = kind_of(e);
  if (kind == Kind::var) return e.get() == var.get();
  e->info().each_child(*e, [&](const NodeRef& child) {
    if (const ExprNode* part = child->as<ExprNode>()) n += count(ref(*part), var);
  });
  return n;
}

/// `side` stands to `limit` as `order` says, for all values of the relaxed variables.
class Isolation {
 public:
  Isolation(const VarRef& var, const SetMap& hints, const SetMap& relaxed) : var_(var), relaxed_(relaxed) {
    for (const auto& sets : {&hints, &relaxed}) {
      for (const auto& [v, set] : *sets) {
        Bounds b;
        if (set.has_lower()) b.min = analyzer_.bounds(set.min).min;
        if (set.has_upper()) b.max = analyzer_.bounds(set.max).max;
        analyzer_.bind(v, b);
      }
    }
  }

  IntSet solve(Expr side, Order order, Expr limit) {
    order_ = order;
    limit_ = analyzer_.simplify(limit);
    while (side.get() != var_.get()) {
      Kind kind = kind_of(side);
      if (kind != Kind::add && kind != Kind::sub && kind != Kind::mul && kind != Kind::floordiv)
        return IntSet::nothing();
      Operands o = operands(*side, kind);
      bool in_a = uses_var(o.a, *var_);
      const Expr &next = in_a ? o.a : o.b, &rest = in_a ? o.b : o.a;
      bool done = kind == Kind::add   ? move(Kind::sub, rest)
                  : kind == Kind::sub ? (in_a ? move(Kind::add, rest) : mirror(rest))
                  : kind == Kind::mul ? divide(rest)
                                      : in_a && multiply(rest);
      if (!done) return IntSet::nothing();
      side = next;
    }
    Expr end = relax();
    if (!end) return IntSet::nothing();
    if (order_ == Order::eq) return IntSet::point(end);
    return order_ == Order::le ? IntSet::interval(nullptr, end) : IntSet::interval(end, nullptr);
  }

 private:
  void set(Expr limit) { limit_ = analyzer_.simplify(limit); }
  bool move(Kind kind, const Expr& rest) {
    set(combine_exprs(kind, limit_, rest));
    return true;
  }
  void turn() {
    if (order_ != Order::eq) order_ = order_ == Order::le ? Order::ge : Order::le;
  }
  /// rest - x stands to limit: x stands, turned, to rest - limit.
  bool mirror(const Expr& rest) {
    set(combine_exprs(Kind::sub, rest, limit_));
    turn();
    return true;
  }

  /// x * factor stands to limit.
  bool divide(const Expr& factor) {
    for (const VarRef& v : vars_in(factor)) {
      if (relaxed_.contains(v)) return false;
    }
    bool negative = analyzer_.prove_lt(factor, 0);
    if (!negative && !analyzer_.prove_ge(factor, 1)) return false;
    Expr limit = relax();
    if (!limit) return false;
    bool exact = analyzer_.prove_equal(floormod(limit, factor), int_imm(0, factor->dtype));
    if (order_ == Order::eq && !exact) return false;
    if (negative) turn();
    // x <= limit / factor rounds down, x >= limit / factor up.
    if (order_ == Order::ge && !exact) {
      Expr toward = negative ? limit + 1 : limit - 1;
      set(floordiv(toward, factor) + 1);
    } else {
      set(floordiv(limit, factor));
    }
    return true;
  }

  /// x // divisor stands to limit.
  bool multiply(const Expr& divisor) {
    auto d = as_int(divisor);
    if (!d || *d == 0 || order_ == Order::eq) return false;
    bool at_most = order_ == Order::le;
    if (*d < 0) turn();
    // x // d <= l: x / d < l + 1; x // d >= l: x / d >= l.
    Expr edge = limit_;
    if (at_most) edge = edge + 1;
    edge = edge * *d;
    if (at_most) edge = *d > 0 ? edge - 1 : edge + 1;
    set(edge);
    return true;
  }

  /// The limit that all values of the relaxed variables keep to; null if it is not known.
  Expr relax() {
    IntSet values = eval_set(limit_, relaxed_);
    if (values.empty) return nullptr;
    if (order_ == Order::eq) return values.is_point() ? limit_ : nullptr;
    Expr end = order_ == Order::le ? values.min : values.max;
    return end ? analyzer_.simplify(end) : nullptr;
  }

  Analyzer analyzer_;
  VarRef var_;
  const SetMap& relaxed_;
  Order order_ = Order::eq;
  Expr limit_;
};

}  // namespace

IntSet deduce_bound(const VarRef& var, const Expr& condition, const SetMap& hints, const SetMap& relaxed) {
  Kind kind = kind_of(condition);
  if (!is_compare(kind) || kind == Kind::ne || count(condition, var) != 1) return IntSet::nothing();
  Operands o = operands(*condition, kind);
  if (!is_index(o.a->dtype)) return IntSet::nothing();
  bool on_left = uses_var(o.a, *var);
  Expr side = on_left ? o.a : o.b, limit = on_left ? o.b : o.a;
  if (kind == Kind::eq) return Isolation(var, hints, relaxed).solve(side, Order::eq, limit);
  bool at_most = (kind == Kind::lt || kind == Kind::le) == on_left;
  bool strict = kind == Kind::lt || kind == Kind::gt;
  if (strict) limit = at_most ? limit - 1 : limit + 1;
  return Isolation(var, hints, relaxed).solve(side, at_most ? Order::le : Order::ge, limit);
}

std::vector<IntSet> detect_clip_bound(const Expr& condition, const std::vector<VarRef>& vars) {
  Analyzer analyzer;
  std::vector<std::vector<IntSet>> bounds(vars.size());
  for (const Expr& part : conjuncts(analyzer.simplify(condition))) {
    Kind kind = kind_of(part);
    if (!is_compare(kind) || kind == Kind::ne) return {};
    Operands o = operands(*part, kind);
    if (!is_index(o.a->dtype)) return {};
    std::optional<size_t> of;
    for (size_t i = 0; i < vars.size(); ++i) {
      if (!uses_var(part, *vars[i])) continue;
      if (of) return {};
      of = i;
    }
    if (!of) return {};
    // difference >= 0, or == 0
    bool less = kind == Kind::lt || kind == Kind::le;
    Expr difference = less ? o.b - o.a : o.a - o.b;
    if (kind == Kind::lt || kind == Kind::gt) difference = difference - 1;
    auto linear = detect_linear(difference, {vars[*of]});
    auto factor = linear ? as_int(linear->coefficients[0]) : std::nullopt;
    if (!factor || (*factor != 1 && *factor != -1)) return {};
    Expr end = *factor > 0 ? int_imm(0, linear->base->dtype) - linear->base : linear->base;
    bounds[*of].push_back(kind == Kind::eq ? IntSet::point(end)
                          : *factor > 0    ? IntSet::interval(end, nullptr)
                                           : IntSet::interval(nullptr, end));
  }
  std::vector<IntSet> out;
  for (const auto& sets : bounds) {
    IntSet s = sets.empty() ? IntSet::everything() : intersect(sets);
    if (s.min) s.min = analyzer.simplify(s.min);
    if (s.max) s.max = analyzer.simplify(s.max);
    out.push_back(s);
  }
  return out;
}

namespace {

class Narrowing {
 public:
  explicit Narrowing(const RangeMap& free) : free_(free) {}

  /// A condition that implies `e` (`stronger`), or one that follows from it.
  Expr condition(const Expr& e, bool stronger) {
    Kind kind = kind_of(e);
    if (kind == Kind::logical_and || kind == Kind::logical_or) {
      Operands o = operands(*e, kind);
      return make_binary(kind, condition(o.a, stronger), condition(o.b, stronger));
    }
    if (const Not* n = e.as<Not>()) return fold_not(condition(n->a, !stronger));
    if (!is_compare(kind)) return unknown_in(e) ? bool_imm(!stronger) : e;
    Operands o = operands(*e, kind);
    if (!o.a->dtype.is_integer()) return unknown_in(e) ? bool_imm(!stronger) : e;
    if (kind == Kind::eq)
      return logical_and(condition(make<LE>(o.a, o.b), stronger), condition(make<LE>(o.b, o.a), stronger));
    if (kind == Kind::ne)
      return logical_or(condition(make<LT>(o.a, o.b), stronger), condition(make<LT>(o.b, o.a), stronger));
    bool less = kind == Kind::lt || kind == Kind::le;
    // The side that has to be the smaller one at its greatest.
    Expr a = value(o.a, less == stronger), b = value(o.b, less != stronger);
    if (!a || !b) return bool_imm(!stronger);
    return a == o.a && b == o.b ? e : make_binary(kind, a, b);
  }

 private:
  bool unknown_in(const Expr& e) const {
    bool found = false;
    walk(e, [&](const BufferLoad&) { found = true; }, [&](const Var& v) { found |= free_.contains(ref(v)); });
    return found || !is_pure(e);
  }

  /// `e` at its greatest or least, without the free variables; null if it is not monotonic in them.
  Expr value(const Expr& e, bool greatest) {
    if (!unknown_in(e)) return e;
    Kind kind = kind_of(e);
    if (kind == Kind::var) {
      const Range& range = *free_.at(ref(static_cast<const Var&>(*e)));
      return greatest ? range.min + (range.extent - 1) : range.min;
    }
    if (!is_arithmetic(kind)) return nullptr;
    Operands o = operands(*e, kind);
    bool turned = kind == Kind::sub;
    if (kind == Kind::mul || kind == Kind::div || kind == Kind::floordiv) {
      auto factor = as_int(o.b);
      if (!factor || *factor == 0) return nullptr;
      Expr a = value(o.a, greatest == (*factor > 0));
      return a ? make_binary(kind, a, o.b) : nullptr;
    }
    if (kind == Kind::mod || kind == Kind::floormod) return nullptr;
    Expr a = value(o.a, greatest), b = value(o.b, greatest != turned);
    return a && b ? make_binary(kind, a, b) : nullptr;
  }

  const RangeMap& free_;
};

}  // namespace

Expr narrow_predicate(const Expr& condition, const RangeMap& free) {
  return Narrowing(free).condition(condition, true);
}

}  // namespace sator::arith
