// A user's own program: built to a library, opened again, its functions called.
#pragma once

#include <filesystem>

#include "driver/compile.h"
#include "driver/signature.h"
#include "runtime/library.h"

namespace sator::driver {

/// Steps of a schedule as text: a trace as it prints, or lines of a script (schedule/script.h).
struct ScheduleText {
  std::string text, name;  ///< the name is the file's, for messages
};

/// The module after the steps, which name the functions that they are about (`get_block("C", func_name="f")`, `work_on("f")`);
/// without a name they are about `main`, or the only tensor function. Errors: as of the primitives.
ModuleRef with_schedule(const ModuleRef& module, const ScheduleText& schedule);

/// Compiles a module under the user's schedules, and writes it with all that opening, calling and costing it asks for: its
/// functions as they were in phase 3, and the steps of the rules that scheduled them.
/// Errors: those of with_schedule, compile and write_library.
Compiled build_program(const ModuleRef& module, const std::vector<ScheduleText>& schedules, CompileOptions options,
                       const std::filesystem::path& path);

/// The module for a GPU, its tensor functions under the user's schedules and the rules: all that can be said without a code
/// generator. `log` hears of each function that a rule scheduled. Errors: those of with_schedule and to_schedules.
ModuleRef schedule_program(const ModuleRef& module, const std::vector<ScheduleText>& schedules, CompileOptions options,
                           const rules::ScheduleLog& log);

/// A library that build_program (or the compilation of a model) wrote.
struct OpenProgram {
  Ref<runtime::ModelLibrary> compiled;
  ModuleRef phase3;  ///< what its functions take and give, and what they cost
};

/// Errors: those of ModelLibrary::open; a library without a program's text.
OpenProgram open_program(const std::filesystem::path& path);

/// What a call left: results by name, in order. Those that a graph function returns are "result", of a tuple "result[0]".
struct NamedResult {
  std::string name;
  Ref<runtime::Tensor> tensor;
};

/// Calls a function; what is no tensor (a number, a shape) becomes one. The call's own tensors are handed on: a tensor
/// program's results are among them. Errors: the machine's; a result that no tensor can hold.
std::vector<NamedResult> call(runtime::VirtualMachine& vm, const OpenProgram& program, const Signature& signature,
                              const PreparedCall& prepared);

}  // namespace sator::driver
