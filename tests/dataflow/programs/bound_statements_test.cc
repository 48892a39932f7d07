// Loops bound to the axes of a GPU or an array are space; counts of such schedules against counts by hand.
#include "dataflow/programs/bound_statements.h"

#include <gtest/gtest.h>

#include "dataflow/counts/gemm.h"
#include "temp_folder.h"
#include "tir/parse.h"

namespace sator::dataflow {
namespace {

// 64 x 64 outputs in blocks of 16 x 16 threads; each thread sums 32 products.
const char* const kGpu = R"(
@T.prim_func
def matmul(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for j_0 in T.thread_binding(4, thread="blockIdx.y"):
        for i_0 in T.thread_binding(4, thread="blockIdx.x"):
            for i_1 in T.thread_binding(16, thread="threadIdx.x"):
                for v in T.thread_binding(2, thread="vthread.y"):
                    for j_1 in T.thread_binding(8, thread="threadIdx.y"):
                        for k in range(32):
                            with T.block("C"):
                                vi = T.axis.spatial(64, i_0 * 16 + i_1)
                                vj = T.axis.spatial(64, j_0 * 16 + v * 8 + j_1)
                                vk = T.axis.reduce(32, k)
                                with T.init():
                                    C[vi, vj] = T.float32(0)
                                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

TEST(BoundStatements, ThreadsOfAGpuAreSpace) {
  const std::vector<BoundStatement> bound = bound_statements(*tir::parse_function(kGpu), {.name = "matmul"});
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_EQ(bound[0].axes,
            (std::vector<std::string>{"blockIdx.y", "blockIdx.x", "vthread.y", "threadIdx.y", "threadIdx.x"}));
  const Counts c = exact(bound[0].problem());
  EXPECT_EQ(c.macs, 64 * 64 * 32);
  EXPECT_EQ(c.space, 64 * 64);     // one thread per output
  EXPECT_EQ(c.pe_array, 64 * 64);  // and no thread without one
  EXPECT_EQ(c.time, 32);
  EXPECT_EQ(c.spacetime, c.macs);
  // Without wires every thread loads what it multiplies; its sum stays.
  const TensorCounts &a = tensor(c, "A"), &b = tensor(c, "B");
  EXPECT_EQ(a.unique, 64 * 64 * 32);
  EXPECT_EQ(b.unique, 64 * 64 * 32);
  EXPECT_EQ(a.footprint, 64 * 32);
  for (const TensorCounts& t : c.tensors) {
    if (t.tensor == "C") {
      EXPECT_EQ(t.unique, 64 * 64);
      EXPECT_EQ(t.temporal_hits, 64 * 64 * 31);
    }
  }
}

// The same nest with the loops around in another order, and with loops of an array of PEs, has the same counts.
TEST(BoundStatements, AxesHaveOneOrderAndPesAreSpaceToo) {
  std::string pes = kGpu;
  for (auto [from, to] : {std::pair<std::string, std::string>{"thread=\"threadIdx.x\"", "thread=\"pe.x\""},
                          {"thread=\"threadIdx.y\"", "thread=\"pe.y\""}})
    pes.replace(pes.find(from), from.size(), to);
  const std::vector<BoundStatement> bound = bound_statements(*tir::parse_function(pes), {.name = "matmul"});
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_EQ(bound[0].axes, (std::vector<std::string>{"blockIdx.y", "blockIdx.x", "vthread.y", "pe.x", "pe.y"}));
  const Counts c = exact(bound[0].problem());
  EXPECT_EQ(c.space, 64 * 64);
  EXPECT_EQ(tensor(c, "A").unique, 64 * 64 * 32);
}

TEST(BoundStatements, LoopsWithoutThreadsAreNone) {
  std::string serial = kGpu;
  for (size_t at; (at = serial.find("T.thread_binding(")) != std::string::npos;) {
    const size_t comma = serial.find(',', at), end = serial.find(')', at);
    serial.replace(comma, end - comma, "");
    serial.replace(at, 17, "range(");
  }
  EXPECT_TRUE(bound_statements(*tir::parse_function(serial), {.name = "matmul"}).empty());
}

TEST(BoundStatements, OddBindingsAreNamed) {
  auto with = [](const std::string& from, const std::string& to) {
    std::string changed = kGpu;
    changed.replace(changed.find(from), from.size(), to);
    return error_of([&] { bound_statements(*tir::parse_function(changed), {.name = "matmul"}); });
  };
  EXPECT_NE(with("threadIdx.x", "warp.x").find("loop i_1 is bound to warp.x"), std::string::npos);
  EXPECT_NE(with("threadIdx.x", "threadIdx.y").find("two loops of one nest are bound to threadIdx.y"),
            std::string::npos);
}

}  // namespace
}  // namespace sator::dataflow
