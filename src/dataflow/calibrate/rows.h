#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sator::dataflow {

/// One measurement of a file, as its maker wrote it.
struct Row {
  nlohmann::json fields;  // an object
  std::string where;      // "gpu.jsonl line 3"
};

/// The number of this key; `otherwise` where there is none.
double number(const nlohmann::json& fields, const char* key, double otherwise = 0);

/// The rows of a file with one JSON object per line, or an array of cells per line under a line {"columns": [names], ...}, whose other fields
/// they share; or of one object, whose arrays of objects are taken one after the other
/// (each row then has "section", the array's name). A file called *.csv holds a table instead: names of fields in its first line, then
/// a row per line; what reads as a number is one, and an empty cell is no field.
///   file   what messages call it
/// Errors: not JSON, or another number of cells than names, with the line; no rows.
/// Source: the way cells are quoted is RFC 4180's, without line breaks in them.
std::vector<Row> parse_rows(const std::string& text, const std::string& file);

/// "model=llama": rows whose field has this value, as text. A value that ends in * need only begin so.
struct RowFilter {
  std::string key, value;
  bool holds(const Row& row) const;
};

/// Errors: there is no '='.
RowFilter parse_filter(const std::string& text);

}  // namespace sator::dataflow
