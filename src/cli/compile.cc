#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/program_options.h"
#include "llm/open.h"

namespace sator::cli {

namespace {

struct CompileArguments {
  std::string model, output;
  std::optional<std::string> quantization, overrides, debug_dump, cache_dtype;
  std::string target = "llvm", isa = "native", opt = "O2";
  bool explain = false, each_pass = false;
};

struct Override {
  const char* name;
  std::optional<int64_t> llm::ProgramOptions::* into;  // null: accepted where it changes nothing
};
constexpr Override kOverrides[] = {{"context_window_size", &llm::ProgramOptions::context_window},
                                   {"prefill_chunk_size", &llm::ProgramOptions::prefill_chunk},
                                   {"max_batch_size", nullptr},
                                   {"tensor_parallel_shards", nullptr},
                                   {"pipeline_parallel_stages", nullptr}};

/// "k=v;k=v"
std::vector<std::pair<std::string, std::string>> pairs_of(const std::string& option, std::string_view written) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::string_view part : split(written, ';')) {
    part = trim(part);
    if (part.empty()) continue;
    size_t equals = part.find('=');
    if (equals == part.npos)
      fail({.what = text(option, " has the part ", string_literal(part)),
            .needs = "name=value, separated by ;",
            .hint = "add a value"});
    out.emplace_back(trim(part.substr(0, equals)), trim(part.substr(equals + 1)));
  }
  return out;
}

void apply_overrides(const std::string& written, llm::ProgramOptions& program) {
  std::vector<std::string> names;
  for (const Override& o : kOverrides) names.emplace_back(o.name);
  for (const auto& [name, value] : pairs_of("--overrides", written)) {
    auto row =
        std::find_if(std::begin(kOverrides), std::end(kOverrides), [&](const Override& o) { return name == o.name; });
    if (row == std::end(kOverrides))
      fail({.what = text("--overrides ", name),
            .needs = text("one of ", join(names, ", ")),
            .hint = "correct the name"});
    size_t used = 0;
    int64_t number = 0;
    try {
      number = std::stoll(value, &used);
    } catch (const std::exception&) {
    }
    if (used != value.size() || number < 1)
      fail(
          {.what = text("--overrides ", name, "=", value), .needs = "a positive integer", .hint = "correct the value"});
    if (row->into)
      program.*(row->into) = number;
    else if (number != 1)
      fail({.what = text("--overrides ", name, "=", value),
            .needs = text(name, "=1: one sequence on one CPU"),
            .hint = "leave it out"});
  }
}

void run(const CompileArguments& a, Streams& io) {
  const fs::path folder = model_folder(a.model);
  llm::OpenOptions options{.scheme = llm::scheme_for(folder, a.quantization), .isa = a.isa};
  if (a.cache_dtype) options.program.cache_dtype = *DType::parse(*a.cache_dtype);
  if (a.overrides) apply_overrides(*a.overrides, options.program);
  options.each_pass = each_pass_of(a.each_pass, a.debug_dump);
  if (a.debug_dump) options.debug_dump = *a.debug_dump;
  auto start = std::chrono::steady_clock::now();
  const llm::CompileReport report = llm::compile_model(folder, options, a.output);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (const rules::AppliedSchedule& schedule : report.schedules)
    if (a.explain) io.out << rules::words_of(schedule);
  io.json = {{"output", a.output}, {"quantization", options.scheme.name}, {"compile_s", seconds}};
  for (const rules::AppliedSchedule& schedule : report.schedules)
    if (a.explain) io.json["schedules"].push_back(json_of(schedule));
  char line[160];
  for (const auto& [name, plan] : report.memory) {
    io.json["memory"][name] = {{"planned_bytes", plan.planned_bytes}, {"unplanned_bytes", plan.unplanned_bytes}};
    std::snprintf(line,
                  sizeof line,
                  "%-16s %10.3f MB of temporary tensors, %.3f MB without sharing\n",
                  name.c_str(),
                  static_cast<double>(plan.planned_bytes) / 1e6,
                  static_cast<double>(plan.unplanned_bytes) / 1e6);
    io.out << line;
  }
  std::snprintf(line, sizeof line, "compiled in %.2f s: ", seconds);
  io.out << line << a.output << "\n";
}

}  // namespace

Command compile_command() {
  auto a = std::make_shared<CompileArguments>();
  return {.name = "compile",
          .does = "compiles a model to a library",
          .options = {{.name = "MODEL",
                       .help = "a Hugging Face folder, or one with mlc-chat-config.json; config.json suffices",
                       .into = &a->model,
                       .required = true},
                      {.name = "-o,--output FILE",
                       .help = "the library, model.so",
                       .into = &a->output,
                       .required = true,
                       .writes = true},
                      {.name = "--quantization SCHEME",
                       .help = "that of mlc-chat-config.json, else the checkpoint's own, unless told",
                       .into = &a->quantization,
                       .also = kQuantizationNames},
                      {.name = "--target,--device TARGET",
                       .help = "what to compile for",
                       .into = &a->target,
                       .choices = {"llvm", "cpu", "auto"}},
                      {"--isa LEVELS", "instruction sets: native, portable, or names separated by commas", &a->isa},
                      {.name = "--opt LEVEL",
                       .help = "as MLC-LLM's; on CPUs all rules always apply",
                       .into = &a->opt,
                       .choices = {"O0", "O1", "O2", "O3"}},
                      {"--overrides LIST", "\"context_window_size=N;prefill_chunk_size=N\"", &a->overrides},
                      {"--debug-dump DIR", "write the program after each phase there", &a->debug_dump},
                      {"--each-pass", kEachPassHelp, &a->each_pass},
                      cache_option(a->cache_dtype),
                      {"--explain-schedule",
                       "per function: block, rule, normal form, steps, and why other rules declined",
                       &a->explain}},
          .run = [a](Streams& io) { run(*a, io); }};
}

}  // namespace sator::cli
