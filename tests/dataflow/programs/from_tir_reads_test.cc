// Whatever a program reads is counted, by whichever statement and buffer it reads it; what is not known is said.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/cost.h"
#include "dataflow/programs/from_tir.h"
#include "shipped_chips.h"
#include "tir/parse.h"

namespace sator::dataflow {
namespace {

TirWork read(const std::string& program) { return work_of(*tir::parse_function(program), {.name = "f"}); }

/// Bytes between the chip and the outside.
int64_t outside(const TirWork& work) {
  int64_t bits = 0;
  for (const Traffic& t : CostEngine(shipped("edge_npu32")).cost(work.kernel).outside)
    bits += t.read_bits + t.write_bits;
  return bits / 8;
}

double operations(const TirWork& work) {
  double sum = 0;
  for (const Work& w : work.kernel.work) sum += w.vector_ops;
  return sum;
}

/// A function of A and C (64 x 1024) to B whose block does `body`.
std::string elementwise(const std::string& body) {
  std::string text = R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), C: T.Buffer((64, 1024), "float32"), B: T.Buffer((64, 1024), "float32")):
    for i, j in T.grid(64, 1024):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
)";
  return text + body;
}
constexpr int64_t kTensor = 64 * 1024 * 4;

TEST(Reads, ALetIsReadAsItsValue) {
  const TirWork plain = read(elementwise("            B[vi, vj] = A[vi, vj] * T.float32(2)\n"));
  const TirWork named =
      read(elementwise("            t: T.float32 = A[vi, vj]\n"
                       "            B[vi, vj] = t * T.float32(2)\n"));
  EXPECT_EQ(outside(plain), 2 * kTensor);
  EXPECT_EQ(outside(named), 2 * kTensor);
  EXPECT_EQ(operations(named), operations(plain));
  const TirWork of_lets =
      read(elementwise("            t: T.float32 = A[vi, vj] + C[vi, vj]\n"
                       "            u: T.float32 = t - T.float32(1)\n"
                       "            B[vi, vj] = u * T.float32(2)\n"));
  EXPECT_EQ(outside(of_lets), 3 * kTensor);
  EXPECT_EQ(operations(of_lets), 3);
  EXPECT_TRUE(of_lets.notes.empty());
}

// A value is computed where it is bound: once, however often and wherever it is used.
TEST(Reads, ALetIsComputedOnce) {
  const std::string exp = "T.exp(A[vi, vj])";  // 8 operations
  EXPECT_EQ(operations(read(elementwise("            B[vi, vj] = " + exp + " * " + exp + "\n"))), 17);
  EXPECT_EQ(operations(read(elementwise("            t: T.float32 = " + exp +
                                        "\n"
                                        "            B[vi, vj] = t * t\n"))),
            9);
  const TirWork of_expression =
      read(elementwise("            x = T.float32()\n"
                       "            B[vi, vj] = T.Let(x * x, where={x: " +
                       exp + "})\n"));
  EXPECT_EQ(operations(of_expression), 9);
  EXPECT_EQ(outside(of_expression), 2 * kTensor);
  // By two statements: in the first one.
  EXPECT_EQ(operations(read(elementwise("            t: T.float32 = " + exp +
                                        "\n"
                                        "            B[vi, vj] = t + T.float32(1)\n"
                                        "            C[vi, vj] = t * T.float32(2)\n"))),
            8 + 1 + 1);
  // Once per iteration of the loop that it stands in: 8 / 1024 of an operation per element.
  EXPECT_EQ(operations(read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64, 1024), "float32")):
    for i in range(64):
        t: T.float32 = T.exp(A[i])
        for j in range(1024):
            B[i, j] = t + t
)")),
            1 + 8.0 / 1024);
  // A let of a let, both outside of the loop: 8 + 2 of them.
  EXPECT_EQ(operations(read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64, 1024), "float32")):
    for i in range(64):
        t: T.float32 = T.exp(A[i])
        u: T.float32 = t * t + t
        for j in range(1024):
            B[i, j] = u + t
)")),
            1 + 10.0 / 1024);
  // Where only some iterations use it, it is counted for each use: an upper bound.
  EXPECT_EQ(operations(read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32")):
    for i in range(64):
        t: T.float32 = T.exp(A[i])
        if i < 5:
            B[i] = t + T.float32(1)
        C[i] = t * t
)")),
            (8 + 1) + (8 + 1));
}

TEST(Reads, AVectorIsItsElements) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), B: T.Buffer((64, 1024), "float32")):
    for i, j in T.grid(64, 128):
        B[i, j * 8:j * 8 + 8] = T.exp(A[i, j * 8:j * 8 + 8]) + T.Broadcast(T.float32(1), 8)
)");
  EXPECT_EQ(outside(work), 2 * kTensor);
  ASSERT_EQ(work.kernel.work.size(), 1u);
  EXPECT_EQ(work.kernel.work[0].statement.domain.extent, (std::vector<int64_t>{64, 128, 8}));
  EXPECT_EQ(operations(work), 9);
  EXPECT_TRUE(work.notes.empty());
}

TEST(Reads, ALetOutsideOfALoopIsReadOncePerIterationAround) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64, 1024), "float32")):
    for i in range(64):
        t: T.float32 = A[i]
        for j in range(1024):
            B[i, j] = t
)");
  EXPECT_EQ(outside(work), 64 * 4 + kTensor);
}

// TVM's argmax: both lets read A, which comes in once.
TEST(Reads, AReductionOfTwoValuesThroughLets) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), O: T.Buffer((64,), "float32"), I: T.Buffer((64,), "int64")):
    for i, j in T.grid(64, 1024):
        with T.block("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                O[vi] = T.min_value("float32")
                I[vi] = T.int64(0)
            t: T.float32 = T.Select(O[vi] >= A[vi, vj], O[vi], A[vi, vj])
            u: T.int64 = T.Select(O[vi] >= A[vi, vj], I[vi], T.Cast("int64", vj))
            O[vi] = t
            I[vi] = u
)");
  EXPECT_EQ(outside(work), kTensor + 64 * 4 + 64 * 8);
}

std::string matmul(const std::string& body) {
  return R"(
@T.prim_func
def f(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("b"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
)" + body;
}

TEST(Reads, AProductOfLetsOrTakenOffIsAMultiplyAccumulate) {
  for (const char* body : {"            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]\n",
                           "            C[vi, vj] = C[vi, vj] - A[vi, vk] * B[vk, vj]\n",
                           "            p: T.float32 = A[vi, vk]\n"
                           "            C[vi, vj] = C[vi, vj] + p * B[vk, vj]\n",
                           "            p: T.float32 = A[vi, vk] * B[vk, vj]\n"
                           "            C[vi, vj] = C[vi, vj] + p\n"}) {
    const TirWork work = read(matmul(body));
    const KernelCost cost = CostEngine(shipped("edge_npu32")).cost(work.kernel);
    EXPECT_EQ(cost.macs, 64 * 64 * 64) << body;
    EXPECT_EQ(outside(work), 3 * 64 * 64 * 4) << body;
    EXPECT_TRUE(work.notes.empty()) << body;
  }
}

TEST(Reads, AConditionIsRead) {
  const TirWork work =
      read(elementwise("            if A[vi, vj] > T.float32(0):\n"
                       "                B[vi, vj] = C[vi, vj]\n"));
  EXPECT_EQ(outside(work), 3 * kTensor);
  EXPECT_EQ(operations(work), 1);
  const TirWork either =
      read(elementwise("            if A[vi, vj] > T.float32(0):\n"
                       "                B[vi, vj] = C[vi, vj]\n"
                       "            else:\n"
                       "                B[vi, vj] = T.float32(0)\n"));
  EXPECT_EQ(outside(either), 3 * kTensor);
  const TirWork largest = read(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), O: T.Buffer((64,), "float32")):
    for i, j in T.grid(64, 1024):
        if O[i] < A[i, j]:
            O[i] = A[i, j]
)");
  ASSERT_EQ(largest.kernel.work.size(), 1U);
  EXPECT_EQ(largest.kernel.work[0].vector_work, VectorWork::reduce);
}

// What passes that flatten buffers leave, and what is written so by hand.
TEST(Reads, BuffersOverOneMemoryAreThatMemory) {
  const char* const forms[] = {
      "    X = T.decl_buffer((65536,), data=A.data)\n"
      "    Y = T.decl_buffer((65536,), data=B.data)\n",
      "    X = T.Buffer((65536,), data=A.data)\n"
      "    Y = T.Buffer((65536,), data=B.data)\n"};
  for (const char* views : forms) {
    const std::string head = text(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), B: T.Buffer((64, 1024), "float32")):
)",
                                  views);
    EXPECT_EQ(outside(read(head + "    for i in range(65536):\n        Y[i] = X[i] + T.float32(1)\n")), 2 * kTensor);
    // Half of A by its own name, and all of it by the other's: A once.
    EXPECT_EQ(outside(read(head + "    for i in range(65536):\n        Y[i] = X[i] + A[i // 2048, i % 1024]\n")),
              2 * kTensor);
  }
  try {
    read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((256,), "int8")):
    X = T.Buffer((256,), "int8", data=A.data)
    for i in range(256):
        B[i] = X[i]
)");
    ADD_FAILURE() << "accepted";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("are one memory"), std::string::npos) << e.what();
  }
}

TEST(Reads, AnInitThatReadsIsReadOnce) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), bias: T.Buffer((64,), "float32"), O: T.Buffer((64,), "float32")):
    for i, j in T.grid(64, 1024):
        with T.block("b"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                O[vi] = bias[vi]
            O[vi] = O[vi] + A[vi, vj]
)");
  EXPECT_EQ(outside(work), kTensor + 64 * 4 + 64 * 4);
}

TEST(Reads, LaunchedThreadsAreLoops) {
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64, 1024), "float32"), B: T.Buffer((64, 1024), "float32")):
    bx = T.launch_thread("blockIdx.x", 64)
    tx = T.launch_thread("threadIdx.x", 1024)
    B[bx, tx] = A[bx, tx] + T.float32(1)
)");
  EXPECT_EQ(outside(work), 2 * kTensor);
}

TEST(Reads, CallsOfWhatIsNotKnownAreSaid) {
  const TirWork pure =
      read(elementwise("            B[vi, vj] = T.call_pure_extern(\"float32\", \"frob\", A[vi, vj])\n"));
  EXPECT_EQ(outside(pure), 2 * kTensor);
  ASSERT_EQ(pure.notes.size(), 1U);
  EXPECT_NE(pure.notes[0].find("what frob does is not known"), std::string::npos) << pure.notes[0];
  const TirWork work = read(R"(
@T.prim_func
def f(A: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.evaluate(T.call_extern("int32", "frob", A.data))
    for i in range(64):
        B[i] = C[i] + T.float32(1)
)");
  ASSERT_EQ(work.notes.size(), 1U);
  EXPECT_NE(work.notes[0].find("neither its work nor what it reads and writes"), std::string::npos) << work.notes[0];
}

}  // namespace
}  // namespace sator::dataflow
