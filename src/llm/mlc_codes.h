// Weights of MLC-LLM's own folders under the names of Hugging Face's checkpoints, codes as they are.
#pragma once

#include "llm/checkpoint.h"
#include "llm/mlc_weights.h"

namespace sator::llm {

/// The weights of a folder: fused ones (`qkv_proj` or `c_attn`, `gate_up_proj`, the experts' `moe.e1_e3` and `moe.e2`) in the
/// parts that `config` names, all others under the names they have.
///   "<layer>.weight"                                      floats; of 8 bits with "<layer>.weight_scale_inv"
///   "<layer>.q_weight", "<layer>.q_scale"                 codes of a group scheme, or 8-bit floats
///   "<layer>.qweight", "<layer>.qzeros", "<layer>.scales"  AutoAWQ's
/// Errors: a part is missing, has another dtype, or shapes do not fit each other or the configuration.
std::vector<StoredWeight> weights_of_mlc(const std::shared_ptr<const MlcWeights>& stored, const ModelConfig& config,
                                         const MlcScheme& scheme);

}  // namespace sator::llm
