// What a long command says while it works.
#pragma once

#include <iosfwd>
#include <string>

namespace sator::cli {

/// Progress as lines; on a terminal a passing line is written over by the next, elsewhere its figures are left out.
class ProgressLines {
 public:
  explicit ProgressLines(std::ostream& out);
  ~ProgressLines() { end(); }
  ProgressLines(const ProgressLines&) = delete;
  ProgressLines& operator=(const ProgressLines&) = delete;

  /// What follows a comma in a passing line are its figures.
  void operator()(const std::string& line, bool passing);
  /// Takes a passing line away, so that results or an error begin on a line of their own.
  void end();

 private:
  std::ostream& out_;
  bool terminal_, open_ = false;
  std::string last_;
};

}  // namespace sator::cli
