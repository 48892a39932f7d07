// Text tests of the lowering: a program in, the program after some of its passes out.
#include "passes/lower/lower.h"
#include "support/runners.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace sator::test {

static const passes::LowerPass& find_pass(std::string_view name) {
  std::vector<std::string> names;
  for (auto part : {passes::lower_passes(), passes::more_lower_passes()}) {
    for (const passes::LowerPass& pass : part) {
      if (pass.name == name) return pass;
      names.emplace_back(pass.name);
    }
  }
  fail({.what = text("no pass ", name), .needs = text("one of ", join(names, ", ")), .hint = "correct the name"});
}

std::string run_lower(const TestCase& test) {
  tir::PrimFuncRef func = tir::parse_function(test.text("program"), "program");
  std::string notes;
  passes::LowerOptions options;
  options.note = [&](const Reason& reason) { notes += text("# note: ", reason.what, ": ", reason.hint, "\n"); };
  if (test.find("config")) {
    for (std::string_view line : split(test.text("config"), '\n')) {
      size_t equals = line.find('=');
      if (equals != line.npos)
        options.config[std::string(trim(line.substr(0, equals)))] =
            int_imm(std::stoll(std::string(line.substr(equals + 1))), i64);
    }
  }
  std::string names = test.args("lower").empty() ? test.text("lower") : test.args("lower");
  if (trim(names) == "all") {
    func = passes::lower(func, options);
  } else {
    for (std::string_view name : split(names, ',')) func = passes::run_lower_pass(find_pass(trim(name)), func, options);
  }
  return notes + tir::to_script(*func);
}

}  // namespace sator::test
