#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "driver/program.h"
#include "relax/print.h"
#include "target/nvidia.h"

namespace sator::cli {

namespace {

struct BuildArguments {
  std::string file, output, target = "llvm", rules = "default";
  std::optional<std::string> debug_dump;
  std::vector<std::string> schedules, bounds;
  bool explain = false, each_pass = false;
};

void explain(const std::vector<rules::AppliedSchedule>& schedules, Streams& io) {
  for (const rules::AppliedSchedule& schedule : schedules) {
    io.out << rules::words_of(schedule);
    io.json["schedules"].push_back(json_of(schedule));
  }
}

/// What a library offers: one line a function.
void list_functions(const Module& module, Streams& io) {
  io.json["functions"] = nlohmann::json::array();
  for (const std::string& name : driver::public_functions(module)) {
    const std::string signature = driver::describe(driver::signature_of(module, name));
    io.out << signature << "\n";
    io.json["functions"].push_back({{"name", name}, {"signature", signature}});
  }
}

/// No code is made for GPUs: their programs are written as the rules schedule them.
std::vector<rules::AppliedSchedule> write_scheduled(const BuildArguments& a, const ModuleRef& module,
                                                    const std::vector<driver::ScheduleText>& schedules,
                                                    const driver::CompileOptions& options, Streams& io) {
  if (!a.output.ends_with(".py"))
    fail({.what = text("nothing that runs is built for ", a.target, ": ", options.target.kind().does),
          .needs = "a CPU",
          .hint = "-o FILE.py writes the program that DLight's rules schedule for it; -o FILE.so is built for llvm"});
  std::vector<rules::AppliedSchedule> out;
  const ModuleRef scheduled =
      driver::schedule_program(module, schedules, options, [&](const rules::AppliedSchedule& s) { out.push_back(s); });
  write_file(a.output, relax::to_script(*scheduled) + "\n");
  list_functions(*scheduled, io);
  return out;
}

void run(const BuildArguments& a, Streams& io) {
  const ModuleRef module = read_program(a.file, io.in);
  std::vector<driver::ScheduleText> schedules;
  for (const std::string& file : a.schedules) schedules.push_back({read_file(file), file});
  driver::CompileOptions options{
      .target = Target::parse(a.target), .bounds = bounds_of(a.bounds), .default_schedules = a.rules != "none"};
  check_bounds(options.bounds, *module);
  options.each_pass = each_pass_of(a.each_pass, a.debug_dump);
  if (a.debug_dump) options.debug_dump = *a.debug_dump;
  const bool is_gpu = target::nvidia_gpu(options.target.config()).has_value();
  if (a.rules == "dlight" && !is_gpu)
    io.notes << "note: DLight's rules bind loops to a GPU's threads, and take nothing for " << a.target
             << ": the rules for CPUs schedule, as --rules default says\n";
  const auto start = std::chrono::steady_clock::now();
  std::vector<rules::AppliedSchedule> applied;
  if (is_gpu) {
    applied = write_scheduled(a, module, schedules, options, io);
  } else {
    driver::Compiled compiled = driver::build_program(module, schedules, options, a.output);
    list_functions(*compiled.phase3, io);
    applied = std::move(compiled.schedules);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  io.json["output"] = a.output;
  io.json["build_s"] = seconds;
  if (a.explain) explain(applied, io);
  char line[80];
  std::snprintf(line, sizeof line, "%s in %.2f s: ", is_gpu ? "scheduled" : "built", seconds);
  io.out << line << a.output << "\n";
}

}  // namespace

Command build_command() {
  auto a = std::make_shared<BuildArguments>();
  return {
      .name = "build",
      .does = "builds a program in TVMScript to a library, whose functions `sator run` calls",
      .options =
          {{.name = "FILE",
            .help = "tensor programs, graphs, or a module of both; - for standard input",
            .into = &a->file,
            .required = true},
           {.name = "-o,--output FILE",
            .help = "the library, out.so; for an NVIDIA GPU the scheduled program, out.py",
            .into = &a->output,
            .required = true,
            .writes = true},
           {"--target TARGET", kTargetHelp, &a->target},
           {"--schedule TRACE",
            "steps of a schedule, as a trace prints; what they change is left as they leave it",
            &a->schedules},
           {.name = "--rules NAME",
            .help =
                "what schedules the other tensor functions: the target's rules, which are DLight's for NVIDIA's GPUs",
            .into = &a->rules,
            .choices = {"default", "dlight", "none"}},
           {"--bounds LIST", "upper bounds of symbolic sizes, n=512,batch=8", &a->bounds},
           {"--debug-dump DIR", "write the program after each phase there", &a->debug_dump},
           {"--each-pass", kEachPassHelp, &a->each_pass},
           {"--explain-schedule",
            "per function: block, rule, normal form, steps, and why other rules declined",
            &a->explain}},
      .run = [a](Streams& io) { run(*a, io); },
      .details = "docs/programs.md shows a program from its text to its cost."};
}

}  // namespace sator::cli
