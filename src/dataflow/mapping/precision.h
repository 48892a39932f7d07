#pragma once

#include <string>

#include "target/chip.h"

namespace sator::dataflow {

/// "int8", "float16".
std::string width(int bits, bool is_float);

/// How a chip runs a product of two widths.
struct PrecisionChoice {
  Precision precision;
  int64_t passes = 1;  // of the array per product, where no row is wide enough
  std::string note;    // empty if the chip has exactly this
};

/// The row of the chip's precisions that has both widths: of the same kind of number where there is one, then at the
/// highest rate, then the narrowest. If none is wide enough, the widest in several passes.
PrecisionChoice choose_precision(const Chip& chip, int weight_bits, bool weight_is_float, int activation_bits,
                                 bool activation_is_float);

}  // namespace sator::dataflow
