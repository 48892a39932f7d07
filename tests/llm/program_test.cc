#include "llm/program.h"

#include <gtest/gtest.h>

#include "llm/scheme.h"
#include "temp_folder.h"

namespace sator::llm {
namespace {

/// A configuration whose last keys are given.
ModelConfig config_with(const TempFolder& folder, const std::string& keys) {
  folder.write("config.json",
               text(R"({"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24,
  "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 16, "rms_norm_eps": 1e-6, "hidden_act": "silu")",
                    keys,
                    "}"));
  return read_model_config(folder.path());
}

TEST(Program, TheCacheHasTheModelsDtype) {
  TempFolder folder;
  struct Row {
    const char *keys, *scheme;
    DType cache;
  };
  for (const Row& row : {Row{"", "int4-group32", f32},
                         Row{R"(, "torch_dtype": "bfloat16")", "int4-group32", bf16},
                         Row{R"(, "torch_dtype": "bfloat16")", "f16", bf16},
                         Row{R"(, "torch_dtype": "bfloat16")", "f16+a16", f16},  // as narrow as its products
                         Row{R"(, "torch_dtype": "bfloat16")", "f32", f32},
                         Row{R"(, "dtype": "float16", "torch_dtype": "bfloat16")", "int8-channel", f16},
                         Row{R"(, "dtype": "float16")", "int8-channel+a8", bf16},  // whose pairs are fast
                         Row{R"(, "dtype": "float32")", "int8-channel+a8", f32},
                         Row{R"(, "dtype": "float32")", "f16", f32},
                         Row{R"(, "dtype": "auto")", "f16", f32},
                         Row{R"(, "dtype": null)", "f16", f32}}) {
    SCOPED_TRACE(text(row.keys, " ", row.scheme));
    const ModelConfig config = config_with(folder, row.keys);
    const Program program = build_program(config, parse_scheme(row.scheme));
    EXPECT_EQ(program.attention.front().cache_dtype, row.cache);
    ProgramOptions asked;
    asked.cache_dtype = f16;
    EXPECT_EQ(cache_dtype_of(config, parse_scheme(row.scheme), asked), f16);
  }
}

TEST(Program, AttentionRoundsItsFactors) {
  TempFolder folder;
  const ModelConfig config = config_with(folder, R"(, "dtype": "float16")");
  struct Row {
    const char* scheme;
    std::optional<DType> cache;
    bool narrow;
  };
  for (const Row& row : {Row{"int8-channel", bf16, false},
                         Row{"int8-channel+a8", {}, true},
                         Row{"int8-channel+a8", f16, false},  // no faster, and its factors are no integers
                         Row{"int8-channel+a8", f32, false},
                         Row{"int8-channel+a16", {}, true}}) {
    SCOPED_TRACE(row.scheme);
    ProgramOptions options;
    options.cache_dtype = row.cache;
    EXPECT_EQ(build_program(config, parse_scheme(row.scheme), options).attention.front().narrow, row.narrow);
  }
}

}  // namespace
}  // namespace sator::llm
