// What R.print and R.assert_op say of values.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/value.h"

namespace sator::runtime {

/// A value as Python prints it: numbers plain, tensors as nested lists; of more than 1,000 elements the first and last three along
/// each axis.
std::string shown(const Value& value);

/// The format with each {} replaced by a value, in order; values that are left stand behind it. {0}, {name}, {:spec} stay as they are.
std::string formatted(std::string_view format, std::span<const Value* const> values);

/// Where the lines of R.print go: standard output, unless the host has another place. For the whole process.
using PrintFn = void (*)(const std::string& line);
void set_print(PrintFn print);
void print_line(const std::string& line);

/// Whether an assertion's condition holds: a tensor of one bool, or an integer.
/// Errors: it does not; the text tells the message.
void require_assertion(const Value& condition, std::string_view format, std::span<const Value* const> values);

}  // namespace sator::runtime
