// What is told of a whole function: purity, bytes, operations.
#include "tir/analysis.h"

#include <gtest/gtest.h>

#include "tir/parse.h"

namespace sator::tir {
namespace {

TEST(Analysis, AStoreInAnArgumentIsImpure) {
  EXPECT_TRUE(not_pure(*parse_function(R"(
@T.prim_func
def f(A: T.Buffer((16,), "float32")):
    A[0] = T.float32(1)
)")));
}

TEST(Analysis, AStoreInOwnMemoryIsPure) {
  EXPECT_FALSE(not_pure(*parse_function(R"(
@T.prim_func
def f(n: T.int32) -> T.int32:
    a = T.allocate([16], "int32", "global")
    A = T.decl_buffer((16,), "int32", data=a)
    A[0] = n
    return A[0] + n
)")));
}

TEST(Analysis, ACallWithAnEffectIsImpure) {
  auto calling = [](const std::string& what) {
    return parse_function("@T.prim_func\ndef f():\n    T." + what + "(\"int32\", \"g\", 1)\n");
  };
  EXPECT_TRUE(not_pure(*calling("call_extern")));
  EXPECT_FALSE(not_pure(*calling("call_pure_extern")));
}

TEST(Analysis, BytesAreOfTheMostThatLivesAtOnce) {
  // Within a lives one of b and c: 10 * 4 = 40 and the greater of 3 * 4 = 12 and 20 * 1 = 20.
  PrimFuncRef f = parse_function(R"(
@T.prim_func
def f():
    a = T.allocate([10], "float32", "global")
    with T.attr(0, "pragma_any", 1):
        b = T.allocate([3], "int32", "global")
        T.evaluate(0)
    c = T.allocate([20], "int8", "global")
    T.evaluate(0)
)");
  EXPECT_EQ(workspace_bytes(*f, 1), 60);
  EXPECT_EQ(workspace_bytes(*f, 16), 48 + 32);
  EXPECT_EQ(constant_bytes(*f, 1), 0);
}

TEST(Analysis, BytesOfEachScopeAreCountedByThemselves) {
  PrimFuncRef f = parse_function(R"(
@T.prim_func
def f():
    a = T.allocate([10], "float32", "global")
    b = T.allocate([3], "int32", "shared")
    c = T.allocate([20], "int8", "global")
    T.evaluate(0)
)");
  EXPECT_EQ(allocated_bytes(*f), (std::map<std::string, int64_t>{{"global", 60}, {"shared", 12}}));
}

TEST(Analysis, OperationsOfLoopsMultiplyAndOfBranchesTheCostlierCounts) {
  ModuleRef m = parse_module(R"(
@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            if i < 8:
                B[i] = A[i] * A[i] + T.float32(1)
            else:
                B[15 - i + 0] = A[i] - T.float32(1)
)");
  EXPECT_EQ(estimate_flops(*m), 32);
}

}  // namespace
}  // namespace sator::tir
