#pragma once

#include "dataflow/programs/work.h"

namespace sator::dataflow {

/// What shares a scale of the weights W[k,j].
enum class ScalePer : uint8_t { none, tensor, channel, input, group };

/// One matmul Y[i,j] = sum over k of X[i,k] * W[k,j], as a linear layer of a quantized model has it. X and Y are floats of
/// `float_bits`; so are weights without a scale.
struct Matmul {
  int64_t i = 1, j = 1, k = 1;
  int float_bits = 16;
  ScalePer scale = ScalePer::none;
  int weight_bits = 16;  // of a code, where there is a scale
  int64_t group = 0;     // with ScalePer::group: consecutive k of one scale
  bool asymmetric = false;
  int scale_bits = 32, zero_bits = 8;
  /// Where it is not 0, X becomes codes of so many bits, with one scale per row (token) or one for all; the product is one
  /// of integers, and sums are rescaled: once per output, or once per group.
  int activation_bits = 0;
  bool token_scales = true;
  int64_t static_scales = 1;  // without token_scales: so many for X, over consecutive k
};

/// Whether zero points are taken off the codes before the product: those per input cannot leave the sum over k.
inline bool unpacks_zero(const Matmul& m) {
  return m.asymmetric && m.activation_bits > 0 && m.scale == ScalePer::input;
}

/// Its statements as the cost engine takes them: codes become values on their way into the array where X stays float; else X
/// is quantized before, and sums are rescaled after, with asymmetric codes also less their zero point times the sum of the
/// row's (group's) codes of X. The product multiplies X[i,k] with W[k,j].
/// Errors: sizes, widths or numbers of scales below 1, a group below 1.
Kernel matmul_kernel(const Matmul& matmul);

}  // namespace sator::dataflow
