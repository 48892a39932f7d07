// Files config.json of two families, and what is read of them when members are changed.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "frontend/hf_config.h"
#include "temp_folder.h"

namespace sator {

// As the hub's gpt2 and a Llama 3.1 have them: the smallest set of members that states the architecture.
inline const char* kGpt2 =
    R"({"model_type":"gpt2","vocab_size":100,"n_embd":12,"n_head":3,"n_layer":2,"n_positions":64,"n_ctx":64,
  "activation_function":"gelu_new","layer_norm_epsilon":1e-5,"bos_token_id":50256,"eos_token_id":50256,
  "attn_pdrop":0.1,"task_specific_params":{"text-generation":{"do_sample":true}}})";
inline const char* kLlama =
    R"({"model_type":"llama","vocab_size":100,"hidden_size":48,"intermediate_size":96,"num_hidden_layers":2,
  "num_attention_heads":6,"num_key_value_heads":2,"eos_token_id":[7,8,9],"bos_token_id":1,"torch_dtype":"bfloat16",
  "rope_theta":500000.0,"max_position_embeddings":256})";

/// The config with some members replaced; a null removes.
inline ModelConfig read_with(const char* base, std::string_view changes) {
  Json config = Json::parse(base);
  config.merge_patch(Json::parse(changes));
  TempFolder folder;
  folder.write("config.json", config.dump());
  return read_model_config(folder.path());
}

}  // namespace sator
