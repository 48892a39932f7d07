// Expressions as text for the tests of arith/: Python's operators, `//` and `%` floored, and calls of functions.
//   floordiv(a, b) floormod truncdiv truncmod min max select(c, a, b) ramp(b, s, lanes) broadcast(v, lanes)
//   cast("int64", e) likely(e) if_then_else(c, a, b) shift_right(a, b) shift_left bitwise_and ceildiv(a, b)
//   call("int32", "tir.clz", x) and, with the dtype of their first argument, shift_right(a, b) and other names
//   let(x, value, body) load("int32", "A", i): an element of a buffer
//   And(a, b) Or(a, b) Not(a) LT LE GT GE EQ NE (exactly that node); true, false; i64(3): a constant of that dtype
// Operators fold constants as the language's do.
#pragma once

#include <map>
#include <string>

#include "arith/eval.h"
#include "ir/expr.h"

namespace sator::arith {

/// The variables that a text may use; an unknown name becomes an int32 variable.
struct Names {
  std::map<std::string, VarRef> vars;
  VarRef operator[](const std::string& name) {
    VarRef& v = vars[name];
    if (!v) v = make_var(name);
    return v;
  }
  std::map<std::string, BufferRef> buffers;
  /// A buffer of 16 elements.
  BufferRef buffer(const std::string& name, DType dtype) {
    BufferRef& b = buffers[name];
    if (!b) b = make_buffer(name, {int_imm(16)}, dtype);
    return b;
  }
  VarRef add(const std::string& name, DType dtype, bool size = false) {
    return vars[name] = size ? make_size_var(name, dtype) : make_var(name, dtype);
  }
};

/// Throws Error with the place if the text is not an expression.
Expr parse_expr(const std::string& text, Names& names);
std::string show(const Expr& e);

/// The value of an integer expression of operators as a machine computes it: each wraps at the width of its dtype.
int64_t wrapped(const Expr& e, const Values& values);

/// How many random cases a test draws: `usual`, or SATOR_FUZZ_CASES of the environment.
uint64_t fuzz_cases(uint64_t usual);

}  // namespace sator::arith
