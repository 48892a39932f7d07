#include "driver/compile.h"

#include "base/file.h"
#include "codegen/library.h"
#include "codegen/vm_codegen.h"
#include "passes/run.h"
#include "relax/print.h"
#include "rules/cpu.h"
#include "rules/param_layouts.h"
#include "tir/nodes.h"

namespace sator::driver {

namespace {

void dump(const CompileOptions& options, const std::string& name, const ModuleRef& module) {
  if (options.debug_dump.empty()) return;
  write_file(options.debug_dump / ("debug-" + name + ".py"), relax::to_script(*module) + "\n");
}

std::vector<const target::CpuLevel*> levels_of(const CompileOptions& options) {
  return options.levels.empty() ? target::levels_for("native") : options.levels;
}

/// The passes by phase, and those left out, with the reason.
void dump_passes(const CompileOptions& options) {
  if (options.debug_dump.empty()) return;
  std::string out;
  for (const Phase& phase : phases()) {
    out += text("phase ", phase.number, ": ", phase.does, "\n");
    for (const Step& step : phase.steps)
      out += step.skipped.empty() ? text("  ", step.name, "\n") : text("  not ", step.name, ": ", step.skipped, "\n");
  }
  write_file(options.debug_dump / "passes.txt", out);
}

passes::PassContext context_of(const CompileOptions& options) { return {.bounds = options.bounds, .target = "llvm"}; }

constexpr int kSchedules = 4;  // the phase

tir::PrimFuncRef with_attr(const tir::PrimFuncRef& func, const std::string& key, NodeRef value) {
  Attrs attrs = func->attrs;
  attrs[key] = std::move(value);
  return with(func, &tir::PrimFunc::attrs, std::move(attrs));
}

/// The module in which functions of the user's schedules are marked, so that no pass takes them apart.
ModuleRef with_marks(ModuleRef module, const CompileOptions& options) {
  for (const auto& [name, func] : options.scheduled)
    module = with_function(
        module, name, with_attr(cast<tir::PrimFunc>(module->functions.at(name)), "tir.is_scheduled", bool_imm(true)));
  return module;
}

/// The module with those functions as their schedules left them.
ModuleRef with_schedules_of_user(ModuleRef module, const CompileOptions& options) {
  for (const auto& [name, func] : options.scheduled) {
    auto at = module->functions.find(name);
    if (at != module->functions.end())
      module = with_function(module, name, with(func, &tir::PrimFunc::attrs, Attrs(at->second->attrs)));
  }
  return module;
}

}  // namespace

std::map<std::string, tir::PrimFuncRef> scheduled_functions(const Module& before, const Module& after) {
  std::map<std::string, tir::PrimFuncRef> out;
  for (const auto& [name, func] : after.functions) {
    tir::PrimFuncRef program = cast<tir::PrimFunc>(func);
    auto at = before.functions.find(name);
    if (program && at != before.functions.end() && at->second != func) out.emplace(name, program);
  }
  return out;
}

ModuleRef to_phase3(ModuleRef module, const CompileOptions& options) {
  for (const Phase& phase : phases()) {
    if (phase.number >= kSchedules) break;
    module = run_phase(phase, module, context_of(options));
    dump(options, text("phase", phase.number), module);
  }
  return module;
}

Compiled compile(ModuleRef module, const CompileOptions& options) {
  const passes::PassContext ctx = context_of(options);
  const bool by_rules = options.default_schedules && int_attr(module->attrs, kDefaultSchedule).value_or(1) != 0;
  module = with_marks(std::move(module), options);
  Compiled out;
  dump_passes(options);
  out.phase3 = to_phase3(std::move(module), options);
  module = rules::attach_param_layouts(out.phase3, ctx);
  passes::require_well_formed("the layout of parameters", *module, *out.phase3);
  module = with_schedules_of_user(run_phase(phases()[kSchedules], module, ctx), options);
  for (const target::CpuLevel* level : levels_of(options)) {
    rules::ScheduleLog log;
    if (out.levels.empty()) log = [&](const rules::AppliedSchedule& applied) { out.schedules.push_back(applied); };
    LevelModules l{level, by_rules ? rules::schedule_for_cpu(module, *level, log) : module, nullptr};
    passes::require_well_formed(text("the schedule for ", level->name), *l.scheduled, *module);
    l.final = l.scheduled;
    for (const Phase& phase : phases())
      if (phase.number > kSchedules) l.final = run_phase(phase, l.final, ctx);
    out.levels.push_back(std::move(l));
  }
  out.scheduled = out.levels.front().scheduled;
  out.final = out.levels.front().final;
  dump(options, "phase4", out.scheduled);
  dump(options, "phase5", out.final);
  dump(options, "final", out.final);
  out.executable = codegen::vm_codegen(out.final);
  if (!options.debug_dump.empty()) write_file(options.debug_dump / "executable.txt", out.executable->as_text());
  return out;
}

void write_library(const Compiled& compiled, const CompileOptions& options, const std::filesystem::path& path) {
  codegen::LibrarySource source{.executable = compiled.executable->save(),
                                .metadata_json = options.metadata_json,
                                .source_hash = options.source_hash};
  for (const LevelModules& l : compiled.levels) {
    codegen::LevelSource kernels{.level = l.level};
    for (const auto& [name, func] : l.final->functions) {
      if (tir::PrimFuncRef f = cast<tir::PrimFunc>(func)) kernels.kernels.push_back({name, f});
    }
    source.levels.push_back(std::move(kernels));
  }
  codegen::build_library(source, path);
}

}  // namespace sator::driver
