// Text tests of the lowering: a program in, the program after some of its passes out.
#include "passes/lower/lower.h"
#include "support/machine_code.h"
#include "support/random_arguments.h"
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

/// Whether the program asks for what only hardware has: threads that exchange values, where the interpreter runs one after the
/// other, or counters.
static bool needs_hardware(const tir::PrimFunc& func) {
  bool found = false;
  walk(func.body, [&](const Call& n) {
    found |= n.op == "tir.tvm_thread_allreduce" || n.op == "tir.tvm_storage_sync" ||
             n.op.ends_with("_profile_intrinsic") || n.op.starts_with("tir.tvm_warp_") ||
             n.op.starts_with("tir.ptx_cp_async");
  });
  return found;
}

/// What the function computes otherwise after the passes; "" where the interpreter cannot run it.
static std::string changed_meaning(const tir::PrimFuncRef& before, const tir::PrimFuncRef& after) {
  constexpr int64_t kIterations = 1'000'000;
  RandomArguments expected(*before, 1, Values::fractions), got(*before, 1, Values::fractions);
  if (!expected.usable() || needs_hardware(*after)) return "";
  try {
    expected.interpret(before, kIterations);
  } catch (const Error&) {
    return "";
  }
  try {
    got.interpret(after, 100 * kIterations);
  } catch (const Error& e) {
    return text("the program after the passes is at fault: ", e.what());
  }
  return expected.difference(got, some_ulps);
}

std::string run_lower(const TestCase& test) {
  tir::PrimFuncRef func = tir::parse_function(test.text("program"), "program");
  const tir::PrimFuncRef before = func;
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
  if (std::string d = changed_meaning(before, func); !d.empty())
    fail({.what = text("the passes change what the program computes: ", d)});
  return notes + tir::to_script(*func);
}

}  // namespace sator::test
