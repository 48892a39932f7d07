#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "base/error.h"
#include "base/owned_folder.h"
#include "cli/app.h"
#include "cli/chip_options.h"
#include "cli/commands.h"
#include "cli/matmul_options.h"
#include "cli/progress.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/chakra.h"
#include "dataflow/cost/cost_table.h"
#include "dataflow/cost/described_chip.h"
#include "dataflow/cost/function_cost.h"
#include "dataflow/counts/space_time.h"
#include "dataflow/programs/bound_statements.h"
#include "dataflow/programs/from_tir.h"
#include "dataflow/programs/matmul.h"
#include "formats/batch.h"
#include "formats/format.h"
#include "formats/tenet/answer.h"
#include "formats/tenet/program.h"
#include "formats/tenet/report.h"
#include "formats/timeloop/of_product.h"
#include "relax/parse.h"
#include "schedule/script.h"
#include "study/explain.h"
#include "study/phase.h"
#include "study/svg_space_time.h"

namespace sator::cli {

namespace {

struct EstimateArguments {
  std::optional<std::string> pe_array, mapping, statement, experiment, compat, batch, output, format;
  std::optional<std::string> workload, chip, scheme, chakra, timeloop;
  GoalArguments goal;
  ChipArguments changes;
  std::string directory = ".";
  std::optional<std::string> script, trace, picture;
  std::vector<std::string> files, sizes;
  int64_t threads = 2;
  bool explain = false, replace = false;
};

/// One of the tasks that the options name.
struct Task {
  const char* needs;  // the options that ask for it
  bool asked;
  void (*run)(const EstimateArguments& a, Streams& io);
};

/// Draws the first stamps of a problem into the file of --picture, if it is given.
void draw(const EstimateArguments& a, const dataflow::Problem& problem, const dataflow::Counts& counts, Streams& io) {
  if (!a.picture) return;
  write_file(*a.picture,
             study::svg_file(study::space_time_plot(
                 dataflow::space_time(problem), counts, text("space-time diagram of ", problem.statement.name))));
  io.notes << "written: " << *a.picture << "\n";
}

// --- TENET's three files

struct TenetFiles {
  std::string pe_array, mapping, statement;
};

TenetFiles files_of(const EstimateArguments& a) {
  if (!a.experiment) return {*a.pe_array, *a.mapping, *a.statement};
  // mapping, array, statement: names in this order, relative to a folder.
  const std::string content = read_file(*a.experiment);
  std::vector<std::string> names;
  for (std::string_view line : split(content, '\n'))
    for (std::string_view word : split(line, ' '))
      if (!trim(word).empty()) names.emplace_back(trim(word));
  if (names.size() < 3)
    fail({.what = text("an experiment file names ", names.size(), " files"),
          .needs = "three paths: mapping, PE array, statement",
          .hint = "write one on each line",
          .where = *a.experiment});
  const fs::path folder = a.directory;
  return {folder / names[1], folder / names[0], folder / names[2]};
}

[[noreturn]] void refuse_compat(const EstimateArguments& a, const std::string& given) {
  fail({.what = text("--compat ", *a.compat, " is given with ", given),
        .needs = "the files of the program that is imitated",
        .hint = "tenet and tenet-micro-tutorial go with TENET's files, scalesim with --format scalesim"});
}

void estimate_tenet(const EstimateArguments& a, Streams& io) {
  if (a.compat && !a.compat->starts_with("tenet")) refuse_compat(a, "TENET's files");
  const TenetFiles files = files_of(a);
  const std::string pe_array = read_file(files.pe_array), mapping = read_file(files.mapping),
                    statement = read_file(files.statement);
  const dataflow::TenetInput input =
      dataflow::parse_tenet({pe_array, mapping, statement, files.pe_array, files.mapping, files.statement});
  const dataflow::Counts counts = formats::tenet_counts(input);
  const std::vector<std::string> notes = formats::tenet_notes(input, counts);
  io.json = formats::tenet_answer(input, counts);
  io.json["notes"] = notes;
  if (!a.compat) {
    io.out << formats::tenet_table(input, counts);
  } else {
    const auto branch = *a.compat == "tenet" ? formats::TenetBranch::master : formats::TenetBranch::micro_tutorial;
    auto program = formats::as_tenet_prints(counts, input.hardware, branch);
    if (!program)
      fail({.what = "TENET's program divides by zero on this input",
            .needs = "a domain with an instance",
            .hint = "without --compat the figures are those that it means"});
    io.out << formats::tenet_program_text(*program, counts, true);
  }
  io.out.flush();
  draw(a, input.problem, counts, io);
  for (const std::string& note : notes) io.notes << "note: " << note << "\n";
}

// --- a scheduled function

/// A size that no function has is a slip.
template <class Sizes>
void check_sizes(const Sizes& sizes, const Module& module) {
  std::set<std::string> known;
  bool has_graphs = false;
  for (const auto& [name, func] : module.functions) {
    const auto* program = func.template as<tir::PrimFunc>();
    has_graphs |= !program;
    if (program) {
      const auto add = [&](const VarRef& v) {
        if (v->dtype.is_int()) known.insert(v->name);
      };
      for (const VarRef& v : program->params) add(v);
      for (const auto& [param, buffer] : program->buffer_map)
        for (const VarRef& v : vars_in(buffer)) add(v);
    }
  }
  for (const auto& [name, value] : sizes)
    if (!known.contains(name))
      fail({.what = text("--size ", name, "=", value, ": no function has a size of this name"),
            .needs = known.empty() ? "nothing: no size of its tensor programs is symbolic"
                                   : text("sizes of its tensor programs: ", join(known, ", ")),
            .hint = has_graphs ? "ops of graphs have no costs before `sator opt FILE --passes LegalizeOps -o OUT`"
                               : "correct the name, or leave the option out"});
}

/// The functions on a described chip, each as one kernel.
void cost_functions(const EstimateArguments& a, const Module& module, dataflow::FunctionFacts facts, Streams& io) {
  const dataflow::Goal goal = goal_of(a.goal);
  Chip described = dataflow::described_chip(*a.chip, changes_of(a.changes));
  check_goal(described, goal);
  dataflow::CostEngine engine(std::move(described), goal);
  for (const auto& [name, func] : module.functions) {
    const auto* program = func.as<tir::PrimFunc>();
    if (!program) continue;
    facts.name = name;
    const auto [cost, assumed] = dataflow::cost_of_function(engine, ref(*program), facts, goal);
    io.out << "function " << name << "\n" << dataflow::cost_table(cost, engine.chip()) << "\n";
    io.out.flush();
    nlohmann::json answer = dataflow::cost_json(cost, engine.chip());
    answer["function"] = name;
    for (const std::vector<std::string>* notes : {&cost.notes, &assumed})
      for (const std::string& note : *notes) io.notes << "note: " << note << "\n";
    for (const std::string& note : assumed) answer["notes"].push_back(note);
    io.json.push_back(std::move(answer));
  }
  if (io.json.empty())
    fail({.what = text(*a.script, " has no tensor program"),
          .needs = "a function with @T.prim_func",
          .hint = "`sator opt` lowers a graph to tensor programs"});
}

void estimate_script(const EstimateArguments& a, Streams& io) {
  dataflow::FunctionFacts facts;
  for (const std::string& given : a.sizes) {
    const size_t equals = std::min(given.find('='), given.size());
    facts.sizes[given.substr(0, equals)] =
        integers_of("--size", given.substr(std::min(equals + 1, given.size())), ',', 1, 0)[0];
  }
  schedule::Schedule schedule(relax::parse_module(read_file(*a.script), *a.script));
  if (a.trace) schedule::Script(schedule).run(script::parse(read_file(*a.trace), *a.trace));
  const ModuleRef& module = schedule.module();
  check_sizes(facts.sizes, *module);
  io.json = nlohmann::json::array();
  if (a.chip) return cost_functions(a, *module, std::move(facts), io);
  for (const auto& [name, func] : module->functions) {
    const auto* program = func.as<tir::PrimFunc>();
    if (!program) continue;
    facts.name = name;
    for (const dataflow::BoundStatement& bound : dataflow::bound_statements(*program, facts)) {
      const dataflow::TenetInput input{bound.problem(), {}};
      const dataflow::Counts counts = formats::tenet_counts(input);
      io.out << "function " << name << ", statement " << bound.statement.name << "; space " << join(bound.axes, ", ")
             << "\n"
             << dataflow::tenet_mapping_text(input.problem) << formats::tenet_table(input, counts) << "\n";
      nlohmann::json answer = formats::tenet_answer(input, counts);
      answer["function"] = name;
      answer["statement"] = bound.statement.name;
      answer["space"] = bound.axes;
      io.json.push_back(std::move(answer));
    }
  }
  if (io.json.empty())
    fail({.what = text("no loop of ", *a.script, " is bound to an axis"),
          .needs = text("a tensor program with loops bound to ", join(dataflow::kSpaceAxes, ", ")),
          .hint = "schedule it first: bind(loop, \"blockIdx.x\")"});
}

// --- files of any format

void estimate_format(const EstimateArguments& a, Streams& io) {
  const formats::Format& format = formats::find_format(*a.format);
  nlohmann::json input = nlohmann::json::object();
  for (const std::string& given : a.files) {
    const size_t equals = given.find('=');
    if (equals == std::string::npos || equals == 0)
      fail({.what = text("--file ", given),
            .needs = text("KEY=FILE for each of ", format.takes),
            .hint = "as in --file config=scale.cfg"});
    const std::string key = given.substr(0, equals), value = given.substr(equals + 1);
    // Switches of a format are given as words.
    if (value == "true" || value == "false")
      input[key] = value == "true";
    else
      input[key] = read_file(value);
  }
  if (a.compat) {
    if (*a.compat != "scalesim" || format.name != *a.compat) refuse_compat(a, text("--format ", format.name));
    input["compat"] = *a.compat;
  }
  io.json = format.answer(input);
  io.out << io.json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

// --- many inputs

void estimate_batch(const EstimateArguments& a, Streams& io) {
  if (!a.output)
    fail({.what = "--batch is given without an output", .needs = "-o FILE", .hint = "name the file of the answers"});
  if (a.threads < 1)
    fail({.what = text("--threads ", a.threads),
          .needs = "one thread or more",
          .hint = "leave it out: two share the rows"});
  ProgressLines progress(io.notes);
  formats::BatchOptions options{.threads = static_cast<int>(std::min<int64_t>(a.threads, 64)),
                                .progress = [&](int64_t done, int64_t of) {
                                  if (of > 2000) progress(text("answering, ", done, " of ", of, " lines"), true);
                                }};
  const formats::BatchSummary summary = formats::answer_batch(*a.batch, *a.output, options);
  progress.end();
  io.out << summary.rows << " rows answered in " << *a.output;
  if (summary.refused > 0) io.out << ", " << summary.refused << " of them refused with the reason";
  io.out << "\n";
  io.json = {{"rows", summary.rows}, {"refused", summary.refused}};
}

// --- one matmul on a described chip

void write_timeloop(const EstimateArguments& a, const dataflow::KernelCost& cost, const Chip& chip, Streams& io) {
  const std::string& folder = *a.timeloop;
  for (const dataflow::StatementCost& s : cost.statements) {
    if (!s.on_array()) continue;
    const auto stated = formats::timeloop::input_of(s, chip);
    if (const Reason* why_not = std::get_if<Reason>(&stated)) fail(*why_not);
    const auto& input = std::get<formats::timeloop::Input>(stated);
    OwnedFolder(folder, "estimate", a.replace)
        .replace({{"architecture.yaml", architecture_text(input.architecture)},
                  {"problem.yaml", problem_text(input.workload)},
                  {"mapping.yaml", mapping_text(input.mapping, input.workload, input.architecture)}});
    io.notes << "written: " << folder << "/architecture.yaml, problem.yaml, mapping.yaml\n";
  }
}

void estimate_workload(const EstimateArguments& a, Streams& io) {
  if (!a.chip)
    fail({.what = "--workload is given without a chip",
          .needs = "--chip CHIP: a shipped name or a file",
          .hint = text("shipped are ", join(shipped_chips(), ", "))});
  const dataflow::Matmul matmul =
      matmul_of(integers_of("--workload", *a.workload, ',', 3, 1), a.scheme.value_or("int8-channel+a8"));
  const dataflow::ChipChanges changes = changes_of(a.changes);
  if (changes.tile) {
    const int64_t sizes[] = {matmul.i, matmul.j, matmul.k};
    for (size_t d = 0; d < 3; ++d)
      if ((*changes.tile)[d] > sizes[d])
        fail({.what = text("--tile ", join(*changes.tile, ","), ": ", "ijk"[d], " is ", sizes[d]),
              .needs = "tiles within the workload",
              .hint = "0 takes the whole of it"});
  }
  const dataflow::Goal goal = goal_of(a.goal);
  Chip described = dataflow::described_chip(*a.chip, changes);
  check_goal(described, goal);
  dataflow::CostEngine engine(std::move(described), goal);
  const dataflow::Kernel kernel = dataflow::matmul_kernel(matmul);
  const dataflow::KernelCost cost = engine.cost(kernel);
  io.out << "workload     Y[i,j] = X[i,k] * W[k,j], i " << matmul.i << ", j " << matmul.j << ", k " << matmul.k << "; "
         << a.scheme.value_or("int8-channel+a8") << "\n"
         << dataflow::cost_table(cost, engine.chip());
  if (a.explain) {
    const study::KernelRow row = study::kernel_row({"the workload", "", 1, {}}, kernel, cost, engine.chip());
    const study::ChipFacts facts = study::facts_of(engine.chip());
    for (study::Figure figure :
         {study::Figure::latency, study::Figure::energy, study::Figure::bytes, study::Figure::utilization}) {
      io.out << "\n";
      for (const std::string& line : study::explain_kernel(row, facts, figure)) io.out << line << "\n";
    }
  }
  io.out.flush();
  for (const std::string& note : cost.notes) io.notes << "note: " << note << "\n";
  io.json = dataflow::cost_json(cost, engine.chip());
  for (const dataflow::StatementCost& s : cost.statements)
    if (s.on_array()) {
      const dataflow::Problem problem = problem_at_pes(s, engine.chip());
      draw(a, problem, *s.counts, io);
    }
  if (a.timeloop) write_timeloop(a, cost, engine.chip(), io);
  if (!a.chakra) return;
  dataflow::TraceNode node{.name = "matmul", .seconds = cost.latency_s, .operations = 2 * cost.macs};
  for (const dataflow::StatementCost& s : cost.statements) node.operations += s.vector_ops;
  if (!cost.memories.empty()) node.bytes = cost.memories[0].read_bytes + cost.memories[0].write_bytes;
  write_file(*a.chakra, dataflow::chakra_trace({node}, version_line(), {{"chip", engine.chip().name}}));
  io.notes << "written: " << *a.chakra << "\n";
}

void run(const EstimateArguments& a, Streams& io) {
  const bool some_file = a.pe_array || a.mapping || a.statement;
  if (some_file && !(a.pe_array && a.mapping && a.statement))
    fail({.what = "one of TENET's three files is missing",
          .needs = "-p ARRAY -m MAPPING -s STATEMENT",
          .hint = "or an experiment file that names all three: -e FILE -d FOLDER"});
  const Task tasks[] = {{"-p -m -s", some_file, estimate_tenet},
                        {"-e", a.experiment.has_value(), estimate_tenet},
                        {"--format", a.format.has_value(), estimate_format},
                        {"--batch", a.batch.has_value(), estimate_batch},
                        {"--workload", a.workload.has_value(), estimate_workload},
                        {"--script", a.script.has_value(), estimate_script}};
  const Task* chosen = nullptr;
  std::vector<std::string> all;
  for (const Task& task : tasks) {
    all.emplace_back(task.needs);
    if (!task.asked) continue;
    if (chosen)
      fail({.what = text(chosen->needs, " and ", task.needs, " are given together"),
            .needs = "one of them",
            .hint = "run the command twice"});
    chosen = &task;
  }
  if (!chosen)
    fail({.what = "there is nothing to estimate",
          .needs = text("one of ", join(all, ", ")),
          .hint = "`sator estimate --help` says what each takes"});
  struct Companion {
    const char* option;
    bool given;
    const char* belongs_to;
    bool there;
  };
  const bool tenet = some_file || a.experiment, searched = a.workload || (a.script && a.chip);
  for (const Companion& c :
       {Companion{"--compat", a.compat.has_value(), "TENET's files, or --format scalesim", tenet || a.format},
        {"--file", !a.files.empty(), "--format", a.format.has_value()},
        {"--picture", a.picture.has_value(), "TENET's files or --workload", tenet || a.workload},
        {"--explain", a.explain, "--workload", a.workload.has_value()},
        {"--size", !a.sizes.empty(), "--script", a.script.has_value()},
        {"--trace", a.trace.has_value(), "--script", a.script.has_value()},
        {"-o", a.output.has_value(), "--batch", a.batch.has_value()},
        {"--chip", a.chip.has_value(), "--workload or --script", a.workload || a.script},
        {"--scheme", a.scheme.has_value(), "--workload", a.workload.has_value()},
        {"--pe", a.changes.pe.has_value(), "--workload, or --script with --chip", a.workload || (a.script && a.chip)},
        {"--dataflow", a.changes.dataflow.has_value(), "--workload, or --script with --chip", searched},
        {"--tile", a.changes.tile.has_value(), "--workload, or --script with --chip", searched},
        {"--objective", a.goal.objective.has_value(), "--workload, or --script with --chip", searched},
        {"--energy-within", a.goal.energy_within.has_value(), "--workload, or --script with --chip", searched},
        {"--loop-order", a.goal.loop_order.has_value(), "--workload, or --script with --chip", searched},
        {"--tile-bounds", a.goal.tile_bounds.has_value(), "--workload, or --script with --chip", searched},
        {"--timeloop", a.timeloop.has_value(), "--workload", a.workload.has_value()},
        {"--replace", a.replace, "--timeloop", a.timeloop.has_value()},
        {"--chakra", a.chakra.has_value(), "--workload", a.workload.has_value()}})
    if (c.given && !c.there)
      fail({.what = text(c.option, " says nothing about ", chosen->needs),
            .needs = text(c.option, " together with ", c.belongs_to),
            .hint = text("leave ", c.option, " out")});
  chosen->run(a, io);
}

}  // namespace

Command estimate_command() {
  auto a = std::make_shared<EstimateArguments>();
  std::vector<std::string> names;
  std::string details = "Formats of --format and of the rows of --batch, with what their input holds:\n";
  for (const formats::Format& format : formats::known_formats())
    details +=
        text("  ", format.name, std::string(12 - std::min<size_t>(11, format.name.size()), ' '), format.takes, "\n");
  details += "A row is {\"id\", \"format\", \"input\"}; its answer is {\"id\", ...} or {\"id\", \"refused\": reason}.";
  std::vector<Option> options = {
      {"-p,--pe-array FILE", "TENET's PE array", &a->pe_array},
      {"-m,--mapping FILE", "TENET's mapping", &a->mapping},
      {"-s,--statement FILE", "TENET's statement", &a->statement},
      {"-e,--experiment FILE", "TENET's experiment file, which names mapping, array, statement", &a->experiment},
      {"-d,--experiment-dir FOLDER", "what the names of -e are relative to", &a->directory},
      {"--compat PROGRAM",
       "print what that program prints, its overflows included",
       &a->compat,
       false,
       {"tenet", "tenet-micro-tutorial", "scalesim"}},
      {"--format NAME", "the tool whose files --file names", &a->format},
      {"--file KEY=FILE", "one file of the format's input, or KEY=true", &a->files},
      {"--batch FILE", "many inputs: JSON lines", &a->batch},
      {.name = "-o,--output FILE",
       .help = "the answers of --batch, one row for each",
       .into = &a->output,
       .writes = true},
      {"--workload I,J,K", "one matmul Y[i,j] = X[i,k] * W[k,j] on the chip of --chip", &a->workload},
      {"--chip CHIP", kChipHelp, &a->chip},
      {"--scheme NAME",
       "how weights and inputs are stored: a name of `sator schemes`; int8-channel+a8 unless told",
       &a->scheme},
      {"--explain", "say in words and formulas why --workload costs what it costs", &a->explain},
      {"--picture OUT.svg",
       "draw where each PE has its operands from, stamp by stamp: of TENET's files or --workload",
       &a->picture},
      {"--chakra FILE", "write the --workload as an execution trace of MLCommons Chakra", &a->chakra},
      {"--timeloop FOLDER",
       "write the --workload and its mapping as Timeloop's files: architecture, problem, mapping",
       &a->timeloop},
      {"--replace", "replace files that --timeloop did not write and that stand where its files go", &a->replace},
      {"--script FILE",
       "TVMScript: the statements around which loops are bound, as TENET would count them; with --chip what each of "
       "its functions costs there, a convolution for instance",
       &a->script},
      {"--trace FILE",
       "steps of a schedule that are replayed on --script first: what `sator explore` and `study` leave",
       &a->trace},
      {"--size NAME=N", "value of a symbolic size of --script", &a->sizes},
      {"--threads N", "threads that share the rows of --batch", &a->threads, false, {}, at_least(1)},
  };
  for (Option& option : goal_options(a->goal)) options.push_back(std::move(option));
  for (Option& option : limit_options(a->goal)) options.push_back(std::move(option));
  for (Option& option : chip_options(a->changes)) options.push_back(std::move(option));
  return {.name = "estimate",
          .does = "counts and costs one mapped workload, given in the files of TENET or of another tool",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); },
          .details = details,
          .also = {"cost", "model"}};
}

}  // namespace sator::cli
