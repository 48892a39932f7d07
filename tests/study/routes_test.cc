#include "study/routes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/hf_config.h"
#include "study/sample.h"

namespace sator::study {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-124m";

/// The calls of GPT-2's steps under a scheme, as the two kinds of routes have them.
class Program {
 public:
  Program(const char* scheme, bool with_patterns, bool merged = false)
      : at_(with_patterns ? program_with_patterns(kModel, {.scheme = llm::parse_scheme(scheme)}, shipped("edge_npu32"),
                                                  merged, true)
                          : program_at_phase3(kModel, {.scheme = llm::parse_scheme(scheme)}, true)),
        workload_(at_.module, at_.program) {}

  RouteStep cost(Route route, const char* chip, const char* function, const llm::StepSize& step) const {
    return RouteCoster(shipped(chip), shipped("cpu_avx512_vnni")).cost(route, workload_.calls(function, step));
  }

 private:
  ProgramAtPhase3 at_;
  llm::Workload workload_;
};

// TENET's array has no vector unit: products run on it, whatever else there is on the host.
TEST(Routes, WithoutAVectorUnitTheRestIsTheHosts) {
  const RouteStep step =
      Program("f16", false).cost(Route::schedule, "tenet-8x8", "decode", {.tokens = 1, .context = 64});
  EXPECT_EQ(step.share(), 1);
  EXPECT_GT(step.launches_on_host, 0);
  EXPECT_GT(step.host_s, 0);
}

// Shares by the arithmetic of config.json alone: 12 layers of width 768, a vocabulary of 50,257.
TEST(Routes, SharesAreThoseOfTheConfiguration) {
  const ModelConfig config = read_model_config(kModel);
  struct Step {
    const char* function;
    llm::StepSize size;
  };
  for (const char* scheme : {"f16", "int8-channel+embed+a8-token"}) {
    const Program whole(scheme, false), with_patterns(scheme, true);
    for (const Step& step :
         {Step{"prefill", {.tokens = 128, .context = 128}}, Step{"decode", {.tokens = 1, .context = 256}}}) {
      SCOPED_TRACE(testing::Message() << step.function << " " << scheme);
      const int64_t all = llm::macs_of_step(config, step.size);
      const int64_t head = 768 * 50257, attention = 12 * 2 * 768 * step.size.tokens * step.size.context;
      const RouteStep schedule = whole.cost(Route::schedule, "edge_npu32", step.function, step.size);
      EXPECT_EQ(schedule.macs, all);
      EXPECT_EQ(schedule.macs_on_chip, all);
      EXPECT_EQ(schedule.launches_on_host, 0);
      EXPECT_EQ(schedule.host_s, 0);
      // 50,257 = 29 x 1733 is no multiple of 32; everything else is. The last of 1,571 tiles has 17 columns.
      const RouteStep tensorize = whole.cost(Route::tensorize, "edge_npu32", step.function, step.size);
      EXPECT_EQ(tensorize.macs, all);
      EXPECT_EQ(tensorize.macs_on_chip, all);
      EXPECT_EQ(tensorize.macs_issued, all + 768 * (1571 * 32 - 50257));
      EXPECT_EQ(tensorize.launches_on_host, 0);
      const auto is_padded = [](const RouteKernel& k) { return !k.padded.empty(); };
      ASSERT_EQ(std::ranges::count_if(tensorize.kernels, is_padded), 1);
      EXPECT_NE(
          std::ranges::find_if(tensorize.kernels, is_padded)->padded[0].find("50257 outputs along an axis to 50272"),
          std::string::npos);
      EXPECT_GE(tensorize.outside_bytes, schedule.outside_bytes);
      // Attention is a call of the cache: no op of the graph.
      const RouteStep pattern = with_patterns.cost(Route::pattern, "edge_npu32", step.function, step.size);
      EXPECT_EQ(pattern.macs, all);
      EXPECT_EQ(pattern.macs_on_chip, all - attention);
      EXPECT_EQ(pattern.launches_on_chip, 12 * 4 + 1);
      EXPECT_EQ(pattern.macs_issued, pattern.macs_on_chip);
      EXPECT_EQ(std::ranges::count_if(pattern.kernels, [](const RouteKernel& k) { return !k.why.empty(); }), 1);
      // What is not fused to its product passes the memory once more; codes that a product's chain makes save some of it.
      if (std::string(scheme) == "f16") EXPECT_GT(pattern.outside_bytes, schedule.outside_bytes);
    }
  }
}

// A context that is no multiple of the array's 32: scores are padded to 224 columns, values to 224 rows.
TEST(Routes, ARaggedContextIsPadded) {
  const ModelConfig config = read_model_config(kModel);
  const llm::StepSize step{.tokens = 1, .context = 200};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "edge_npu32", "decode", step);
  EXPECT_EQ(tensorize.share(), 1);
  EXPECT_EQ(tensorize.macs_issued,
            llm::macs_of_step(config, step) + 768 * (1571 * 32 - 50257) + 12 * 2 * 768 * (224 - 200));
  EXPECT_EQ(tensorize.launches_on_host, 0);
}

// Heads have 64 elements: of 256 x 256 PEs attention uses a quarter of the rows or columns, the rest multiplies zeros.
TEST(Routes, ALargeArrayMultipliesZeros) {
  const llm::StepSize step{.tokens = 1, .context = 512};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "tpuv1", "decode", step);
  EXPECT_EQ(tensorize.share(), 1);
  const auto attention = std::ranges::find(tensorize.kernels, "attention", &RouteKernel::function);
  ASSERT_NE(attention, tensorize.kernels.end());
  EXPECT_EQ(attention->macs, 2 * 768 * 512);
  EXPECT_EQ(attention->macs_issued, 4 * attention->macs);
}

// The two matrices of an MLP are neighbours once the activation between them is the chip's: their kernels become one, and what
// lies between, 3,072 numbers of 4 bytes, crosses the chip's edge no more. A prompt's would be 1.5 MB, and stays apart.
TEST(Routes, NeighbouringPartsAreMergedWhereThereIsRoom) {
  const llm::StepSize token{.tokens = 1, .context = 128}, prompt{.tokens = 128, .context = 128};
  const Program apart("f16", true), together("f16", true, true);
  const RouteStep pattern = apart.cost(Route::pattern, "edge_npu32", "decode", token);
  const RouteStep merged = together.cost(Route::merged, "edge_npu32", "decode", token);
  EXPECT_EQ(merged.macs_on_chip, pattern.macs_on_chip);
  EXPECT_EQ(pattern.launches_on_chip, 12 * 4 + 1);
  EXPECT_EQ(merged.launches_on_chip, 12 * 3 + 1);
  EXPECT_EQ(pattern.outside_bytes - merged.outside_bytes, 12 * 2 * 3072 * 4);
  EXPECT_EQ(together.cost(Route::merged, "edge_npu32", "prefill", prompt).launches_on_chip, 12 * 4 + 1);
}

}  // namespace
}  // namespace sator::study
