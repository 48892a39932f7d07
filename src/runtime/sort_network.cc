#include "runtime/sort_network.h"

#include <algorithm>

#include "runtime/isa.h"

namespace sator::runtime {

namespace {

/// Source: Batcher's merge exchange, in Knuth, "The Art of Computer Programming" 3, 5.2.2, algorithm M.
template <class Key>
[[gnu::always_inline]] inline void by_network(Key* keys, int64_t n) {
  for (int64_t sorted = 1; sorted < n; sorted *= 2)
    for (int64_t distance = sorted; distance >= 1; distance /= 2)
      for (int64_t from = distance % sorted; from + distance < n; from += 2 * distance)
        for (int64_t i = from; i < std::min(from + distance, n - distance); ++i) {
          if (((i ^ (i + distance)) & -(2 * sorted)) != 0) continue;  // of two sequences that are merged apart
          Key *a = keys + i * kLinesOfNetwork, *b = keys + (i + distance) * kLinesOfNetwork;
#pragma clang loop vectorize(assume_safety)
          for (int64_t line = 0; line < kLinesOfNetwork; ++line) {
            const Key low = std::min(a[line], b[line]), high = std::max(a[line], b[line]);
            a[line] = low;
            b[line] = high;
          }
        }
}

#if defined(__x86_64__)
template <class Key>
[[gnu::target("avx512f,avx512vl")]] void with_avx512(Key* keys, int64_t n) {
  by_network(keys, n);
}
template <class Key>
[[gnu::target("avx2")]] void with_avx2(Key* keys, int64_t n) {
  by_network(keys, n);
}
#endif

template <class Key>
void by_best(Key* keys, int64_t n) {
#if defined(__x86_64__)
  static const bool avx512 = find_isa_level("avx512")->available(), avx2 = find_isa_level("avx2")->available();
  if (avx512) return with_avx512(keys, n);
  if (avx2) return with_avx2(keys, n);
#endif
  by_network(keys, n);
}

}  // namespace

void sort_side_by_side(uint32_t* keys, int64_t n) { by_best(keys, n); }
void sort_side_by_side(uint64_t* keys, int64_t n) { by_best(keys, n); }

}  // namespace sator::runtime
