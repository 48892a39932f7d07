#include "cli/progress.h"

#include <unistd.h>

#include <ostream>

namespace sator::cli {

ProgressLines::ProgressLines(std::ostream& out) : out_(out), terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLines::operator()(const std::string& line, bool passing) {
  if (terminal_) {
    out_ << "\r\x1b[K" << line << (passing ? "" : "\n") << std::flush;
    open_ = passing;
    return;
  }
  const std::string without_figures = passing ? line.substr(0, line.find(',')) : line;
  if (without_figures == last_) return;
  last_ = without_figures;
  out_ << without_figures << "\n" << std::flush;
}

void ProgressLines::end() {
  if (open_) out_ << "\r\x1b[K" << std::flush;
  open_ = false;
}

}  // namespace sator::cli
