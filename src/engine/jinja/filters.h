// The rows of the table of filters.
#pragma once

#include <span>

#include "engine/jinja/builtins.h"

namespace sator::jinja {

struct FilterRow {
  std::string_view name;
  Value (*apply)(const Value& value, Taking& arguments);
};
/// Those of lists and dictionaries.
std::span<const FilterRow> list_filters();

[[noreturn]] void fail_type(const char* filter, const Value& v, const char* needs);

}  // namespace sator::jinja
