// Integer helpers that never overflow silently: checked and saturating operations on 64-bit values.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>

#include "base/dtype.h"
#include "ir/expr.h"

namespace sator::arith {

/// "Without limit", upward and downward; symmetric, so that negation maps one to the other.
inline constexpr int64_t kPosInf = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kNegInf = -kPosInf;

inline bool is_inf(int64_t v) { return v == kPosInf || v <= kNegInf; }

inline std::optional<int64_t> narrow(__int128 v) {
  if (v > std::numeric_limits<int64_t>::max() || v < std::numeric_limits<int64_t>::min()) return {};
  return static_cast<int64_t>(v);
}
inline std::optional<int64_t> checked_add(int64_t a, int64_t b) { return narrow(static_cast<__int128>(a) + b); }
inline std::optional<int64_t> checked_sub(int64_t a, int64_t b) { return narrow(static_cast<__int128>(a) - b); }
inline std::optional<int64_t> checked_mul(int64_t a, int64_t b) { return narrow(static_cast<__int128>(a) * b); }

/// Clamped into [kNegInf, kPosInf]: what lies beyond is unlimited.
inline int64_t saturate(__int128 v) {
  return v >= kPosInf ? kPosInf : v <= kNegInf ? kNegInf : static_cast<int64_t>(v);
}
/// Sum of two bounds of the same side; an infinite one wins (the first, if they disagree).
inline int64_t inf_add(int64_t a, int64_t b) {
  if (is_inf(a)) return a;
  if (is_inf(b)) return b;
  return saturate(static_cast<__int128>(a) + b);
}
inline int64_t inf_neg(int64_t a) { return a <= kNegInf ? kPosInf : -a; }
inline int64_t inf_mul(int64_t a, int64_t b) { return saturate(static_cast<__int128>(a) * b); }
/// Quotients; b != 0. An infinite dividend stays infinite.
inline int64_t inf_div(int64_t a, int64_t b) {
  if (is_inf(a)) return b > 0 ? a : inf_neg(a);
  return b == -1 ? inf_neg(a) : a / b;
}
inline int64_t inf_floordiv(int64_t a, int64_t b) {
  if (is_inf(a)) return b > 0 ? a : inf_neg(a);
  return b == -1 ? inf_neg(a) : floor_div(a, b);
}

/// The greatest common divisor; 0 is the neutral element. Never negative (the one value without an absolute counts as 1).
inline int64_t gcd(int64_t a, int64_t b) {
  if (a == std::numeric_limits<int64_t>::min() || b == std::numeric_limits<int64_t>::min()) return 1;
  return std::gcd(a, b);
}

/// Whether a signed or unsigned value of this dtype can be `v` (bool: 0 or 1).
inline bool fits(int64_t v, DType dtype) {
  if (dtype.is_bool()) return v == 0 || v == 1;
  if (dtype.is_uint()) return v >= 0 && (dtype.bits >= 63 || v < (int64_t{1} << dtype.bits));
  if (dtype.bits >= 64) return true;
  int64_t half = int64_t{1} << (dtype.bits - 1);
  return v >= -half && v < half;
}

/// The dtypes that index arithmetic is about: scalar int32 and int64. Their values are assumed not to wrap.
inline bool is_index(DType d) { return d.is_int() && d.lanes == 1 && (d.bits == 32 || d.bits == 64); }

}  // namespace sator::arith
