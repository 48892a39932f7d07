// Tables in Markdown.
#pragma once

#include <string>
#include <vector>

namespace sator::study {

class MarkdownTable {
 public:
  /// Columns whose head begins with '>' are figures, aligned to the right.
  explicit MarkdownTable(const std::vector<std::string>& heads);
  /// A row; missing cells at its end are empty. A '|' in a cell is escaped.
  void add(std::vector<std::string> cells);
  std::string words() const { return out_; }

 private:
  void line(const std::vector<std::string>& cells);
  size_t columns_;
  std::string out_;
};

}  // namespace sator::study
