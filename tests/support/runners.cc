#include "support/texttest.h"

namespace sator::test {

// A row per kind of case. A runner is a function of tests/<room>/*_runner.cc, declared here above the table.
const std::vector<Runner>& runners() {
  static const std::vector<Runner> table = {};
  return table;
}

}  // namespace sator::test
