#include "study/study.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "study/by_hand.h"
#include "study/clock.h"
#include "study/compare.h"
#include "study/json.h"
#include "study/measure.h"
#include "study/speed.h"
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
    workers.measure = [this](const MeasureJob& job, const TakeMeasured& take, const Progress&) {
      reference = job.reference ? job.reference->name : "";
      for (const MeasureJob::Request& r : job.requests) {
        if (r.quality) measured.push_back(r.scheme.name);
        if (r.speed) timed.push_back(r.scheme.name);
        Measured m{.scheme = r.scheme.name, .quality = {}, .speed = {}, .failed = {}};
        if (r.scheme.name == failing) {
          m.failed = Reason{.what = "no such luck", .needs = "luck"};
        } else {
          if (r.quality) m.quality = SchemeResult{.perplexity = 31, .windows = 3, .weight_bytes = 1000};
          if (r.speed) m.speed = SchemeResult{.name = r.scheme.name, .host_prefill = HostSpeed{100, 90, 105}};
          if (r.speed) m.speed->host_calls = {{"decode", "f", 7.5}};
        }
        take(std::move(m));
      }
      return 5;
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
    timed.clear();
    costed.clear();
    return run_study(options, workers, [](const std::string&, bool) {});
  }
  std::string error() {
    return error_of([&] { run(); });
  }

  TempFolder model;
  StudyOptions options;
  Workers workers;
  std::vector<std::string> measured, timed, costed;
  std::string failing, reference;
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
  EXPECT_EQ(reference, "f32");
}

// The weights are those of one scheme, and f32 is not there to compare with.
// What ratios refer to on a chip of 16 bits is not left out; other studies do not pay for it.
TEST_F(Studies, TheDefaultsHaveTheBaselineOfEachChip) {
  options.schemes.clear();
  const Study narrow = run();
  EXPECT_EQ(narrow.schemes.size(), llm::default_schemes().size());
  EXPECT_EQ(std::ranges::count(measured, "f16+a16"), 0);
  options.chips.push_back(chip("a100"));
  const Study study = run();
  EXPECT_EQ(measured, std::vector<std::string>{"f16+a16"});
  ASSERT_EQ(study.schemes.size(), llm::default_schemes().size() + 1);
  EXPECT_EQ(study.schemes[1].name, "f16");
  EXPECT_EQ(study.schemes[2].name, "f16+a16");
  EXPECT_EQ(baseline_of(study, 0), 1U);
  EXPECT_EQ(baseline_of(study, 2), 2U);
  options.schemes = {"f16", "int8-channel"};
  EXPECT_EQ(run().schemes.size(), 2U);
}

TEST_F(Studies, OfConvertedWeightsTheSchemeIsTheFolders) {
  model.write("m/mlc-chat-config.json",
              R"({"model_type": "gpt2", "quantization": "q4f16_1", "context_window_size": 32, "vocab_size": 100,
                  "model_config": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}})");
  fs::remove(options.model / "config.json");
  options.schemes.clear();
  const Study study = run();
  ASSERT_EQ(study.schemes.size(), 1U);
  EXPECT_EQ(study.schemes[0].name, "q4f16_1");
  EXPECT_EQ(reference, "");
  EXPECT_EQ(study.protocol.window_tokens, 32);
  ASSERT_EQ(study.protocol.remarks.size(), 1U);
  EXPECT_NE(study.protocol.remarks[0].find("need the original weights"), std::string::npos);
  options.schemes = {"q4f16_1", "q4f16_1+a16"};
  EXPECT_EQ(run().schemes.size(), 2U);
  options.schemes = {"int8-channel"};
  EXPECT_NE(error().find("are converted to q4f16_1"), std::string::npos);
}

TEST_F(Studies, FinishedPartsAreNotRunAgain) {
  const Study first = run();
  const Study second = run();
  EXPECT_EQ(measured, Names{});
  EXPECT_EQ(timed, Names{});
  EXPECT_EQ(costed, Names{});
  EXPECT_EQ(second, first);
  options.schemes.push_back("int4-group32");
  const Study more = run();
  EXPECT_EQ(measured, Names{"int4-group32"});
  // Speeds are compared with each other: one run in turns measures all of them.
  EXPECT_EQ(timed, (Names{"f16", "int8-channel", "int4-group32"}));
  EXPECT_EQ(more.schemes[0], first.schemes[0]);
  options.schemes = {"int4-group32", "f16"};  // of that run
  run();
  EXPECT_EQ(timed, Names{});
}

TEST_F(Studies, SpeedsAreNotKeptForever) {
  const Study first = run();
  EXPECT_EQ(timed, (Names{"f16", "int8-channel"}));
  EXPECT_EQ(first.protocol.rounds, 5);
  EXPECT_LE(std::abs(*seconds_since(first.protocol.measured_at)), 60);
  EXPECT_EQ(first.schemes[1].host_prefill, (HostSpeed{100, 90, 105}));
  // An hour later: the kept run says when it was.
  for (const auto& part : fs::directory_iterator(options.folder / ".parts")) {
    std::string kept = read_file(part.path());
    const size_t at = kept.find(first.protocol.measured_at);
    if (at == std::string::npos) continue;
    kept.replace(at, first.protocol.measured_at.size(), "2001-02-03T04:05:06Z");
    write_file(part.path(), kept);
  }
  const Study later = run();
  EXPECT_EQ(measured, Names{});
  EXPECT_EQ(timed, (Names{"f16", "int8-channel"}));
  EXPECT_NE(later.protocol.measured_at, "2001-02-03T04:05:06Z");
  options.speed_age_s = 0;
  run();
  EXPECT_EQ(timed.size(), 2U);
  options.threads = 3;
  options.speed_age_s = 3600;
  run();
  EXPECT_EQ(timed.size(), 2U);
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
  EXPECT_EQ(timed, (Names{"f16", "int8-channel"}));
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

TEST_F(Studies, AnotherGoalIsCostedAnew) {
  run();
  costed.clear();
  EXPECT_EQ(run().protocol.objective, "latency");
  EXPECT_EQ(costed.size(), 0U);
  options.goal.energy_within = 0.02;
  EXPECT_EQ(run().protocol.objective, "energy within 2 % of the best latency");
  EXPECT_GT(costed.size(), 0U);
}

TEST_F(Studies, AGoalNeedsMappingsThatAreSearched) {
  options.goal.objective = dataflow::Objective::energy;
  options.changes.tile = {8, 8, 8};
  EXPECT_NE(error().find("is to be chosen for its energy"), std::string::npos);
  EXPECT_EQ(costed.size(), 0U);
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

// A second study in the same folder leaves nothing that would pass for its own, and takes nothing that it did not write.
TEST_F(Studies, FilesOfAnEarlierStudyGoAndOthersStay) {
  run();
  Study study = run();
  study.schemes[0].chips[0].decode.rows.push_back({.function = "old", .schedule = "split(i, 8)"});
  write_study(study, options.folder);
  EXPECT_TRUE(fs::exists(options.folder / "schedules/tpuv1/old.py"));
  for (const char* file : {"schedules/other/f.py", "tenet/source.p", "sweep.csv"})
    write_file(options.folder / file, "x");
  study = run();
  write_study(study, options.folder);
  EXPECT_FALSE(fs::exists(options.folder / "schedules/tpuv1"));
  for (const char* file : {"schedules/other/f.py", "tenet/source.p", "sweep.csv"})
    EXPECT_EQ(read_file(options.folder / file), "x") << file;
}

TEST_F(Studies, WhatNoStudyWroteIsNotReplaced) {
  for (const char* file : {"study.json", "schedules/tpuv1/f.py", "tenet/metrics.csv", "tenet/edge_npu32/g.s"}) {
    write_file(options.folder / file, "somebody's");
    EXPECT_NE(error().find(file), std::string::npos) << file;
    EXPECT_EQ(measured.size() + costed.size(), 0U) << "it is said before work begins";
    fs::remove(options.folder / file);
  }
  options.replace = true;
  write_file(options.folder / "study.json", "somebody's");
  EXPECT_EQ(error(), "");
}

TEST_F(Studies, ChipsNeedFoldersOfTheirOwn) {
  const std::string text = read_file(chip("tpuv1"));
  auto named = [&](const std::string& file, const std::string& name) {
    std::string changed = text;
    const size_t at = changed.find("name");
    changed.replace(at, changed.find('\n', at) - at, "name = \"" + name + "\"");
    return model.write(file, changed).string();
  };
  options.chips = {named("a.toml", "Mine"), named("b.toml", "mine")};
  EXPECT_NE(error().find("two chips are named"), std::string::npos);
  for (const char* name : {"../mine", "a/b", ".hidden", ""}) {
    options.chips = {named("a.toml", name)};
    EXPECT_NE(error(), "") << name;
  }
}

// The example's README states the perplexity of the first 32 windows, 32.468, and the size of the checkpoint.
TEST(Measure, ReproducesTheExamplesFigures) {
  TempFolder home;
  ::setenv("SATOR_HOME", home.path().c_str(), 1);
  MeasureJob job{
      .options = {}, .requests = {}, .reference = {}, .window_tokens = 512, .decode_context = 21, .memory_bytes = {}};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  job.options.text = job.options.model / "validation.txt";
  job.options.prompt_len = 16;
  job.options.gen_len = 4;
  job.reference = llm::parse_scheme("f32");
  for (const char* name : {"f32", "f16", "int8-channel", "int4-group32"})
    job.requests.push_back({llm::parse_scheme(name), true, true});
  std::map<std::string, SchemeResult> qualities, speeds;
  auto take = [&](const Measured& m) {
    EXPECT_FALSE(m.failed) << m.scheme;
    if (m.quality) EXPECT_TRUE(qualities.emplace(m.scheme, *m.quality).second) << m.scheme;
    if (m.speed) EXPECT_TRUE(speeds.emplace(m.scheme, *m.speed).second) << m.scheme;
  };
  EXPECT_EQ(measure_schemes(job, take, [](const std::string&, bool) {}), kRounds);
  ASSERT_EQ(qualities.size(), 4U);
  ASSERT_EQ(speeds.size(), 4U);
  const SchemeResult& result = qualities["f32"];
  EXPECT_NEAR(*result.perplexity, 32.468, 32.468 * 2e-5 + 0.0005);
  EXPECT_EQ(result.windows, 32);
  EXPECT_EQ(result.predictions, 32 * 511);
  EXPECT_EQ(result.parameters, 8546816);
  EXPECT_EQ(result.weight_bytes, 4 * 8546816);
  for (const auto& [name, speed] : speeds) {
    for (const auto& figure : {speed.host_prefill, speed.host_decode}) {
      ASSERT_TRUE(figure) << name;
      EXPECT_GT(figure->least, 0);
      EXPECT_LE(figure->least, figure->median);
      EXPECT_LE(figure->median, figure->most);
    }
    int64_t attentions = 0;  // one per layer and phase
    for (const HostCall& call : speed.host_calls) attentions += call.function == "attention" && call.duration_us > 0;
    EXPECT_EQ(attentions, 16);
  }
  EXPECT_FALSE(result.compared);
  ASSERT_EQ(result.window_nats.size(), 32U);
  // The checkpoint has float16 weights: stored as such they are the same numbers. What differs are keys and values, which the
  // cache rounds to 11 bits: far less than the 8 bits of weights below.
  const Compared& rounded = *qualities["f16"].compared;
  EXPECT_LT(std::abs(rounded.perplexity.value), 3 * *rounded.perplexity.error);
  EXPECT_GT(rounded.kl.value, 0);
  EXPECT_GT(rounded.same_top, 0.995);
  // Rounding weights to 8 bits changes less than to 4, and 32 windows tell both apart from f32 where their own errors, each
  // 7 % of the perplexity, would not.
  const Compared &eight = *qualities["int8-channel"].compared, &four = *qualities["int4-group32"].compared;
  EXPECT_GT(four.perplexity.value, 5 * *four.perplexity.error);
  EXPECT_LT(four.perplexity.value, *qualities["int4-group32"].standard_error * 2);
  EXPECT_LT(eight.kl.value, four.kl.value / 10);
  EXPECT_LT(rounded.kl.value, eight.kl.value / 10);
  EXPECT_GT(eight.kl.value, 0);
  EXPECT_LT(*four.kl.error, four.kl.value / 10);
  EXPECT_GT(eight.same_top, four.same_top);
  EXPECT_LT(eight.same_top, 1);
  EXPECT_NEAR(four.perplexity.value, *qualities["int4-group32"].perplexity - *result.perplexity, 1e-9);
}

// Where memory lacks the schemes run in groups, each with the reference, and find the same.
TEST(Measure, InGroupsTheFiguresAreTheSame) {
  TempFolder home;
  ::setenv("SATOR_HOME", home.path().c_str(), 1);
  MeasureJob job{.options = {},
                 .requests = {},
                 .reference = llm::parse_scheme("f32"),
                 .window_tokens = 64,
                 .decode_context = 6,
                 .memory_bytes = {}};
  job.options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  job.options.text = job.options.model / "validation.txt";
  job.options.prompt_len = job.options.gen_len = 4;
  job.options.windows = 2;
  for (const char* name : {"int8-channel", "q4f16_1", "f16"})
    job.requests.push_back({llm::parse_scheme(name), true, false});
  auto measured = [&] {
    std::map<std::string, SchemeResult> found;
    measure_schemes(
        job, [&](const Measured& m) { found.emplace(m.scheme, *m.quality); }, [](const std::string&, bool) {});
    return found;
  };
  const auto together = measured();
  job.memory_bytes = 1;
  EXPECT_EQ(measured(), together);
  EXPECT_EQ(together.size(), 3U);
  job.requests.insert(job.requests.begin(),
                      {llm::parse_scheme("int8-channel+a8-tensor"), true, true});  // without a text
  std::vector<std::string> failed, finished;
  measure_schemes(
      job,
      [&](const Measured& m) { (m.failed ? failed : finished).push_back(m.scheme); },
      [](const std::string&, bool) {});
  EXPECT_EQ(failed, (std::vector<std::string>{"int8-channel+a8-tensor"}));
  EXPECT_EQ(finished, (std::vector<std::string>{"int8-channel", "q4f16_1", "f16"}));
}

TEST(Measure, ShapesGiveTheCheckpointsSizes) {
  StudyOptions options;
  options.model = std::string(SATOR_SOURCE_DIR) + "/examples/gpt2-stories";
  EXPECT_EQ(count_parameters(options), 8546816);
  options.shapes_only = true;
  EXPECT_EQ(count_parameters(options), 8546816);
  const SchemeResult result = sizes_of_shapes(options.model, llm::parse_scheme("int8-channel"));
  EXPECT_FALSE(result.perplexity || result.host_decode);
  // Eight layers of 768 + 256 + 1024 rows of 256 codes and 256 rows of 1024, a byte each, and an f32 scale per row; the
  // other tensors are float16.
  const int64_t codes = 8 * (256 * (768 + 256 + 1024) + 1024 * 256), rows = 8 * (768 + 256 + 1024 + 256);
  EXPECT_EQ(result.weight_bytes, codes + 4 * rows + 2 * (8546816 - codes));
  EXPECT_DOUBLE_EQ(result.bits_per_weight, static_cast<double>(result.weight_bytes) * 8 / 8546816);
}

}  // namespace
}  // namespace sator::study
