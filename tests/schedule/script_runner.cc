// Cases with `--- script`: primitives on a program. After each line the program is verified, printed, parsed and, where it
// is small, run.
#include "schedule/script.h"

#include "schedule/same_results.h"
#include "support/runners.h"
#include "tir/parse.h"
#include "tir/print.h"
#include "tir/verify.h"

namespace sator::test {

namespace {

/// The function without the header of imports.
std::string print(const tir::PrimFunc& func) {
  std::string script = tir::to_script(func);
  return script.substr(script.find("@T.prim_func"));
}

/// What must hold after every step, whatever it was.
void check(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after, const std::string& step) {
  auto refuse = [&](const std::string& what) { fail({.what = text("after `", step, "`: ", what)}); };
  if (std::vector<Reason> mistakes = tir::verify(*after, tir::Stage::scheduled); !mistakes.empty())
    refuse(text("the program is not well formed: ", mistakes.front().what, "\n", print(*after)));
  std::string once = tir::to_script(*after);
  tir::PrimFuncRef again = tir::parse_function(once);
  if (!equal(after, again)) refuse("the program parses to another one\n" + once + "\n" + tir::to_script(*again));
  if (std::string twice = tir::to_script(*again); twice != once)
    refuse("the program prints differently when it is parsed again\n" + line_difference(once, twice));
  for (uint64_t seed : {1, 2}) {
    if (std::string d = different_results(before, after, seed); !d.empty())
      refuse(text("the results differ: ", d, "\n", print(*after)));
  }
}

}  // namespace

std::string run_script(const TestCase& test) {
  tir::PrimFuncRef func = tir::parse_function(test.text("program"));
  schedule::Schedule s(func);
  schedule::Script script(s);
  script::Program program = script::parse(test.text("script"), "script");
  tir::PrimFuncRef seen = func;
  for (script::Statement& line : program.body) {
    script::Program one{.source = program.source};
    one.body.push_back(line);
    script.run(one);
    if (s.func() == seen) continue;
    seen = s.func();
    check(func, seen, s.trace().steps.empty() ? "" : schedule::describe(s.trace().steps.back()));
  }
  schedule::Schedule again(func);
  s.trace().apply_to(again);
  if (!equal(again.func(), s.func())) fail({.what = "the trace replays to another program\n" + print(*again.func())});
  return print(*s.func());
}

}  // namespace sator::test
