#include "dataflow/mapping/overlap.h"

namespace sator::dataflow {

TimeFactors time_factors(const Chip& chip, std::optional<ProductClass> kernel_class) {
  // While the array works at the power limit, everything on the chip has the lower clock.
  const double slower = kernel_class && chip.power_limit ? chip.clock_hz / chip.power_limit->clock_hz : 1;
  if (!chip.calibration) return {.array = slower, .vector = slower, .inside = slower};
  const ChipCalibration& measured = *chip.calibration;
  const size_t kind = kernel_class ? static_cast<size_t>(*kernel_class) : std::size(kProductClasses);
  return {.array = slower * measured.array_time,
          .vector = slower * measured.vector_time * measured.vector_time_of[kind],
          .outermost = measured.memory_time,
          .inside = slower * measured.cache_time};
}

double array_factor(const Chip& chip, ProductClass product_class) {
  return chip.calibration ? chip.calibration->array_time_of[static_cast<size_t>(product_class)] : 1;
}

}  // namespace sator::dataflow
