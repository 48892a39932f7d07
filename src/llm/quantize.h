// Weights to integers and back: the definition that compiled programs are compared with.
#pragma once

#include <map>
#include <span>

#include "llm/scheme.h"
#include "runtime/tensor.h"

namespace sator::llm {

/// Which part of a weight a parameter is.
enum class ParamPart {
  plain,             ///< the values, in the parameter's dtype
  codes,             ///< packed integers, uint32[out, words]
  scale,             ///< of the codes
  super_scale,       ///< of the scales
  minimum,           ///< that is subtracted
  super_minimum,     ///< of the minima
  zero,              ///< zero points of the codes, uint8
  order,             ///< of the inputs, int32
  activation_scale,  ///< of the inputs of a layer, static, f32
  rescale,           ///< [1] f32: what integer sums are multiplied by where scales of the weight went to its input
};

/// One of the tensors that a quantized matrix is stored in.
struct MatrixPart {
  ParamPart part;
  const char* ending;  ///< of the parameter's name
  runtime::Dims shape;
  DType dtype;
};
/// Those of a matrix [rows, cols] in a format, in the order in which functions take them:
///   codes          [rows, ceil(cols/32)*b]  uint32  32 codes of b bits fill b words: code j of a row lies in bits
///                                                   [j*b, (j+1)*b) of the row, lowest first; past the row's end: the zero code
///   scale          scale_dims               in the format's scale dtype
///   super_scale    [rows, ceil(cols/super_block)]  float16, with super-blocks
///   minimum        as scale, where the format has minima
///   super_minimum  as super_scale, where it has both
///   zero           uint8, shaped as scale, where it is not the same for all (asymmetric)
///   order          [cols] int32, where the format is reordered
std::vector<MatrixPart> parts_of(const IntegerFormat& format, int64_t rows, int64_t cols);

/// A matrix W[rows, cols] stored as b-bit codes; what they stand for, IntegerFormat says.
struct QuantizedMatrix {
  IntegerFormat format;
  int64_t rows = 0, cols = 0;
  std::map<ParamPart, Ref<runtime::Tensor>> parts;  ///< those of parts_of

  const runtime::Tensor& operator[](ParamPart part) const { return *parts.at(part); }
};

/// The shape of the scales (and zero points) of a matrix [rows, cols]: [1] | [rows] | [cols] | [rows, ceil(cols/g)].
runtime::Dims scale_dims(const IntegerFormat& format, int64_t rows, int64_t cols);

/// Quantizes W[rows, cols], row-major f32.
///   first_row   where these rows begin in their matrix, for errors
/// Errors: a weight is not finite (names row and column).
/// Source: the formulas of IntegerFormat; Jacob et al., "Quantization and Training of Neural Networks for Efficient
/// Integer-Arithmetic-Only Inference", 2018.
QuantizedMatrix quantize(std::span<const float> w, int64_t rows, int64_t cols, const IntegerFormat& format,
                         int64_t first_row = 0);

/// w' of every code, row-major f32.
std::vector<float> dequantize(const QuantizedMatrix& q);

/// Whether the values that codes stand for are rounded to float16, as MLC-LLM rounds them.
inline bool rounds_to_float16(const IntegerFormat& f) { return f.mlc && f.scale_dtype == f16; }

/// Errors: a value that is rounded to float16 is not finite there. Programs count on it (passes::kFiniteCasts).
///   name   of the weight
void require_finite(const QuantizedMatrix& q, const std::string& name);

/// Code j of a packed row.
inline uint32_t code_at(const uint32_t* row, int64_t j, int bits) {
  int64_t bit = j * bits;
  uint64_t word = row[bit >> 5];
  if ((bit & 31) + bits > 32) word |= static_cast<uint64_t>(row[(bit >> 5) + 1]) << 32;
  return static_cast<uint32_t>(word >> (bit & 31)) & ((1u << bits) - 1);
}
/// Writes it, where there were zeros.
inline void put_code(uint32_t* row, int64_t j, int bits, uint32_t code) {
  int64_t bit = j * bits;
  row[bit >> 5] |= code << (bit & 31);
  if ((bit & 31) + bits > 32) row[(bit >> 5) + 1] |= code >> (32 - (bit & 31));
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
