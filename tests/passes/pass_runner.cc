// Text tests of passes: a module in, the module after the passes out.
#include "base/file.h"
#include "graph_runner.h"
#include "passes/byoc.h"
#include "passes/option.h"
#include "passes/run.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "support/runners.h"
#include "target/chip.h"

namespace sator::test {

// A chip with these patterns and no others.
static Chip chip_with(const std::string& patterns) {
  const std::string chip = read_file(fs::path(SATOR_SOURCE_DIR) / "chips" / "tpuv4_like.toml");
  return parse_chip(text(chip, "\n", patterns), "a chip with patterns");
}

std::string run_passes(const TestCase& test) {
  passes::PassContext ctx;
  if (const Section* bounds = test.find("bounds")) {
    for (std::string_view word : split(bounds->text, ',')) {
      size_t equals = word.find('=');
      ctx.bounds[std::string(trim(word.substr(0, equals)))] = std::stoll(std::string(word.substr(equals + 1)));
    }
  }
  if (const Section* target = test.find("target")) ctx.target = Target::parse(std::string(trim(target->text)));
  if (test.find("config"))  // NAME=VALUE, one a line
    for (std::string_view line : split(test.text("config"), '\n'))
      for (const auto& [name, value] : passes::options_from_text(line)) ctx.config[name] = value;
  if (test.find("attach")) ctx.additional = relax::parse_module(test.text("attach"), "attach");
  const ModuleRef program = relax::parse_module(test.text("program"), "program");
  ModuleRef module = program;
  for (std::string_view name : split(test.args("passes"), ',')) {
    if (test.find("patterns") && trim(name) == "FuseOpsByPattern")
      module = passes::fuse_ops_by_pattern(module, ctx, passes::patterns_of(chip_with(test.text("patterns"))));
    else
      module = passes::run_pass(passes::pass_named(std::string(trim(name))), module, ctx);
  }
  std::string printed = relax::to_script(*module);
  if (!equal(module, relax::parse_module(printed)))
    fail({.what = "the printed program parses to another one:\n" + printed});
  const double tolerance = test.find("tolerance") ? std::stod(test.text("tolerance")) : 1e-5;
  if (auto difference = difference_of_runs(program, module, tolerance))
    fail({.what = text("the program computes something else: ", *difference, "\n", printed)});
  return printed;
}

}  // namespace sator::test
