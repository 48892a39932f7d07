// From a module to a model library, or to a program that runs in this process.
#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "driver/pipeline.h"
#include "rules/cpu.h"
#include "runtime/bytecode.h"
#include "target/target.h"

namespace sator::driver {

struct CompileOptions {
  Target target = Target::parse("llvm");
  std::map<std::string, int64_t> bounds;  ///< upper bounds of symbolic sizes
  std::filesystem::path debug_dump;       ///< folder for debug-phase0.py ... debug-final.py; empty: none
  bool each_pass = false;                 ///< also pass-001-NAME.py, ... there, after each pass
  std::string source_hash;                ///< of everything that shaped the module, for the library
  std::string metadata_json = "{}";       ///< of the model, for the library
  /// Functions as schedules of the user's left them (scheduled_functions). The program stands as it was written until
  /// phase 3; then they take their places, and no rule schedules them.
  std::map<std::string, Func> scheduled = {};
  /// Functions take the parameters that they were written with, weights too; no transform_params is made.
  bool keeps_parameters = false;
  /// Whether rules schedule what nobody did.
  bool default_schedules = true;
  /// What runs on the tensor programs while they are lowered, by TVM's phases: before it (0), once buffers are flat (1), once
  /// loops are unrolled (2), behind all (3). For each level of instructions.
  std::map<int, std::function<ModuleRef(const ModuleRef&)>> at_phases_of_lowering = {};
};

/// Writes the program after each pass: pass-001-NAME.py, ... in the folder. Errors: a file cannot be written.
AfterPass pass_writer(std::filesystem::path folder);

/// The tensor programs that differ from those of the module before, by name.
std::map<std::string, Func> scheduled_functions(const Module& before, const Module& after);

/// The module as one instruction-set level has it: schedules differ, names, signatures and graphs do not.
struct LevelModules {
  const target::CpuLevel* level = nullptr;
  ModuleRef scheduled;  ///< phase 4
  ModuleRef final;      ///< phase 5
};

/// What the compilation leaves.
///   schedules  how the best level's kernels follow from the functions of phase 3
struct Compiled {
  ModuleRef phase3;                  ///< tensor functions before any chip's schedule: what the cost engine reads
  std::vector<LevelModules> levels;  ///< best first
  ModuleRef scheduled;               ///< phase 4 of the best level
  ModuleRef final;                   ///< phase 5 of the best level
  Ref<runtime::Executable> executable;
  std::vector<rules::AppliedSchedule> schedules;
};

/// Phases 0 to 3: the program as the cost engine reads it. Errors: those of the passes.
ModuleRef to_phase3(ModuleRef module, const CompileOptions& options);

/// Phases 0 to 4 for a GPU, as TensorIR; `log` hears how each function was scheduled. Errors: those of the passes.
ModuleRef to_schedules(ModuleRef module, const CompileOptions& options, const rules::ScheduleLog& log);

/// Phases 0 to 5 for a CPU. Errors: those of the passes; a target for which nothing is built; InternalError names the phase and pass.
Compiled compile(ModuleRef module, const CompileOptions& options);

/// Machine code of all kernels for all levels, with the bytecode and metadata, as one model library (a `.so`).
/// Errors: the file cannot be written; the linker is missing (the message says what to install).
void write_library(const Compiled& compiled, const CompileOptions& options, const std::filesystem::path& path);

}  // namespace sator::driver
