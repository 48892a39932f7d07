#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "driver/program.h"
#include "passes/option.h"
#include "passes/run.h"
#include "relax/ops/table.h"
#include "relax/print.h"

namespace sator::cli {

namespace {

struct OptArguments {
  std::optional<std::string> file, attach, output, target, debug_dump;
  std::vector<std::string> passes, bounds, config, schedules;
  bool list = false, ops = false, explain = false, explain_schedule = false, each_pass = false;
};

void list_passes(Streams& io) {
  size_t widest = 0;
  for (const passes::Pass& p : driver::all_passes()) widest = std::max(widest, p.name.size());
  for (const passes::Pass& p : driver::all_passes()) {
    io.json.push_back({{"name", p.name}, {"does", p.does}});
    io.out << p.name << std::string(widest + 2 - p.name.size(), ' ') << p.does << "\n";
  }
}

void list_ops(Streams& io) {
  for (const relax::OpDef& op : relax::op_table()) {
    io.json.push_back({{"name", op.name}, {"signature", relax::signature(op)}});
    io.out << "R." << relax::signature(op) << "\n";
  }
}

void run(const OptArguments& a, Streams& io) {
  if (a.list) return list_passes(io);
  if (a.ops) return list_ops(io);
  if (!a.file)
    fail({.what = "sator opt: FILE is missing",
          .needs = "a file with TVMScript, or - for standard input",
          .hint = "`sator opt --list` lists the passes"});
  std::vector<const passes::Pass*> chosen;
  for (const std::string& name : listed_words(a.passes)) chosen.push_back(&driver::step_named(name));
  passes::PassContext ctx{.bounds = bounds_of(a.bounds), .config = passes::options_from_text(join(a.config, ","))};
  if (a.target) ctx.target = Target::parse(*a.target);
  if (a.explain || a.explain_schedule)
    ctx.explain = [&](const std::string& pass, const std::string& message) {
      if (a.explain || pass == "ApplyDefaultSchedule") io.notes << pass << ": " << message << "\n";
    };
  if (a.attach) ctx.additional = read_program(*a.attach, io.in);
  driver::AfterPass after;
  if (each_pass_of(a.each_pass, a.debug_dump)) after = driver::pass_writer(*a.debug_dump);
  ModuleRef module = read_program(*a.file, io.in);
  check_bounds(ctx.bounds, *module);
  auto dump = [&](const char* name) {
    if (a.debug_dump) write_file(std::filesystem::path(*a.debug_dump) / name, relax::to_script(*module) + "\n");
  };
  dump("debug-input.py");
  io.json["passes"] = nlohmann::json::array();
  for (const passes::Pass* pass : chosen) {
    ModuleRef next = passes::run_pass(*pass, module, ctx);
    io.json["passes"].push_back({{"name", pass->name}, {"changed", next != module}});
    module = std::move(next);
    if (after) after(pass->name, module);
  }
  for (const std::string& schedule : a.schedules)
    module = driver::with_schedule(module, {read_file(schedule), schedule});
  dump("debug-final.py");
  for (const auto& [name, func] : module->functions) io.json["functions"].push_back(name);
  std::string script = relax::to_script(*module) + "\n";
  if (a.output)
    write_file(*a.output, script);
  else
    io.out << script;
}

}  // namespace

Command opt_command() {
  auto a = std::make_shared<OptArguments>();
  return {
      .name = "opt",
      .does = "runs passes on a program in TVMScript and prints what they make of it",
      .options =
          {{"FILE", "tensor programs, graphs, or a module of both; - for standard input", &a->file},
           {"--passes LIST", "names of passes, separated by commas, in the order in which they run", &a->passes},
           {"--schedule TRACE",
            "steps of a schedule, as a trace prints, which are taken after the passes",
            &a->schedules},
           {"-o,--output FILE", "write the result there instead of printing it", &a->output},
           {"--bounds LIST", "the largest values of symbolic sizes: seq_len=512,batch=8", &a->bounds},
           {"--config LIST", "options of passes: NAME=1, NAME=word, NAME=[...] or {...}; commas between", &a->config},
           {"--target TARGET", text("what is compiled for: ", kTargetHelp), &a->target},
           {"--attach FILE", "tensor programs that AttachAdditionalPrimFuncs adds", &a->attach},
           {"--debug-dump DIR", "write the program there: as it was read, and as it is in the end", &a->debug_dump},
           {"--each-pass", kEachPassHelp, &a->each_pass},
           {"--explain", "say what passes did or did not do, and why", &a->explain},
           {"--explain-schedule",
            "of ApplyDefaultSchedule, per function: block, rule, normal form, steps, and why other rules declined",
            &a->explain_schedule},
           {"--list", "list the passes", &a->list},
           {"--ops", "list the ops of graphs with their arguments", &a->ops}},
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Without --passes the program is checked and printed as it is. The program is checked again after each "
          "pass.",
      .also = {"passes", "optimize", "transform"}};
}

}  // namespace sator::cli
