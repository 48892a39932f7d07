// Phi-3 and 4: Llama with one tensor for queries, keys and values, and one for gate and up; longrope.
#include "frontend/families/table.h"

namespace sator::families {

static const LlamaDefaults kPhi3Defaults = {.norm = {.epsilon = 1e-5},
                                            .positions = 4096,
                                            .attention_bias = {},
                                            .rope = {.any_share = true, .original_positions = 4096},
                                            .window = {.use = WindowRules::Use::where_given}};

static void read_phi3(const JsonAt& config, ModelConfig& model) {
  read_llama_like(config, model, kPhi3Defaults);
  // What Phi-4's files state, and none changes.
  must_be(config, "full_attn_mod", int64_t{1});
  must_be(config, "interpolate_factor", int64_t{1});
  model.names.qkv = {"self_attn.qkv_proj"};
  model.names.mlp_in = {"mlp.gate_up_proj"};
}

const Family kPhi3{"phi3", read_phi3};

}  // namespace sator::families
