// The kernels of model programs under quantization schemes: traces, texts and machine code agree.
#include "driver/kernels.h"

#include "llm/open.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

// A configuration with sizes that no tile divides: written here, so that every remainder is taken.
constexpr const char* kConfig =
    R"({"model_type": "gpt2", "vocab_size": 101, "n_positions": 64, "n_embd": 40, "n_layer": 1,
  "n_head": 4, "n_inner": 72})";

// Eight experts, of which a token takes two; those that every token takes besides.
constexpr const char* kExperts =
    R"({"model_type": "qwen2_moe", "vocab_size": 101, "max_position_embeddings": 64, "hidden_size": 40,
  "intermediate_size": 72, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4, "num_experts": 8, "num_experts_per_tok": 2,
  "moe_intermediate_size": 24, "shared_expert_intermediate_size": 20})";

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class Schemes : public testing::TestWithParam<const char*> {};

TEST_P(Schemes, KernelsMeanWhatPhase3Means) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  const Program program = program_of(folder.path(), {.scheme = parse_scheme(GetParam())});
  const target::CpuLevel* level = target::levels_for("native").front();
  driver::Compiled compiled =
      driver::compile(program.module, {.target = Target::of_levels({level}), .bounds = {{"seq_len", 64}}});
  int kernels = 0, packed = 0;
  driver::expect_kernels_mean_phase3(compiled, *level, {1, 5, 14}, kernels, packed);
  EXPECT_GE(kernels, 10);
  EXPECT_GE(packed, 5);  // four linear layers and the head
}

// What runs in a batch equals what runs alone, and a prompt in chunks the prompt at once.
TEST_P(Schemes, KernelsGiveARowTheSameBitsAtEveryHeight) {
  TempFolder folder;
  folder.write("config.json", kConfig);
  const Program program = program_of(folder.path(), {.scheme = parse_scheme(GetParam())});
  const target::CpuLevel* level = target::levels_for("native").front();
  int compared = 0;
  driver::expect_same_bits_at_every_height(
      driver::compile(program.module, {.target = Target::of_levels({level}), .bounds = {{"seq_len", 64}}}),
      *level,
      compared);
  EXPECT_GE(compared, 35);
}

INSTANTIATE_TEST_SUITE_P(All, Schemes,
                         testing::Values("f32", "int8-channel+a8", "int4-group32+a8", "int3-input-asym",
                                         "int8-input+a8-peg8", "q4f16_1", "bf16+a16", "int4-group32+a16"),
                         name_of);

// Each row of a product has an expert of its own, drawn at random: runs of one row, and of several. No fewer rows than experts: what
// picks rows finds them.
class SchemesOfExperts : public testing::TestWithParam<const char*> {};

TEST_P(SchemesOfExperts, KernelsMeanWhatPhase3Means) {
  TempFolder folder;
  folder.write("config.json", kExperts);
  const Program program = program_of(folder.path(), {.scheme = parse_scheme(GetParam())});
  const target::CpuLevel* level = target::levels_for("native").front();
  driver::Compiled compiled =
      driver::compile(program.module, {.target = Target::of_levels({level}), .bounds = {{"seq_len", 64}}});
  int kernels = 0, packed = 0, grouped = 0;
  driver::expect_kernels_mean_phase3(compiled, *level, {8, 21}, kernels, packed);
  for (const rules::AppliedSchedule& s : compiled.schedules) grouped += s.trace.find(rules::kOneGroup) != s.trace.npos;
  EXPECT_GE(grouped, 4);  // both products of experts, in prefill and decode
}

INSTANTIATE_TEST_SUITE_P(All, SchemesOfExperts,
                         testing::Values("f32", "int8-channel+a8", "int4-group32+a8", "int3-input-asym",
                                         "int4-group32+a16"),
                         name_of);

}  // namespace
}  // namespace sator::llm
