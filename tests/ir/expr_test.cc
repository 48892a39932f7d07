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

TEST(Expr, ZeroTimesAFloatIsZeroWhereThatIsANumber) {
  const Expr zero = float_imm(0, f32), x = make_var("x", f32), i = make_var("i", i32);
  EXPECT_TRUE((x * zero).as<Mul>());
  EXPECT_TRUE((zero * x).as<Mul>());
  EXPECT_EQ((zero * cast_to(f32, i)).get(), zero.get());
  EXPECT_TRUE((float_imm(0, f16) * cast_to(f16, i)).as<Mul>());  // 70000 is infinite there
  EXPECT_EQ((make_var("n", i32) * int_imm(0)).as<IntImm>()->value, 0);
}

}  // namespace
}  // namespace sator
