// Text tests of passes: a module in, the module after the passes out.
#include "graph_runner.h"
#include "passes/run.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "support/runners.h"

namespace sator::test {

std::string run_passes(const TestCase& test) {
  passes::PassContext ctx;
  if (const Section* bounds = test.find("bounds")) {
    for (std::string_view word : split(bounds->text, ',')) {
      size_t equals = word.find('=');
      ctx.bounds[std::string(trim(word.substr(0, equals)))] = std::stoll(std::string(word.substr(equals + 1)));
    }
  }
  if (const Section* target = test.find("target")) ctx.target = trim(target->text);
  if (test.find("attach")) ctx.additional = relax::parse_module(test.text("attach"), "attach");
  const ModuleRef program = relax::parse_module(test.text("program"), "program");
  ModuleRef module = program;
  for (std::string_view name : split(test.args("passes"), ','))
    module = passes::run_pass(passes::pass_named(std::string(trim(name))), module, ctx);
  std::string printed = relax::to_script(*module);
  if (!equal(module, relax::parse_module(printed)))
    fail({.what = "the printed program parses to another one:\n" + printed});
  if (auto difference = difference_of_runs(program, module))
    fail({.what = text("the program computes something else: ", *difference, "\n", printed)});
  return printed;
}

}  // namespace sator::test
