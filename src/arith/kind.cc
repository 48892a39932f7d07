#include "arith/kind.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sator::arith {
namespace {

/// An open-addressed table from a class's tag to its number.
class KindTable {
 public:
  KindTable() { add(KindsOf<ExprNode>::type{}); }
  Kind find(const NodeInfo* info) const {
    for (size_t i = slot(info);; i = (i + 1) % kSlots) {
      if (slots_[i].info == info) return slots_[i].kind;
      if (!slots_[i].info) return Kind::other;
    }
  }

 private:
  static constexpr size_t kSlots = 128;
  struct Slot {
    const NodeInfo* info = nullptr;
    Kind kind = Kind::other;
  };
  static size_t slot(const NodeInfo* info) { return (reinterpret_cast<uintptr_t>(info) * 0x9e3779b97f4a7c15ull) >> 57; }
  void put(const NodeInfo* info, Kind kind) {
    size_t i = slot(info);
    while (slots_[i].info) i = (i + 1) % kSlots;
    slots_[i] = {info, kind};
  }
  template <class... Ts>
  void add(Kinds<Ts...>) {
    (put(&Ts::kInfo, number<Ts>()), ...);
  }
  template <class T>
  static constexpr Kind number() {
    constexpr std::pair<std::string_view, Kind> kNames[] = {{"Var", Kind::var},
                                                            {"IntImm", Kind::int_imm},
                                                            {"FloatImm", Kind::float_imm},
                                                            {"StringImm", Kind::string_imm},
                                                            {"Add", Kind::add},
                                                            {"Sub", Kind::sub},
                                                            {"Mul", Kind::mul},
                                                            {"Div", Kind::div},
                                                            {"Mod", Kind::mod},
                                                            {"FloorDiv", Kind::floordiv},
                                                            {"FloorMod", Kind::floormod},
                                                            {"Min", Kind::min},
                                                            {"Max", Kind::max},
                                                            {"EQ", Kind::eq},
                                                            {"NE", Kind::ne},
                                                            {"LT", Kind::lt},
                                                            {"LE", Kind::le},
                                                            {"GT", Kind::gt},
                                                            {"GE", Kind::ge},
                                                            {"And", Kind::logical_and},
                                                            {"Or", Kind::logical_or},
                                                            {"Not", Kind::logical_not},
                                                            {"Select", Kind::select},
                                                            {"Cast", Kind::cast},
                                                            {"BufferLoad", Kind::load},
                                                            {"Call", Kind::call},
                                                            {"Let", Kind::let},
                                                            {"Ramp", Kind::ramp},
                                                            {"Broadcast", Kind::broadcast},
                                                            {"Shuffle", Kind::shuffle}};
    for (const auto& [name, kind] : kNames)
      if (name == detail::type_name<T>()) return kind;
    return Kind::other;
  }
  std::array<Slot, kSlots> slots_{};
};

template <class T>
Operands operands_as(const ExprNode& e) {
  const T& n = static_cast<const T&>(e);
  return {n.a, n.b};
}

}  // namespace

Kind kind_of(const ExprNode& e) {
  static const KindTable table;
  return table.find(&e.info());
}

Operands operands(const ExprNode& e, Kind kind) {
  switch (kind) {
    case Kind::add: return operands_as<Add>(e);
    case Kind::sub: return operands_as<Sub>(e);
    case Kind::mul: return operands_as<Mul>(e);
    case Kind::div: return operands_as<Div>(e);
    case Kind::mod: return operands_as<Mod>(e);
    case Kind::floordiv: return operands_as<FloorDiv>(e);
    case Kind::floormod: return operands_as<FloorMod>(e);
    case Kind::min: return operands_as<Min>(e);
    case Kind::max: return operands_as<Max>(e);
    case Kind::eq: return operands_as<EQ>(e);
    case Kind::ne: return operands_as<NE>(e);
    case Kind::lt: return operands_as<LT>(e);
    case Kind::le: return operands_as<LE>(e);
    case Kind::gt: return operands_as<GT>(e);
    case Kind::ge: return operands_as<GE>(e);
    case Kind::logical_and: return operands_as<And>(e);
    case Kind::logical_or: return operands_as<Or>(e);
    default: internal_error("operands of an expression that has not two");
  }
}

Expr make_binary(Kind kind, Expr a, Expr b) {
  switch (kind) {
    case Kind::add: return make<Add>(std::move(a), std::move(b));
    case Kind::sub: return make<Sub>(std::move(a), std::move(b));
    case Kind::mul: return make<Mul>(std::move(a), std::move(b));
    case Kind::div: return make<Div>(std::move(a), std::move(b));
    case Kind::mod: return make<Mod>(std::move(a), std::move(b));
    case Kind::floordiv: return make<FloorDiv>(std::move(a), std::move(b));
    case Kind::floormod: return make<FloorMod>(std::move(a), std::move(b));
    case Kind::min: return make<Min>(std::move(a), std::move(b));
    case Kind::max: return make<Max>(std::move(a), std::move(b));
    case Kind::eq: return make<EQ>(std::move(a), std::move(b));
    case Kind::ne: return make<NE>(std::move(a), std::move(b));
    case Kind::lt: return make<LT>(std::move(a), std::move(b));
    case Kind::le: return make<LE>(std::move(a), std::move(b));
    case Kind::gt: return make<GT>(std::move(a), std::move(b));
    case Kind::ge: return make<GE>(std::move(a), std::move(b));
    case Kind::logical_and: return make<And>(std::move(a), std::move(b));
    case Kind::logical_or: return make<Or>(std::move(a), std::move(b));
    default: internal_error("make_binary of a kind that has not two operands");
  }
}

bool same(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (!a || !b || &a->info() != &b->info() || a->dtype != b->dtype) return false;
  Kind k = kind_of(a);
  if (is_binary(k)) {
    Operands x = operands(*a, k), y = operands(*b, k);
    return same(x.a, y.a) && same(x.b, y.b);
  }
  switch (k) {
    case Kind::var: return false;  // one object stands for one variable
    case Kind::int_imm: return static_cast<const IntImm&>(*a).value == static_cast<const IntImm&>(*b).value;
    case Kind::logical_not: return same(static_cast<const Not&>(*a).a, static_cast<const Not&>(*b).a);
    case Kind::cast: return same(static_cast<const Cast&>(*a).value, static_cast<const Cast&>(*b).value);
    case Kind::select: {
      const auto &x = static_cast<const Select&>(*a), &y = static_cast<const Select&>(*b);
      return same(x.condition, y.condition) && same(x.true_value, y.true_value) && same(x.false_value, y.false_value);
    }
    default: return equal(a, b);
  }
}

void for_each_term(const Expr& e, FunctionRef<void(const Expr&, int)> f, int sign) {
  if (const Add* n = e.as<Add>()) {
    for_each_term(n->a, f, sign);
    for_each_term(n->b, f, sign);
  } else if (const Sub* n = e.as<Sub>()) {
    for_each_term(n->a, f, sign);
    for_each_term(n->b, f, -sign);
  } else {
    f(e, sign);
  }
}

void for_each_operand(const Expr& e, Kind kind, FunctionRef<void(const Expr&)> f) {
  if (kind_of(e) == kind) {
    Operands o = operands(*e, kind);
    for_each_operand(o.a, kind, f);
    for_each_operand(o.b, kind, f);
  } else {
    f(e);
  }
}

std::vector<Expr> conjuncts(const Expr& condition) {
  std::vector<Expr> out;
  for_each_operand(condition, Kind::logical_and, [&](const Expr& e) { out.push_back(e); });
  return out;
}

bool is_pure(const Expr& e) {
  // Builtins that index expressions and conditions are made of; anything else may touch memory or the world.
  static constexpr std::string_view kPure[] = {"tir.if_then_else",
                                               "tir.likely",
                                               "tir.shift_left",
                                               "tir.shift_right",
                                               "tir.bitwise_and",
                                               "tir.bitwise_or",
                                               "tir.bitwise_xor",
                                               "tir.bitwise_not",
                                               "tir.ceil",
                                               "tir.floor",
                                               "tir.round",
                                               "tir.trunc",
                                               "tir.nearbyint",
                                               "tir.exp",
                                               "tir.exp2",
                                               "tir.exp10",
                                               "tir.log",
                                               "tir.log2",
                                               "tir.log10",
                                               "tir.log1p",
                                               "tir.sqrt",
                                               "tir.rsqrt",
                                               "tir.pow",
                                               "tir.fabs",
                                               "tir.abs",
                                               "tir.erf",
                                               "tir.tanh",
                                               "tir.sigmoid",
                                               "tir.sin",
                                               "tir.cos",
                                               "tir.tan",
                                               "tir.sinh",
                                               "tir.cosh",
                                               "tir.asin",
                                               "tir.acos",
                                               "tir.atan",
                                               "tir.atan2",
                                               "tir.fmod",
                                               "tir.copysign",
                                               "tir.popcount",
                                               "tir.clz",
                                               "tir.isnan",
                                               "tir.reinterpret",
                                               "tir.large_uint_imm",
                                               "tir.vscale",
                                               "tir.fma",
                                               "tir.q_multiply_shift"};
  bool pure = true;
  walk(
      e,
      [&](const BufferLoad&) { return pure = false; },
      [&](const Call& c) {
        if (std::ranges::find(kPure, std::string_view(c.op)) == std::end(kPure)) pure = false;
        return pure;
      });
  return pure;
}

}  // namespace sator::arith
