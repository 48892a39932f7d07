// Tensor functions that read quantized weights and activations: the meaning of a scheme, element by element. What comes
// before fusion and schedules; how fast it is, is the rules' business.
#pragma once

#include "llm/scheme.h"
#include "tir/nodes.h"

namespace sator::llm {

/// Codes (and scales) to values. Attribute `role: dequantize`.
///   codes, scale (where `with_scale`), ...   parts_of the format, in their order, without that of the inputs
///   →      [rows, cols] f32: what IntegerFormat says, or code - zero; rounded to `factors`
tir::PrimFuncRef dequantize_function(const IntegerFormat& format, int64_t rows, int64_t cols, bool with_scale,
                                     DType factors = f32);
/// Zero points per input feature cannot leave the sum over features: they are taken off when the codes are unpacked.
inline bool unpacks_zero(const IntegerFormat& f) { return f.asymmetric && f.granularity == Granularity::input; }
/// Whether what the codes stand for are integers, times a scale (less a minimum): what products of integers sum. Of floats they are
/// not, nor where each value is rounded by itself, as MLC-LLM's are.
bool has_integer_values(const IntegerFormat& f);
/// The byte that stands for 0 where all have the same.
int unpacked_zero(const IntegerFormat& f);
/// Codes, or the values of a codebook that they choose, as bytes: [rows, words] uint32 -> [rows, cols] uint8; where unpacks_zero, with
/// zero uint8 [cols] as second argument: int16 code - zero. Attribute `role: dequantize`.
tir::PrimFuncRef unpack_function(const IntegerFormat& format, int64_t rows, int64_t cols);
/// [rows, cols] f16 | bf16 -> f32. Attribute `role: dequantize`: the matrix stays in its 16 bits. `rows` may be a variable.
tir::PrimFuncRef widen_function(DType dtype, const Expr& rows, int64_t cols);

/// Dynamic, per token: x [n, cols] f32 -> codes int8 [n, cols], scale f32 [n].
///   scale = max|x| / (2^(b-1)-1) of the row;  code = round(x / scale), ties to even; a row of zeros has scale 0, codes 0
tir::PrimFuncRef quantize_token_function(const ActivationFormat& format, int64_t cols);
/// The same of each group of consecutive columns: codes int8 [n, cols], scale f32 [n, groups].
tir::PrimFuncRef quantize_group_function(const ActivationFormat& format, int64_t cols, int64_t group);
/// Static: x [n, cols] f32, scale [1] | [cols] | [groups] -> codes int8 [n, cols], clamped.
tir::PrimFuncRef quantize_static_function(const ActivationFormat& format, int64_t cols);
/// Sums of codes: [n, cols] int8 -> [n, groups] int32, over `group` consecutive columns.
tir::PrimFuncRef code_sums_function(int64_t cols, int64_t group);

/// acc[i, j] = sum over k of x[i, k] * w[j, k]: int8 [n, cols], uint8 (int16) [rows, cols] -> int32 [n, rows].
tir::PrimFuncRef integer_matmul_function(DType weight, int64_t rows, int64_t cols);
/// y[i, j] = sum over groups g of scale[j, g] * (dot of group g - zero[j, g] * sums[i, g]) (- minimum[j, g] * sums[i, g]), the dot of
/// integers: int8 [n, cols], uint8 [rows, cols], the format's parts but its codes and order, int32 [n, groups] -> f32 [n, rows].
///   has_input_scales   each group's term is multiplied by that of its inputs: one argument more, f32 [n, groups]
tir::PrimFuncRef grouped_matmul_function(const IntegerFormat& format, int64_t rows, int64_t cols,
                                         bool has_input_scales);
/// The integer product back to values: y[i, j] = (acc[i, j] - zero * sums[i]) * scale (* token_scale[i]).
///   acc int32 [n, rows], (sums int32 [n, 1],) (scale [1] | [rows],) (zero uint8,) (token_scale f32 [n]) -> f32 [n, rows]
/// Without sums where unpacks_zero. Scales per input feature are multiplied into x before: then there is no scale, or,
/// with static activation scales, one for all.
tir::PrimFuncRef rescale_function(const IntegerFormat& format, int64_t rows, bool has_scale, bool has_token_scale);

}  // namespace sator::llm
