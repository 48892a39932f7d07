// Reference cases: files of a JSON object per line, beside the checkout or among the tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "temp_folder.h"

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

inline fs::path reference_file(const char* name) { return shared_folder() / "cases" / name; }

/// `rows` of a file of the reference cases ("cost/..."); the test is skipped where there are no reference cases at all,
/// and fails where the file alone is missing.
#define REFERENCE_ROWS(rows, name)         \
  SKIP_WITHOUT(shared_folder() / "cases"); \
  const std::vector<nlohmann::json> rows = ::sator::dataflow::json_lines(::sator::dataflow::reference_file(name))

}  // namespace sator::dataflow
