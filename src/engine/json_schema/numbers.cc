#include "engine/json_schema/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <map>

#include "base/error.h"

namespace sator::json_schema {

Decimal Decimal::read(const std::string& number, const std::string& where) {
  constexpr int64_t kMostDigits = 400;
  Decimal d;
  size_t i = 0;
  d.negative = number.starts_with('-');
  i += d.negative;
  std::string digits;
  int64_t point = -1, exponent = 0;
  for (; i < number.size() && (number[i] | 32) != 'e'; ++i)
    if (number[i] == '.')
      point = std::ssize(digits);
    else
      digits += number[i];
  if (i < number.size()) exponent = std::clamp<int64_t>(std::atoll(number.c_str() + i + 1), -100'000, 100'000);
  point = (point < 0 ? std::ssize(digits) : point) + exponent;
  if (std::abs(point) + std::ssize(digits) > kMostDigits)
    fail({.what = text(where, ": the number ", number, " has more than ", kMostDigits, " digits"),
          .needs = text("numbers of at most ", kMostDigits, " digits, written without an exponent"),
          .hint = "take a bound that is nearer to what is meant"});
  if (point < 0) digits.insert(0, static_cast<size_t>(-point), '0'), point = 0;
  if (point > std::ssize(digits)) digits.append(static_cast<size_t>(point) - digits.size(), '0');
  d.whole = digits.substr(0, static_cast<size_t>(point));
  d.fraction = digits.substr(static_cast<size_t>(point));
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.is_zero()) d.negative = false;
  return d;
}

std::string Decimal::written() const {
  return (negative ? "-" : "") + (whole.empty() ? "0" : whole) + (fraction.empty() ? "" : "." + fraction);
}

namespace {

/// How a number that is being read stands to one value: by magnitude.
struct Comparison {
  int32_t digits = 0;  // before the point, at most one more than the value has
  int32_t order = 0;   // of the digits so far: -1 smaller, 1 larger
  int32_t behind = 0;  // digits behind the point that were compared
  auto operator<=>(const Comparison&) const = default;
};

/// A number that is being read.
struct Reading {
  enum class Phase { begin, minus, zero, whole, point, fraction };
  Phase phase = Phase::begin;
  bool negative = false, has_fraction = false;
  int32_t places = 0;                   // digits behind the point, as many as matter
  std::vector<Comparison> comparisons;  // one per value that the bounds compare with
  std::vector<int64_t> rests;           // one per divisor; -1: digits beyond its last place
  auto operator<=>(const Reading&) const = default;
};

/// The double next to a decimal's own, upwards or downwards, in the shortest decimal that reads as it; nothing beyond the largest.
std::optional<Decimal> neighbour(const Decimal& d, double towards, const std::string& where) {
  const double next = std::nextafter(std::strtod(d.written().c_str(), nullptr), towards);
  if (!std::isfinite(next)) return {};
  char digits[32];
  return Decimal::read(std::string(digits, std::to_chars(digits, std::end(digits), next).ptr), where);
}

/// A divisor as `units` of 10^-places.
struct Divisor {
  int64_t units = 1;
  int32_t places = 0;
};

class NumberAutomaton {
 public:
  NumberAutomaton(const NumberRules& rules, const std::string& where) : rules_(rules), where_(where) {
    for (const NumberRules::Bound& b : rules.bounds) values_.push_back(b.value);
    for (const NumberRules::Bound& b : rules.bounds) add_neighbours(b);
    for (const Decimal& d : rules.multiple_of) divisors_.push_back(divisor_of(d));
    for (const Decimal& d : rules.not_multiple_of) divisors_.push_back(divisor_of(d));
    for (const Divisor& d : divisors_) places_ = std::max(places_, d.places + 1);
    for (size_t i = 0; i < rules.multiple_of.size(); ++i)
      divisor_places_ = std::max(divisor_places_, divisors_[i].places);
  }

  Dfa all() {
    Dfa d;
    Reading first;
    first.comparisons.resize(values_.size());
    first.rests.resize(divisors_.size());
    std::map<Reading, int32_t> number;
    std::vector<Reading> order;
    auto numbered = [&](const Reading& r) {
      auto [at, fresh] = number.try_emplace(r, 0);
      if (!fresh) return at->second;
      if (d.size() > kMostStates)
        fail({.what = text(where_, ": the numbers make an automaton of more than ", kMostStates, " states"),
              .needs = "a multipleOf with few digits, or one of them, and bounds near to 0",
              .hint = "leave out multipleOf or the bounds"});
      order.push_back(r);
      return at->second = d.add_state(accepts(r));
    };
    d.start = numbered(first);
    for (size_t i = 0; i < order.size(); ++i)
      for (char c : std::string_view("-.0123456789"))
        if (const auto to = step(order[i], c)) {
          const int32_t state = numbered(*to);
          d.next[i + 1][static_cast<unsigned char>(c)] = state;
        }
    return pruned(d);
  }

 private:
  /// Of a number with a point readers see the nearest double: it must not be the bound's where that is excluded.
  void add_neighbours(const NumberRules::Bound& b) {
    using Compare = NumberRules::Compare;
    Neighbours& near = neighbours_.emplace_back();
    // A number that reads as 0 and is not 0 has more than 300 digits, which are never written.
    if (!rules_.fractions || b.value.is_zero()) return;
    auto add = [&](double towards) -> std::optional<size_t> {
      std::optional<Decimal> next = neighbour(b.value, towards, where_);
      if (!next) return {};
      values_.push_back(std::move(*next));
      return values_.size() - 1;
    };
    if (b.compare == Compare::above || b.compare == Compare::other_than) near.above = add(INFINITY);
    if (b.compare == Compare::below || b.compare == Compare::other_than) near.below = add(-INFINITY);
  }

  Divisor divisor_of(const Decimal& d) const {
    Divisor out{.places = static_cast<int32_t>(d.fraction.size())};
    std::string units = d.whole + d.fraction;
    units.erase(0, units.find_first_not_of('0'));
    if (units.size() > 6)
      fail({.what = text(where_, ": multipleOf ", d.written(), " has ", units.size(), " digits"),
            .needs = "a divisor of at most six digits, zeros at its ends included",
            .hint = "take a divisor with fewer digits, or leave it out"});
    out.units = std::stoll(units);
    return out;
  }

  std::optional<Reading> step(Reading r, char c) const {
    using Phase = Reading::Phase;
    if (c == '-') {
      if (r.phase != Phase::begin) return {};
      r.phase = Phase::minus, r.negative = true;
      return r;
    }
    if (c == '.') {
      if (!rules_.fractions || (r.phase != Phase::zero && r.phase != Phase::whole)) return {};
      r.phase = Phase::point;
      return r;
    }
    const int32_t digit = c - '0';
    if (r.phase == Phase::zero) return {};
    if (r.phase == Phase::point || r.phase == Phase::fraction) {
      if (!rules_.multiple_of.empty() && r.places >= divisor_places_)
        return {};  // only zeros could follow, without end
      r.phase = Phase::fraction;
      r.has_fraction |= digit != 0;
      add_fraction_digit(r, digit);
      return r;
    }
    r.phase = digit == 0 && r.phase != Phase::whole ? Phase::zero : Phase::whole;
    if (r.phase == Phase::whole) add_whole_digit(r, digit);
    return r;
  }

  void add_whole_digit(Reading& r, int32_t digit) const {
    for (size_t i = 0; i < r.comparisons.size(); ++i) {
      Comparison& c = r.comparisons[i];
      const std::string& whole = values_[i].whole;
      if (c.digits < std::ssize(whole) && c.order == 0)
        c.order = compare(digit, whole[static_cast<size_t>(c.digits)] - '0');
      c.digits = std::min<int32_t>(c.digits + 1, static_cast<int32_t>(whole.size()) + 1);
      if (c.digits > std::ssize(whole)) c.order = 1;
    }
    for (size_t i = 0; i < divisors_.size(); ++i) {
      const Divisor& d = divisors_[i];
      int64_t scaled = digit;
      for (int32_t k = 0; k < d.places; ++k) scaled = scaled * 10 % d.units;
      r.rests[i] = (r.rests[i] * 10 + scaled) % d.units;
    }
  }

  void add_fraction_digit(Reading& r, int32_t digit) const {
    for (size_t i = 0; i < r.comparisons.size(); ++i) {
      Comparison& c = r.comparisons[i];
      settle(c, values_[i]);
      if (c.order != 0) continue;
      const std::string& fraction = values_[i].fraction;
      const auto at = static_cast<size_t>(c.behind);
      c.order = compare(digit, at < fraction.size() ? fraction[at] - '0' : 0);
      c.behind = std::min<int32_t>(c.behind + 1, static_cast<int32_t>(fraction.size()));
      if (c.order != 0) c.behind = 0;
    }
    for (size_t i = 0; i < divisors_.size(); ++i) {
      const Divisor& d = divisors_[i];
      if (r.rests[i] < 0) continue;
      if (r.places >= d.places) {
        if (digit != 0) r.rests[i] = -1;
        continue;
      }
      int64_t scaled = digit;
      for (int32_t k = r.places + 1; k < d.places; ++k) scaled = scaled * 10 % d.units;
      r.rests[i] = (r.rests[i] + scaled) % d.units;
    }
    r.places = std::min(r.places + 1, places_);
  }

  /// What the digits before the point say, once there are no more of them.
  static void settle(Comparison& c, const Decimal& value) {
    if (c.digits < std::ssize(value.whole)) c.order = -1;
    c.digits = static_cast<int32_t>(value.whole.size());
  }
  static int32_t compare(int32_t a, int32_t b) { return a < b ? -1 : a > b ? 1 : 0; }

  bool accepts(const Reading& r) const {
    using Phase = Reading::Phase;
    if (r.phase != Phase::zero && r.phase != Phase::whole && r.phase != Phase::fraction) return false;
    if (r.has_fraction ? !rules_.fractions : !rules_.integers) return false;
    for (size_t i = 0; i < rules_.bounds.size(); ++i) {
      if (!holds(rules_.bounds[i].compare, order_of(r, i))) return false;
      const auto& [below, above] = neighbours_[i];
      if (r.phase != Phase::fraction || (!below && !above)) continue;
      if (!(below && order_of(r, *below) <= 0) && !(above && order_of(r, *above) >= 0)) return false;
    }
    for (size_t i = 0; i < divisors_.size(); ++i)
      if ((r.rests[i] == 0) != (i < rules_.multiple_of.size())) return false;
    return true;
  }

  /// How the number stands to a value: -1 smaller, 0 equal, 1 larger.
  int32_t order_of(const Reading& r, size_t value) const {
    Comparison c = r.comparisons[value];
    const Decimal& v = values_[value];
    settle(c, v);
    // More digits of the value than were read are larger, but zeros are not among them.
    if (c.order == 0 && c.behind < std::ssize(v.fraction)) c.order = -1;
    if (v.is_zero()) return r.negative ? -c.order : c.order;
    if (r.negative != v.negative) return r.negative ? -1 : 1;
    return r.negative ? -c.order : c.order;
  }

  static bool holds(NumberRules::Compare compare, int32_t order) {
    switch (compare) {
      case NumberRules::Compare::at_least: return order >= 0;
      case NumberRules::Compare::above: return order > 0;
      case NumberRules::Compare::at_most: return order <= 0;
      case NumberRules::Compare::below: return order < 0;
      case NumberRules::Compare::other_than: return order != 0;
      case NumberRules::Compare::equal: return order == 0;
    }
    return false;
  }

  const NumberRules& rules_;
  const std::string& where_;
  /// Indices of values: the largest double below a bound's, and the smallest above.
  struct Neighbours {
    std::optional<size_t> below, above;
  };
  std::vector<Decimal> values_;         // of the bounds, then the doubles next to them
  std::vector<Neighbours> neighbours_;  // [bound]
  std::vector<Divisor> divisors_;
  int32_t places_ = 0, divisor_places_ = 0;
};

/// Any number of JSON that is near to a double.
Dfa free_numbers() {
  Dfa d;
  // An exponent has three digits at most: doubles go from 1e-324 to 1e308.
  enum : int32_t { begin = 1, minus, zero, whole, point, fraction, e, sign, exponent1, exponent2, exponent3 };
  for (int32_t s = begin; s <= exponent3; ++s) d.add_state(s == zero || s == whole || s == fraction || s >= exponent1);
  d.start = begin;
  auto set = [&](int32_t from, std::string_view chars, int32_t to) {
    for (char c : chars) d.next[static_cast<size_t>(from)][static_cast<unsigned char>(c)] = to;
  };
  set(begin, "-", minus);
  for (int32_t s : {begin, minus}) set(s, "0", zero), set(s, "123456789", whole);
  set(whole, "0123456789", whole);
  for (int32_t s : {zero, whole}) set(s, ".", point);
  for (int32_t s : {point, fraction}) set(s, "0123456789", fraction);
  for (int32_t s : {zero, whole, fraction}) set(s, "eE", e);
  set(e, "+-", sign);
  for (int32_t s : {e, sign}) set(s, "0123456789", exponent1);
  set(exponent1, "0123456789", exponent2), set(exponent2, "0123456789", exponent3);
  return d;
}

}  // namespace

Dfa number_dfa(const NumberRules& rules, const std::string& where) {
  return rules.are_free() ? free_numbers() : NumberAutomaton(rules, where).all();
}

}  // namespace sator::json_schema
