#pragma once

#include "base/file.h"
#include "frontend/model_config.h"

namespace sator {

/// Whether the safetensors of a folder hold a head whose values are not those of the embedding. Transformers 5 does not tie the
/// two then, whatever config.json says (`tie_weights` of its modeling_utils.py). False where the weights cannot be read:
/// whoever needs them will say why.
bool has_head_of_its_own(const fs::path& folder, const TensorNames& names);

}  // namespace sator
