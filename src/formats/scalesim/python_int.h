#pragma once

#include <cstdint>
#include <string_view>

#include "base/text_line.h"

namespace sator::formats {

/// A positive integer in the digits that Python's int() takes: blanks around, a plus sign, single underscores between
/// digits. `what` names it in messages.
/// Errors: anything else, zero or less, more than 64 bits.
int64_t positive_int(std::string_view token, const TextLine& line, size_t column, std::string_view what);
/// The same from zero on.
int64_t natural_int(std::string_view token, const TextLine& line, size_t column, std::string_view what);

}  // namespace sator::formats
