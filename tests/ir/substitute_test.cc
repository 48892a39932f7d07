// Substitution keeps dtypes: an expression of two dtypes at once would be wrong without a word.
#include <gtest/gtest.h>

#include "base/error.h"
#include "ir/expr.h"

namespace sator {
namespace {

TEST(Substitute, ReplacesByTheSameDtype) {
  VarRef n = make_var("n", i64);
  Expr twice = substitute(n * int_imm(2, i64), {{n, int_imm(1LL << 40, i64)}});
  EXPECT_EQ(twice->dtype, i64);
}

TEST(Substitute, RefusesAnotherDtype) {
  VarRef n = make_var("n", i64), m = make_var("m", i32);
  Expr sum = n + int_imm(1, i64);
  EXPECT_THROW(substitute(sum, {{n, int_imm(7, i32)}}), InternalError);
  EXPECT_THROW(substitute(sum, {{n, m}}), InternalError);
  EXPECT_THROW(substitute(sum, {{n, make<Ramp>(n, int_imm(1, i64), 4)}}), InternalError);
}

}  // namespace
}  // namespace sator
