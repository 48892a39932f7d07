// A model on variants of a chip: the base's own figures are those that a study gives.
#include "study/explore_model.h"

#include <gtest/gtest.h>

#include "study/cost_program.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

const fs::path kModel = fs::path(SATOR_SOURCE_DIR) / "examples" / "gpt2-stories";

TEST(ExploreModel, ThePointOfTheChipItselfIsTheStudys) {
  const Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  const ModelSpaceOptions options{.model = kModel,
                                  .schemes = {"f16", "int8-channel+a8"},
                                  .prompt_len = 24,
                                  .gen_len = 8,
                                  .shapes_only = true,
                                  .perplexity = {}};
  const auto quiet = [](const std::string&, bool) {};
  const ModelSpace space(tune::ChipSpace(chip, {.arrays = {{16, 16}, {8, 8}}}), options, quiet);
  ASSERT_TRUE(space.refused().empty());
  for (size_t scheme = 0; scheme < 2; ++scheme) {
    SchemeJob job{.scheme = llm::parse_scheme(options.schemes[scheme]), .options = {}, .decode_context = 28};
    job.options.model = kModel;
    job.options.prompt_len = 24;
    job.options.shapes_only = true;
    const ChipResult r = ProgramCoster().cost(job, std::span(&chip, 1), quiet)[0];
    const tune::Design design = space.design({0, 0, 0, 0, scheme});
    EXPECT_NEAR(design.latency_s / (r.prefill.cost.latency_s + 8 * r.decode.cost.latency_s), 1, 1e-9);
    EXPECT_NEAR(design.energy_j / (r.prefill.cost.energy_j + 8 * r.decode.cost.energy_j), 1, 1e-9);
    EXPECT_GT(space.design({1, 0, 0, 0, scheme}).latency_s, design.latency_s);
  }
}

TEST(ExploreModel, QualityIsAnObjectiveAndALimit) {
  const Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  const auto quiet = [](const std::string&, bool) {};
  ModelSpaceOptions options{.model = kModel,
                            .schemes = {"f16", "int8-channel"},
                            .prompt_len = 8,
                            .gen_len = 2,
                            .shapes_only = true,
                            .perplexity = {{"f16", 10}, {"int8-channel", 11}},
                            .max_perplexity = 10.5};
  const ModelSpace space(tune::ChipSpace(chip, {}), options, quiet);
  EXPECT_EQ(space.evaluate({0, 0, 0, 0, 0}).objectives.at(3), 10);
  EXPECT_TRUE(space.evaluate({0, 0, 0, 0, 0}).allowed());
  EXPECT_FALSE(space.evaluate({0, 0, 0, 0, 1}).allowed());
  options.schemes.push_back("int4-channel");
  EXPECT_NE(error_of([&] {
              ModelSpace(tune::ChipSpace(chip, {}), options, quiet);
            }).find("the study has no perplexity of int4-channel"),
            std::string::npos);
}

TEST(ExploreModel, AFolderWithoutAStudyIsRefused) {
  const TempFolder folder;
  EXPECT_NE(error_of([&] { perplexities_of(folder.path()); }).find("study.json"), std::string::npos);
}

}  // namespace
}  // namespace sator::study
