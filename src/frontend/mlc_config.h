// mlc-chat-config.json: what MLC-LLM's folders say of a model beside its weights.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/file.h"
#include "base/json.h"
#include "frontend/model_config.h"

namespace sator {

inline constexpr const char* kMlcConfigFile = "mlc-chat-config.json";

/// Names of conversation templates that MLC-LLM knows.
/// Source: CONV_TEMPLATES of its python/mlc_llm/interface/gen_config.py, 2026.
const std::vector<std::string>& mlc_conv_templates();

/// What gen_config may be told.
struct MlcConfigOptions {
  std::string quantization;
  std::string conv_template = "LM";  ///< a name, kept as it is
  std::optional<int64_t> context_window_size, prefill_chunk_size, max_batch_size;
};

/// The chat configuration of a Hugging Face folder, version 0.1.0: `model_config` holds all of config.json and, beside
/// it, MLC-LLM's names of the same; sampling defaults and end tokens come from generation_config.json and config.json.
///   tokenizer_files   names of the tokenizer's files, which lie beside the configuration
/// Source: MLC-LLM's gen_config, of which each field is described in its documentation of mlc-chat-config.json.
/// Errors: config.json is missing or not supported (read_model_config); a size that the model cannot have.
Json mlc_chat_config(const fs::path& folder, const MlcConfigOptions& options,
                     const std::vector<std::string>& tokenizer_files);

/// The `config.json` that a chat configuration stands for: its `model_config` with Hugging Face's names, the model type
/// and the end tokens. Errors: it is no chat configuration.
Json config_of_mlc(const Json& chat_config, std::string_view source);

/// What a converted folder's chat configuration decides for its program.
struct MlcModel {
  std::string quantization;
  std::optional<int64_t> context_window_size, prefill_chunk_size;  ///< absent: not stated, or -1
  int64_t devices = 1;                                             ///< that MLC-LLM would run it on
};
/// How a scheme of MLC-LLM lays weights out.
///   group        codes of `bits`, low bits first, in 32-bit words of 32 / bits codes; a scale for each `group` inputs;
///                w = (code - (2^(bits-1) - 1)) * scale, rounded to the scales' dtype. [out, words], or `transposed` but for tables of embeddings
///   awq          AutoAWQ's: codes packed along the outputs, zero points, float16 scales, groups of 128
///   tensor       8-bit floats, with one scale or none
///   block        8-bit floats, with a scale for each block
///   floats       no codes
/// Source: the registry of MLC-LLM's python/mlc_llm/quantization/quantization.py, 2026.
struct MlcScheme {
  enum class Kind { floats, group, awq, tensor, block };
  std::string_view name;
  Kind kind = Kind::floats;
  int bits = 0, group = 0;
  DType dtype = {};  ///< of the scales
  bool transposed = false;
};
/// The scheme of MLC-LLM with that name; nothing for names of other programs.
/// Errors: q4f16_ft, whose layout is one GPU's.
const MlcScheme* mlc_scheme(std::string_view name);

/// The scheme of a folder of MLC-LLM's own making, whose weights are read as a checkpoint of these names and layouts; null
/// for folders that hold the parameters of our programs as they are (those of `sator convert_weight`).
const MlcScheme* mlc_checkpoint_scheme(const fs::path& folder);

/// Of a folder of MLC-LLM's own making: what its conversion has done to the tensors already is not done once more.
void describe_as_in_mlc(ModelConfig& config);

/// Nothing for a folder without a chat configuration. Errors: it is none; a size that no model has.
std::optional<MlcModel> read_mlc_model(const fs::path& folder);

/// The files of a tokenizer that MLC-LLM copies, as far as they are there.
std::vector<std::string> tokenizer_files_of(const fs::path& folder);

}  // namespace sator
