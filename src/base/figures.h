// How numbers look in tables and sentences: one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sator {

/// Three significant digits with an engineering prefix: quantity(0.00123, "s") is "1.23 ms", quantity(1.05e9, "") is
/// "1.05 G", quantity(0, "B") is "0 B". Of a square none: quantity(0.05, "mm2") is "0.0500 mm2". Not finite: "inf", "nan".
std::string quantity(double value, std::string_view unit);

/// With `digits` behind the point: fixed(3.14159, 2) is "3.14". Not finite: "inf", "nan".
std::string fixed(double value, int digits);

/// Three significant digits, and all before the point, for values beside each other: 0.0123, 1.23, 123, 12345.
std::string significant(double value);

/// A count with its noun: counted(1, "token") is "1 token", counted(2, "token") is "2 tokens".
std::string counted(int64_t n, std::string_view noun);

/// "3.42x"; "-" where there is nothing to compare with.
std::string times(std::optional<double> ratio);

/// 0.123 is "12.3 %".
std::string percent(double fraction);

/// The value by `format`, or "-".
template <class Format>
std::string or_dash(const std::optional<double>& value, Format format) {
  return value ? format(*value) : "-";
}

/// Columns that UTF-8 text takes in a terminal, each code point one.
size_t display_width(std::string_view s);
/// Padded on the right or, for figures, on the left; longer text is cut and ends in "…".
std::string pad_right(std::string_view s, size_t width);
std::string pad_left(std::string_view s, size_t width);

}  // namespace sator
