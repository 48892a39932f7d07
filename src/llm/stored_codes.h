// Codes that other programs made of weights, read into QuantizedMatrix: GPTQ, AWQ, compressed-tensors.
#pragma once

#include "llm/checkpoint.h"

namespace sator::llm {

/// The weights of a folder whose matrices are quantized: "<layer>.weight" for each "<layer>.qweight" (gptq, awq) or
/// "<layer>.weight_packed" (compressed-tensors), and what stays floats. Values are kept exactly: (code - zero) * scale.
/// Sources: the layouts that AutoGPTQ, AutoAWQ and compressed-tensors document and write.
/// Errors: a part is missing; shapes do not fit each other; an input of no group; a zero point beyond 8 bits.
std::vector<StoredWeight> weights_with_codes(const SafeTensors& tensors, const StoredQuantization& quantization);

/// "gptq-int4-group128", "awq-int4-group128", "packed-int8-channel".
std::string scheme_name_of(const StoredQuantization& quantization);

}  // namespace sator::llm
