#include "dataflow/calibrate/rows.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace sator::dataflow {

using nlohmann::json;

double number(const json& fields, const char* key, double otherwise) {
  const auto at = fields.find(key);
  return at != fields.end() && at->is_number() ? at->get<double>() : otherwise;
}

namespace {

/// The cells of a line of CSV; nothing where a quote is not closed.
std::optional<std::vector<std::string>> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '"' && quoted && at + 1 < line.size() && line[at + 1] == '"')
      cells.back() += line[++at];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  if (quoted) return {};
  for (std::string& cell : cells) cell = trim(cell);
  return cells;
}

/// The value of a JSON text, nested at most 128 deep; discarded where it is none.
json parsed(std::string_view source) {
  try {
    return parse_json(source, "rows", DuplicateNames::last_wins);
  } catch (const Error&) {
    return json(json::value_t::discarded);
  }
}

std::vector<Row> parse_table(std::string_view source, const std::string& file) {
  if (source.starts_with("\xef\xbb\xbf")) source.remove_prefix(3);
  std::vector<Row> rows;
  std::vector<std::string> names;
  size_t number = 0;
  for (std::string_view line : split(source, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string where = text(file, " line ", number);
    const std::optional<std::vector<std::string>> cells = cells_of(line);
    if (!cells || (!names.empty() && cells->size() != names.size()))
      fail({.what = cells ? text("the line has ", cells->size(), " cells, the first line ", names.size())
                          : std::string("a quote is not closed"),
            .needs = "names of fields in the first line, then as many cells in each",
            .hint = "correct or remove the line",
            .where = where});
    if (names.empty()) {
      names = *cells;
      continue;
    }
    json row = json::object();
    for (size_t c = 0; c < names.size(); ++c) {
      const std::string& cell = (*cells)[c];
      if (cell.empty()) continue;
      const json value = json::parse(cell, nullptr, false);
      row[names[c]] = value.is_number() ? value : json(cell);
    }
    rows.push_back({std::move(row), where});
  }
  return rows;
}

/// The fields of an array of cells under a line {"columns": [names], ...}: its other fields, and the cells that are not null.
json row_of(const json& head, const json& cells, const std::string& where) {
  const json& names = head["columns"];
  if (cells.size() != names.size())
    fail({.what = text("the line has ", cells.size(), " cells, \"columns\" above it ", names.size()),
          .needs = "as many cells as columns",
          .hint = "correct or remove the line",
          .where = where});
  json row = head;
  row.erase("columns");
  for (size_t c = 0; c < names.size(); ++c)
    if (!cells[c].is_null()) row[names[c].get<std::string>()] = cells[c];
  return row;
}

}  // namespace

std::vector<Row> parse_rows(const std::string& source, const std::string& file) {
  std::vector<Row> rows;
  if (file.ends_with(".csv")) {
    rows = parse_table(source, file);
  } else if (json whole = parsed(source); whole.is_object() && source.find('\n') + 1 < source.size()) {
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
    json head;
    for (std::string_view line : split(source, '\n')) {
      ++number;
      if (trim(line).empty()) continue;
      json row = parsed(line);
      const std::string where = text(file, " line ", number);
      if (row.is_object() && row.contains("columns") && row["columns"].is_array() &&
          std::ranges::all_of(row["columns"], [](const json& name) { return name.is_string(); })) {
        head = std::move(row);
        continue;
      }
      if (row.is_array() && !head.is_null()) row = row_of(head, row, where);
      if (!row.is_object())
        fail({.what = "the line is no JSON object",
              .needs = "one JSON object per line, nested at most 128 deep; a table of cells in a file called *.csv",
              .hint = "correct or remove the line",
              .where = where});
      rows.push_back({std::move(row), where});
    }
  }
  if (rows.empty())
    fail({.what = "the file has no rows",
          .needs = "measurements: one JSON object per line, or a table in a file called *.csv",
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
