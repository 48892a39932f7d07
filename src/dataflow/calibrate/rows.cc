#include "dataflow/calibrate/rows.h"

#include "base/error.h"
#include "base/text.h"

namespace sator::dataflow {

using nlohmann::json;

double number(const json& fields, const char* key, double otherwise) {
  const auto at = fields.find(key);
  return at != fields.end() && at->is_number() ? at->get<double>() : otherwise;
}

std::vector<Row> parse_rows(const std::string& source, const std::string& file) {
  std::vector<Row> rows;
  if (json whole = json::parse(source, nullptr, false); whole.is_object() && source.find('\n') + 1 < source.size()) {
    for (const auto& [section, list] : whole.items()) {
      if (!list.is_array()) continue;
      for (const json& row : list) {
        if (!row.is_object()) continue;
        rows.push_back({row, text(file, " ", section, "[", rows.size(), "]")});
        rows.back().fields["section"] = section;
      }
    }
  } else {
    size_t number = 0;
    for (std::string_view line : split(source, '\n')) {
      ++number;
      if (trim(line).empty()) continue;
      json row = json::parse(line, nullptr, false);
      const std::string where = text(file, " line ", number);
      if (!row.is_object())
        fail({.what = "the line is no JSON object",
              .needs = "one JSON object per line",
              .hint = "correct or remove the line",
              .where = where});
      rows.push_back({std::move(row), where});
    }
  }
  if (rows.empty())
    fail({.what = "the file has no rows",
          .needs = "measurements, one JSON object per line",
          .hint = "name another file",
          .where = file});
  return rows;
}

bool RowFilter::holds(const Row& row) const {
  const auto at = row.fields.find(key);
  if (at == row.fields.end()) return false;
  const std::string is = at->is_string() ? at->get<std::string>() : at->dump();
  if (value.ends_with('*')) return is.starts_with(value.substr(0, value.size() - 1));
  return is == value;
}

RowFilter parse_filter(const std::string& source) {
  const size_t at = source.find('=');
  if (at == std::string::npos || at == 0)
    fail({.what = text("the filter is ", source),
          .needs = "KEY=VALUE, a field of the rows and its value",
          .hint = "write for instance device=A100-80GB"});
  return {source.substr(0, at), source.substr(at + 1)};
}

}  // namespace sator::dataflow
