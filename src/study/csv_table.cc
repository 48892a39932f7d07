#include "study/csv_table.h"

namespace sator::study {

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string quoted_value = "\"";
  for (char c : value) {
    if (c == '"') quoted_value += '"';
    quoted_value += c;
  }
  return quoted_value + "\"";
}

void CsvTable::end_line() {
  if (fields_.empty()) return;
  Line& line = lines_.emplace_back(Line{"", fields_.size()});
  for (size_t c = 0; c < fields_.size(); ++c) line.fields.append(c ? "," : "").append(csv_field(fields_[c]));
  fields_.clear();
}

void CsvTable::begin() {
  end_line();
  next_ = 0;
}

void CsvTable::put(std::string_view column, std::string_view value) {
  size_t at = next_;
  if (at >= columns_.size() || columns_[at] != column) {
    const auto known = number_.find(column);
    at = known == number_.end() ? columns_.size() : known->second;
    if (known == number_.end()) number_.emplace(columns_.emplace_back(column), at);
  }
  next_ = at + 1;
  if (fields_.size() <= at) fields_.resize(at + 1);
  fields_[at] = value;
}

void CsvTable::keep_head_alone() {
  lines_.clear();
  fields_.clear();
}

std::string CsvTable::words() {
  end_line();
  std::string out;
  for (size_t c = 0; c < columns_.size(); ++c) out.append(c ? "," : "").append(csv_field(columns_[c]));
  out += '\n';
  for (const Line& line : lines_) out.append(line.fields).append(columns_.size() - line.count, ',').append("\n");
  return out;
}

}  // namespace sator::study
