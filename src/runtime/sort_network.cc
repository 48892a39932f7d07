#include "runtime/sort_network.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/isa.h"

namespace sator::runtime {

namespace {

/// A place of all lines.
template <class Key>
using Place = Key __attribute__((vector_size(64)));

/// The lesser ones of two places go to the first, the others to the second.
template <class Key>
[[gnu::always_inline]] inline void order(Place<Key>& first, Place<Key>& second) {
  const Place<Key> low = first < second ? first : second;
  second = first < second ? second : first;
  first = low;
}
template <class Key>
[[gnu::always_inline]] inline void order(Key* first, Key* second) {
  Place<Key> a, b;
  std::memcpy(&a, first, sizeof(a));
  std::memcpy(&b, second, sizeof(b));
  order<Key>(a, b);
  std::memcpy(first, &a, sizeof(a));
  std::memcpy(second, &b, sizeof(b));
}

/// The merges within a block of places, which stays in registers, from sequences of `sorted` places on; of one sequence only the
/// last steps of a longer merge where `sorted` is the whole block.
template <class Key, int64_t sorted>
[[gnu::always_inline]] inline void merge_in_block(Key* keys) {
  constexpr int64_t n = kBlockOfNetwork;
  Place<Key> places[n];
  std::memcpy(places, keys, sizeof(places));
#pragma clang loop unroll(full)
  for (int64_t half = sorted; half <= n; half *= 2) {
    if (half < n) {
#pragma clang loop unroll(full)
      for (int64_t i = 0; i < n; ++i)
        if ((i & half) == 0) order<Key>(places[i], places[i ^ (2 * half - 1)]);
    }
#pragma clang loop unroll(full)
    for (int64_t distance = half / 2; distance >= 1; distance /= 2) {
#pragma clang loop unroll(full)
      for (int64_t i = 0; i < n; ++i)
        if ((i & distance) == 0) order<Key>(places[i], places[i + distance]);
    }
  }
  std::memcpy(keys, places, sizeof(places));
}

/// Bitonic merges of ever longer sequences, in which each comparison puts the lesser one first: what would stand behind the last
/// place is greater than all, and is left out.
///   n   places, a multiple of kBlockOfNetwork
/// Source: Batcher, "Sorting networks and their applications", 1968; Knuth, "The Art of Computer Programming" 3, 5.3.4.
template <class Key>
[[gnu::always_inline]] inline void by_network(Key* keys, int64_t n) {
  constexpr int64_t kBlock = kBlockOfNetwork, kLines = kLinesOfNetwork<Key>;
  for (int64_t b = 0; b < n; b += kBlock) merge_in_block<Key, 1>(keys + b * kLines);
  for (int64_t sorted = kBlock; sorted < n; sorted *= 2) {
    for (int64_t begin = 0; begin + sorted < n; begin += 2 * sorted) {
      const int64_t end = begin + 2 * sorted;
      for (int64_t i = std::max(begin, begin + end - n); i < begin + sorted; ++i)
        order(keys + i * kLines, keys + (begin + end - 1 - i) * kLines);
    }
    for (int64_t distance = sorted / 2; distance >= kBlock; distance /= 2)
      for (int64_t begin = 0; begin + distance < n; begin += 2 * distance) {
        const int64_t end = std::min(begin + distance, n - distance);
        for (int64_t i = begin; i < end; ++i) order(keys + i * kLines, keys + (i + distance) * kLines);
      }
    for (int64_t b = 0; b < n; b += kBlock) merge_in_block<Key, kBlock>(keys + b * kLines);
  }
}

/// Of two rows that stand `step` apart, every other `step` columns change places.
template <int step, class Key, size_t... column>
[[gnu::always_inline]] inline void exchange(Place<Key>& a, Place<Key>& b, std::index_sequence<column...>) {
  const Place<Key> low =
      __builtin_shufflevector(a, b, ((column & step) != 0 ? kLinesOfNetwork<Key> + column - step : column)...);
  b = __builtin_shufflevector(a, b, ((column & step) != 0 ? kLinesOfNetwork<Key> + column : column + step)...);
  a = low;
}
template <int step, class Key>
[[gnu::always_inline]] inline void exchange_all(Place<Key>* rows) {
  for (int64_t i = 0; i < kLinesOfNetwork<Key>; ++i)
    if ((i & step) == 0) exchange<step, Key>(rows[i], rows[i + step], std::make_index_sequence<kLinesOfNetwork<Key>>());
}
template <class Key>
[[gnu::always_inline]] inline void transpose(Place<Key>* rows) {
  exchange_all<1, Key>(rows);
  exchange_all<2, Key>(rows);
  exchange_all<4, Key>(rows);
  if constexpr (kLinesOfNetwork<Key> > 8) exchange_all<8, Key>(rows);
}

/// Whether the lines' elements at one place lie in one piece.
template <class Key>
bool lie_side_by_side(Key* const* lines) {
  for (int64_t l = 1; l < kLinesOfNetwork<Key>; ++l)
    if (lines[l] != lines[0] + l) return false;
  return true;
}

template <class Key>
[[gnu::always_inline]] inline void read_lines(const LinesOfKeys<Key>& lines, Key* keys) {
  Place<Key> rows[kLinesOfNetwork<Key>];
  int64_t i = 0;
  if (lines.stride == 1) {
    for (; i + kLinesOfNetwork<Key> <= lines.length; i += kLinesOfNetwork<Key>) {
      for (int64_t l = 0; l < kLinesOfNetwork<Key>; ++l) std::memcpy(&rows[l], lines.from[l] + i, sizeof(rows[l]));
      transpose<Key>(rows);
      std::memcpy(keys + i * kLinesOfNetwork<Key>, rows, sizeof(rows));
    }
  } else if (lie_side_by_side(lines.from)) {
    for (; i < lines.length; ++i)
      std::memcpy(keys + i * kLinesOfNetwork<Key>, lines.from[0] + i * lines.stride, sizeof(rows[0]));
  }
  for (; i < lines.length; ++i)
    for (int64_t l = 0; l < kLinesOfNetwork<Key>; ++l)
      keys[i * kLinesOfNetwork<Key> + l] = lines.from[l][i * lines.stride];
}

template <class Key>
[[gnu::always_inline]] inline void write_lines(const LinesOfKeys<Key>& lines, const Key* keys) {
  Place<Key> rows[kLinesOfNetwork<Key>];
  int64_t i = 0;
  if (lines.stride == 1) {
    for (; i + kLinesOfNetwork<Key> <= lines.wanted; i += kLinesOfNetwork<Key>) {
      std::memcpy(rows, keys + i * kLinesOfNetwork<Key>, sizeof(rows));
      transpose<Key>(rows);
      for (int64_t l = 0; l < kLinesOfNetwork<Key>; ++l) std::memcpy(lines.to[l] + i, &rows[l], sizeof(rows[l]));
    }
  } else if (lie_side_by_side(lines.to)) {
    for (; i < lines.wanted; ++i)
      std::memcpy(lines.to[0] + i * lines.stride, keys + i * kLinesOfNetwork<Key>, sizeof(rows[0]));
  }
  for (; i < lines.wanted; ++i)
    for (int64_t l = 0; l < kLinesOfNetwork<Key>; ++l)
      lines.to[l][i * lines.stride] = keys[i * kLinesOfNetwork<Key> + l];
}

template <class Key>
[[gnu::always_inline]] inline void sort_all(const LinesOfKeys<Key>& lines, const KeyForm& form, Key flip, Key* keys) {
  const int64_t count = lines.length * kLinesOfNetwork<Key>, wanted = lines.wanted * kLinesOfNetwork<Key>;
  const int64_t whole = keys_of_network<Key>(lines.length);
  read_lines(lines, keys);
  for (int64_t i = 0; i < count; ++i) keys[i] = form.key_of(keys[i]) ^ flip;
  std::fill(keys + count, keys + whole, std::numeric_limits<Key>::max());
  by_network(keys, whole / kLinesOfNetwork<Key>);
  for (int64_t i = 0; i < wanted; ++i) keys[i] = form.value_of(static_cast<Key>(keys[i] ^ flip));
  write_lines(lines, keys);
}

/// The same for each level of instructions.
#if defined(__x86_64__)
template <class Key>
[[gnu::target("avx512f,avx512vl,avx512dq"), clang::min_vector_width(512)]] void with_avx512(
    const LinesOfKeys<Key>& lines, const KeyForm& form, Key flip, Key* keys) {
  sort_all(lines, form, flip, keys);
}
template <class Key>
[[gnu::target("avx2")]] void with_avx2(const LinesOfKeys<Key>& lines, const KeyForm& form, Key flip, Key* keys) {
  sort_all(lines, form, flip, keys);
}
#endif

template <class Key>
void by_best(const LinesOfKeys<Key>& lines, const KeyForm& form, Key flip, Key* keys) {
#if defined(__x86_64__)
  static const bool avx512 = find_isa_level("avx512")->available(), avx2 = find_isa_level("avx2")->available();
  if (avx512) return with_avx512(lines, form, flip, keys);
  if (avx2) return with_avx2(lines, form, flip, keys);
#endif
  sort_all(lines, form, flip, keys);
}

}  // namespace

void sort_side_by_side(const LinesOfKeys<uint32_t>& lines, const KeyForm& form, bool descending, uint32_t* keys) {
  by_best(lines, form, descending ? ~uint32_t{0} : 0, keys);
}
void sort_side_by_side(const LinesOfKeys<uint64_t>& lines, const KeyForm& form, bool descending, uint64_t* keys) {
  by_best(lines, form, descending ? ~uint64_t{0} : 0, keys);
}

}  // namespace sator::runtime
