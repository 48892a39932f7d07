// Statements of one kernel that touch different parts of a tensor move each part; the same part is moved once.
#include "dataflow/programs/regions.h"

#include <gtest/gtest.h>

#include "dataflow/cost/cost.h"
#include "dataflow/programs/from_tir.h"
#include "shipped_chips.h"
#include "tir/parse.h"

namespace sator::dataflow {
namespace {

/// Elements of float32 that cross the chip's edge for a tensor: read, written.
std::pair<int64_t, int64_t> moved(const char* program, const std::string& tensor) {
  const TirWork work = work_of(*tir::parse_function(program), {.name = "f"});
  std::pair<int64_t, int64_t> sum{0, 0};
  for (const Traffic& t : CostEngine(shipped("edge_npu32")).cost(work.kernel).outside)
    if (t.tensor == tensor) sum.first += t.read_bits / 32, sum.second += t.write_bits / 32;
  return sum;
}

// As the cache's append does with keys and values, which lie side by side in the projection's result.
TEST(Regions, PartsApartAreMovedEach) {
  constexpr const char* kProgram = R"(
@T.prim_func
def f(A: T.Buffer((8, 12), "float32"), K: T.Buffer((8, 4), "float32"), V: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("keys"):
            vi, vj = T.axis.remap("SS", [i, j])
            K[vi, vj] = A[vi, vj + 4] * T.float32(2)
    for i, j in T.grid(8, 4):
        with T.block("values"):
            vi, vj = T.axis.remap("SS", [i, j])
            V[vi, vj] = A[vi, vj + 8] * T.float32(2)
)";
  EXPECT_EQ(moved(kProgram, "A"), std::pair(int64_t{64}, int64_t{0}));
  EXPECT_EQ(moved(kProgram, "K"), std::pair(int64_t{0}, int64_t{32}));
}

TEST(Regions, TheSamePartIsMovedOnce) {
  constexpr const char* kProgram = R"(
@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    for i, j in T.grid(8, 4):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 4):
        with T.block("c"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, 3 - vj] + T.float32(1)
)";
  EXPECT_EQ(moved(kProgram, "A"), std::pair(int64_t{32}, int64_t{0}));
}

// Each side of a choice on indices writes its part of the result.
TEST(Regions, SidesOfAChoiceWriteTheirParts) {
  constexpr const char* kProgram = R"(
@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 6), "float32"), C: T.Buffer((8, 10), "float32")):
    for i, j in T.grid(8, 10):
        with T.block("concatenate"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.if_then_else(vj < 4, A[vi, vj], B[vi, vj - 4])
)";
  EXPECT_EQ(moved(kProgram, "A").first, 32);
  EXPECT_EQ(moved(kProgram, "B").first, 48);
  EXPECT_EQ(moved(kProgram, "C").second, 80);
}

}  // namespace
}  // namespace sator::dataflow
