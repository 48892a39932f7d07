// Many short lines sorted at once: a network of comparisons has no branches, so that a vector holds a place of many lines.
#pragma once

#include <cstdint>

namespace sator::runtime {

constexpr int64_t kLinesOfNetwork = 16;

/// Sorts each of kLinesOfNetwork lines of n keys, whose places lie side by side: keys[place * kLinesOfNetwork + line].
void sort_side_by_side(uint32_t* keys, int64_t n);
void sort_side_by_side(uint64_t* keys, int64_t n);

}  // namespace sator::runtime
