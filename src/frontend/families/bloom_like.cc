// What BLOOM and Falcon share.
#include "frontend/families/keys.h"

namespace sator::families {

void name_bloom_like(ModelConfig& model) {
  model.names = {.embedding = "transformer.word_embeddings",
                 .final_norm = "transformer.ln_f",
                 .head = "lm_head",
                 .block = "transformer.h.",
                 .qkv = {"self_attention.query_key_value"},
                 .mlp_in = {"mlp.dense_h_to_4h"},
                 .qkv_by_group = true,
                 .out = "self_attention.dense",
                 .mlp_out = "mlp.dense_4h_to_h",
                 .qkv_layer = "self_attention.query_key_value",
                 .attention_layer = "self_attention",
                 .mlp_in_layer = "mlp.dense_h_to_4h",
                 .activation_layer = "mlp.dense_h_to_4h"};
}

}  // namespace sator::families
