// Folders in MLC-LLM's format: written, read back, run.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/mlc_config.h"
#include "llm/mlc_weights.h"
#include "llm/open.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

fs::path example() { return fs::path(SATOR_SOURCE_DIR) / "examples/gpt2-stories"; }

void convert(const fs::path& model, const std::string& scheme, const fs::path& out) {
  convert_weights(model, {.scheme = parse_scheme(scheme)}, out);
  write_file(out / kMlcConfigFile, mlc_chat_config(model, {.quantization = scheme}, {}).dump());
}

std::vector<float> logits(const fs::path& folder, const OpenOptions& options) {
  OpenModel model = open_model(folder, options);
  Session session = model.session();
  std::span<const float> l = session.append(std::vector<int32_t>{5, 17, 3, 99});
  return {l.begin(), l.end()};
}

TEST(MlcFolder, RunsLikeTheCheckpointItWasMadeFrom) {
  for (const char* scheme : {"f32", "int8-channel+embed", "q4f16_1", "int4-group32+a8"}) {
    SCOPED_TRACE(scheme);
    TempFolder folder;
    convert(example(), scheme, folder.path());
    EXPECT_EQ(scheme_for(folder.path(), std::nullopt).name, parse_scheme(scheme).name);
    OpenOptions options{.scheme = parse_scheme(scheme), .threads = 2};
    EXPECT_EQ(logits(folder.path(), options), logits(example(), options));
    MlcWeights::open(folder.path()).verify();
  }
}

TEST(MlcFolder, ItsContextWindowHolds) {
  TempFolder folder;
  convert_weights(example(), {.scheme = parse_scheme("int8-channel")}, folder.path());
  Json config = mlc_chat_config(example(), {.quantization = "int8-channel", .context_window_size = 64}, {});
  write_file(folder.path() / kMlcConfigFile, config.dump());
  const OpenOptions options{.scheme = parse_scheme("int8-channel")};
  EXPECT_EQ(program_of(folder.path(), options).limits.context_window, 64);
  EXPECT_EQ(program_of(folder.path(), options).limits.prefill_chunk, 64);
  OpenOptions asked = options;
  asked.program.context_window = 32;
  EXPECT_EQ(program_of(folder.path(), asked).limits.context_window, 32);
  EXPECT_EQ(open_model(folder.path(), options).limits.context_window, 64);
}

TEST(MlcFolder, ALibraryRunsItsOwnModelAlone) {
  TempFolder folder;
  OpenOptions options{.scheme = parse_scheme("int8-channel"), .threads = 2};
  options.program.prefill_chunk = 3;
  const fs::path library = folder.path() / "model.so";
  compile_model(example(), options, library);
  OpenOptions plain{.scheme = options.scheme, .threads = 2}, with_library = plain;
  with_library.library = library;
  std::vector<float> a = logits(example(), with_library), b = logits(example(), plain);
  ASSERT_EQ(a.size(), b.size());
  // Four tokens in steps of three: the same sums in other chunks.
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-3);
  with_library.scheme = parse_scheme("int8-tensor");
  EXPECT_THROW(open_model(example(), with_library), Error);
}

TEST(MlcFolder, ReadsFloatsOfWhichTheUpperHalfIsStored) {
  TempFolder folder;
  const float values[] = {1.5f, -2.0f, 0.15625f};
  std::string bytes;
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, 4);
    bytes += static_cast<char>(bits >> 16 & 255);
    bytes += static_cast<char>(bits >> 24);
  }
  write_file(folder.path() / "params_shard_0.bin", bytes);
  const Json record = {
      {"name", "w"}, {"shape", {3}}, {"dtype", "float32"}, {"format", "f32-to-bf16"}, {"nbytes", 6}, {"byteOffset", 0}};
  const Json index = {{"records", {{{"dataPath", "params_shard_0.bin"}, {"records", {record}}}}}};
  write_file(folder.path() / "ndarray-cache.json", index.dump());
  auto params = MlcWeights::open(folder.path()).params({{.name = "w", .shape = {3}, .dtype = f32}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(params[0]->data_as<float>()[i], values[i]);
}

TEST(MlcFolder, DamageIsNamed) {
  TempFolder folder;
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()); }).find("tensor-cache.json"), std::string::npos);
  convert(example(), "int8-channel", folder.path());
  const fs::path shard = folder.path() / "params_shard_0.bin";
  std::string whole = read_file(shard), flipped = whole;
  flipped[whole.size() / 2] ^= 1;
  write_file(shard, flipped);
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()).verify(); }).find("md5"), std::string::npos);
  write_file(shard, whole.substr(0, whole.size() - 100));
  EXPECT_NE(error_of([&] { MlcWeights::open(folder.path()); }).find("beyond the end"), std::string::npos);
  write_file(shard, whole);
  EXPECT_NE(error_of([&] { scheme_for(folder.path(), "int4-group32"); }).find("are converted to int8-channel"),
            std::string::npos);
}

}  // namespace
}  // namespace sator::llm
