#include <nlohmann/json.hpp>

#include <charconv>
#include <iterator>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "passes/lower/lower.h"
#include "passes/run.h"
#include "relax/ops/table.h"
#include "relax/parse.h"
#include "relax/print.h"

namespace sator::cli {

namespace {

struct OptArguments {
  std::optional<std::string> file, attach, output, target;
  std::vector<std::string> passes, bounds, config;
  bool list = false, ops = false, explain = false;
};

/// The words of options that may be given several times, each with several words between commas.
std::vector<std::string> words_of(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& list : given) {
    for (std::string_view word : split(list, ',')) {
      if (!trim(word).empty()) out.emplace_back(trim(word));
    }
  }
  return out;
}

/// NAME=NUMBER, ... of an option; `refusal` says what it needs where a word is not of that form.
std::map<std::string, int64_t> numbers_of(const std::vector<std::string>& given, const Reason& refusal) {
  std::map<std::string, int64_t> out;
  for (const std::string& word : words_of(given)) {
    size_t equals = word.find('=');
    std::string name(trim(std::string_view(word).substr(0, equals)));
    std::string_view number = equals == word.npos ? "" : trim(std::string_view(word).substr(equals + 1));
    int64_t value = 0;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (name.empty() || error != std::errc() || end != number.data() + number.size() || value < 0) {
      Reason reason = refusal;
      reason.what = text(refusal.what, " ", word);
      fail(std::move(reason));
    }
    out[name] = value;
  }
  return out;
}

std::map<std::string, int64_t> bounds_of(const std::vector<std::string>& given) {
  return numbers_of(given,
                    {.what = "--bounds",
                     .needs = "NAME=NUMBER, the largest value of a symbolic size",
                     .hint = "as in --bounds seq_len=512,batch=8"});
}

Attrs config_of(const std::vector<std::string>& given) {
  Attrs out;
  const std::vector<std::string> known(passes::option_names().begin(), passes::option_names().end());
  const std::string example = "as in --config tir.HoistExpression.hoisted_conditionals=1";
  for (const auto& [name, value] :
       numbers_of(given, {.what = "--config", .needs = "NAME=NUMBER, an option of a pass", .hint = example})) {
    if (std::ranges::find(known, name) == known.end())
      fail({.what = text("no pass has the option ", name),
            .needs = text("one of ", join(known, ", ")),
            .hint = example});
    out[name] = int_imm(value, i64);
  }
  return out;
}

ModuleRef read_module(const std::string& file, std::istream& in) {
  if (file != "-") return relax::parse_module(read_file(file), file);
  return relax::parse_module({std::istreambuf_iterator<char>(in), {}}, "standard input");
}

void list_passes(Streams& io) {
  size_t widest = 0;
  for (const passes::Pass& p : passes::passes()) widest = std::max(widest, p.name.size());
  for (const passes::Pass& p : passes::passes()) {
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
  for (const std::string& name : words_of(a.passes)) chosen.push_back(&passes::pass_named(name));
  passes::PassContext ctx{
      .bounds = bounds_of(a.bounds), .target = a.target.value_or(""), .config = config_of(a.config)};
  if (a.explain)
    ctx.explain = [&](const std::string& pass, const std::string& message) {
      io.notes << pass << ": " << message << "\n";
    };
  if (a.attach) ctx.additional = read_module(*a.attach, io.in);
  ModuleRef module = read_module(*a.file, io.in);
  io.json["passes"] = nlohmann::json::array();
  for (const passes::Pass* pass : chosen) {
    ModuleRef after = passes::run_pass(*pass, module, ctx);
    io.json["passes"].push_back({{"name", pass->name}, {"changed", after != module}});
    module = std::move(after);
  }
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
      .options = {{"FILE", "tensor programs, graphs, or a module of both; - for standard input", &a->file},
                  {"--passes LIST", "names of passes, separated by commas, in the order in which they run", &a->passes},
                  {"-o,--output FILE", "write the result there instead of printing it", &a->output},
                  {"--bounds LIST", "the largest values of symbolic sizes: seq_len=512,batch=8", &a->bounds},
                  {"--config LIST", "options of passes: tir.Simplify.NAME=1,...", &a->config},
                  {"--target NAME", "what is compiled for, for BindTarget", &a->target},
                  {"--attach FILE", "tensor programs that AttachAdditionalPrimFuncs adds", &a->attach},
                  {"--explain", "say what passes did or did not do, and why", &a->explain},
                  {"--list", "list the passes", &a->list},
                  {"--ops", "list the ops of graphs with their arguments", &a->ops}},
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Without --passes the program is checked and printed as it is. The program is checked again after each "
          "pass.",
      .also = {"passes", "optimize", "transform"}};
}

}  // namespace sator::cli
