// What is known of an integer expression: constant bounds and its residue class.
#pragma once

#include <cstdint>
#include <string>

#include "arith/numbers.h"

namespace sator::arith {

/// A closed interval; kNegInf and kPosInf mean "without limit".
struct Bounds {
  int64_t min = kNegInf, max = kPosInf;
  bool is_constant() const { return min == max; }
  bool contains(int64_t v) const { return min <= v && v <= max; }
  bool operator==(const Bounds&) const = default;
};

/// The values coeff * k + base over all integers k, with 0 <= base < coeff; coeff 0 is the constant `base`.
struct Modular {
  int64_t coeff = 1, base = 0;
  bool is_constant() const { return coeff == 0; }
  bool operator==(const Modular&) const = default;
};

/// What is known of how x stands to y: the set of outcomes that remain possible.
enum class Order : uint8_t { none = 0, eq = 1, lt = 2, le = 3, gt = 4, ge = 5, ne = 6, unknown = 7 };
inline Order operator&(Order a, Order b) { return Order(static_cast<int>(a) & static_cast<int>(b)); }
/// Only outcomes of `set` are possible (and one is).
inline bool within(Order order, Order set) { return order != Order::none && (order & set) == order; }

}  // namespace sator::arith
