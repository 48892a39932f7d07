// A function for given values of some of its parameters.
#include "tir/specialize.h"

#include <gtest/gtest.h>

#include "tir/parse.h"
#include "tir/print.h"

namespace sator::tir {
namespace {

const char* kCopy = R"(
@T.prim_func
def copy(a: T.handle, b: T.handle, n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for i, j in T.grid(m, n * 2 - n):
        B[i, j] = A[i, j]
)";

BufferRef sized(std::vector<Expr> shape, const char* dtype = "float32") {
  return make_buffer("X", std::move(shape), *DType::parse(dtype));
}

TEST(Specialize, AScalarIsPutInAndIsNoParameterMore) {
  PrimFuncRef f = parse_function(kCopy);
  PrimFuncRef out = specialize(f, {{f->params[2], int_imm(8)}}, {});
  EXPECT_TRUE(equal(out, parse_function(R"(
@T.prim_func
def copy(a: T.handle, b: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (m, 8), "float32")
    B = T.match_buffer(b, (m, 8), "float32")
    for i, j in T.grid(m, 8):
        B[i, j] = A[i, j]
)"))) << to_script(*out);
}

TEST(Specialize, ABufferTellsTheSizesThatItSharesWithOthers) {
  PrimFuncRef f = parse_function(kCopy);
  PrimFuncRef out = specialize(f, {}, {{f->params[0], sized({int_imm(4), int_imm(8)})}});
  EXPECT_TRUE(equal(out, parse_function(R"(
@T.prim_func
def copy(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (4, 8), "float32")
    B = T.match_buffer(b, (4, 8), "float32")
    for i, j in T.grid(4, 8):
        B[i, j] = A[i, j]
)"))) << to_script(*out);
}

TEST(Specialize, NothingGivenIsTheSameFunction) {
  PrimFuncRef f = parse_function(kCopy);
  EXPECT_EQ(specialize(f, {}, {}), f);
}

TEST(Specialize, RefusesWhatDoesNotFit) {
  PrimFuncRef f = parse_function(kCopy);
  EXPECT_THROW(specialize(f, {{f->params[0], int_imm(8)}}, {}), Error);
  EXPECT_THROW(specialize(f, {}, {{f->params[0], sized({int_imm(4)})}}), Error);
  EXPECT_THROW(specialize(f, {}, {{f->params[0], sized({int_imm(4), int_imm(8)}, "float16")}}), Error);
  EXPECT_THROW(
      specialize(
          f, {}, {{f->params[0], sized({int_imm(4), int_imm(8)})}, {f->params[1], sized({int_imm(5), int_imm(8)})}}),
      Error);
}

}  // namespace
}  // namespace sator::tir
