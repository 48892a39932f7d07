#include "driver/compile.h"

#include "base/error.h"
#include "base/file.h"
#include "codegen/library.h"
#include "codegen/vm_codegen.h"
#include "passes/lower/lower.h"
#include "passes/run.h"
#include "relax/nodes.h"
#include "relax/print.h"
#include "rules/default_schedule.h"
#include "target/nvidia.h"
#include "tir/nodes.h"

namespace sator::driver {

namespace {

void dump(const CompileOptions& options, const std::string& name, const ModuleRef& module) {
  if (options.debug_dump.empty()) return;
  write_file(options.debug_dump / ("debug-" + name + ".py"), relax::to_script(*module) + "\n");
}

/// The passes by phase, and those left out, with the reason.
void dump_passes(const CompileOptions& options) {
  if (options.debug_dump.empty()) return;
  std::string out;
  for (const Phase& phase : backend_of(options.target).phases) {
    out += text("phase ", phase.number, ": ", phase.does, "\n");
    for (const Step& step : phase.steps)
      out += step.skipped.empty() ? text("  ", step.name, "\n") : text("  not ", step.name, ": ", step.skipped, "\n");
  }
  write_file(options.debug_dump / "passes.txt", out);
}

AfterPass each_pass_of(const CompileOptions& options) {
  return options.debug_dump.empty() || !options.each_pass ? AfterPass() : pass_writer(options.debug_dump);
}

passes::PassContext context_of(const CompileOptions& options) {
  passes::PassContext ctx{.bounds = options.bounds, .target = options.target, .scheduled = options.scheduled};
  if (!options.default_schedules) ctx.config[rules::kDefaultSchedule] = int_imm(0);
  return ctx;
}

/// The steps of the phases from kSchedulePhase on that are the same for all levels.
ModuleRef before_levels(ModuleRef module, const passes::PassContext& ctx, bool keeps_parameters,
                        const AfterPass& after) {
  for (const Step& step : backend_of(*ctx.target).phases.at(kSchedulePhase).steps) {
    if (step.per_level) break;
    if (!step.skipped.empty() || (keeps_parameters && step.changes_parameters)) continue;
    module = passes::run_pass(step_named(step.name), module, ctx);
    if (after) after(step.name, module);
  }
  return module;
}

/// The rest of that phase, for one level.
ModuleRef scheduled_for(const target::CpuLevel& level, const ModuleRef& module, const passes::PassContext& given,
                        const rules::ScheduleLog& log) {
  passes::PassContext ctx = given;
  ctx.target = Target::of_levels({&level});
  ModuleRef out = rules::apply_default_schedule(module, ctx, log);
  passes::require_well_formed(text("the schedule for ", level.name), *out, *module);
  return out;
}

/// The tensor programs lowered as far as the last of these phases asks; code generation does the rest.
ModuleRef with_phases_of_lowering(const ModuleRef& module, const CompileOptions& options) {
  const auto& phases = options.at_phases_of_lowering;
  if (phases.empty()) return module;
  std::map<std::string, Func> others, programs;
  for (const auto& [name, func] : module->functions) (func.as<tir::PrimFunc>() ? programs : others).emplace(name, func);
  const passes::LowerOptions lowering{.target = options.target};
  auto run_phase_of = [&](int phase) {
    const auto at = phases.find(phase);
    if (at == phases.end()) return;
    const ModuleRef before = make<Module>(programs, module->attrs, module->global_infos);
    const ModuleRef after = at->second(before);
    passes::require_well_formed(text("phase ", phase, " of tir.add_lower_pass"), *after, *before);
    programs = after->functions;
  };
  run_phase_of(0);
  const std::span<const passes::LowerPass> steps = passes::lower_passes();
  const int last = phases.rbegin()->first;
  for (size_t i = 0; i < steps.size() && last > 0; ++i) {
    for (auto& [name, func] : programs)
      if (const tir::PrimFuncRef f = cast<tir::PrimFunc>(func)) func = passes::run_lower_pass(steps[i], f, lowering);
    if (i > 0 && steps[i - 1].name == "FlattenBuffer") run_phase_of(1);  // which Simplify follows
    if (steps[i].name == "UnrollLoop") run_phase_of(2);
  }
  run_phase_of(3);
  programs.merge(others);
  return make<Module>(std::move(programs), module->attrs, module->global_infos);
}

/// Graphs that others may call, by the names that the module knows them by, whatever they were called on their own.
ModuleRef with_names_of_module(const ModuleRef& module) {
  ModuleRef out = module;
  for (const auto& [name, func] : module->functions) {
    const auto f = cast<relax::Function>(func);
    const auto symbol = f ? string_attr(f->attrs, "global_symbol") : std::nullopt;
    if (!symbol || *symbol == name) continue;
    Attrs attrs = f->attrs;
    attrs["global_symbol"] = string_imm(name);
    out = with_function(std::move(out), name, with(f, &relax::Function::attrs, std::move(attrs)));
  }
  return out;
}

ModuleRef through_phase3(ModuleRef module, const CompileOptions& options, const AfterPass& after) {
  module = with_names_of_module(module);
  for (const Phase& phase : backend_of(options.target).phases) {
    if (phase.number >= kSchedulePhase) break;
    module = run_phase(phase, module, context_of(options), after);
    dump(options, text("phase", phase.number), module);
  }
  return module;
}

}  // namespace

AfterPass pass_writer(std::filesystem::path folder) {
  return [folder = std::move(folder), number = 0](const std::string& pass, const ModuleRef& after) mutable {
    std::string digits = std::to_string(++number);
    digits.insert(0, digits.size() < 3 ? 3 - digits.size() : 0, '0');
    write_file(folder / text("pass-", digits, "-", pass, ".py"), relax::to_script(*after) + "\n");
  };
}

std::map<std::string, Func> scheduled_functions(const Module& before, const Module& after) {
  std::map<std::string, Func> out;
  for (const auto& [name, func] : after.functions) {
    auto at = before.functions.find(name);
    if (func.as<tir::PrimFunc>() && at != before.functions.end() && at->second != func) out.emplace(name, func);
  }
  return out;
}

ModuleRef to_phase3(ModuleRef module, const CompileOptions& options) {
  return through_phase3(std::move(module), options, each_pass_of(options));
}

ModuleRef to_schedules(ModuleRef module, const CompileOptions& options, const rules::ScheduleLog& log) {
  const passes::PassContext ctx = context_of(options);
  dump_passes(options);
  const AfterPass after = each_pass_of(options);
  module = through_phase3(std::move(module), options, after);
  module = passes::run_pass(step_named("PlaceScheduledFunctions"), module, ctx);
  if (after) after("PlaceScheduledFunctions", module);
  ModuleRef out = rules::apply_default_schedule(module, ctx, log);
  passes::require_well_formed(text("the schedule for ", options.target.spelling()), *out, *module);
  if (after) after("ApplyDefaultSchedule", out);
  dump(options, "phase4", out);
  return out;
}

/// Kernels return nothing: a number that one returns becomes a parameter, which vm_codegen gives it.
static ModuleRef with_returns_stored(const ModuleRef& module) {
  std::map<std::string, Func> functions = module->functions;
  for (auto& [name, func] : functions)
    if (const tir::PrimFuncRef f = cast<tir::PrimFunc>(func)) func = passes::return_by_store(f, {});
  return functions == module->functions ? module : make<Module>(functions, module->attrs, module->global_infos);
}

Compiled compile(ModuleRef module, const CompileOptions& options) {
  const passes::PassContext ctx = context_of(options);
  const Backend& backend = backend_of(options.target);
  if (target::nvidia_gpu(options.target.config()))
    fail({.what = text("nothing that runs is built for ", options.target.spelling(), ": ", options.target.kind().does),
          .needs = "a CPU",
          .hint = "`sator build -o FILE.py` writes the program that DLight's rules schedule for it"});
  if (!options.target.is_cpu())
    fail({.what = text("nothing that runs is built for ", options.target.spelling(), ": it is only described"),
          .needs = "a CPU",
          .hint = "build for llvm; `sator run --chip` says what the program costs there"});
  Compiled out;
  dump_passes(options);
  const AfterPass after = each_pass_of(options);
  out.phase3 = through_phase3(std::move(module), options, after);
  for (const auto& [name, func] : out.phase3->functions) {
    const tir::PrimFunc* f = func.as<tir::PrimFunc>();
    try {
      if (f) passes::require_indices(*f);
    } catch (Error& e) {
      if (e.reason.where.empty()) e.reason.where = text("in function ", name);
      throw;
    }
  }
  module = before_levels(out.phase3, ctx, options.keeps_parameters, after);
  for (const target::CpuLevel* level : options.target.levels()) {
    rules::ScheduleLog log;
    if (out.levels.empty()) log = [&](const rules::AppliedSchedule& applied) { out.schedules.push_back(applied); };
    LevelModules l{level, scheduled_for(*level, module, ctx, log), nullptr};
    l.final = l.scheduled;
    const AfterPass of_best = out.levels.empty() ? after : AfterPass();
    if (of_best) of_best("ApplyDefaultSchedule", l.scheduled);
    for (const Phase& phase : backend.phases)
      if (phase.number > kSchedulePhase) l.final = run_phase(phase, l.final, ctx, of_best);
    l.final = with_returns_stored(with_phases_of_lowering(l.final, options));
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
