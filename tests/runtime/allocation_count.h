#pragma once

#include <cstdint>

namespace sator::runtime::testing {

/// How often `f` calls operator new, of all threads together.
void start_counting_allocations();
int64_t stop_counting_allocations();

}  // namespace sator::runtime::testing
