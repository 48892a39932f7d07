#include "study/route_costs.h"

namespace sator::study {

std::string_view name_of(Route route) {
  static constexpr std::string_view names[] = {"schedule", "tensorize", "pattern", "merged"};
  return names[static_cast<size_t>(route)];
}

}  // namespace sator::study
