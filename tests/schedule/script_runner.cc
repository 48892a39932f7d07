// Cases with `--- script`: primitives on a program. After each line the program is verified, printed, parsed and, where it
// is small, run. `--- desc NAME` and `--- impl NAME` register a tensor intrinsic.
#include "schedule/script.h"

#include "schedule/same_results.h"
#include "schedule/tensor_intrin.h"
#include "support/runners.h"

namespace sator::test {

namespace {

/// The function without the header of imports.
std::string print(const tir::PrimFunc& func) {
  std::string script = tir::to_script(func);
  return script.substr(script.find("@T.prim_func"));
}

}  // namespace

std::string run_script(const TestCase& test) {
  if (test.find("desc"))
    schedule::register_tensor_intrin(
        test.args("desc"), tir::parse_function(test.text("desc")), tir::parse_function(test.text("impl")));
  tir::PrimFuncRef func = tir::parse_function(test.text("program"));
  schedule::Schedule s(func);
  schedule::Script script(s);
  script::Program program = script::parse(test.text("script"));
  tir::PrimFuncRef seen = func;
  for (script::Statement& line : program.body) {
    script::Program one{.source = program.source};
    one.body.push_back(line);
    script.run(one);
    if (s.func() == seen) continue;
    seen = s.func();
    for (uint64_t seed : {1, 2}) {
      if (std::string what = broken_step(func, seen, seed); !what.empty())
        fail({.what = text("after `", schedule::describe(s.trace().steps.back()), "`: ", what, "\n", print(*seen))});
    }
  }
  schedule::Schedule again(func);
  s.trace().apply_to(again);
  if (!equal(again.func(), s.func())) fail({.what = "the trace replays to another program\n" + print(*again.func())});
  return print(*s.func());
}

}  // namespace sator::test
