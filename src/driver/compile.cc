#include "driver/compile.h"

#include "base/file.h"
#include "codegen/library.h"
#include "codegen/vm_codegen.h"
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

}  // namespace

Compiled compile(ModuleRef module, const CompileOptions& options) {
  passes::PassContext ctx{.bounds = options.bounds, .target = "llvm", .explain = options.explain};
  Compiled out;
  for (const Phase& phase : phases()) {
    if (phase.number == 4) {
      out.phase3 = module;
      module = run_phase(phase, rules::attach_param_layouts(module, ctx), ctx);
      for (const target::CpuLevel* level : levels_of(options))
        out.levels.push_back({level, rules::schedule_for_cpu(module, *level), nullptr});
      out.scheduled = module = out.levels.front().scheduled;
    } else if (phase.number > 4) {
      for (LevelModules& l : out.levels) l.final = run_phase(phase, l.final ? l.final : l.scheduled, ctx);
      module = out.levels.front().final;
    } else {
      module = run_phase(phase, module, ctx);
    }
    dump(options, text("phase", phase.number), module);
  }
  dump(options, "final", module);
  out.final = module;
  out.executable = codegen::vm_codegen(module);
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
