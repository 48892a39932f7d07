// Keys of config.json that no reader asked for.
#pragma once

#include "base/json.h"
#include "frontend/model_config.h"

namespace sator {

/// Refuses a member of config.json that was not read and may change what the model computes. Such a member is let through if
///   it is known to leave the mathematics as it is (dropouts, ids of tokens, settings of training and of generation),
///   it is null, or false and no switch that stands for something when off,
///   it has the value at which it does nothing (`logits_scaling: 1`), or
///   it says once more what the model is in another family's words (`n_head: 12` beside `num_attention_heads: 12`).
/// Members of the objects that were read (`rope_scaling`) are held to the same.
///   reads  the members that were asked for while `model` was made of `config`
/// Errors: there is such a member.
void refuse_unread(const JsonAt& config, const JsonReads& reads, const ModelConfig& model);

/// The members of a quantization_config that were not read, without those known to tell only how the codes came about or how another
/// program runs them: "weights.observer" is one of them, "codebook" is none.
std::vector<std::string> unread_of_quantization(const JsonAt& quantization, const JsonReads& reads);

}  // namespace sator
