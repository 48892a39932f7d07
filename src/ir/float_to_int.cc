#include "ir/float_to_int.h"

#include <cmath>

namespace sator {

int64_t float_to_int(double v, DType dtype) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  if (dtype.is_uint() && dtype.bits == 64)
    return v <= 0 ? 0 : v >= 0x1p64 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(v));
  const auto low = static_cast<double>(min_int(dtype)), high = static_cast<double>(max_int(dtype));
  if (v <= low) return min_int(dtype);
  if (v >= high) return max_int(dtype);
  return static_cast<int64_t>(v);
}

}  // namespace sator
