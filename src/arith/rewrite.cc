#include "arith/rewrite.h"

#include <cmath>

#include "arith/analyzer.h"
#include "arith/bounds.h"
#include "arith/fold.h"
#include "arith/rules/tables.h"

namespace sator::arith {
namespace {

constexpr int kMaxDepth = 5;  ///< of results that are looked at again: rules could chase each other

struct TableSet {
  const RuleTable* vector;
  const RuleTable* index;
};

TableSet arithmetic_tables(Kind kind) {
  using namespace rules;
  switch (kind) {
    case Kind::add: return {&add_vector(), &add_index()};
    case Kind::sub: return {&sub_vector(), &sub_index()};
    case Kind::mul: return {&mul_vector(), &mul_index()};
    case Kind::div: return {&div_vector(), &div_index()};
    case Kind::mod: return {&mod_vector(), &mod_index()};
    case Kind::floordiv: return {&floordiv_vector(), &floordiv_index()};
    case Kind::floormod: return {&floormod_vector(), &floormod_index()};
    case Kind::min: return {&min_vector(), &min_index()};
    default: return {&max_vector(), &max_index()};
  }
}

Expr truth(bool value, DType dtype) { return int_constant(value, dtype); }

}  // namespace

Expr normalize_condition(Expr e) {
  while (true) {
    Kind kind = kind_of(e);
    if (kind == Kind::ge || kind == Kind::gt) {
      Operands o = operands(*e, kind);
      return make_binary(kind == Kind::ge ? Kind::le : Kind::lt, o.b, o.a);
    }
    if (kind != Kind::logical_not) return e;
    Expr inner = static_cast<const Not&>(*e).a;
    Kind k = kind_of(inner);
    if (k == Kind::logical_not) {
      e = static_cast<const Not&>(*inner).a;
      continue;
    }
    if (!is_binary(k)) return e;
    Operands o = operands(*inner, k);
    switch (k) {
      case Kind::logical_or:
      case Kind::logical_and:
        return make_binary(k == Kind::logical_or ? Kind::logical_and : Kind::logical_or,
                           normalize_condition(make<Not>(o.a)),
                           normalize_condition(make<Not>(o.b)));
      case Kind::lt: return make<LE>(o.b, o.a);
      case Kind::gt: return make<LE>(o.a, o.b);
      case Kind::le: return make<LT>(o.b, o.a);
      case Kind::ge: return make<LT>(o.a, o.b);
      case Kind::eq: return make<NE>(o.a, o.b);
      case Kind::ne: return make<EQ>(o.a, o.b);
      default: return e;
    }
  }
}

Expr Rewriter::operator()(const Expr& e) {
  Expr result = e;
  for (int round = 0; round < 2; ++round) {
    Expr next = visit(result);
    if (next == result) break;
    result = next;
  }
  return result;
}

Expr Rewriter::visit_again(const Expr& e) {
  if (depth_ >= kMaxDepth) return e;
  ++depth_;
  Expr result = visit(e);
  --depth_;
  return result;
}

void Rewriter::note(const Rule& rule) {
  if (analyzer_.on_rule) analyzer_.on_rule(rule.name);
}

bool Rewriter::stays_in_range(const Expr& e) {
  const Bounds b = analyzer_.bounds(e);
  return !is_inf(b.min) && !is_inf(b.max) && fits(b.min, e->dtype) && fits(b.max, e->dtype);
}

int64_t Rewriter::residue(int64_t number, int64_t divisor, FunctionRef<Expr(int64_t)> dividend) {
  const int64_t floored = floor_mod(number, divisor), truncated = number % divisor;
  const bool power_of_two = divisor > 0 && (divisor & (divisor - 1)) == 0;  // what wraps has the same residue
  if (floored == truncated || power_of_two || stays_in_range(dividend(floored))) return floored;
  // Where the dividend's range is not known, a smaller number is taken to leave none.
  auto size = [](int64_t v) { return v < 0 ? -static_cast<__int128>(v) : v; };
  return size(floored) < size(number) && !stays_in_range(dividend(number)) ? floored : truncated;
}

bool Rewriter::holds(const Pattern& guard, const Bindings& bindings) {
  if (guard.only_constants()) return guard.value(bindings).value_or(0) != 0;
  Expr e = guard.fill(bindings);
  if (!e) return false;
  if (auto v = as_int(e)) return *v != 0;
  Kind kind = kind_of(e);
  if (!is_compare(kind)) internal_error("a rule's guard is not a comparison");
  Operands o = operands(*e, kind);
  const IntImm* bound = o.b.as<IntImm>();
  if (!bound) internal_error("a rule's guard compares with no constant");
  switch (kind) {
    case Kind::ge: return analyzer_.prove_ge(o.a, bound->value);
    case Kind::lt: return analyzer_.prove_lt(o.a, bound->value);
    case Kind::eq: return compare(o.a, bound->value) == Order::eq;
    default: internal_error("a rule's guard has a comparison that cannot be proved");
  }
}

Order Rewriter::compare(const Expr& e, int64_t value) {
  // Light on purpose: rules ask often.
  Expr simplified = visit(e);
  if (auto v = as_int(simplified)) return *v == value ? Order::eq : *v > value ? Order::gt : Order::lt;
  Bounds b = analyzer_.bounds(simplified);
  if (b.min == value && b.max == value) return Order::eq;
  if (b.min > value) return Order::gt;
  if (b.max < value) return Order::lt;
  if (b.min >= value) return Order::ge;
  if (b.max <= value) return Order::le;
  if (value == 0 && analyzer_.modular(simplified).base != 0) return Order::ne;
  return Order::unknown;
}

Order Rewriter::compare(const Expr& a, const Expr& b) {
  Order order = compare(fold(Kind::sub, a, b), 0);
  if (order == Order::eq || order == Order::lt || order == Order::gt) return order;
  return order & analyzer_.known_order(a, b);
}

void Rewriter::assume(const Expr& condition) {
  // What is met later is simplified: so is what it is compared with.
  Expr simplified = (*this)(condition);
  if (const Not* n = condition.as<Not>(); n && is_pure(n->a)) literals_.push_back({(*this)(n->a), false});
  for_each_operand(simplified, Kind::logical_and, [&](const Expr& part) {
    if (!is_pure(part)) return;
    literals_.push_back({part, true});
    if (part->dtype.is_bool()) literals_.push_back({normalize_condition(make<Not>(part)), false});
  });
}

Expr Rewriter::by_assumption(const Expr& e) const {
  for (const Literal& l : literals_)
    if (same(l.expr, e)) return truth(l.truth, e->dtype);
  return nullptr;
}

Expr Rewriter::visit_node(const Expr& e) {
  Kind kind = kind_of(e);
  if (is_arithmetic(kind)) return visit_arithmetic(e, kind);
  if (is_compare(kind)) {
    Expr result = visit_compare(e, kind);
    return same(result, e) ? e : result;
  }
  switch (kind) {
    case Kind::int_imm:
    case Kind::float_imm:
    case Kind::string_imm: return e;
    case Kind::var: {
      if (e->dtype.is_bool())
        if (Expr known = by_assumption(e)) return known;
      auto at = vars_.find(VarRef(static_cast<const Var*>(e.get())));
      return at == vars_.end() ? e : at->second;
    }
    case Kind::logical_and:
    case Kind::logical_or: return visit_logic(e, kind);
    case Kind::logical_not: return visit_not(e);
    case Kind::select: return visit_select(e);
    case Kind::cast: return visit_cast(e);
    case Kind::call: return visit_call(e);
    case Kind::let: return visit_let(e);
    default: return visit_other(e);
  }
}

Expr Rewriter::visit_other(const Expr& e) {
  NodeRef mapped = e->info().map_children(*e, [this](const NodeRef& child) -> NodeRef {
    const ExprNode* part = child->as<ExprNode>();
    return part ? NodeRef(visit(Expr(part))) : child;
  });
  return mapped.get() == e.get() ? e : Expr(mapped.as<ExprNode>());
}

Expr Rewriter::with_visited(const Expr& e, Kind kind) {
  Operands o = operands(*e, kind);
  Expr a = visit(o.a), b = kept_divisor(kind, o.b, visit(o.b));
  return a == o.a && b == o.b ? e : make_binary(kind, std::move(a), std::move(b));
}

Expr Rewriter::visit_arithmetic(const Expr& e, Kind kind) {
  Expr current = with_visited(e, kind);
  Operands o = operands(*current, kind);
  if (Expr folded = try_fold(kind, o.a, o.b)) return folded;
  if (kind == Kind::div) {
    // Division by a power of two is exact as a product.
    const FloatImm* f = o.b.as<FloatImm>();
    int exponent = 0;
    if (f && f->value != 0 && std::isfinite(f->value) && std::fabs(std::frexp(f->value, &exponent)) == 0.5 &&
        std::abs(exponent) < 14)
      return o.a * float_imm(1 / f->value, f->dtype);
  }
  TableSet tables = arithmetic_tables(kind);
  if (e->dtype.lanes > 1) {
    if (Expr r = tables.vector->set.apply(current, *this)) return r;
  } else if (is_index(e->dtype)) {
    if (kind == Kind::min || kind == Kind::max) {
      if (same(o.a, o.b)) return o.a;
      Bounds a = analyzer_.bounds(o.a), b = analyzer_.bounds(o.b);
      bool a_below = a.max <= b.min, b_below = b.max <= a.min;
      if (a_below) return kind == Kind::min ? o.a : o.b;
      if (b_below) return kind == Kind::min ? o.b : o.a;
    }
    if (Expr r = tables.index->set.apply(current, *this)) return r;
  }
  if (kind == Kind::add || kind == Kind::sub || kind == Kind::min || kind == Kind::max)
    if (Expr r = rules::of_selects().set.apply(current, *this)) return r;
  return current;
}

Expr Rewriter::visit_compare(const Expr& e, Kind kind) {
  if (kind == Kind::gt || kind == Kind::ge) {
    Operands o = operands(*e, kind);
    return visit(make_binary(kind == Kind::gt ? Kind::lt : Kind::le, o.b, o.a));
  }
  Expr current = with_visited(e, kind);
  Operands o = operands(*current, kind);
  if (Expr folded = try_fold(kind, o.a, o.b)) return folded;
  if (Expr known = by_assumption(current)) return known;
  if (kind == Kind::eq) return rewrite_eq(current);
  if (kind == Kind::lt) return rewrite_lt(current);
  bool index = is_index(o.a->dtype);
  if (kind == Kind::ne) {
    if (index) {
      Order order = compare(o.a, o.b);
      if (within(order, Order::ne)) return truth(true, e->dtype);
      if (order == Order::eq) return truth(false, e->dtype);
      if (order == Order::ge) return rewrite_lt(make<LT>(o.b, o.a));
      if (order == Order::le) return rewrite_lt(make<LT>(o.a, o.b));
    }
    return rewrite_not(fold_not(rewrite_eq(make<EQ>(o.a, o.b))));
  }
  if (o.a->dtype.is_float()) return current;  // a <= b is no !(b < a) where one is a NaN
  // a <= b: the rules are about `<`. They come before the proof, so that 6 <= x * 4 becomes 2 <= x.
  Expr result = rewrite_not(fold_not(rewrite_lt(make<LT>(o.b, o.a))));
  const LE* le = result.as<LE>();
  if (!le || !index) return result;
  Order order = compare(le->a, le->b);
  if (within(order, Order::le)) return truth(true, e->dtype);
  if (order == Order::gt) return truth(false, e->dtype);
  if (order == Order::ne) return rewrite_lt(make<LT>(le->a, le->b));
  if (order == Order::ge) return rewrite_eq(make<EQ>(le->a, le->b));
  return result;
}

Expr Rewriter::rewrite_eq(const Expr& e) {
  const EQ* eq = e.as<EQ>();
  if (!eq) return e;
  if (e->dtype.lanes > 1)
    if (Expr r = rules::compare_vector().set.apply(e, *this)) return r;
  if (!is_index(eq->a->dtype)) return e;
  Order order = compare(eq->a, eq->b);
  if (order == Order::eq) return truth(true, e->dtype);
  if (within(order, Order::ne)) return truth(false, e->dtype);
  Expr r = rules::eq_index().set.apply(e, *this);
  return r ? r : e;
}

Expr Rewriter::rewrite_lt(const Expr& e) {
  const LT* lt = e.as<LT>();
  if (!lt) return e;
  if (e->dtype.lanes > 1)
    if (Expr r = rules::compare_vector().set.apply(e, *this)) return r;
  if (!is_index(lt->a->dtype)) return e;
  Order order = compare(lt->a, lt->b);
  if (order == Order::lt) return truth(true, e->dtype);
  if (within(order, Order::ge)) return truth(false, e->dtype);
  // What moves to the other side must have room there. Of a side that may be anything, it is taken to have.
  auto known = [&](const Expr& x) { return stays_in_range(x) && analyzer_.bounds(x) != bounds_of(x->dtype); };
  auto has_room = [&](const Expr& r) {
    const LT* to = r.as<LT>();
    return !to || (stays_in_range(to->a) && stays_in_range(to->b)) || !known(lt->a) || !known(lt->b);
  };
  if (Expr r = rules::lt_index().set.apply(e, *this); r && has_room(r)) return r;
  if (Expr r = merge_offsets(lt->a, lt->b); r && has_room(r)) return visit_again(r);
  Modular a = analyzer_.modular(lt->a), b = analyzer_.modular(lt->b);
  int64_t factor = gcd(gcd(a.base, a.coeff), gcd(b.base, b.coeff));
  if (factor > 1 && fits(factor, lt->a->dtype)) {
    Expr f = int_imm(factor, lt->a->dtype);
    return visit_again(make<LT>(fold(Kind::floordiv, lt->a, f), fold(Kind::floordiv, lt->b, f)));
  }
  return e;
}

/// x + c < y + d with the constants brought to one side, the positive one; null if they are so already.
Expr Rewriter::merge_offsets(const Expr& a, const Expr& b) {
  struct Split {
    Expr expr;
    int64_t offset;
  };
  auto split = [](const Expr& e) -> Split {
    if (const Add* n = e.as<Add>()) {
      if (const IntImm* c = n->b.as<IntImm>()) return {n->a, c->value};
    } else if (const Sub* n = e.as<Sub>()) {
      if (const IntImm* c = n->b.as<IntImm>(); c && c->value > kNegInf) return {n->a, -c->value};
    }
    return {e, 0};
  };
  Split l = split(a), r = split(b);
  if (l.offset == 0 && r.offset == 0) return nullptr;
  auto diff = checked_sub(r.offset, l.offset);
  if (!diff || *diff <= kNegInf || !fits(*diff, a->dtype) || !fits(-*diff, a->dtype)) return nullptr;
  if (*diff == 0) return make<LT>(l.expr, r.expr);
  if (*diff == 1) return make<LE>(l.expr, r.expr);
  if (*diff < 0 && r.offset != 0) return make<LT>(fold(Kind::add, l.expr, int_imm(-*diff, a->dtype)), r.expr);
  if (*diff > 0 && l.offset != 0) return make<LT>(l.expr, fold(Kind::add, r.expr, int_imm(*diff, a->dtype)));
  return nullptr;
}

Expr Rewriter::visit_not(const Expr& e) {
  const auto& n = static_cast<const Not&>(*e);
  Expr a = visit(n.a);
  if (a.as<IntImm>()) return fold_not(a);
  Expr current = a == n.a ? e : Expr(make<Not>(a));
  if (Expr known = by_assumption(current)) return known;
  return rewrite_not(current);
}

Expr Rewriter::rewrite_not(const Expr& e) {
  if (kind_of(e) != Kind::logical_not) return e;
  if (e->dtype.lanes > 1)
    if (Expr r = rules::compare_vector().set.apply(e, *this)) return r;
  // Of floats only == and != have an opposite: with a NaN neither x < y nor y <= x holds.
  const Expr& inner = static_cast<const Not&>(*e).a;
  if (const Kind kind = kind_of(inner); is_compare(kind) && kind != Kind::eq && kind != Kind::ne)
    if (operands(*inner, kind).a->dtype.is_float()) return e;
  Expr r = rules::logical_not().set.apply(e, *this);
  return r ? r : e;
}

Expr Rewriter::visit_logic(const Expr& e, Kind kind) {
  Expr current;
  if (!analyzer_.constrain_branches) {
    current = with_visited(e, kind);
  } else {
    // Each side in turn is simplified where the other decides: twice at most, as one may sharpen the other.
    Operands o = operands(*e, kind);
    Expr sides[2] = {o.a, o.b};
    int unchanged = 0;
    for (int i = 0; i < 4 && unchanged < 2; ++i) {
      Expr condition = sides[1 - i % 2];
      if (kind == Kind::logical_or) condition = normalize_condition(make<Not>(condition));
      auto scope = analyzer_.with_constraint(condition);
      Expr updated = visit(sides[i % 2]);
      unchanged = updated == sides[i % 2] ? unchanged + 1 : 0;
      sides[i % 2] = updated;
    }
    current = sides[0] == o.a && sides[1] == o.b ? e : make_binary(kind, sides[0], sides[1]);
  }
  Operands o = operands(*current, kind);
  if (Expr folded = try_fold(kind, o.a, o.b)) return folded;
  if (Expr known = by_assumption(current)) return known;
  if (e->dtype.lanes > 1)
    if (Expr r = rules::compare_vector().set.apply(current, *this)) return r;
  const RuleTable& table = kind == Kind::logical_and ? rules::logical_and() : rules::logical_or();
  Expr r = table.set.apply(current, *this);
  return r ? r : current;
}

}  // namespace sator::arith
