// Primitives on small programs: the results are written out by hand, refusals are by name.
#include "schedule/primitives.h"

#include <gtest/gtest.h>

#include "schedule/same_results.h"
#include "schedule/script.h"
#include "schedule/tensor_intrin.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::schedule {
namespace {

tir::PrimFuncRef parsed(const std::string& body) { return tir::parse_function("@T.prim_func(private=True)\n" + body); }

/// The program after a script.
std::string after(const std::string& program, const std::string& script) {
  Schedule s(parsed(program));
  Script(s).run(script);
  return tir::to_script(*s.func());
}
std::string printed(const std::string& program) { return tir::to_script(*parsed(program)); }

std::string refusal(const std::string& program, const std::string& script) {
  try {
    after(program, script);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

constexpr const char* kScale = R"(def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i)
            B[vi] = A[vi] * T.float32(2)
)";

constexpr const char* kTwoSteps = R"(def f(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    B = T.alloc_buffer((128,))
    for i in range(128):
        with T.block("B"):
            vi = T.axis.spatial(128, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = B[vi] + T.float32(1)
)";

constexpr const char* kMatmul =
    R"(def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j, k in T.grid(64, 48, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

TEST(Split, AFactorThatDoesNotDivideLeavesAPredicate) {
  EXPECT_EQ(after(kScale, "split(i, factors=[None, 32])"),
            printed(R"(def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i_0, i_1 in T.grid(4, 32):
        with T.block("B"):
            vi = T.axis.spatial(100, i_0 * 32 + i_1)
            T.where(i_0 * 32 + i_1 < 100)
            B[vi] = A[vi] * T.float32(2)
)"));
}

TEST(Split, FuseUndoesIt) {
  EXPECT_EQ(after(kScale, "a, b = split(i, [None, 25])\nfuse(a, b)"),
            printed(R"(def f(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
    for i_0_i_1_fused in range(100):
        with T.block("B"):
            vi = T.axis.spatial(100, i_0_i_1_fused)
            B[vi] = A[vi] * T.float32(2)
)"));
}

TEST(Split, RefusesWithReasons) {
  EXPECT_NE(refusal(kScale, "split(i, [None, 0])").find("factor 0 is not positive"), std::string::npos);
  EXPECT_NE(refusal(kScale, "split(i, [None, None])").find("2 factors are left open"), std::string::npos);
  EXPECT_NE(refusal(kScale, "split(i, [3, 32])").find("below the extent"), std::string::npos);
  std::string consumed = refusal(kScale, "l = get_loops(\"B\")\nsplit(l[0], [4, 25])\nparallel(l[0])");
  EXPECT_NE(consumed.find("no longer in the program"), std::string::npos);
  EXPECT_NE(consumed.find("split(i, [4, 25]"), std::string::npos) << consumed;
  EXPECT_NE(refusal(kScale, "splitt(i, [4, 25])").find("split"), std::string::npos);
}

TEST(Parallel, AReductionLoopIsRefused) {
  std::string r = refusal(kMatmul, "parallel(k)");
  EXPECT_NE(r.find("carries the reduction axis vk"), std::string::npos) << r;
  EXPECT_NE(r.find("needs:"), std::string::npos);
  EXPECT_EQ(refusal(kMatmul, "parallel(i)\nvectorize(j)"), "");
}

TEST(Inline, ProducerIntoConsumerAndConsumerIntoProducer) {
  std::string one = printed(R"(def f(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi] * T.float32(2) + T.float32(1)
)");
  EXPECT_EQ(after(kTwoSteps, "compute_inline(\"B\")"), one);
  Schedule s(parsed(kTwoSteps));
  reverse_compute_inline(s, s.block_named("C"));
  EXPECT_TRUE(equal(s.func(), parsed(one.substr(one.find("def")))));
  EXPECT_NE(refusal(kTwoSteps, "compute_inline(\"C\")").find("output block"), std::string::npos);
}

TEST(ComputeAt, MovesTheProducerIntoTheConsumersLoop) {
  EXPECT_EQ(after(kTwoSteps, "a, b = split(get_loops(\"C\")[0], [8, 16])\ncompute_at(\"B\", a)"),
            printed(R"(def f(A: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    B = T.alloc_buffer((128,))
    for i_0 in range(8):
        for ax0 in range(16):
            with T.block("B"):
                vi = T.axis.spatial(128, i_0 * 16 + ax0)
                B[vi] = A[vi] * T.float32(2)
        for i_1 in range(16):
            with T.block("C"):
                vi = T.axis.spatial(128, i_0 * 16 + i_1)
                C[vi] = B[vi] + T.float32(1)
)"));
  EXPECT_NE(refusal(kTwoSteps, "compute_at(\"C\", get_loops(\"B\")[0])").find("writes an output"), std::string::npos);
}

TEST(DecomposeReduction, InitBecomesABlock) {
  EXPECT_EQ(
      after(kMatmul, "decompose_reduction(\"C\", k)"),
      printed(
          R"(def f(A: T.Buffer((64, 32), "float32"), B: T.Buffer((32, 48), "float32"), C: T.Buffer((64, 48), "float32")):
    for i, j in T.grid(64, 48):
        with T.block("C_init"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.reads()
            C[vi, vj] = T.float32(0)
        for k in range(32):
            with T.block("C_update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(C[vi, vj], A[vi, vk], B[vk, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)"));
  EXPECT_NE(refusal(kMatmul, "reorder(k, i, j)\ndecompose_reduction(\"C\", i)").find("below loop k"),
            std::string::npos);
}

TEST(TransformLayout, PanelsOfColumns) {
  std::string got = after(kMatmul, "transform_layout(\"C\", (\"read\", 1), lambda k, j: (j // 16, k, j % 16))");
  EXPECT_NE(got.find("B: T.Buffer((3, 32, 16), \"float32\")"), std::string::npos) << got;
  EXPECT_NE(got.find("B[vj // 16, vk, vj % 16]"), std::string::npos) << got;
  EXPECT_NE(
      refusal(kMatmul, "transform_layout(\"C\", (\"read\", 1), lambda k, j: (j // 32, k, j % 32))").find("padding"),
      std::string::npos);
}

constexpr const char* kDot4 = R"(def desc(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    B = T.match_buffer(b, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:1], A[0:4], B[0:4])
        T.writes(C[0:1])
        for i in range(4):
            with T.block("update"):
                vi = T.axis.reduce(4, i)
                C[0] = C[0] + A[vi] * B[vi]
)";
constexpr const char* kDot4Unrolled = R"(def impl(a: T.handle, b: T.handle, c: T.handle):
    A = T.match_buffer(a, (4,), "float32", offset_factor=1)
    B = T.match_buffer(b, (4,), "float32", offset_factor=1)
    C = T.match_buffer(c, (1,), "float32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:1], A[0:4], B[0:4])
        T.writes(C[0:1])
        C[0] = C[0] + (A[0] * B[0] + A[1] * B[1]) + (A[2] * B[2] + A[3] * B[3])
)";
constexpr const char* kMatmulOfRows =
    R"(def f(A: T.Buffer((8, 12), "float32"), B: T.Buffer((6, 12), "float32"), C: T.Buffer((8, 6), "float32")):
    for i, j, k in T.grid(8, 6, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
)";

TEST(Tensorize, TheIntrinsicTakesThePlaceOfTheLoop) {
  register_tensor_intrin("test.dot4", parsed(kDot4), parsed(kDot4Unrolled));
  tir::PrimFuncRef f = parsed(kMatmulOfRows);
  Schedule s(f);
  Script(s).run("k0, k1 = split(k, [None, 4])\ndecompose_reduction(\"C\", k0)\ntensorize(k1, \"test.dot4\")");
  std::string got = tir::to_script(*s.func());
  EXPECT_NE(got.find("T.match_buffer(A[vi_o, vk_o * 4:vk_o * 4 + 4], (4,), offset_factor=1)"), std::string::npos)
      << got;
  EXPECT_EQ(got.find("k_1"), std::string::npos) << got;
  EXPECT_EQ(test::broken_step(f, s.func(), 1), "");
  EXPECT_NE(refusal(kMatmulOfRows,
                    "k0, k1 = split(k, [None, 6])\ndecompose_reduction(\"C\", k0)\ntensorize(k1, \"test.dot4\")")
                .find("does not compute what intrinsic test.dot4 does"),
            std::string::npos);
  EXPECT_NE(refusal(kMatmulOfRows, "tensorize(k, \"test.dot\")").find("test.dot4"), std::string::npos);
}

TEST(Trace, ReplaysToTheSameProgram) {
  tir::PrimFuncRef f = parsed(kMatmul);
  Schedule s(f);
  Script(s).run(
      "c = cache_write(\"C\", 0, \"local\")\ni, j, k = get_loops(\"C\")\n"
      "j0, j1 = split(j, [None, 16])\ni0, i1 = split(i, [None, 4])\nreorder(j0, i0, k, i1, j1)\n"
      "reverse_compute_at(c, i0)\nvectorize(j1)\nunroll(i1)\nparallel(j0)\ndecompose_reduction(\"C\", k)\n");
  Schedule again(f);
  s.trace().apply_to(again);
  EXPECT_TRUE(equal(s.func(), again.func())) << tir::to_script(*again.func());
  EXPECT_NE(s.trace().as_python().find("sch.reorder("), std::string::npos);
}

}  // namespace
}  // namespace sator::schedule
