#include "study/words.h"

#include <gtest/gtest.h>

#include <limits>

namespace sator::study {
namespace {

TEST(Words, Perplexities) {
  EXPECT_EQ(perplexity_text(32.46789), "32.468");
  EXPECT_EQ(perplexity_text(1234.5), "1234");  // ties to even, as printf rounds
  EXPECT_EQ(perplexity_text(7.7e12), "7.7e+12");
  EXPECT_EQ(perplexity_text(std::nullopt), "-");
  EXPECT_EQ(perplexity_text(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Words, AChipThatIsMadeForNarrowFactorsSaysSo) {
  Study study;
  study.chips = {{.name = "gpu", .peaks = {{"float16 x float16", 16e12}, {"float32 x float32", 1e12}}},
                 {.name = "plain", .peaks = {{"float32 x float32", 1e12}}}};
  study.schemes.resize(1);
  study.schemes[0].name = "f16";
  study.schemes[0].chips.resize(2);
  for (ChipResult& chip : study.schemes[0].chips)
    chip.prefill.cost.precisions = {{.asked = "float16 x float32", .ran = "float32 x float32", .macs = 1}};
  EXPECT_EQ(precision_remarks_on(study, 0).at(0).words,
            "float16 x float32 runs as float32 x float32 (float16 x float16 is 16 times as fast: schemes with +a16)");
  EXPECT_EQ(precision_remarks_on(study, 1).at(0).words, "float16 x float32 runs as float32 x float32");
}

}  // namespace
}  // namespace sator::study
