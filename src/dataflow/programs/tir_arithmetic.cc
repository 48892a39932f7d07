#include "dataflow/programs/tir_arithmetic.h"

#include <string_view>
#include <utility>

#include "ir/visit.h"

namespace sator::dataflow {

namespace {

/// Operations that one call takes on a vector unit. Elementary functions are short polynomials after a range reduction;
/// the counts are those of common minimax approximations in single precision. Bits cut out of a word are wires: that codes
/// lie in 32-bit words is how this machine stores them.
struct CallCost {
  std::string_view op;
  double operations;
};
constexpr CallCost kCallCosts[] = {
    {"tir.exp", 8},          {"tir.exp2", 6},        {"tir.exp10", 9},       {"tir.log", 10},
    {"tir.log2", 9},         {"tir.tanh", 10},       {"tir.erf", 12},        {"tir.sqrt", 4},
    {"tir.rsqrt", 4},        {"tir.sin", 10},        {"tir.cos", 10},        {"tir.pow", 20},
    {"tir.sigmoid", 10},     {"tir.fabs", 1},        {"tir.abs", 1},         {"tir.round", 1},
    {"tir.nearbyint", 1},    {"tir.floor", 1},       {"tir.ceil", 1},        {"tir.trunc", 1},
    {"tir.if_then_else", 1}, {"tir.shift_right", 0}, {"tir.shift_left", 0},  {"tir.bitwise_and", 0},
    {"tir.bitwise_or", 0},   {"tir.bitwise_xor", 1}, {"tir.reinterpret", 0}, {"tir.likely", 0},
};

bool is_data(const Expr& e) {
  bool found = false;
  walk(e, [&](const BufferLoad&) { found = true; });
  return found;
}

/// Operations on data below e. Integers and truth values that no load enters are indices and what is asked of them: the
/// machine's control makes them, whatever they are joined by. Widening conversions between integers, and of an integer on
/// its way into a product, cost nothing on hardware that multiplies narrow numbers.
double computed(const Expr& e, const VarValues& values, NamedValues& named);
double operations(const Expr& e, const VarValues& values, NamedValues& named) {
  if (!e->dtype.is_float() && !is_data(e)) return 0;
  const auto at = named.times.find(e);
  if (at == named.times.end()) return computed(e, values, named);
  const double times = std::exchange(at->second, 0);
  if (times == 0) return 0;
  const double around = std::exchange(named.times_around, times);
  const double sum = times / around * computed(e, values, named);
  named.times_around = around;
  return sum;
}

double computed(const Expr& e, const VarValues& values, NamedValues& named) {
  auto binary = [&](const Expr& a, const Expr& b) {
    return 1 + operations(a, values, named) + operations(b, values, named);
  };
  return match(
      e,
      [&](const BufferLoad&) { return 0.0; },
      [&](const Cast& n) {
        const bool converts = n.dtype.is_float() != n.value->dtype.is_float();
        return operations(n.value, values, named) + (converts ? 1 : 0);
      },
      [&](const Add& n) { return binary(n.a, n.b); },
      [&](const Sub& n) { return binary(n.a, n.b); },
      [&](const Mul& n) { return binary(n.a, n.b); },
      [&](const Div& n) { return binary(n.a, n.b) + 3; },
      [&](const FloorDiv& n) { return binary(n.a, n.b); },
      [&](const FloorMod& n) { return binary(n.a, n.b); },
      [&](const Mod& n) { return binary(n.a, n.b); },
      [&](const Min& n) { return binary(n.a, n.b); },
      [&](const Max& n) { return binary(n.a, n.b); },
      [&](const EQ& n) { return binary(n.a, n.b); },
      [&](const NE& n) { return binary(n.a, n.b); },
      [&](const LT& n) { return binary(n.a, n.b); },
      [&](const LE& n) { return binary(n.a, n.b); },
      [&](const GT& n) { return binary(n.a, n.b); },
      [&](const GE& n) { return binary(n.a, n.b); },
      [&](const And& n) { return binary(n.a, n.b); },
      [&](const Or& n) { return binary(n.a, n.b); },
      [&](const Not& n) { return 1 + operations(n.a, values, named); },
      [&](const Select& n) {
        return 1 + operations(n.condition, values, named) + operations(n.true_value, values, named) +
               operations(n.false_value, values, named);
      },
      [&](const Let& n) { return operations(n.value, values, named) + operations(n.body, values, named); },
      [&](const Call& n) {
        double sum = 1;
        for (const CallCost& c : kCallCosts)
          if (c.op == n.op) sum = c.operations;
        for (const Expr& a : n.args) sum += operations(a, values, named);
        return sum;
      },
      [&](const Broadcast& n) { return operations(n.value, values, named); },
      [&](const Shuffle& n) {
        double sum = 0;
        for (const Expr& v : n.vectors) sum += operations(v, values, named);
        return sum;
      },
      [](const ExprNode&) { return 0.0; });
}

const Expr& without_casts(const Expr& e) {
  const Expr* at = &e;
  while (const Cast* c = at->as<Cast>()) at = &c->value;
  return *at;
}

bool loads(const Expr& e, const tir::BufferStore& store) {
  const BufferLoad* load = e.as<BufferLoad>();
  if (!load || load->buffer != store.buffer || load->indices.size() != store.indices.size()) return false;
  for (size_t i = 0; i < load->indices.size(); ++i)
    if (!equal(load->indices[i], store.indices[i])) return false;
  return true;
}

/// Zero, whatever it is multiplied by or converted to.
bool is_nothing(const Expr& e) {
  if (const FloatImm* f = e.as<FloatImm>()) return f->value == 0;
  if (const Cast* c = e.as<Cast>()) return is_nothing(c->value);
  if (const Mul* m = e.as<Mul>()) return is_nothing(m->a) || is_nothing(m->b);
  return is_zero(e);
}

/// What is added to the element that is stored, or taken off it; null if it is none of both.
Expr added_to_itself(const tir::BufferStore& store) {
  if (const Sub* less = store.value.as<Sub>()) return loads(less->a, store) ? less->b : nullptr;
  const Add* sum = store.value.as<Add>();
  if (!sum) return nullptr;
  return loads(sum->a, store) ? sum->b : loads(sum->b, store) ? sum->a : nullptr;
}

}  // namespace

double operations_of(const Expr& e, const VarValues& values, NamedValues& named) {
  return operations(e, values, named);
}

bool changes_nothing(const tir::BufferStore& store) {
  if (loads(store.value, store)) return true;
  if (const Sub* less = store.value.as<Sub>()) return loads(less->a, store) && is_nothing(less->b);
  const Add* sum = store.value.as<Add>();
  return sum && ((loads(sum->a, store) && is_nothing(sum->b)) || (loads(sum->b, store) && is_nothing(sum->a)));
}

Arithmetic arithmetic_of(const tir::BufferStore& store, const VarValues& values, NamedValues& named) {
  Arithmetic result;
  if (const Expr added = added_to_itself(store)) {
    const Mul* product = without_casts(added).as<Mul>();
    if (product && is_data(product->a) && is_data(product->b) && !equal(product->a, product->b)) {
      result.multiply_accumulate = true;
      // What happens to a factor before it is multiplied is other work.
      result.first = without_casts(product->a);
      result.second = without_casts(product->b);
      result.operations = operations(result.first, values, named) + operations(result.second, values, named);
      return result;
    }
  }
  result.operations = operations(store.value, values, named);
  return result;
}

}  // namespace sator::dataflow
