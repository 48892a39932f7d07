#include "base/error.h"

namespace sator {

std::string Reason::render() const {
  std::string out = "error: " + what;
  if (!where.empty()) out += "\n  " + where;
  if (!program.empty()) out += "\n" + indented(program, "  |    ");
  if (!needs.empty()) out += "\n  needs: " + needs;
  if (!hint.empty()) out += "\n  hint:  " + hint;
  return out;
}

void fail(Reason reason) { throw Error(std::move(reason)); }
void internal_error(std::string message) { throw InternalError(std::move(message)); }

}  // namespace sator
