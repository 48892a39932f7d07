// Weights to integers and back: the definition that compiled programs are compared with.
#pragma once

#include <span>

#include "llm/scheme.h"
#include "runtime/tensor.h"

namespace sator::llm {

/// A matrix W[rows, cols] stored as b-bit codes. A code u stands for (u - zero) * scale.
///   codes  [rows, ceil(cols/32)*b]  uint32  32 codes of b bits fill b words: code j of a row lies in bits
///                                           [j*b, (j+1)*b) of the row, lowest first; past the row's end: the zero code
///   scale  scale_dims  in the format's scale dtype
///   zero   uint8, shaped as scale; null where it is 2^(b-1)-1 for all (symmetric)
struct QuantizedMatrix {
  IntegerFormat format;
  int64_t rows = 0, cols = 0;
  Ref<runtime::Tensor> codes, scale, zero;
};

/// The shape of the scales (and zero points) of a matrix [rows, cols]: [1] | [rows] | [cols] | [rows, ceil(cols/g)].
runtime::Dims scale_dims(const IntegerFormat& format, int64_t rows, int64_t cols);

/// Quantizes W[rows, cols], row-major f32.
/// Errors: a weight is not finite (names row and column).
/// Source: the formulas of IntegerFormat; Jacob et al., "Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference", 2018.
QuantizedMatrix quantize(std::span<const float> w, int64_t rows, int64_t cols, const IntegerFormat& format);

/// w' of every code, row-major f32.
std::vector<float> dequantize(const QuantizedMatrix& q);

/// Code j of a packed row.
inline uint32_t code_at(const uint32_t* row, int64_t j, int bits) {
  int64_t bit = j * bits;
  uint64_t word = row[bit >> 5];
  if ((bit & 31) + bits > 32) word |= static_cast<uint64_t>(row[(bit >> 5) + 1]) << 32;
  return static_cast<uint32_t>(word >> (bit & 31)) & ((1u << bits) - 1);
}
/// 32-bit words of a packed row of `cols` codes.
inline int64_t words_per_row(int64_t cols, int bits) { return (cols + 31) / 32 * bits; }

/// Whether weights may be stored in it: f32, f16 or bf16.
inline bool is_storage_dtype(DType dtype) { return dtype == f32 || dtype == f16 || dtype == bf16; }
/// Elements of a storage dtype, at any address, as f32.
std::vector<float> to_f32(std::span<const std::byte> bytes, DType dtype);
inline std::vector<float> to_f32(const runtime::Tensor& t) {
  return to_f32({t.data_as<std::byte>(), static_cast<size_t>(t.size_bytes())}, t.dtype());
}
/// f32 to f32, f16 or bf16, rounded to nearest even.
Ref<runtime::Tensor> to_dtype(std::span<const float> values, const runtime::Dims& shape, DType dtype);

}  // namespace sator::llm
