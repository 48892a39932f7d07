#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

namespace sator::formats {

/// A tool whose own input files we read and whose own figures we answer with.
struct Format {
  std::string_view name;   ///< "tenet"
  std::string_view takes;  ///< the keys of `input`, each the text of one of the tool's files
  /// The answer for one input, as an object. Errors: what is malformed or cannot be expressed, with file, line and column.
  nlohmann::json (*answer)(const nlohmann::json& input);
};

/// One row per tool.
std::span<const Format> known_formats();

/// The row of that name. Errors: there is none (with the nearest names).
const Format& find_format(std::string_view name);

}  // namespace sator::formats
