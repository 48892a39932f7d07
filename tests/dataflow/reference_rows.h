// Reference cases: files with a JSON object per line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "reference_data.h"

namespace sator::dataflow {

/// Errors: the file cannot be read, a line is no JSON, or there is no line: a comparison with nothing is none.
inline std::vector<nlohmann::json> json_lines(const fs::path& path) {
  const std::string all = read_file(path);
  std::vector<nlohmann::json> rows;
  for (std::string_view line : split(all, '\n'))
    if (!trim(line).empty()) rows.push_back(nlohmann::json::parse(line));
  if (rows.empty()) fail({.what = path.string() + " has no row", .needs = "the reference cases", .hint = "restore it"});
  return rows;
}

inline fs::path reference_file(const fs::path& name) { return reference_data("cases" / name); }

/// The rows of a file of the reference cases ("cost/...").
inline std::vector<nlohmann::json> reference_rows(const char* name) { return json_lines(reference_file(name)); }

}  // namespace sator::dataflow
