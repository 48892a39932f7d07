// Cases with `--- machine`: a program, scheduled by `--- script` if there is one, lowered and compiled for every level of
// this CPU, against the interpreter on random data.
#include "schedule/script.h"
#include "support/machine_code.h"
#include "support/runners.h"
#include "tir/parse.h"

namespace sator::test {

std::string run_machine(const TestCase& test) {
  schedule::Schedule s(tir::parse_function(test.text("program"), "program"));
  if (test.find("script")) schedule::Script(s).run(test.text("script"));
  for (uint64_t seed : {1, 2, 3}) {
    bool ran = false;
    if (std::string d = machine_difference(s.func(), seed, some_ulps, &ran); !d.empty()) fail({.what = d});
    if (!ran) fail({.what = "the interpreter cannot run the program"});
  }
  return "as the interpreter\n";
}

}  // namespace sator::test
