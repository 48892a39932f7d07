#pragma once

#include <array>

#include "dataflow/cost.h"

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
  int scale_bits = 32;
  /// Where it is not 0, X becomes codes of so many bits, with one scale per row (token) or one for all; the product is one
  /// of integers, and sums are rescaled: once per output, or once per group.
  int activation_bits = 0;
  bool token_scales = true;
};

/// Its statements as the cost engine takes them: codes become values on their way into the array where X stays float; else X
/// is quantized before, and sums are rescaled after. The product multiplies X[i,k] with W[k,j].
/// Errors: sizes or widths below 1, a group below 1.
Kernel matmul_kernel(const Matmul& matmul);

/// The mapping of matmul_kernel's product with the chip's dataflow and tiles of `tile` (i, j, k) in all memories below the
/// outermost; the loops over tiles run in the order i, j, k, outermost first. A tile of 0 means the whole extent.
/// Errors: a tile below 0; what the tiles take does not fit a memory; integer products with a scale per group, whose k is two loops.
Placement matmul_placement(const Matmul& matmul, const Chip& chip, const std::array<int64_t, 3>& tile);

}  // namespace sator::dataflow
