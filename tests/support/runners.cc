#include "support/runners.h"

namespace sator::test {

const std::vector<Runner>& runners() {
  static const std::vector<Runner> table = {
      {.section = "command",
       .inputs = {"stdin"},
       .does = "runs a command line of sator in the root of the checkout; the result is its standard output",
       .run = run_command},
  };
  return table;
}

}  // namespace sator::test
