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

/// Whether two 16-bit floats are what the chip multiplies at speed: it takes both in one pass, sooner than a 16-bit by a 32-bit
/// float, on units for floats, or on units for integers of 16 bits than which it has none that are faster. (Where narrower
/// integers are faster, 16 bits are put together from them.)
bool multiplies_16_bits_at_speed(const Chip& chip);

}  // namespace sator::dataflow
