#include "formats/scalesim/python_int.h"

#include <algorithm>

#include "base/text.h"

namespace sator::formats {
namespace {

int64_t integer_from(int64_t least, std::string_view token, const TextLine& line, size_t column,
                     std::string_view what) {
  std::string_view digits = trim(token);
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  int64_t value = 0;
  bool digit_before = false, beyond = false;
  const auto fail = [&](std::string_view why, std::string_view hint) {
    line.fail(column,
              text(what, " is ", shown(token), why),
              text(what, " is an integer from ", least, " up to 2^63 - 1"),
              std::string(hint));
  };
  for (char c : digits) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c == '_' && digit_before)) fail(", which is no integer", "write decimal digits");
    if (digit)
      beyond = beyond || __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value);
    digit_before = digit;
  }
  if (!digit_before) fail(digits.empty() ? ", which has no digits" : ", which is no integer", "write decimal digits");
  if (beyond) fail(", which takes more than 64 bits", "use a smaller size");
  if (negative) value = -value;
  if (value < least) fail("", text("write at least ", least));
  return value;
}

}  // namespace

int64_t positive_int(std::string_view token, const TextLine& line, size_t column, std::string_view what) {
  return integer_from(1, token, line, column, what);
}

int64_t natural_int(std::string_view token, const TextLine& line, size_t column, std::string_view what) {
  return integer_from(0, token, line, column, what);
}

}  // namespace sator::formats
