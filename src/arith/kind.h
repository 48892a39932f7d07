// A small number per expression class, so that dispatch is a switch and rules are found by their root.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/expr.h"

namespace sator::arith {

enum class Kind : uint8_t {
  var,
  int_imm,
  float_imm,
  string_imm,
  add,
  sub,
  mul,
  div,
  mod,
  floordiv,
  floormod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_not,
  select,
  cast,
  load,
  call,
  let,
  ramp,
  broadcast,
  shuffle,
  other,
};
inline constexpr int kKinds = static_cast<int>(Kind::other) + 1;

Kind kind_of(const ExprNode& e);
inline Kind kind_of(const Expr& e) { return kind_of(*e); }

inline bool is_binary(Kind k) { return k >= Kind::add && k <= Kind::logical_or; }
inline bool is_arithmetic(Kind k) { return k >= Kind::add && k <= Kind::max; }
inline bool is_compare(Kind k) { return k >= Kind::eq && k <= Kind::ge; }

/// The two operands of an expression whose kind is_binary.
struct Operands {
  const Expr& a;
  const Expr& b;
};
Operands operands(const ExprNode& e, Kind kind);
inline Operands operands(const Expr& e) { return operands(*e, kind_of(e)); }

/// The node `a kind b`, exactly (nothing is folded).
Expr make_binary(Kind kind, Expr a, Expr b);

/// Whether two expressions are written alike: same nodes, same variables, same constants.
bool same(const Expr& a, const Expr& b);

/// Calls `f` on each term of a chain of additions and subtractions, with its sign, left to right.
void for_each_term(const Expr& e, FunctionRef<void(const Expr& term, int sign)> f, int sign = 1);
/// Calls `f` on each operand of a chain of the commutative kind (mul, logical_and, ...), left to right.
void for_each_operand(const Expr& e, Kind kind, FunctionRef<void(const Expr&)> f);

/// The conjuncts of a condition, left to right.
std::vector<Expr> conjuncts(const Expr& condition);

/// Without side effects, and the same wherever it stands: no memory is read, every call is of a pure builtin.
bool is_pure(const Expr& e);

}  // namespace sator::arith
