#include <memory>
#include <nlohmann/json.hpp>

#include "base/figures.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "driver/pipeline.h"

namespace sator::cli {

namespace {

using nlohmann::json;

struct PassesArguments {
  std::string target = "llvm";
};

void print_machine(const Target& target, Streams& io) {
  io.out << target.spelling() << ": " << target.kind().does << "\n";
  json levels = json::array();
  for (const target::CpuLevel* level : target.levels()) {
    io.out << "  level " << level->name << ": " << level->does << "\n";
    levels.push_back(level->name);
  }
  io.json["target"] = target.spelling();
  io.json["kind"] = target.kind().name;
  io.json["keys"] = target.keys();
  io.json["levels"] = std::move(levels);
  io.out << "\nmemory scopes\n";
  for (const MemoryScope& scope : target.scopes()) {
    io.out << "  " << pad_right(scope.name, 20) << scope.does << "\n";
    io.json["scopes"].push_back(scope.name);
  }
  if (!target.limits().empty()) io.out << "\nlimits\n";
  for (const TargetLimit& limit : target.limits()) {
    io.out << "  " << pad_right(limit.name, 32) << grouped(limit.value) << (limit.unit.empty() ? "" : " ") << limit.unit
           << "\n";
    io.json["limits"][limit.name] = limit.value;
  }
}

void print_page(const driver::Backend& backend, Streams& io) {
  for (const driver::Phase& phase : backend.phases) {
    io.out << "\nphase " << phase.number << ": " << phase.does << "\n";
    json steps = json::array();
    for (const driver::Step& step : phase.steps) {
      const std::string does = step.skipped.empty() ? driver::step_named(step.name).does : "not: " + step.skipped;
      io.out << "  " << pad_right(step.name, 36) << does << (step.per_level ? ", for each level" : "") << "\n";
      steps.push_back({{"name", step.name}, {"runs", step.skipped.empty()}, {"does", does}});
    }
    io.json["phases"].push_back({{"number", phase.number}, {"does", phase.does}, {"steps", std::move(steps)}});
  }
  io.out << "\nrules that schedule, in the order in which they are tried\n";
  for (const driver::RuleName& rule : backend.rules) {
    io.out << "  " << pad_right(rule.name, 24) << rule.does << "\n";
    io.json["rules"].push_back(rule.name);
  }
  if (!backend.lowering.empty()) io.out << "\nlowering of each tensor function\n";
  for (const passes::LowerPass& pass : backend.lowering) {
    io.out << "  " << pad_right(pass.name, 40) << pass.does << "\n";
    io.json["lowering"].push_back(pass.name);
  }
  io.out << "\nemitter\n  " << backend.emitter << "\n";
  io.json["emitter"] = backend.emitter;
}

void run(const PassesArguments& a, Streams& io) {
  const Target target = Target::parse(a.target);
  print_machine(target, io);
  if (const driver::Backend* backend = driver::find_backend(target)) return print_page(*backend, io);
  io.out << "\nnothing is built for it: programs for it are parsed, printed, scheduled and interpreted\n";
}

}  // namespace

Command passes_command() {
  auto a = std::make_shared<PassesArguments>();
  return {.name = "passes",
          .does = "prints what a target is, and all steps from a module to what runs there",
          .options = {{"--target TARGET", kTargetHelp, &a->target}},
          .run = [a](Streams& io) { run(*a, io); },
          .details = "`sator opt FILE --passes NAME,...` runs steps by name; `sator opt --list` lists them all."};
}

}  // namespace sator::cli
