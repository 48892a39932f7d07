#include "arith/rule.h"

#include "arith/fold.h"
#include "arith/rewrite.h"

namespace sator::arith {

namespace pattern {
namespace {
P hole(const char* name) { return P(Expr(make_var(name))); }
}  // namespace
const P x = hole("x"), y = hole("y"), z = hole("z"), w = hole("w"), b1 = hole("b1"), b2 = hole("b2"), s1 = hole("s1"),
        s2 = hole("s2");
const P c0 = hole("c0"), c1 = hole("c1"), c2 = hole("c2"), c3 = hole("c3");
const P yes{bool_imm(true)}, no{bool_imm(false)};
}  // namespace pattern

namespace {

const std::array<const P*, kHoles>& holes() {
  using namespace pattern;
  static const std::array<const P*, kHoles> all = {&x, &y, &z, &w, &b1, &b2, &s1, &s2, &c0, &c1, &c2, &c3};
  return all;
}
constexpr int kFirstConstant = 8;

int hole_number(const Expr& e) {
  for (int i = 0; i < kHoles; ++i)
    if (holes()[i]->e == e) return i;
  return -1;
}

}  // namespace

Expr Bindings::operator[](const P& p) const { return Expr(hole[hole_number(p.e)]); }
int64_t Bindings::constant(const P& p) const { return static_cast<const IntImm*>(hole[hole_number(p.e)])->value; }

Pattern::Pattern(const P& pattern) {
  add(pattern.e);
  Kind k = kind_of(pattern.e);
  if (is_binary(k)) {
    Operands o = operands(*pattern.e, k);
    for (int i = 0; i < 2; ++i) {
      const Expr& e = i == 0 ? o.a : o.b;
      int hole = hole_number(e);
      if (hole < 0)
        operand_[i] = kind_of(e);
      else if (hole >= kFirstConstant)
        operand_[i] = Kind::int_imm;
    }
  }
}

void Pattern::add(const Expr& e) {
  if (int hole = hole_number(e); hole >= 0) {
    if (hole < kFirstConstant) only_constants_ = false;
    nodes_.push_back(
        {hole >= kFirstConstant ? Type::constant_hole : Type::hole, Kind::var, static_cast<uint8_t>(hole)});
    return;
  }
  Kind kind = kind_of(e);
  if (const IntImm* i = e.as<IntImm>()) {
    nodes_.push_back({Type::literal, kind, 0, i->dtype.is_bool(), i->value});
    return;
  }
  nodes_.push_back({Type::node, kind});
  e->info().each_child(*e, [this](const NodeRef& child) { add(Expr(child.as<ExprNode>())); });
}

bool Pattern::match(const Expr& e, Bindings& bindings) const {
  const Node* at = nodes_.data();
  return match(at, e, bindings);
}

bool Pattern::match(const Node*& at, const Expr& e, Bindings& b) const {
  const Node& p = *at++;
  switch (p.type) {
    case Type::hole:
    case Type::constant_hole: {
      if (p.type == Type::constant_hole && !e.as<IntImm>()) return false;
      const ExprNode*& bound = b.hole[p.hole];
      if (!bound) {
        bound = e.get();
        return true;
      }
      if (bound == e.get()) return true;
      if (p.type == Type::constant_hole)
        return static_cast<const IntImm*>(bound)->value == static_cast<const IntImm&>(*e).value;
      return same(Expr(bound), e);
    }
    case Type::literal: {
      if (const IntImm* i = e.as<IntImm>()) return i->value == p.value && i->dtype.is_bool() == p.boolean;
      const FloatImm* f = e.as<FloatImm>();
      return f && !p.boolean && f->value == static_cast<double>(p.value);
    }
    case Type::node: break;
  }
  if (kind_of(e) != p.kind) return false;
  if (is_binary(p.kind)) {
    Operands o = operands(*e, p.kind);
    return match(at, o.a, b) && match(at, o.b, b);
  }
  auto same_lanes = [&](Lanes lanes) { return b.lanes.count == 0 ? (b.lanes = lanes, true) : b.lanes == lanes; };
  switch (p.kind) {
    case Kind::logical_not: return match(at, static_cast<const Not&>(*e).a, b);
    case Kind::select: {
      const auto& n = static_cast<const Select&>(*e);
      return match(at, n.condition, b) && match(at, n.true_value, b) && match(at, n.false_value, b);
    }
    case Kind::ramp: {
      const auto& n = static_cast<const Ramp&>(*e);
      return same_lanes(n.lanes) && match(at, n.base, b) && match(at, n.stride, b);
    }
    case Kind::broadcast: {
      const auto& n = static_cast<const Broadcast&>(*e);
      return same_lanes(n.lanes) && match(at, n.value, b);
    }
    default: return false;
  }
}

Expr Pattern::fill(const Bindings& bindings) const {
  const Node* at = nodes_.data();
  return fill(at, bindings, bindings.dtype);
}

Expr Pattern::fill(const Node*& at, const Bindings& b, DType dtype) const {
  const Node& p = *at++;
  switch (p.type) {
    case Type::hole:
    case Type::constant_hole: return Expr(b.hole[p.hole]);
    case Type::literal: {
      DType d = p.boolean ? DType::Bool(dtype.all_lanes()) : dtype;
      return d.is_float() ? constant(static_cast<double>(p.value), d) : int_constant(p.value, d);
    }
    case Type::node: break;
  }
  if (is_binary(p.kind)) {
    const Node& left = *at;
    Expr a = fill(at, b, dtype);
    if (!a) return nullptr;
    const Node& right = *at;
    Expr c = fill(at, b, dtype);
    if (!c) return nullptr;
    // A literal takes the dtype of what it stands beside.
    if (a->dtype != c->dtype && left.type == Type::literal) a = int_constant(left.value, c->dtype);
    if (a->dtype != c->dtype && right.type == Type::literal) c = int_constant(right.value, a->dtype);
    if (Expr folded = try_fold(p.kind, a, c)) return folded;
    if (a.as<IntImm>() && c.as<IntImm>()) return nullptr;  // the constant would not fit
    return make_binary(p.kind, std::move(a), std::move(c));
  }
  switch (p.kind) {
    case Kind::logical_not: {
      Expr a = fill(at, b, dtype);
      return a ? fold_not(std::move(a)) : nullptr;
    }
    case Kind::select: {
      Expr condition = fill(at, b, dtype), t = fill(at, b, dtype), f = fill(at, b, dtype);
      return condition && t && f ? make<Select>(condition, t, f) : Ref<const Select>();
    }
    case Kind::ramp: {
      Expr base = fill(at, b, dtype.element()), stride = fill(at, b, dtype.element());
      return base && stride ? make<Ramp>(base, stride, Lanes(b.lanes)) : Ref<const Ramp>();
    }
    case Kind::broadcast: {
      Expr value = fill(at, b, dtype.element());
      return value ? make<Broadcast>(value, Lanes(b.lanes)) : Ref<const Broadcast>();
    }
    default: internal_error("a rule's result has a kind that cannot be built");
  }
}

std::optional<int64_t> Pattern::value(const Bindings& bindings) const {
  const Node* at = nodes_.data();
  return value(at, bindings);
}

std::optional<int64_t> Pattern::value(const Node*& at, const Bindings& b) const {
  const Node& p = *at++;
  switch (p.type) {
    case Type::hole: return {};
    case Type::constant_hole: return static_cast<const IntImm*>(b.hole[p.hole])->value;
    case Type::literal: return p.value;
    case Type::node: break;
  }
  auto a = value(at, b);
  if (p.kind == Kind::logical_not) return a ? std::optional<int64_t>(!*a) : std::nullopt;
  auto c = value(at, b);
  return a && c ? fold_value(p.kind, *a, *c) : std::nullopt;
}

RuleSet::RuleSet(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    for (const P& from : rule.from) {
      Compiled c{&rule, &from, Pattern(from), rule.to ? Pattern(rule.to) : Pattern(), {}};
      for (const P& guard : rule.when) c.when.emplace_back(guard);
      keys_.push_back({c.from.root(), c.from.operand_kind(0).value_or(kAny), c.from.operand_kind(1).value_or(kAny)});
      rows_.push_back(std::move(c));
    }
  }
}

Expr RuleSet::apply(const Expr& e, Rewriter& rewriter) const {
  Kind root = kind_of(e), ka = Kind::other, kb = Kind::other;
  DType dtype = e->dtype;
  if (is_binary(root)) {
    Operands o = operands(*e, root);
    ka = kind_of(o.a);
    kb = kind_of(o.b);
    dtype = o.a->dtype;
  } else if (root == Kind::logical_not) {
    const Expr& inner = static_cast<const Not&>(*e).a;
    ka = kind_of(inner);
    if (is_compare(ka)) dtype = operands(*inner, ka).a->dtype;
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Key key = keys_[i];
    if (key.root != root || (key.a != kAny && key.a != ka) || (key.b != kAny && key.b != kb)) continue;
    const Compiled& row = rows_[i];
    Bindings b;
    b.dtype = dtype;
    if (!row.from.match(e, b)) continue;
    bool holds = true;
    for (const Pattern& guard : row.when)
      if (!rewriter.holds(guard, b)) {
        holds = false;
        break;
      }
    if (!holds) continue;
    Expr result = row.rule->compute ? row.rule->compute(b, rewriter) : row.to.fill(b);
    if (!result) continue;
    rewriter.note(*row.rule);
    return row.rule->again ? rewriter.visit_again(result) : result;
  }
  return nullptr;
}

}  // namespace sator::arith
