#include "rules/default_schedule.h"

#include "base/text.h"
#include "passes/option.h"
#include "rules/gpu/gpu.h"

namespace sator::rules {

ModuleRef apply_default_schedule(const ModuleRef& module, const passes::PassContext& ctx, const ScheduleLog& log) {
  const auto is_off = [](const Attrs& attrs) { return int_attr(attrs, kDefaultSchedule).value_or(1) == 0; };
  if (is_off(module->attrs) || is_off(ctx.config)) return module;
  const std::vector<std::string> chosen = passes::names_option(ctx, "ApplyDefaultSchedule.rules");
  if (ctx.target && target::nvidia_gpu(ctx.target->config()))
    return schedule_for_gpu(module, ctx.target->config(), gpu_rules_named(chosen), 4, log);
  if (ctx.target && !ctx.target->is_cpu())
    fail({.what = text("ApplyDefaultSchedule for ", ctx.target->spelling()),
          .needs = "a CPU or an NVIDIA GPU: no rules schedule for other targets",
          .hint = "DefaultGPUSchedule binds loops to the threads of any GPU"});
  if (!chosen.empty())
    fail({.what = text("rules by name: ", join(chosen, ", ")),
          .needs = "the target of an NVIDIA GPU: a CPU's rules are tried in one order",
          .hint = "pass --target nvidia/nvidia-a100, or leave the names out"});
  return schedule_for_cpu(
      module, ctx.target ? *ctx.target->levels().front() : *target::levels_for("native").front(), log);
}

ModuleRef apply_default_schedule(const ModuleRef& module, const passes::PassContext& ctx) {
  if (!ctx.explain) return apply_default_schedule(module, ctx, {});
  return apply_default_schedule(
      module, ctx, [&](const AppliedSchedule& s) { ctx.explain("ApplyDefaultSchedule", words_of(s)); });
}

std::string words_of(const AppliedSchedule& s) {
  std::string out = s.function;
  if (!s.calls.empty()) out += text(", for ", s.calls);
  out += s.rule.empty() ? "\n  no rule takes it\n" : text("\n  block ", s.block, ", rule ", s.rule, "\n");
  if (!s.form.empty()) out += text("  ", s.form, "\n");
  if (!s.configuration.empty()) out += text("  ", s.configuration, "\n");
  for (std::string_view step : sator::split(s.trace, '\n'))
    if (!step.empty()) out += text("    ", step, "\n");
  for (const auto& d : s.declined)
    out += text("  not ", d.rule, ": ", d.why.what, d.why.needs.empty() ? "" : text("; it needs ", d.why.needs), "\n");
  return out;
}

}  // namespace sator::rules
