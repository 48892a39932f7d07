// A model on variants of a chip: the base's own figures are those that a study gives.
#include "study/explore_model.h"

#include <gtest/gtest.h>

#include <set>

#include "relax/parse.h"
#include "schedule/schedule.h"
#include "schedule/script.h"
#include "study/cost_program.h"
#include "temp_folder.h"
#include "tir/parse.h"
#include "tir/print.h"

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
  const ModelSpace space(explore::ChipSpace(chip, {.arrays = {{16, 16}, {8, 8}}}), options, quiet);
  ASSERT_TRUE(space.refused().empty());
  for (size_t scheme = 0; scheme < 2; ++scheme) {
    SchemeJob job{.scheme = llm::parse_scheme(options.schemes[scheme]), .options = {}, .decode_context = 28};
    job.options.model = kModel;
    job.options.prompt_len = 24;
    job.options.shapes_only = true;
    const ChipResult r = ProgramCoster().cost(job, std::span(&chip, 1), quiet)[0];
    const explore::Design design = space.design({0, 0, 0, 0, scheme});
    EXPECT_NEAR(design.latency_s / (r.prefill.cost.latency_s + 8 * r.decode.cost.latency_s), 1, 1e-9);
    EXPECT_NEAR(design.energy_j / (r.prefill.cost.energy_j + 8 * r.decode.cost.energy_j), 1, 1e-9);
    EXPECT_GT(space.design({1, 0, 0, 0, scheme}).latency_s, design.latency_s);
  }
}

// A point's mappings are schedules of the scheme's program: each runs on its function there.
TEST(ExploreModel, MappingsAreSchedulesOfTheProgram) {
  Chip chip = find_chip(std::string(SATOR_SOURCE_DIR) + "/chips/gemmini16.toml");
  const ModelSpaceOptions options{.model = kModel,
                                  .schemes = {"int8-channel+a8"},
                                  .prompt_len = 24,
                                  .gen_len = 8,
                                  .shapes_only = true,
                                  .perplexity = {}};
  const ModelSpace space(
      explore::ChipSpace(chip, {.arrays = {{8, 8}}, .cores = {2}}), options, [](const std::string&, bool) {});
  const auto files = space.schedules({0, 0, 0, 0, 0});
  // Four linear layers, two products of attention in one kernel, the head; prompt and decode have sizes of their own.
  EXPECT_GE(files.size(), 6U);
  const ModuleRef program = relax::parse_module(space.program(0));
  std::set<std::string> names;
  size_t shared = 0;
  for (const auto& [name, code] : files) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(code.find("# not written"), std::string::npos) << code;
    const std::string function = code.substr(2, code.find_first_of(":\n") - 2);
    shared += code.find("thread_axis=\"core.x\"") != std::string::npos;
    const auto known = program->functions.find(function);
    const auto runtime = space.runtime_programs().find(function);
    const bool brought = runtime != space.runtime_programs().end();
    ASSERT_TRUE(brought || known != program->functions.end()) << function;
    const tir::PrimFuncRef func =
        brought ? tir::parse_function(runtime->second) : ref(*known->second.as<tir::PrimFunc>());
    schedule::Schedule s(func, function);
    s.work_on(function);
    schedule::Script(s).run(code);
    EXPECT_NE(tir::to_script(*s.func()).find("sator.held_since"), std::string::npos) << name;
  }
  EXPECT_GE(shared, 4U);
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
  const ModelSpace space(explore::ChipSpace(chip, {}), options, quiet);
  EXPECT_EQ(space.evaluate({0, 0, 0, 0, 0}).objectives.at(3), 10);
  EXPECT_TRUE(space.evaluate({0, 0, 0, 0, 0}).allowed());
  EXPECT_FALSE(space.evaluate({0, 0, 0, 0, 1}).allowed());
  options.schemes.push_back("int4-channel");
  EXPECT_NE(error_of([&] {
              ModelSpace(explore::ChipSpace(chip, {}), options, quiet);
            }).find("the study has no perplexity of int4-channel"),
            std::string::npos);
}

TEST(ExploreModel, AFolderWithoutAStudyIsRefused) {
  const TempFolder folder;
  EXPECT_NE(error_of([&] { perplexities_of(folder.path()); }).find("study.json"), std::string::npos);
}

}  // namespace
}  // namespace sator::study
