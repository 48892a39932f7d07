// What fits the memories of a chip under a nest of loops: tiles of what comes from outside, and what stands there of the
// kernel's own tensors.
#include <algorithm>
#include <bit>

#include "dataflow/mapping/nest_time.h"

namespace sator::dataflow {

void NestTime::find_held(const Nest& nest) {
  block_ = s_.extent;
  for (size_t d = 0; d <= nest.depth; ++d) {
    if (d > 0) block_[nest.loops[d - 1].iterator] = nest.loops[d - 1].block;
    for (size_t a = 0; a < s_.accesses(); ++a)
      held_[a][d] = d > 0 && !s_.relevant(a, nest.loops[d - 1].iterator) ? held_[a][d - 1]
                                                                         : s_.elements(a, block_) * s_.bits_of(a);
  }
}

/// Of each of the kernel's own tensors: what stands at once. Outermost loops that choose among its parts leave one standing,
/// another loop needs all within it again, or has not completed them.
void NestTime::find_standing(const Nest& nest) {
  for (size_t n = 0; n < beside_.standing.size(); ++n) {
    const Beside::Standing& standing = beside_.standing[n];
    size_t leading = 0;
    while (leading < nest.depth && (standing.in_parts >> nest.loops[leading].iterator & 1)) ++leading;
    double bits = standing.others * standing.bits, cores = 1;
    for (size_t x = 0; x < s_.rank(); ++x) {
      if (!(standing.indexes >> x & 1)) continue;
      int64_t block = s_.extent[x];
      for (size_t d = 0; d < leading; ++d)
        if (nest.loops[d].iterator == x) block = nest.loops[d].block;
      bits *= static_cast<double>(block);
      cores *= static_cast<double>(s_.parts[x]);
    }
    if (standing.access) bits = held_[*standing.access][leading];
    const bool shared = !s_.chip.memories[standing.memory].per_core;
    stands_[n] = {.bits = bits * (shared ? cores : 1), .in_parts = leading > 0};
  }
}

/// Whether memory m has room for what stands there of the kernel's own tensors and for the tiles of the others below the
/// first `since` loops: two of each, where the next is filled or made while one is at work.
///   inside   which of the kernel's own tensors stand there, a bit each
bool NestTime::has_room(size_t m, const Nest& nest, uint32_t inside, size_t since) const {
  const Memory& memory = s_.chip.memories[m];
  const double room = 8.0 * static_cast<double>(memory.capacity_bytes.value_or(INT64_MAX / 16));
  uint32_t tiles = passed_by_[m];  // of which accesses tiles lie here
  for (uint32_t left = inside; left != 0; left &= left - 1)
    if (const auto& access = beside_.standing[static_cast<size_t>(std::countr_zero(left))].access)
      tiles &= ~(uint32_t{1} << *access);
  auto bits_held = [&](bool twice) {
    double bits = 0;
    for (uint32_t left = tiles; left != 0; left &= left - 1) {
      const auto a = static_cast<size_t>(std::countr_zero(left));
      bits += held_[a][since] * (memory.per_core ? 1 : s_.spread[a]) * (twice && since > 0 ? 2 : 1);
    }
    for (uint32_t left = inside; left != 0; left &= left - 1) {
      const Stands& stands = stands_[static_cast<size_t>(std::countr_zero(left))];
      bits += stands.bits * (twice && stands.in_parts ? 2 : 1);
    }
    return bits;
  };
  return bits_held(memory.double_buffered) <= room || (since == nest.depth && bits_held(false) <= room);
}

/// Of each memory the most that fits beside those of the kernel's own tensors that nest.outside leaves inside.
bool NestTime::hold_beside(Nest& nest) const {
  bool fits = true;
  for (size_t m = 1; m < s_.chip.memories.size(); ++m) {
    const uint32_t inside = stands_at_[m] & ~nest.outside;
    size_t since = 0;
    while (since < nest.depth && !has_room(m, nest, inside, since)) ++since;
    nest.held_since[m] = since;
    fits &= has_room(m, nest, inside, since);
  }
  return fits;
}

/// Of each memory what it holds, the most that fits. False if one has no room for what a step of the array takes from it and
/// for what has to stand there. Unless all of the kernel's own tensors are to stay inside, those for which the tiles leave
/// no room stand outside.
bool NestTime::hold_most(Nest& nest, bool all_inside) const {
  nest.outside = 0;
  if (all_inside) return hold_beside(nest);
  bool fits = true;
  for (size_t m = 1; m < s_.chip.memories.size(); ++m) fits &= hold_most_in(m, nest);
  return fits;
}

bool NestTime::hold_most_in(size_t m, Nest& nest) const {
  uint32_t inside = stands_at_[m];
  auto room_for = [&](size_t since) { return has_room(m, nest, inside, since); };
  auto take = [&](size_t n, bool stays) { inside = stays ? inside | uint32_t{1} << n : inside & ~(uint32_t{1} << n); };
  for (uint32_t left = inside; left != 0; left &= left - 1)
    if (const auto n = static_cast<size_t>(std::countr_zero(left)); !beside_.standing[n].running) take(n, false);
  size_t since = 0;
  while (since < nest.depth && !room_for(since)) ++since;
  nest.held_since[m] = since;
  if (!room_for(since)) return false;
  // The smallest first: most of them stay.
  std::array<size_t, kMostStanding> order{};
  size_t count = 0;
  for (uint32_t left = stands_at_[m] & ~inside; left != 0; left &= left - 1)
    order[count++] = static_cast<size_t>(std::countr_zero(left));
  std::sort(
      order.begin(), order.begin() + count, [&](size_t a, size_t b) { return stands_[a].bits < stands_[b].bits; });
  for (size_t i = 0; i < count; ++i) {
    take(order[i], true);
    if (room_for(since)) continue;
    take(order[i], false);
    nest.outside |= uint32_t{1} << order[i];
  }
  return true;
}

}  // namespace sator::dataflow
