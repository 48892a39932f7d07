// The net for index arithmetic at sizes too large to run: what it has to see, and what it may not.
#include "support/wide_indices.h"

#include <gtest/gtest.h>

#include "tir/parse.h"

namespace sator::test {
namespace {

using namespace tir;

std::string mistake_at(const char* program, int64_t n) {
  PrimFuncRef f = parse_function(program);
  return index_mistake(*f, {{VarRef(f->buffer_map.at(0).second->shape[0].as<Var>()), n}}, 1);
}

// i * 3 with 32 bits: the last i that it holds is 715827882.
TEST(WideIndices, SeesWhatADtypeDoesNotHold) {
  const char* program = R"(@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "int8")
    B = T.match_buffer(b, (3,), "int32")
    for i in range(n):
        B[0] = i * 3
)";
  EXPECT_EQ(mistake_at(program, 715827883), "");
  EXPECT_NE(mistake_at(program, 715827884), "");
}

// Of a reduction without iterations the init runs alone, with the axes at their first values: here it reads an empty buffer.
TEST(WideIndices, TheInitOfAnEmptyReductionRuns) {
  const char* program = R"(@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (1,), "float32")
    for k in range(n):
        with T.block("sum"):
            vk = T.axis.reduce(n, k)
            with T.init():
                B[0] = A[vk]
            B[0] = B[0] + A[vk]
)";
  EXPECT_EQ(mistake_at(program, 1), "");
  EXPECT_NE(mistake_at(program, 0), "");
}

}  // namespace
}  // namespace sator::test
