// The architectures of GGUF files, as llama.cpp names them, and the families that they are.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "frontend/gguf.h"

namespace sator {

/// A key of the metadata, behind "<architecture>.", and what config.json calls it.
struct GgufKey {
  std::string_view gguf, hf;
  bool required = false;  ///< llama.cpp takes a file for no model without it
};

struct GgufArchitecture {
  std::string_view name, model_type;
  std::vector<GgufKey> keys;           ///< beside those of all
  bool pairs_neighbours = false;       ///< rows of queries and keys were ordered for rotation in neighbouring pairs
  Json given = Json::object();         ///< what llama.cpp knows of it, and writes nowhere
  std::string_view with_experts = {};  ///< the family where the file has experts, if that is another
  std::string_view attention_norm = "attn_norm", mlp_norm = "ffn_norm";  ///< of blocks with a norm for each half
  bool whole_yarn_ramp = true;                                           ///< YaRN's ramp is between whole dimensions
  bool has_rotary = true;
  bool needs_head = false;  ///< of its own: the embedding is none
  /// Keys that the family spells in another way than Llama: Llama's name, its own.
  std::vector<std::pair<std::string_view, std::string_view>> spelled = {};
};

inline constexpr std::string_view kGgufRmsNormEpsilon = "attention.layer_norm_rms_epsilon",
                                  kGgufLayerNormEpsilon = "attention.layer_norm_epsilon";

/// Of "general.architecture". Errors: it is missing, or none that is read.
const GgufArchitecture& architecture_of_gguf(const GgufFile& file);

/// Errors with the file and the key before the problem.
[[noreturn]] void fail_gguf_key(const GgufFile& file, const std::string& key, const std::string& problem,
                                const std::string& needs);

}  // namespace sator
