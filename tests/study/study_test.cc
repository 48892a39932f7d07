#include "study/study.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "study/by_hand.h"
#include "study/json.h"
#include "study/measure.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

/// A model's folder without weights, and workers that make up results and note what they were asked.
class Studies : public testing::Test {
 protected:
  Studies() {
    model.write("m/config.json", R"({"model_type": "gpt2", "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64,
                                     "vocab_size": 100})");
    model.write("m/tokenizer.json", "{}");
    model.write("m/validation.txt", "once upon a time");
    model.write("m/calibration.txt", "there was a king");
    options.model = model.path() / "m";
    options.schemes = {"f16", "int8-channel"};
    options.chips = {chip("tpuv1"), chip("edge_npu32")};
    options.prompt_len = 16;
    options.gen_len = 10;
    options.folder = model.path() / "out";
    workers.measure = [this](const SchemeJob& job, const Progress&) {
      measured.push_back(job.scheme.name);
      if (job.scheme.name == failing) fail({.what = "no such luck", .needs = "luck"});
      SchemeResult result;
      result.perplexity = 30.0 + static_cast<double>(measured.size());
      result.windows = 3;
      result.weight_bytes = 1000;
      result.host_calls = {{"decode", "f", 7.5}};
      return result;
    };
    workers.cost = [this](const SchemeJob& job, std::span<const Chip> chips, const Progress&) {
      std::vector<ChipResult> results;
      for (const Chip& c : chips) {
        costed.push_back(job.scheme.name + "@" + c.name);
        context = job.decode_context;
        results.push_back({c.name, phase_by_hand(Component::array, 100), phase_by_hand(Component::weights, 10)});
        results.back().decode.rows.push_back({.function = "f"});
      }
      return results;
    };
    workers.parameters = [](const StudyOptions&) { return 12345; };
  }

  static std::string chip(const std::string& name) {
    return std::string(SATOR_SOURCE_DIR) + "/chips/" + name + ".toml";
  }
  Study run() {
    measured.clear();
    costed.clear();
    return run_study(options, workers, [](const std::string&, bool) {});
  }
  std::string error() {
    return error_of([&] { run(); });
  }

  TempFolder model;
  StudyOptions options;
  Workers workers;
  std::vector<std::string> measured, costed;
  std::string failing;
  int64_t context = 0;
};

using Names = std::vector<std::string>;

TEST_F(Studies, RunEverySchemeOnEveryChip) {
  const Study study = run();
  EXPECT_EQ(measured, (Names{"f16", "int8-channel"}));
  EXPECT_EQ(costed, (Names{"f16@tpuv1", "f16@edge_npu32", "int8-channel@tpuv1", "int8-channel@edge_npu32"}));
  ASSERT_EQ(study.schemes.size(), 2U);
  EXPECT_EQ(study.schemes[1].name, "int8-channel");
  EXPECT_NE(study.schemes[1].description, "");
  EXPECT_EQ(study.schemes[1].chips[1].chip, "edge_npu32");
  EXPECT_EQ(study.schemes[1].chips[1].decode.rows.at(0).duration_us, 7.5);
  EXPECT_EQ(study.model.name, "m");
  EXPECT_EQ(study.model.layers, 2);
  EXPECT_EQ(study.protocol.windows, 3);
  EXPECT_EQ(study.protocol.window_tokens, 64);  // the model has no 512 positions
  // 16 + 1 ... 16 + 10 tokens: 21.5 on average, rounded down.
  EXPECT_EQ(context, 21);
}

TEST_F(Studies, FinishedPartsAreNotRunAgain) {
  const Study first = run();
  const Study second = run();
  EXPECT_EQ(measured, Names{});
  EXPECT_EQ(costed, Names{});
  EXPECT_EQ(second, first);
  options.schemes.push_back("int4-group32");
  const Study more = run();
  EXPECT_EQ(measured, Names{"int4-group32"});
  EXPECT_EQ(more.schemes[0], first.schemes[0]);
}

TEST_F(Studies, WhatShapedAPartDecidesWhetherItIsRunAgain) {
  run();
  options.chips.push_back(chip("gemmini16"));
  run();
  EXPECT_EQ(measured, Names{});
  EXPECT_EQ(costed, (Names{"f16@gemmini16", "int8-channel@gemmini16"}));

  options.windows = 7;  // of perplexity alone
  run();
  EXPECT_EQ(measured.size(), 2U);
  EXPECT_EQ(costed, Names{});

  model.write("m/validation.txt", "another text");
  run();
  EXPECT_EQ(measured.size(), 2U);
  EXPECT_EQ(costed, Names{});

  options.gen_len = 11;
  run();
  EXPECT_EQ(measured.size(), 2U);
  EXPECT_EQ(costed.size(), 6U);

  model.write("m/model.safetensors", "other weights");
  run();
  EXPECT_EQ(measured.size(), 2U);
  EXPECT_EQ(costed.size(), 6U);

  model.write("m/README.md", "words");  // shapes nothing
  model.write("m/calibration.txt", "neither scheme has static scales");
  run();
  EXPECT_EQ(measured.size() + costed.size(), 0U);
}

TEST_F(Studies, AChangedChipIsCostedAgain) {
  const std::string text = read_file(chip("tpuv1"));
  options.chips = {model.write("mine.toml", text).string()};
  run();
  model.write("mine.toml", text + "\n# a remark is a change too\n");
  run();
  EXPECT_EQ(measured, Names{});
  EXPECT_EQ(costed.size(), 2U);
}

TEST_F(Studies, DamagedPartsAreRunAgain) {
  run();
  for (const auto& part : fs::directory_iterator(options.folder / ".parts"))
    if (part.path().extension() == ".json") {
      const std::string whole = read_file(part.path());
      write_file(part.path(), whole.substr(0, whole.size() / 2));
    }
  run();
  EXPECT_EQ(measured.size(), 2U);
  EXPECT_EQ(costed.size(), 4U);
}

TEST_F(Studies, WhatWasFinishedBeforeAFailureIsKept) {
  failing = "int8-channel";
  EXPECT_NE(error().find("in scheme int8-channel"), std::string::npos);
  failing.clear();
  run();
  EXPECT_EQ(measured, Names{"int8-channel"});
  EXPECT_EQ(costed, (Names{"int8-channel@tpuv1", "int8-channel@edge_npu32"}));
}

TEST_F(Studies, EachSchemeAndChipOnce) {
  options.schemes = {"f16", "f16"};
  options.chips = {chip("tpuv1"), "tpuv1"};
  const Study study = run();
  EXPECT_EQ(study.schemes.size(), 1U);
  EXPECT_EQ(study.schemes[0].chips.size(), 1U);
}

TEST_F(Studies, MistakesAreFoundBeforeAnythingRuns) {
  auto expect_error = [&](const std::string& words) {
    const std::string message = error();
    EXPECT_NE(message.find(words), std::string::npos) << words << "\n" << message;
    EXPECT_EQ(measured.size() + costed.size(), 0U);
  };
  const StudyOptions good = options;
  options.schemes = {"f16", "int9-channel"};
  expect_error("int9-channel");
  options = good;
  options.chips = {"no_such_chip"};
  expect_error("no_such_chip");
  options = good;
  options.prompt_len = 60;
  expect_error("64 positions");
  options.prompt_len = 1;
  options.gen_len = INT64_MAX;
  expect_error("64 positions");
  options.gen_len = 0;
  expect_error("--gen-len 0");
  options = good;
  options.text = "no/such/text";
  expect_error("no/such/text");
  options = good;
  fs::remove(options.model / "validation.txt");
  expect_error("--text FILE");
  model.write("m/validation.txt", "back again");
  options.folder = model.write("a_file", "not a folder");
  expect_error("a_file");
  options = good;
  const std::string other = read_file(chip("tpuv1")) + "\n# another chip of the same name\n";
  options.chips = {chip("tpuv1"), model.write("other.toml", other).string()};
  expect_error("two chips are named tpuv1");
  options = good;
  fs::remove(options.model / "config.json");
  expect_error("config.json");
}

TEST_F(Studies, StaticScalesNeedAText) {
  options.schemes = {"int8-channel+a8-tensor"};
  run();
  EXPECT_EQ(measured.size(), 1U);
  fs::remove(options.model / "calibration.txt");
  EXPECT_NE(error().find("--calibration FILE"), std::string::npos);
  options.schemes.clear();
  const Study study = run();
  // Of the twelve defaults three have static scales.
  EXPECT_EQ(study.schemes.size(), 9U);
  ASSERT_EQ(study.protocol.remarks.size(), 3U);
  EXPECT_NE(study.protocol.remarks[0].find("int8-channel+a8-tensor left out"), std::string::npos);
}

TEST_F(Studies, ShapesNeedTheConfigurationAlone) {
  for (const char* file : {"tokenizer.json", "validation.txt", "calibration.txt"}) fs::remove(options.model / file);
  options.shapes_only = true;
  options.schemes.clear();
  EXPECT_EQ(run().schemes.size(), 12U);
  EXPECT_EQ(run().protocol.window_tokens, 0);
}

TEST_F(Studies, AreWrittenAsFourFiles) {
  Study study = run();
  write_study(study, options.folder);
  const std::string json = read_file(options.folder / "study.json");
  for (SchemeResult& scheme : study.schemes) {
    scheme.host_calls.clear();
    for (ChipResult& c : scheme.chips) c.prefill.rows.clear(), c.decode.rows.clear();
  }
  EXPECT_EQ(from_json(parse_json(json, "study.json"), "study.json"), study);
  for (const char* file : {"study.csv", "kernels.csv", "index.html"})
    EXPECT_NE(read_file(options.folder / file), "") << file;
}

// A second study in the same folder leaves nothing that would pass for its own, and takes nothing that is not ours.
TEST_F(Studies, FilesOfAnEarlierStudyGo) {
  const Study study = run();
  for (const char* file : {"schedules/old_chip/f.py", "tenet/old_chip/f.p", "tenet/notes.txt"})
    write_file(options.folder / file, "x");
  write_study(study, options.folder);
  EXPECT_FALSE(fs::exists(options.folder / "schedules/old_chip/f.py"));
  EXPECT_FALSE(fs::exists(options.folder / "tenet/old_chip/f.p"));
  EXPECT_TRUE(fs::exists(options.folder / "tenet/notes.txt"));
}

// The example's README states the perplexity of the first 32 windows, 32.468, and the size of the checkpoint.
TEST(Measure, ReproducesTheExamplesFigures) {
  TempFolder home;
  ::setenv("SATOR_HOME", home.path().c_str(), 1);
  SchemeJob job{.scheme = llm::parse_scheme("f32"), .options = {}, .window_tokens = 512, .decode_context = 21};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  job.options.text = job.options.model / "validation.txt";
  job.options.prompt_len = 16;
  job.options.gen_len = 4;
  const SchemeResult result = measure_scheme(job, [](const std::string&, bool) {});
  EXPECT_NEAR(*result.perplexity, 32.468, 32.468 * 2e-5 + 0.0005);
  EXPECT_EQ(result.windows, 32);
  EXPECT_EQ(result.predictions, 32 * 511);
  EXPECT_EQ(result.parameters, 8546816);
  EXPECT_EQ(result.weight_bytes, 4 * 8546816);
  EXPECT_GT(*result.host_prefill_tokens_per_s, 0);
  EXPECT_GT(*result.host_decode_tokens_per_s, 0);
  int64_t attentions = 0;  // one per layer and phase
  for (const HostCall& call : result.host_calls) attentions += call.function == "attention" && call.duration_us > 0;
  EXPECT_EQ(attentions, 16);
}

TEST(Measure, ShapesGiveTheCheckpointsSizes) {
  SchemeJob job{.scheme = llm::parse_scheme("int8-channel"), .options = {}};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  EXPECT_EQ(count_parameters(job.options), 8546816);
  job.options.shapes_only = true;
  EXPECT_EQ(count_parameters(job.options), 8546816);
  const SchemeResult result = measure_scheme(job, [](const std::string&, bool) {});
  EXPECT_FALSE(result.perplexity || result.host_decode_tokens_per_s);
  // Eight layers of 768 + 256 + 1024 rows of 256 codes and 256 rows of 1024, a byte each, and an f32 scale per row; the
  // other tensors keep their float16.
  const int64_t codes = 8 * (256 * (768 + 256 + 1024) + 1024 * 256), rows = 8 * (768 + 256 + 1024 + 256);
  EXPECT_EQ(result.weight_bytes, codes + 4 * rows + 2 * (8546816 - codes));
  EXPECT_DOUBLE_EQ(result.bits_per_weight, static_cast<double>(result.weight_bytes) * 8 / 8546816);
}

}  // namespace
}  // namespace sator::study
