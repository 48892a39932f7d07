#include "study/profile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"
#include "reference_data.h"
#include "temp_folder.h"

namespace sator::study {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories"; }

TEST(Profile, RecordsStateTheModelsWork) {
  for (const char* scheme : {"f32", "int4-group32", "int8-channel+a8"}) {
    SCOPED_TRACE(scheme);
    llm::OpenModel model = llm::open_model(example(), {.scheme = llm::parse_scheme(scheme), .threads = 2});
    ModelProfile profile = profile_model(example(), model, {.prompt_len = 20, .chip = find_chip("gemmini16")});
    int64_t macs[2] = {0, 0}, weights = 0;
    for (const WorkloadRecord& r : profile.records) {
      macs[r.phase == "decode"] += r.macs;
      EXPECT_GT(r.duration_us, 0) << r.function;
      ASSERT_TRUE(r.on_chip) << r.function;
      EXPECT_GT(r.on_chip->cost.latency_cycles, 0) << r.function;
      if (r.k > 0) {
        EXPECT_LE(r.batch * r.i * r.j * r.k, r.macs) << r.function;
      }
      // Tables of which a step takes rows are no weights that are read as a whole.
      if (r.phase != "decode" || r.function.find("take") != std::string::npos) continue;
      for (const WorkOperand& o : r.operands)
        if (o.kind == "weight" || o.kind == "scale") weights += o.bytes;
    }
    EXPECT_EQ(macs[0], llm::macs_of_step(model.config, {.tokens = 20, .context = 20}));
    EXPECT_EQ(macs[1], llm::macs_of_step(model.config, {.tokens = 1, .context = 21}));
    EXPECT_EQ(weights, model.bytes_per_token());
    const std::string table = profile.decode.table();
    for (const char* column :
         {"Name", "Duration (us)", "Percent", "Device", "Count", "Argument Shapes", "MACs", "Reuse Factor"})
      EXPECT_NE(table.find(column), std::string::npos) << column;
    const std::string lines = json_lines(profile.records);
    EXPECT_EQ(std::ranges::count(lines, '\n'), static_cast<int64_t>(profile.records.size()));
    Json first = parse_json(lines.substr(0, lines.find('\n')), "record");
    for (const char* key :
         {"phase", "function", "layer", "sizes", "statements", "macs", "operands", "bytes", "duration_us", "chip"})
      EXPECT_TRUE(first.contains(key)) << key;
  }
}

class Families : public testing::TestWithParam<std::string> {};

// Layers that differ by windows or rotary embeddings, reshapes of every kind, experts: each kernel that ran is joined with the call that
// states it. Windows are shorter than the prompt.
TEST_P(Families, KernelsAreThoseThatTheProgramStates) {
  const fs::path folder = reference_data("models/families") / GetParam();
  const bool latent = GetParam().starts_with("deepseek");  // products by head too
  for (const char* scheme : {"f32", "int8-channel"}) {
    if (!latent && std::string(scheme) != "f32") continue;
    SCOPED_TRACE(scheme);
    llm::OpenModel model = llm::open_model(folder, {.scheme = llm::parse_scheme(scheme), .threads = 2});
    const ModelProfile profile = profile_model(folder, model, {.prompt_len = 20, .chip = {}});
    int64_t macs[2] = {0, 0};
    for (const WorkloadRecord& r : profile.records) macs[r.phase == "decode"] += r.macs;
    EXPECT_EQ(macs[1], llm::macs_of_step(model.config, {.tokens = 1, .context = 21}));
    // Of experts the expected ones are counted, whose rows are rounded.
    if (model.config.experts.count > 0) continue;
    EXPECT_EQ(macs[0], llm::macs_of_step(model.config, {.tokens = 20, .context = 20}));
  }
}

// A context that fills no whole page, and the shortest and the longest prompt; one token alone is a step of its own program.
TEST(Profile, TakesOneTokenAndAnyContext) {
  const fs::path folder = reference_data("models/families/qwen3");
  const llm::OpenModel model =
      llm::open_model(folder, {.scheme = llm::parse_scheme("f32"), .program = {.context_window = 29}, .threads = 1});
  EXPECT_EQ(longest_prompt(model.limits), 28);
  for (int64_t tokens : {1, 28}) {
    const ModelProfile profile = profile_model(folder, model, {.prompt_len = tokens, .chip = {}});
    int64_t macs[2] = {0, 0};
    for (const WorkloadRecord& r : profile.records) macs[r.phase == "decode"] += r.macs;
    EXPECT_EQ(macs[0], llm::macs_of_step(model.config, {.tokens = tokens, .context = tokens}));
    EXPECT_EQ(macs[1], llm::macs_of_step(model.config, {.tokens = 1, .context = tokens + 1}));
  }
  EXPECT_NE(error_of([&] { profile_model(folder, model, {.prompt_len = 29, .chip = {}}); }).find("1 to 28 tokens"),
            std::string::npos);
  const llm::OpenModel shortest =
      llm::open_model(folder, {.scheme = llm::parse_scheme("f32"), .program = {.context_window = 1}, .threads = 1});
  EXPECT_NE(
      error_of([&] { profile_model(folder, shortest, {.prompt_len = 1, .chip = {}}); }).find("a context of 1 token\n"),
      std::string::npos);
}

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const fs::directory_entry& e : fs::directory_iterator(reference_data("models/families")))
    if (e.is_directory()) names.push_back(e.path().filename().string());
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Profile, Families, testing::ValuesIn(families()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace sator::study
