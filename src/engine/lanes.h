// Logits four at a time: what every 64-bit machine has registers for. The order of the sums is part of the result.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>

namespace sator::lanes {

inline constexpr size_t kLanes = 4;
typedef float Floats __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));

/// exp(x) = (less_one + 1) * scale, where scale is a power of two and less_one = exp(r) - 1 for |r| <= ln(2) / 2.
struct Exponential {
  Floats less_one, scale;
  Floats value() const { return (less_one + 1.0f) * scale; }
  /// exp(x) - 1, without cancellation where x is near 0: there the scale is 1.
  Floats minus_one() const { return less_one * scale + (scale - 1.0f); }
};

/// For -87 <= x <= 87; relative error below 2e-7, that of exp(x) - 1 too.
inline Exponential exponential(const Floats& x) {
  // Adding and taking off 1.5 * 2^23 rounds to the nearest integer.
  const Floats n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  // ln 2 in two parts: the first has few bits, so that n times it is exact.
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691e-4f + 1.3981999e-3f;
  p = p * r + 8.3334519e-3f;
  p = p * r + 4.1665796e-2f;
  p = p * r + 1.6666665e-1f;
  p = p * r + 5.0000001e-1f;
  const Ints scale = (__builtin_convertvector(n, Ints) + 127) << 23;  // the bits of 2^n
  return {p * r * r + r, std::bit_cast<Floats>(scale)};
}

/// exp(x - max) for x <= max; 0 where x - max is below -87.
inline Floats exp_below(const Floats& x, float max) {
  constexpr float kLowest = -87;
  const Floats shifted = x - max;
  const Floats clamped = shifted < kLowest ? Floats{} + kLowest : shifted;
  return shifted < kLowest ? Floats{} : exponential(clamped).value();
}

inline double sum_of(const Doubles& v) {
  double sum = 0;
  for (size_t j = 0; j < kLanes; ++j) sum += v[j];
  return sum;
}

/// Four numbers from position i on; behind the last one stand values of `fill`.
inline Floats at(std::span<const float> numbers, size_t i, float fill) {
  Floats four = Floats{} + fill;
  std::memcpy(&four, numbers.data() + i, std::min(kLanes, numbers.size() - i) * sizeof(float));
  return four;
}

/// Calls `visit` with four logits at a time; behind the last one stand -infinities.
template <class Visit>
void each(std::span<const float> logits, const Visit& visit) {
  Floats four;
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    std::memcpy(&four, logits.data() + i, sizeof four);
    visit(four);
  }
  if (whole < logits.size()) visit(at(logits, whole, -INFINITY));
}

}  // namespace sator::lanes
