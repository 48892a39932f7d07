#pragma once

#include "base/json.h"
#include "frontend/model_config.h"

namespace sator {

/// `quantization_config` of a config.json: methods gptq, awq (GEMM layout) and compressed-tensors (integers).
/// Errors: another method, layout or width, by its name; codes of activations.
StoredQuantization read_stored_quantization(const JsonAt& config);

}  // namespace sator
