// Many short lines sorted at once: a network of comparisons has no branches, so that a vector holds a place of many lines.
#pragma once

#include <cstdint>

#include "runtime/sort_keys.h"

namespace sator::runtime {

/// Lines that are sorted at once: of a vector of 512 bits.
template <class Key>
constexpr int64_t kLinesOfNetwork = 64 / sizeof(Key);

/// Places that are sorted in registers.
constexpr int64_t kBlockOfNetwork = 16;

/// Keys that sorting lines of n elements has in scratch.
template <class Key>
int64_t keys_of_network(int64_t n) {
  return (n + kBlockOfNetwork - 1) / kBlockOfNetwork * kBlockOfNetwork * kLinesOfNetwork<Key>;
}

/// Lines of `length` elements, and where the `wanted` first of each in order go; both lie `stride` elements apart. Some may be the
/// same line, with the same place to go to.
template <class Key>
struct LinesOfKeys {
  const Key* from[kLinesOfNetwork<Key>];
  Key* to[kLinesOfNetwork<Key>];
  int64_t length, wanted, stride;
};

/// Sorts each of kLinesOfNetwork lines by the keys of its elements, or by their complements.
///   keys   [keys_of_network(length)], scratch
void sort_side_by_side(const LinesOfKeys<uint32_t>& lines, const KeyForm& form, bool descending, uint32_t* keys);
void sort_side_by_side(const LinesOfKeys<uint64_t>& lines, const KeyForm& form, bool descending, uint64_t* keys);

}  // namespace sator::runtime
