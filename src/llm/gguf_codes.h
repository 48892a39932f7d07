// The block formats of GGUF files, as rows: what their codes stand for, and how a block's bytes hold them.
#pragma once

#include "frontend/gguf.h"
#include "llm/checkpoint.h"

namespace sator::llm {

/// What one block holds. Scales and minima of groups are integers times those of the block, or those of the block themselves.
struct GgufBlock {
  uint8_t codes[256];
  int8_t scales[16], minima[16];
  uint16_t scale = 0, minimum = 0;  ///< float16, of MXFP4 bfloat16
};

struct GgufFormat {
  std::string_view type;  ///< "Q4_K"
  IntegerFormat format;
  void (*read)(const uint8_t* bytes, GgufBlock& block);
};

/// The format of a type; null for types of plain floats.
/// Source: the layouts of ggml (ggml-common.h), which the gguf package for Python dequantizes too.
const GgufFormat* gguf_format(std::string_view type);

/// A matrix of codes.
///   row_order   row i is the file's row row_order[i]; empty: as it stands
QuantizedMatrix read_gguf_codes(const GgufTensor& tensor, const GgufFormat& format,
                                const std::vector<int64_t>& row_order);

}  // namespace sator::llm
