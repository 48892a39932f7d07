// Codes that other programs made of weights, read into QuantizedMatrix: GPTQ, AWQ, compressed-tensors, 8-bit floats, MXFP4.
#pragma once

#include "llm/checkpoint.h"

namespace sator::llm {

/// The weights in a tensor of floats: itself, or one for each expert of a stack. Errors: a stack that is none.
std::vector<StoredWeight> floats_of(const SafeTensor& tensor, const std::vector<ExpertStack>& stacks);

/// Tensors that hold several experts or heads, one by one: of codes the floats that they stand for, since a head's rows, or columns, need
/// not be whole groups. Errors: as of floats_of; a matrix of codes of no whole heads.
std::vector<StoredWeight> by_part(std::vector<StoredWeight> weights, const std::vector<ExpertStack>& stacks);

/// The weights of a folder whose matrices are quantized: "<layer>.weight" for each "<layer>.qweight" (gptq, awq) or
/// "<layer>.weight_packed" (compressed-tensors), "<layer>.weight" of 8-bit floats (fp8), those of each expert for "<stack>_blocks" (mxfp4), and what stays floats. Values
/// are kept exactly: (code - zero) * scale.
/// Sources: the layouts that AutoGPTQ, AutoAWQ, compressed-tensors and gpt-oss document and write.
/// Errors: a part is missing; shapes do not fit each other; an input of no group; a zero point beyond 8 bits.
std::vector<StoredWeight> weights_with_codes(const SafeTensors& tensors, const ModelConfig& config);

/// The format of the matrices that are quantized so, where no file of codes is there to say it: scales have the dtype that files of the
/// method have, `dtype` where that is the model's.
IntegerFormat format_of(const StoredQuantization& quantization, DType dtype);

/// "gptq-int4-group128", "awq-int4-group128", "packed-int8-channel", "fp8-block128", "fp8", "mxfp4".
std::string scheme_name_of(const StoredQuantization& quantization);

}  // namespace sator::llm
