// Phi-3 and 4: Llama with one tensor for queries, keys and values, and one for gate and up; longrope.
#include <cmath>

#include "frontend/families/table.h"

namespace sator::families {

static void read_phi3(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, {.any_share = true});
  model.names.qkv = {"self_attn.qkv_proj"};
  model.names.mlp_in = {"mlp.gate_up_proj"};
  refuse_foreign(config);
}

const Family kPhi3{"phi3", read_phi3};

}  // namespace sator::families
