// Cases with `--- gpu RULE, RULE`: default schedules for a GPU. The result says what each rule made of the program, and prints it.
#include "rules/gpu/gpu.h"
#include "schedule/same_results.h"
#include "schedule/script.h"
#include "support/runners.h"

namespace sator::test {

std::string run_gpu_rules(const TestCase& test) {
  const tir::PrimFuncRef func = tir::parse_function(test.text("program"));
  const TargetConfigRef target =
      target_from_text(test.find("target") ? test.text("target") : std::string("nvidia/nvidia-a100"));
  std::vector<std::string> names;
  for (std::string_view name : split(test.args("gpu"), ','))
    if (!trim(name).empty()) names.emplace_back(trim(name));
  std::string out;
  std::string trace;
  auto log = [&](const rules::AppliedSchedule& applied) {
    if (applied.rule.empty())
      out += "# no rule takes it\n";
    else
      out += text("# ", applied.rule, ", block ", applied.block, ": ", applied.form, "; ", applied.configuration, "\n");
    for (const auto& d : applied.declined) out += text("# not ", d.rule, ": ", d.why.what, "\n");
    trace = applied.trace;
  };
  const ModuleRef before = schedule::Schedule(func).module();
  const ModuleRef after = rules::schedule_for_gpu(before, target, rules::gpu_rules_named(names), 4, log);
  if (after == before) return out;
  const tir::PrimFuncRef scheduled = cast<tir::PrimFunc>(after->functions.begin()->second);
  if (std::string wrong = broken_step(func, scheduled, 1); !wrong.empty()) fail({.what = wrong});
  std::string script = tir::to_script(*scheduled);
  return out + script.substr(script.find("@T.prim_func"));
}

}  // namespace sator::test
