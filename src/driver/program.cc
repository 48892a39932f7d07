#include "driver/program.h"

#include "base/error.h"
#include "base/json.h"
#include "relax/parse.h"
#include "relax/print.h"
#include "runtime/vm.h"
#include "schedule/script.h"

#include <nlohmann/json.hpp>

namespace sator::driver {

using runtime::Tensor;
using runtime::Value;

namespace {

void add_results(const Value& value, const std::string& name, std::vector<NamedResult>& out) {
  if (Ref<Tensor> tensor = value.ref<Tensor>()) {
    out.push_back({name, tensor});
  } else if (const auto* tuple = value.as<runtime::Tuple>()) {
    for (size_t i = 0; i < tuple->fields.size(); ++i) add_results(tuple->fields[i], text(name, "[", i, "]"), out);
  } else if (const auto* shape = value.as<runtime::Shape>()) {
    const std::vector<int64_t> extents(shape->dims.begin(), shape->dims.end());
    out.push_back({name, Tensor::of(extents, {static_cast<int64_t>(extents.size())}, i64)});
  } else if (const int64_t* integer = value.as_int()) {
    out.push_back({name, Tensor::of(std::vector<int64_t>{*integer}, {}, i64)});
  } else if (const double* real = value.as_float()) {
    out.push_back({name, Tensor::of(std::vector<double>{*real}, {}, f64)});
  } else if (!value.is_null()) {
    fail({.what = text(name, " is ", value.describe()),
          .needs = "tensors, numbers, shapes, and tuples of them",
          .hint = "return what a file can hold"});
  }
}

std::map<std::string, Func> scheduled_by(const std::vector<ScheduleText>& schedules, const ModuleRef& module) {
  ModuleRef scheduled = module;
  for (const ScheduleText& s : schedules) scheduled = with_schedule(scheduled, s);
  return scheduled_functions(*module, *scheduled);
}

}  // namespace

ModuleRef with_schedule(const ModuleRef& module, const ScheduleText& schedule) {
  schedule::Schedule s(module);
  const bool is_json = trim(schedule.text).starts_with("[");
  const std::string script =
      is_json ? schedule::script_of_json({parse_json(schedule.text, schedule.name), schedule.name}) : schedule.text;
  schedule::Script(s).run(script::parse(script, is_json ? schedule.name + " as a script," : schedule.name));
  return s.module();
}

Compiled build_program(const ModuleRef& module, const std::vector<ScheduleText>& schedules, CompileOptions options,
                       const std::filesystem::path& path) {
  options.keeps_parameters = true;
  for (auto& [name, func] : scheduled_by(schedules, module)) options.scheduled.insert_or_assign(name, func);
  Compiled compiled = compile(module, options);
  Json kernels = Json::object();
  for (const rules::AppliedSchedule& s : compiled.schedules)
    kernels[s.function] = {{"rule", s.rule}, {"trace", s.trace}};
  const Json metadata = {{"phase3", relax::to_script(*compiled.phase3)}, {"kernels", kernels}};
  options.metadata_json = metadata.dump();
  write_library(compiled, options, path);
  return compiled;
}

ModuleRef schedule_program(const ModuleRef& module, const std::vector<ScheduleText>& schedules, CompileOptions options,
                           const rules::ScheduleLog& log) {
  options.scheduled = scheduled_by(schedules, module);
  return to_schedules(module, options, log);
}

OpenProgram open_program(const std::filesystem::path& path) {
  OpenProgram out{.compiled = runtime::ModelLibrary::open(path)};
  const std::string source = text(path.filename().string(), ": metadata");
  const Json metadata = parse_json(out.compiled->metadata_json(), source);
  const std::string program = JsonAt(metadata, source).string_or("phase3", "");
  if (program.empty())
    fail({.what = text(path.string(), " does not say what its functions take"),
          .needs = "a library that `sator build` wrote",
          .hint = "build it again"});
  out.phase3 = relax::parse_module(program, text(path.filename().string(), ": phase 3"));
  return out;
}

std::vector<NamedResult> call(runtime::VirtualMachine& vm, const OpenProgram& program, const Signature& signature,
                              const PreparedCall& prepared) {
  const std::vector<Value> args = machine_arguments(*program.phase3, signature, prepared.leaves);
  std::vector<NamedResult> out;
  const Value result = vm.call(signature.function, args);
  if (!signature.is_tensor_program) {
    add_results(result, "result", out);
    return out;
  }
  for (size_t i = 0; i < signature.params.size(); ++i)
    if (signature.params[i].is_written) add_results(prepared.leaves[i], signature.params[i].name, out);
  return out;
}

}  // namespace sator::driver
