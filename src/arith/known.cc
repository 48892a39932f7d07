#include "arith/known.h"

#include <algorithm>
#include <map>

#include "arith/fold.h"
#include "arith/kind.h"

namespace sator::arith {
namespace {

Order reversed(Order o) {
  bool lt = (o & Order::lt) != Order::none, gt = (o & Order::gt) != Order::none;
  int v =
      static_cast<int>(o & Order::eq) | (lt ? static_cast<int>(Order::gt) : 0) | (gt ? static_cast<int>(Order::lt) : 0);
  return Order(v);
}

std::optional<Order> order_of(Kind kind) {
  switch (kind) {
    case Kind::eq: return Order::eq;
    case Kind::ne: return Order::ne;
    case Kind::lt: return Order::lt;
    case Kind::le: return Order::le;
    case Kind::gt: return Order::gt;
    case Kind::ge: return Order::ge;
    default: return {};
  }
}

struct Offset {
  Expr expr;
  int64_t value;
};

/// e as expr + value; a constant is 0 + itself.
Offset split_offset(const Expr& e) {
  if (const Add* n = e.as<Add>()) {
    if (const IntImm* c = n->b.as<IntImm>()) return {n->a, c->value};
  } else if (const Sub* n = e.as<Sub>()) {
    if (const IntImm* c = n->b.as<IntImm>(); c && c->value != std::numeric_limits<int64_t>::min())
      return {n->a, -c->value};
  } else if (const IntImm* c = e.as<IntImm>()) {
    return {int_imm(0, e->dtype), c->value};
  }
  return {e, 0};
}

}  // namespace

bool KnownComparisons::Known::implies(const Known& o) const {
  if (order == o.order && offset == o.offset) return true;
  if (o.order == Order::le) return offset <= o.offset && (order == Order::eq || order == Order::le);
  if (o.order == Order::ge) return offset >= o.offset && (order == Order::eq || order == Order::ge);
  if (o.order != Order::ne) return false;
  return (order == Order::eq && offset != o.offset) || (order == Order::le && offset < o.offset) ||
         (order == Order::ge && offset > o.offset);
}

std::optional<KnownComparisons::Key> KnownComparisons::find(const Expr& e) const {
  for (size_t i = 0; i < exprs_.size(); ++i)
    if (same(exprs_[i], e)) return i;
  return {};
}

KnownComparisons::Key KnownComparisons::key(const Expr& e) {
  if (auto k = find(e)) return *k;
  exprs_.push_back(e);
  return exprs_.size() - 1;
}

void KnownComparisons::add(const Expr& condition, PooledVector<Known>& to) {
  for (const Expr& part : conjuncts(condition)) {
    Kind kind = kind_of(part);
    auto order = order_of(kind);
    if (!order || !is_pure(part)) continue;
    Operands o = operands(*part, kind);
    if (!o.a->dtype.is_int() || (o.a.as<IntImm>() && o.b.as<IntImm>())) continue;
    Offset a = split_offset(o.a), b = split_offset(o.b);
    auto offset = checked_sub(b.value, a.value);
    if (!offset) continue;
    // Strict comparisons of integers become weak ones.
    if (*order == Order::lt) {
      order = Order::le;
      offset = checked_sub(*offset, 1);
    } else if (*order == Order::gt) {
      order = Order::ge;
      offset = checked_add(*offset, 1);
    }
    if (offset && *offset >= kNegInf) to.push_back({key(a.expr), key(b.expr), *offset, *order});
  }
}

void KnownComparisons::forget(const VarRef& var) {
  if (auto k = find(var)) std::erase_if(global_, [&](const Known& known) { return known.lhs == *k; });
}

void KnownComparisons::bind(const VarRef& var, const Range& range) {
  if (is_one(range.extent)) return bind(var, range.min);
  forget(var);
  // Of constants, most by far, what the comparisons below come to.
  const IntImm *min = range.min.as<IntImm>(), *extent = range.extent.as<IntImm>();
  if (const auto end = min && extent ? checked_add(min->value, extent->value) : std::nullopt;
      end && var->dtype.is_int()) {
    const Key of_var = key(var), zero = key(int_imm(0, range.min->dtype));
    global_.push_back({of_var, zero, min->value, Order::ge});
    if (const auto last = checked_sub(*end, 1)) global_.push_back({of_var, zero, *last, Order::le});
    return;
  }
  add(make<GE>(Expr(var), range.min), global_);
  add(make<LT>(Expr(var), fold(Kind::add, range.min, range.extent)), global_);
}

void KnownComparisons::bind(const VarRef& var, const Expr& value) {
  forget(var);
  if (var->dtype == value->dtype) add(make<EQ>(Expr(var), value), global_);
}

PooledVector<KnownComparisons::Known> KnownComparisons::direct(Key a, Key b) const {
  PooledVector<Known> out;
  for (const auto* list : {&global_, &scoped_}) {
    for (const Known& k : *list) {
      if (k.lhs == a && k.rhs == b)
        out.push_back(k);
      else if (k.lhs == b && k.rhs == a)
        out.push_back({a, b, -k.offset, reversed(k.order)});
    }
  }
  return out;
}

PooledVector<KnownComparisons::Known> KnownComparisons::reachable(Key a, Key b) const {
  // A search from a over the graph whose edges are the known comparisons.
  std::map<Key, PooledVector<Known>> from_a;
  std::vector<Key> to_visit;
  std::vector<bool> seen(exprs_.size(), false);
  auto declare = [&](const Known& k) {
    PooledVector<Known>& list = from_a[k.rhs];
    for (const Known& old : list)
      if (old.implies(k)) return;
    if (k.rhs != b && !seen[k.rhs]) {
      seen[k.rhs] = true;
      to_visit.push_back(k.rhs);
    }
    for (Known& old : list) {
      if (k.implies(old)) {
        old = k;
        return;
      }
    }
    list.push_back(k);
  };
  auto for_edges = [&](Key from, auto&& f) {
    for (const auto* list : {&global_, &scoped_}) {
      for (const Known& k : *list) {
        if (k.lhs == from)
          f(k);
        else if (k.rhs == from)
          f(Known{from, k.lhs, -k.offset, reversed(k.order)});
      }
    }
  };
  for_edges(a, declare);
  while (!to_visit.empty()) {
    Key middle = to_visit.back();
    to_visit.pop_back();
    PooledVector<Known> found;
    for_edges(middle, [&](const Known& edge) {
      if (edge.rhs == a) return;
      for (const Known& first : from_a[middle]) {
        auto offset = checked_add(first.offset, edge.offset);
        if (!offset) continue;
        if (first.order == Order::eq)
          found.push_back({a, edge.rhs, *offset, edge.order});
        else if (edge.order == Order::eq)
          found.push_back({a, edge.rhs, *offset, first.order});
        else if (first.order == edge.order && first.order != Order::ne)
          found.push_back({a, edge.rhs, *offset, first.order});
      }
    });
    for (const Known& k : found) declare(k);
  }
  return from_a[b];
}

Order KnownComparisons::compare(const Expr& a, const Expr& b, bool chained) const {
  if (exprs_.empty() || !a->dtype.is_int() || !b->dtype.is_int()) return Order::unknown;
  Offset x = split_offset(a), y = split_offset(b);
  auto offset = checked_sub(y.value, x.value);
  if (!offset) return Order::unknown;
  auto lhs = find(x.expr), rhs = find(y.expr);
  if (!lhs || !rhs) return Order::unknown;
  Order result = Order::unknown;
  for (const Known& k : chained ? reachable(*lhs, *rhs) : direct(*lhs, *rhs)) {
    switch (k.order) {
      case Order::eq: result = result & (*offset == k.offset ? Order::eq : Order::ne); break;
      case Order::le:
        if (k.offset < *offset)
          result = result & Order::lt;
        else if (k.offset == *offset)
          result = result & Order::le;
        break;
      case Order::ge:
        if (k.offset > *offset)
          result = result & Order::gt;
        else if (k.offset == *offset)
          result = result & Order::ge;
        break;
      case Order::ne:
        if (*offset == k.offset) result = result & Order::ne;
        break;
      default: break;
    }
  }
  return result;
}

}  // namespace sator::arith
