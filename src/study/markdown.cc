#include "study/markdown.h"

namespace sator::study {

MarkdownTable::MarkdownTable(const std::vector<std::string>& heads) : columns_(heads.size()) {
  std::vector<std::string> names, rules;
  for (const std::string& head : heads) {
    const bool figures = head.starts_with('>');
    names.push_back(figures ? head.substr(1) : head);
    rules.push_back(figures ? "--:" : "---");
  }
  line(names);
  line(rules);
}

void MarkdownTable::add(std::vector<std::string> cells) {
  cells.resize(columns_);
  line(cells);
}

void MarkdownTable::line(const std::vector<std::string>& cells) {
  out_ += '|';
  for (const std::string& cell : cells) {
    out_ += ' ';
    for (char c : cell) {
      if (c == '|') out_ += '\\';
      out_ += c;
    }
    out_ += " |";
  }
  out_ += '\n';
}

}  // namespace sator::study
