// What the GPU rules make of a function computes the same, in the interpreter: shapes that divide and that do not, symbolic sizes,
// float32, float16, int8. Each loop ends anywhere in a tile.
#include "rules/gpu/gpu.h"

#include <gtest/gtest.h>

#include "passes/lower/lower.h"
#include "support/random_arguments.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::rules {
namespace {

struct GpuCase {
  std::string name;
  std::string program;
  std::string rule;                     ///< that takes it, among those tried by default and `named`
  std::vector<std::string> named = {};  ///< rules to try; none: by default
  std::map<std::string, int64_t> sizes = {};
  std::string target = "nvidia/geforce-rtx-3090-ti";
};

/// C[i, j] += A[i, k] * B[j, k], then relu.
std::string product(const std::string& m, const std::string& n, const std::string& k, const std::string& in,
                    const std::string& out) {
  auto widened = [&](const std::string& x) { return in == out ? x : "T.Cast(\"" + out + "\", " + x + ")"; };
  return "@T.prim_func\n"
         "def f(a: T.handle, b: T.handle, c: T.handle):\n"
         "    n = T.int64()\n"
         "    A = T.match_buffer(a, (" +
         m + ", " + k + "), \"" + in +
         "\")\n"
         "    B = T.match_buffer(b, (" +
         n + ", " + k + "), \"" + in +
         "\")\n"
         "    D = T.match_buffer(c, (" +
         m + ", " + n + "), \"" + out +
         "\")\n"
         "    C = T.alloc_buffer((" +
         m + ", " + n + "), \"" + out +
         "\")\n"
         "    for i, j, k in T.grid(" +
         m + ", " + n + ", " + k +
         "):\n"
         "        with T.block(\"product\"):\n"
         "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T." +
         out +
         "(0)\n"
         "            C[vi, vj] = C[vi, vj] + " +
         widened("A[vi, vk]") + " * " + widened("B[vj, vk]") +
         "\n"
         "    for i, j in T.grid(" +
         m + ", " + n +
         "):\n"
         "        with T.block(\"relu\"):\n"
         "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
         "            D[vi, vj] = T.max(C[vi, vj], T." +
         out + "(0))\n";
}

/// C[j] += A[j, k] * x[k], and one more each.
std::string vector_product(const std::string& n, const std::string& k, const std::string& dtype) {
  return "@T.prim_func\n"
         "def f(a: T.handle, x: T.handle, c: T.handle):\n"
         "    n = T.int64()\n"
         "    X = T.match_buffer(x, (T.int64(1), " +
         k + "), \"" + dtype +
         "\")\n"
         "    A = T.match_buffer(a, (" +
         n + ", " + k + "), \"" + dtype +
         "\")\n"
         "    D = T.match_buffer(c, (T.int64(1), " +
         n + "), \"" + dtype +
         "\")\n"
         "    C = T.alloc_buffer((T.int64(1), " +
         n + "), \"" + dtype +
         "\")\n"
         "    for i, j, k in T.grid(T.int64(1), " +
         n + ", " + k +
         "):\n"
         "        with T.block(\"product\"):\n"
         "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
         "            with T.init():\n"
         "                C[vi, vj] = T." +
         dtype +
         "(0)\n"
         "            C[vi, vj] = C[vi, vj] + X[vi, vk] * A[vj, vk]\n"
         "    for i, j in T.grid(T.int64(1), " +
         n +
         "):\n"
         "        with T.block(\"more\"):\n"
         "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
         "            D[vi, vj] = C[vi, vj] + T." +
         dtype + "(1)\n";
}

/// The head of f(a, c), of buffers A and C; n is a size that the arguments bind.
std::string head(const std::string& a_shape, const std::string& c_shape, const std::string& dtype) {
  return "@T.prim_func\n"
         "def f(a: T.handle, c: T.handle):\n"
         "    n = T.int64()\n"
         "    A = T.match_buffer(a, (" +
         a_shape + "), \"" + dtype +
         "\")\n"
         "    C = T.match_buffer(c, (" +
         c_shape + "), \"" + dtype + "\")\n";
}

/// C[i] = sum of A[i, k] (or of A[k, i]).
std::string sum(const std::string& n, const std::string& k, const std::string& dtype, bool innermost) {
  return head(innermost ? n + ", " + k : k + ", " + n, n + ",", dtype) + "    for i, k in T.grid(" + n + ", " + k +
         "):\n"
         "        with T.block(\"sum\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
         "            with T.init():\n"
         "                C[vi] = T." +
         dtype +
         "(0)\n"
         "            C[vi] = C[vi] + " +
         (innermost ? "A[vi, vk]\n" : "A[vk, vi]\n");
}

/// C[i, j] = A[i, j] - the greatest of row i, twice over.
std::string row_maximum(const std::string& n, const std::string& k, const std::string& dtype) {
  return head(n + ", " + k, n + ", " + k, dtype) + "    M = T.alloc_buffer((" + n + ",), \"" + dtype +
         "\")\n"
         "    S = T.alloc_buffer((" +
         n + ",), \"" + dtype +
         "\")\n"
         "    for i, k in T.grid(" +
         n + ", " + k +
         "):\n"
         "        with T.block(\"greatest\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
         "            with T.init():\n"
         "                M[vi] = T.min_value(\"" +
         dtype +
         "\")\n"
         "            M[vi] = T.max(M[vi], A[vi, vk])\n"
         "    for i, k in T.grid(" +
         n + ", " + k +
         "):\n"
         "        with T.block(\"sum\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
         "            with T.init():\n"
         "                S[vi] = T." +
         dtype +
         "(0)\n"
         "            S[vi] = S[vi] + (A[vi, vk] - M[vi])\n"
         "    for i, k in T.grid(" +
         n + ", " + k +
         "):\n"
         "        with T.block(\"result\"):\n"
         "            vi, vk = T.axis.remap(\"SS\", [i, k])\n"
         "            C[vi, vk] = (A[vi, vk] - M[vi]) * S[vi]\n";
}

/// C[i, k] = A[i, k] * rsqrt(mean of the squares of row i + 1).
std::string rms_norm(const std::string& n, int64_t k) {
  const std::string width = std::to_string(k);
  return head(n + ", " + width, n + ", " + width, "float32") + "    Q = T.alloc_buffer((" + n + ", " + width +
         "))\n"
         "    S = T.alloc_buffer((" +
         n +
         ",))\n"
         "    R = T.alloc_buffer((" +
         n +
         ",))\n"
         "    for i, k in T.grid(" +
         n + ", " + width +
         "):\n"
         "        with T.block(\"square\"):\n"
         "            vi, vk = T.axis.remap(\"SS\", [i, k])\n"
         "            Q[vi, vk] = A[vi, vk] * A[vi, vk]\n"
         "    for i, k in T.grid(" +
         n + ", " + width +
         "):\n"
         "        with T.block(\"sum\"):\n"
         "            vi, vk = T.axis.remap(\"SR\", [i, k])\n"
         "            with T.init():\n"
         "                S[vi] = T.float32(0)\n"
         "            S[vi] = S[vi] + Q[vi, vk]\n"
         "    for i in range(" +
         n +
         "):\n"
         "        with T.block(\"rsqrt\"):\n"
         "            vi = T.axis.spatial(" +
         n +
         ", i)\n"
         "            R[vi] = T.rsqrt(S[vi] / T.float32(" +
         width +
         ") + T.float32(1))\n"
         "    for i, k in T.grid(" +
         n + ", " + width +
         "):\n"
         "        with T.block(\"product\"):\n"
         "            vi, vk = T.axis.remap(\"SS\", [i, k])\n"
         "            C[vi, vk] = A[vi, vk] * R[vi]\n";
}

std::string transpose(const std::string& n, const std::string& k, const std::string& dtype) {
  return head(n + ", " + k, k + ", " + n, dtype) + "    for i, k in T.grid(" + k + ", " + n +
         "):\n"
         "        with T.block(\"copy\"):\n"
         "            vi, vk = T.axis.remap(\"SS\", [i, k])\n"
         "            C[vi, vk] = A[vk, vi]\n";
}

std::string i(int64_t n) { return "T.int64(" + std::to_string(n) + ")"; }

std::vector<GpuCase> gpu_cases() {
  const std::string pascal = "nvidia/tesla-p100";
  return {
      // Tiles of 32 x 64, 16 terms at a time: two tiles and one more.
      {"matmul_whole_tiles", product(i(64), i(64), i(32), "float32", "float32"), "Matmul"},
      {"matmul_two_tiles_plus_one", product(i(65), i(129), i(33), "float32", "float32"), "Matmul"},
      {"matmul_small", product(i(3), i(5), i(7), "float16", "float32"), "Matmul"},
      {"matmul_symbolic", product("n", i(65), i(17), "float32", "float32"), "Matmul", {}, {{"n", 33}}},
      {"matmul_symbolic_one", product("n", i(65), i(17), "float16", "float16"), "Matmul", {}, {{"n", 1}}},
      {"matmul_int8", product(i(33), i(65), i(17), "int8", "int32"), "Matmul"},
      {"matmul_before_tensor_cores", product(i(65), i(65), i(65), "float16", "float16"), "Matmul", {}, {}, pascal},
      // Tiles of 128 x 128, 64 (int8: 16) terms at a time.
      {"tensor_f16", product(i(129), i(65), i(65), "float16", "float16"), "MatmulTensorization"},
      {"tensor_f32", product(i(128), i(128), i(128), "float16", "float32"), "MatmulTensorization"},
      {"tensor_symbolic", product("n", i(65), i(65), "float16", "float32"), "MatmulTensorization", {}, {{"n", 3}}},
      {"tensor_int8", product(i(65), i(129), i(65), "int8", "int32"), "MatmulInt8Tensorization"},
      // 16 rows by 32 threads, 1 to 8 terms each.
      {"gemv", vector_product(i(48), i(256), "float32"), "GEMV"},
      {"gemv_tail", vector_product(i(33), i(67), "float32"), "GEMV"},
      {"gemv_f16", vector_product(i(17), i(513), "float16"), "GEMV"},
      {"gemv_symbolic_rows", vector_product("n", i(128), "float32"), "GEMV", {}, {{"n", 5}}},
      {"gemv_symbolic_terms", vector_product(i(17), "n", "float32"), "GEMV", {}, {{"n", 67}}},
      {"reduction", sum(i(3), i(1024), "float32", true), "Reduction"},
      {"reduction_tail", sum(i(3), i(2049), "float32", true), "Reduction"},
      {"reduction_small", sum(i(5), i(7), "int32", true), "Reduction"},
      {"reduction_symbolic", sum("n", i(65), "float16", true), "Reduction", {}, {{"n", 3}}},
      {"reduction_symbolic_terms", sum(i(3), "n", "float32", true), "Reduction", {}, {{"n", 1025}}},
      {"reduction_outer", sum(i(48), i(33), "float32", false), "Reduction"},
      {"reduction_outer_odd", sum(i(33), i(35), "float32", false), "Reduction"},
      {"reduction_outer_symbolic", sum(i(32), "n", "float32", false), "Reduction", {}, {{"n", 33}}},
      {"general", row_maximum(i(3), i(512), "float32"), "GeneralReduction"},
      {"general_tail", row_maximum(i(3), i(513), "float32"), "GeneralReduction"},
      {"general_symbolic", row_maximum("n", i(67), "float16"), "GeneralReduction", {}, {{"n", 3}}},
      {"general_symbolic_terms", row_maximum(i(2), "n", "float32"), "GeneralReduction", {}, {{"n", 257}}},
      {"rms_norm", rms_norm(i(3), 4096), "RMSNorm", {"RMSNorm"}},
      {"rms_norm_symbolic", rms_norm("n", 4096), "RMSNorm", {"RMSNorm"}, {{"n", 2}}},
      {"transpose", transpose(i(32), i(16), "float32"), "Transpose", {"Transpose"}},
      {"transpose_tail", transpose(i(33), i(17), "float16"), "Transpose", {"Transpose"}},
      {"transpose_symbolic", transpose("n", i(17), "int8"), "Transpose", {"Transpose"}, {{"n", 33}}},
      {"fallback", transpose(i(33), i(65), "float32"), "Fallback"},
      {"fallback_symbolic", transpose("n", i(65), "int8"), "Fallback", {}, {{"n", 33}}},
      {"fallback_reduction", sum(i(33), i(65), "float32", true), "Fallback", {"Fallback"}},
  };
}

class GpuRules : public ::testing::TestWithParam<GpuCase> {};

TEST_P(GpuRules, ComputesTheSame) {
  const GpuCase& c = GetParam();
  const tir::PrimFuncRef before = tir::parse_function(c.program);
  AppliedSchedule applied;
  const ModuleRef module = schedule_for_gpu(schedule::Schedule(before).module(),
                                            target_from_text(c.target),
                                            gpu_rules_named(c.named),
                                            4,
                                            [&](const AppliedSchedule& a) { applied = a; });
  std::string declined;
  for (const auto& d : applied.declined) declined += "\nnot " + d.rule + ": " + d.why.what;
  ASSERT_EQ(applied.rule, c.rule) << declined;
  const tir::PrimFuncRef after = cast<tir::PrimFunc>(module->functions.begin()->second);
  EXPECT_TRUE(tir::verify(*after, tir::Stage::scheduled).empty());
  EXPECT_TRUE(equal(after, tir::parse_function(tir::to_script(*after))));
  test::RandomArguments x(*before, 1, test::Values::whole, c.sizes), y(*before, 1, test::Values::whole, c.sizes);
  ASSERT_TRUE(x.usable());
  x.interpret(before, 10'000'000);
  ASSERT_NO_THROW(y.interpret(passes::plan_buffer_allocation(after, {}), 200'000'000, true)) << tir::to_script(*after);
  // Sums of small whole numbers are exact in any order.
  EXPECT_EQ(x.difference(y, [](const std::string&, DType) { return 0.0; }), "") << tir::to_script(*after);
}

INSTANTIATE_TEST_SUITE_P(All, GpuRules, ::testing::ValuesIn(gpu_cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sator::rules
