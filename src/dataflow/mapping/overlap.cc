#include "dataflow/mapping/overlap.h"

namespace sator::dataflow {

TimeFactors time_factors(const Chip& chip, std::optional<ProductClass> kernel_class) {
  if (!chip.calibration) return {};
  const ChipCalibration& measured = *chip.calibration;
  const size_t kind = kernel_class ? static_cast<size_t>(*kernel_class) : std::size(kProductClasses);
  return {.array = measured.array_time,
          .vector = measured.vector_time * measured.vector_time_of[kind],
          .outermost = measured.memory_time,
          .inside = measured.cache_time};
}

double sustained_cycles(const Chip& chip, std::optional<double> own_clock_hz, double macs, double cycles_per_mac) {
  if (!own_clock_hz && !chip.power_limit) return 0;
  const double clock_hz = own_clock_hz ? *own_clock_hz : chip.power_limit->clock_hz;
  return macs * cycles_per_mac / static_cast<double>(chip.pes()) * chip.clock_hz / clock_hz;
}

double array_factor(const Chip& chip, ProductClass product_class) {
  return chip.calibration ? chip.calibration->array_time_of[static_cast<size_t>(product_class)] : 1;
}

}  // namespace sator::dataflow
