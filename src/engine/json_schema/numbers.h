// Numbers of a schema, exactly as they are written in decimal, and the automata of those that it allows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/json_schema/dfa.h"

namespace sator::json_schema {

/// A decimal number without its superfluous zeros: -12.5 is {true, "12", "5"}, 0 is {false, "", ""}.
struct Decimal {
  bool negative = false;
  std::string whole, fraction;

  /// Errors: an exponent that makes more than 400 digits.
  ///   number  as JSON writes it
  static Decimal read(const std::string& number, const std::string& where);
  bool is_zero() const { return whole.empty() && fraction.empty(); }
  bool is_integer() const { return fraction.empty(); }
  /// As this room writes numbers: "-12.5", "0".
  std::string written() const;
  bool operator==(const Decimal&) const = default;
};

/// What is asked of a number. `not_multiple_of` and `other_than` come from schemas that must not hold.
struct NumberRules {
  enum class Compare { at_least, above, at_most, below, other_than, equal };
  struct Bound {
    Compare compare;
    Decimal value;
    bool operator==(const Bound&) const = default;
  };
  bool integers = true, fractions = true;  ///< whether numbers without and with a fraction are allowed
  std::vector<Bound> bounds;
  std::vector<Decimal> multiple_of, not_multiple_of;
  bool operator==(const NumberRules&) const = default;
  bool are_free() const {
    return integers && fractions && bounds.empty() && multiple_of.empty() && not_multiple_of.empty();
  }
};

/// How these numbers are written: without rules in any way that JSON has; else without an exponent, and an integer without
/// a point where fractions are not allowed.
/// Errors: an automaton of more than kMostStates states (a divisor with many digits, two divisors beside each other).
Dfa number_dfa(const NumberRules& rules, const std::string& where);

}  // namespace sator::json_schema
