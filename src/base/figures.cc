#include "base/figures.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace sator {

namespace {

std::string print(const char* format, int digits, double value) {
  std::array<char, 400> buffer;  // a double has at most 309 digits before the point
  std::snprintf(buffer.data(), buffer.size(), format, digits, value);
  return buffer.data();
}

std::string not_finite(double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; }

/// The decimal exponent of the value once it is rounded to three digits: that of 999.9 is 3.
int rounded_exponent(double magnitude) {
  const std::string s = print("%.*e", 2, magnitude);
  return std::atoi(s.c_str() + s.find('e') + 1);
}

}  // namespace

std::string quantity(double value, std::string_view unit) {
  if (!std::isfinite(value)) return not_finite(value);
  if (unit.ends_with('2')) return significant(value) + " " + std::string(unit);  // a prefix would be squared too
  static constexpr std::array<std::string_view, 13> kPrefixes{
      "a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"};
  if (value == 0) return unit.empty() ? "0" : "0 " + std::string(unit);
  const int exponent = rounded_exponent(std::fabs(value));
  const int step = std::min(6, std::max(-6, static_cast<int>(std::floor(exponent / 3.0))));
  const int digits = std::max(0, 2 - (exponent - 3 * step));
  std::string result = print("%.*f", std::min(digits, 12), value / std::pow(10.0, 3 * step));
  const std::string suffix = std::string(kPrefixes[static_cast<size_t>(step + 6)]) + std::string(unit);
  return suffix.empty() ? result : result + " " + suffix;
}

std::string fixed(double value, int digits) {
  return std::isfinite(value) ? print("%.*f", digits, value) : not_finite(value);
}

std::string significant(double value) {
  if (!std::isfinite(value)) return not_finite(value);
  if (value == 0) return "0";
  const int exponent = rounded_exponent(std::fabs(value));
  if (exponent < -4 || exponent > 6) return print("%.*e", 2, value);
  return print("%.*f", std::max(0, 2 - exponent), value);
}

std::string counted(int64_t n, std::string_view noun) { return text(n, " ", noun, n == 1 ? "" : "s"); }

std::string times(std::optional<double> ratio) {
  if (!ratio || std::isnan(*ratio)) return "-";
  if (!std::isfinite(*ratio)) return "inf";
  return (*ratio < 99.95 ? print("%.*f", *ratio < 9.995 ? 2 : 1, *ratio) : significant(*ratio)) + "x";
}

std::string percent(double fraction) {
  if (!std::isfinite(fraction)) return not_finite(fraction);
  const double value = fraction * 100;
  const double magnitude = std::fabs(value);
  return print("%.*f", magnitude >= 99.95 ? 0 : magnitude >= 0.0995 || magnitude == 0 ? 1 : 2, value) + " %";
}

size_t display_width(std::string_view s) {
  size_t width = 0;
  for (unsigned char c : s) width += (c & 0xc0) != 0x80;
  return width;
}

static std::string cut(std::string_view s, size_t width) {
  if (display_width(s) <= width) return std::string(s);
  std::string result;
  size_t taken = 0;
  for (char c : s) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++taken > width - 1) break;
    result += c;
  }
  return result + "…";
}

std::string pad_right(std::string_view s, size_t width) {
  std::string result = cut(s, width);
  return result.append(width - display_width(result), ' ');
}

std::string pad_left(std::string_view s, size_t width) {
  std::string result = cut(s, width);
  return result.insert(0, width - display_width(result), ' ');
}

}  // namespace sator
