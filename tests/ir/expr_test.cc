#include "ir/expr.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sator {
namespace {

int64_t cast_of(double v, DType dtype) { return *as_int(cast_to(dtype, float_imm(v, f32))); }

// As the interpreter and machine code: towards zero, what is too large the nearest, NaN 0.
TEST(Expr, ConstantsBecomeIntegersAsValuesDo) {
  EXPECT_EQ(cast_of(-1.9, i32), -1);
  EXPECT_EQ(cast_of(300, i8), 127);
  EXPECT_EQ(cast_of(-300, i8), -128);
  EXPECT_EQ(cast_of(-1.5, DType::UInt(8)), 0);
  EXPECT_EQ(cast_of(-1, u32), 0);
  EXPECT_EQ(cast_of(0x1p31, i32), INT32_MAX);
  EXPECT_EQ(cast_of(0x1p63, i64), INT64_MAX);
  EXPECT_EQ(cast_of(-INFINITY, i64), INT64_MIN);
  EXPECT_EQ(cast_of(NAN, i32), 0);
}

}  // namespace
}  // namespace sator
