#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "driver/program.h"

namespace sator::cli {

namespace {

struct BuildArguments {
  std::string file, output, target = "llvm", rules = "default";
  std::optional<std::string> debug_dump;
  std::vector<std::string> schedules, bounds;
  bool explain = false;
};

void run(const BuildArguments& a, Streams& io) {
  const ModuleRef module = read_program(a.file, io.in);
  std::vector<driver::ScheduleText> schedules;
  for (const std::string& file : a.schedules) schedules.push_back({read_file(file), file});
  driver::CompileOptions options{
      .target = Target::parse(a.target), .bounds = bounds_of(a.bounds), .default_schedules = a.rules != "none"};
  if (a.rules == "dlight")
    fail({.what = text("--rules dlight for ", a.target),
          .needs = "a GPU: DLight's rules bind loops to its threads",
          .hint = "leave it out for the rules of CPUs, or give --rules none"});
  if (a.debug_dump) options.debug_dump = *a.debug_dump;
  const auto start = std::chrono::steady_clock::now();
  const driver::Compiled compiled = driver::build_program(module, schedules, options, a.output);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  io.json = {{"output", a.output}, {"build_s", seconds}, {"functions", nlohmann::json::array()}};
  for (const std::string& name : driver::public_functions(*compiled.phase3)) {
    const std::string signature = driver::describe(driver::signature_of(*compiled.phase3, name));
    io.out << signature << "\n";
    io.json["functions"].push_back({{"name", name}, {"signature", signature}});
  }
  for (const rules::AppliedSchedule& schedule : compiled.schedules) {
    if (!a.explain) break;
    io.out << rules::words_of(schedule);
    io.json["schedules"].push_back(json_of(schedule));
  }
  char line[80];
  std::snprintf(line, sizeof line, "built in %.2f s: ", seconds);
  io.out << line << a.output << "\n";
}

}  // namespace

Command build_command() {
  auto a = std::make_shared<BuildArguments>();
  return {.name = "build",
          .does = "builds a program in TVMScript to a library, whose functions `sator run` calls",
          .options = {{.name = "FILE",
                       .help = "tensor programs, graphs, or a module of both; - for standard input",
                       .into = &a->file,
                       .required = true},
                      {.name = "-o,--output FILE", .help = "the library, out.so", .into = &a->output, .required = true},
                      {"--target TARGET", kTargetHelp, &a->target},
                      {"--schedule TRACE",
                       "steps of a schedule, as a trace prints; what they change is left as they leave it",
                       &a->schedules},
                      {.name = "--rules NAME",
                       .help = "what schedules the other tensor functions",
                       .into = &a->rules,
                       .choices = {"default", "dlight", "none"}},
                      {"--bounds LIST", "upper bounds of symbolic sizes, n=512,batch=8", &a->bounds},
                      {"--debug-dump DIR", "write the program after each phase there", &a->debug_dump},
                      {"--explain-schedule",
                       "per function: block, rule, normal form, steps, and why other rules declined",
                       &a->explain}},
          .run = [a](Streams& io) { run(*a, io); },
          .details = "docs/programs.md shows a program from its text to its cost."};
}

}  // namespace sator::cli
