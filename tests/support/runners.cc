#include "support/texttest.h"
#include "tir/text_runner.h"

namespace sator::test {

// A row per kind of case. A runner is a function of tests/<room>/*_runner.cc, declared here above the table.
const std::vector<Runner>& runners() {
  static const std::vector<Runner> table = {
      {"print", {"program"}, "the program as it prints, after a round trip through its text", run_tir_print},
      {"verify", {"program"}, "the verifier's mistakes, one per line", run_tir_verify},
      {"run", {"program"}, "the arrays of the section after the interpreter ran the program", run_tir_run},
  };
  return table;
}

}  // namespace sator::test
