#include "study/routes.h"

#include <gtest/gtest.h>

#include "frontend/hf_config.h"
#include "study/sample.h"

namespace sator::study {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-124m";

/// The calls of GPT-2's steps under a scheme, as the two kinds of routes have them.
class Program {
 public:
  Program(const char* scheme, bool with_patterns)
      : at_(with_patterns ? program_with_patterns(kModel, {.scheme = llm::parse_scheme(scheme)}, true)
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
      // 50,257 = 29 x 1733 is no multiple of 32; everything else is.
      const RouteStep tensorize = whole.cost(Route::tensorize, "edge_npu32", step.function, step.size);
      EXPECT_EQ(tensorize.macs, all);
      EXPECT_EQ(tensorize.macs_on_chip, all - head);
      EXPECT_EQ(tensorize.launches_on_host, 1);
      ASSERT_EQ(tensorize.left_over.size(), 1U);
      EXPECT_NE(tensorize.left_over[0].find("50257 outputs"), std::string::npos) << tensorize.left_over[0];
      // Attention is a call of the cache: no op of the graph.
      const RouteStep pattern = with_patterns.cost(Route::pattern, "edge_npu32", step.function, step.size);
      EXPECT_EQ(pattern.macs, all);
      EXPECT_EQ(pattern.macs_on_chip, all - attention);
      EXPECT_EQ(pattern.launches_on_chip, 12 * 4 + 1);
      ASSERT_EQ(pattern.left_over.size(), 1U);
      // What is not fused to its product passes the memory once more.
      EXPECT_GT(pattern.outside_bytes, schedule.outside_bytes);
    }
  }
}

// A context that is no multiple of the array's 32 columns: attention is lost to the intrinsic, with its MACs.
TEST(Routes, ARaggedContextIsLostToTheIntrinsic) {
  const ModelConfig config = read_model_config(kModel);
  const llm::StepSize step{.tokens = 1, .context = 200};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "edge_npu32", "decode", step);
  EXPECT_EQ(tensorize.macs_on_chip, llm::macs_of_step(config, step) - 768 * 50257 - 12 * 2 * 768 * 200);
  EXPECT_EQ(tensorize.launches_on_host, 13);
}

// Heads have 64 elements: on 256 x 256 PEs attention has no whole tile, at any context.
TEST(Routes, ALargeArrayLosesAttention) {
  const ModelConfig config = read_model_config(kModel);
  const llm::StepSize step{.tokens = 1, .context = 512};
  const RouteStep tensorize = Program("f16", false).cost(Route::tensorize, "tpuv1", "decode", step);
  EXPECT_EQ(tensorize.macs_on_chip, llm::macs_of_step(config, step) - 768 * 50257 - 12 * 2 * 768 * 512);
}

}  // namespace
}  // namespace sator::study
