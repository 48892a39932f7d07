#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "cli/chip_options.h"
#include "cli/commands.h"
#include "cli/program_options.h"
#include "driver/program.h"
#include "runtime/npy.h"
#include "runtime/profiler.h"
#include "runtime/vm.h"
#include "study/program_cost.h"

namespace sator::cli {

namespace {

using driver::Parameter;
using runtime::Value;

struct RunArguments {
  std::string file;
  std::optional<std::string> function, chip;
  std::vector<std::string> inputs, outputs, sizes;
  std::optional<int64_t> threads;
  int64_t rounds = 5;
  bool profile = false;
  ChipArguments changes;
  GoalArguments goal;
};

/// The function that is meant: the one named, else `main`, else the only one.
driver::Signature function_of(const RunArguments& a, const Module& module) {
  if (a.function) return driver::signature_of(module, *a.function);
  const std::vector<std::string> names = driver::public_functions(module);
  if (std::ranges::find(names, "main") != names.end()) return driver::signature_of(module, "main");
  if (names.size() == 1) return driver::signature_of(module, names[0]);
  fail({.what = text(a.file, " has no function main"),
        .needs = names.empty() ? "a function that is not private" : text("one of ", join(names, ", ")),
        .hint = "name the function behind the library"});
}

/// "5", "-0.5": an argument that is no file.
std::optional<Value> number_of(const std::string& word) {
  const char *begin = word.data(), *end = begin + word.size();
  int64_t integer = 0;
  if (auto [stop, error] = std::from_chars(begin, end, integer); error == std::errc() && stop == end)
    return Value(integer);
  double real = 0;
  if (auto [stop, error] = std::from_chars(begin, end, real); error == std::errc() && stop == end) return Value(real);
  return {};
}

/// "[2,3]" or "[]".
std::optional<Value> shape_of(const std::string& word) {
  if (!word.starts_with("[") || !word.ends_with("]")) return {};
  std::vector<int64_t> extents;
  for (const std::string& part : listed_words({word.substr(1, word.size() - 2)})) {
    const std::optional<Value> extent = number_of(part);
    if (!extent || !extent->as_int()) return {};
    extents.push_back(*extent->as_int());
  }
  return Value(runtime::Shape::of(runtime::Dims(std::span<const int64_t>(extents))));
}

/// NAME=WHAT of a parameter's or a result's name, or WHAT alone.
std::pair<std::string, std::string> named_word(const std::string& given, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (given.starts_with(name + "=")) return {name, given.substr(name.size() + 1)};
  const size_t equals = given.find('=');
  const bool is_file = given.find('/') < equals || fs::exists(given);
  if (equals == given.npos || is_file) return {"", given};
  return {given.substr(0, equals), given.substr(equals + 1)};
}

std::vector<driver::GivenInput> inputs_of(const RunArguments& a, const driver::Signature& signature) {
  std::vector<std::string> names;
  for (const Parameter& p : signature.params) names.push_back(p.name);
  std::vector<driver::GivenInput> out;
  for (const std::string& given : a.inputs) {
    auto [name, word] = named_word(given, names);
    driver::GivenInput input{.name = name, .origin = word};
    if (std::optional<Value> number = number_of(word))
      input.value = *number;
    else if (std::optional<Value> shape = shape_of(word))
      input.value = *shape;
    else
      input.value = Value(runtime::read_npy(word));
    out.push_back(std::move(input));
  }
  return out;
}

/// Inputs that the call writes are its own: each round begins with what the files hold.
driver::PreparedCall fresh(const driver::Signature& signature, driver::PreparedCall call) {
  for (size_t i = 0; i < signature.params.size(); ++i) {
    if (!signature.params[i].is_written) continue;
    const runtime::Tensor& tensor = *call.leaves[i].as<runtime::Tensor>();
    Ref<runtime::Tensor> copy = runtime::Tensor::empty(tensor.shape(), tensor.dtype());
    std::copy_n(tensor.data_as<char>(), tensor.size_bytes(), copy->data_as<char>());
    call.leaves[i] = Value(copy);
  }
  return call;
}

/// Which result goes into which file. Errors: another number of files than results; a name that no result has.
std::vector<std::pair<size_t, std::string>> files_of(const RunArguments& a,
                                                     const std::vector<driver::NamedResult>& results) {
  std::vector<std::string> names;
  for (const driver::NamedResult& r : results) names.push_back(r.name);
  std::vector<std::pair<size_t, std::string>> out;
  size_t unnamed = 0;
  for (const std::string& given : a.outputs) {
    auto [name, file] = named_word(given, names);
    const auto at = std::ranges::find(names, name);
    if (!name.empty() && at == names.end())
      fail({.what = text("--output ", given, ": there is no result ", name),
            .needs = names.empty() ? "nothing: the function has no result" : text("one of ", join(names, ", ")),
            .hint = "correct the name"});
    out.emplace_back(name.empty() ? unnamed++ : static_cast<size_t>(at - names.begin()), file);
  }
  if (unnamed > 0 && (unnamed != out.size() || unnamed != names.size()))
    fail({.what = text(unnamed,
                       unnamed == 1 ? " file" : " files",
                       " without a name for ",
                       names.size(),
                       names.size() == 1 ? " result" : " results"),
          .needs = names.empty() ? "a function with a result" : text("one --output for each of ", join(names, ", ")),
          .hint = names.empty() ? "leave --output out" : text("--output ", names[0], "=FILE.npy for one of them")});
  return out;
}

void print_call(const driver::Signature& signature, const driver::PreparedCall& call, Streams& io) {
  std::vector<std::string> sizes;
  for (const auto& [name, value] : call.sizes) sizes.push_back(text(name, " = ", value));
  io.out << describe(signature) << (sizes.empty() ? "" : text(" with ", join(sizes, ", "))) << "\n";
  for (const std::string& name : call.zeroed) io.out << name << " starts as zeros\n";
  io.json["function"] = signature.function;
  io.json["sizes"] = call.sizes;
}

void run(const RunArguments& a, Streams& io) {
  std::optional<Chip> chip;
  if (a.chip) chip = dataflow::described_chip(*a.chip, changes_of(a.changes));
  if (!chip && changes_of(a.changes).any())
    fail({.what = "--pe, --dataflow or --tile is given without a chip",
          .needs = "--chip CHIP, which they change",
          .hint = text("shipped are ", join(shipped_chips(), ", "))});
  const dataflow::Goal goal = goal_of(a.goal);
  if (chip) check_goal(*chip, goal);
  const driver::OpenProgram program = driver::open_program(a.file);
  const driver::Signature signature = function_of(a, *program.phase3);
  const driver::PreparedCall call =
      prepare(signature,
              inputs_of(a, signature),
              named_numbers(a.sizes,
                            {.what = "--size", .needs = "NAME=NUMBER, a symbolic size", .hint = "as in --size n=128"}));
  print_call(signature, call, io);
  runtime::VirtualMachine vm(
      program.compiled->executable(),
      program.compiled->kernels(),
      a.threads ? runtime::ThreadPool::create(static_cast<int>(*a.threads)) : Ref<runtime::ThreadPool>());
  std::vector<driver::NamedResult> results;
  std::vector<runtime::Profile> profiles;
  const int64_t rounds = a.profile ? a.rounds + 1 : 1;  // the first one warms up
  for (int64_t round = 0; round < rounds; ++round) {
    const driver::PreparedCall own = fresh(signature, call);
    runtime::Profiler profiler(vm);
    profiler.time([&] { results = driver::call(vm, program, signature, own); });
    profiles.push_back(profiler.take());
  }
  if (profiles.size() > 1) profiles.erase(profiles.begin());
  const auto files = files_of(a, results);
  for (size_t r = 0; r < results.size(); ++r) {
    const driver::NamedResult& result = results[r];
    io.out << text(result.name, ": ", *result.tensor);
    nlohmann::json json = {
        {"name", result.name},
        {"dtype", result.tensor->dtype().name()},
        {"shape", std::vector<int64_t>(result.tensor->shape().begin(), result.tensor->shape().end())}};
    for (const auto& [which, file] : files) {
      if (which != r) continue;
      runtime::write_npy(file, *result.tensor);
      io.out << ", written to " << file;
      json["file"] = file;
    }
    io.out << "\n";
    io.json["results"].push_back(std::move(json));
  }
  const runtime::Profile profile = median_of(profiles);
  if (a.profile) {
    io.out << "\n" << profile.table();
    io.json["profile"] = parse_json(profile.json(), "the profile");
  }
  if (chip) {
    const study::PhaseResult cost = study::cost_of_run(profile.records, *program.phase3, *chip, goal);
    io.out << "\n" << study::run_cost_table(cost, *chip);
    io.json["chip"] = study::run_cost_json(cost, *chip);
  }
}

}  // namespace

Command run_command() {
  auto a = std::make_shared<RunArguments>();
  std::vector<Option> options = {
      {.name = "LIBRARY", .help = "what `sator build` wrote", .into = &a->file, .required = true},
      {"FUNCTION", "main, or the only one, unless told", &a->function},
      {"--input WHAT",
       "a .npy file, a number or a shape [2,3]; in the order of the parameters, or NAME=WHAT",
       &a->inputs},
      {"--output FILE", "where a result goes, .npy; in the order of the results, or NAME=FILE", &a->outputs},
      {"--size NAME=N", "a symbolic size that no input binds", &a->sizes},
      {"--threads N", "threads of the machine; all cores unless told", &a->threads, false, {}, between(1, 1024)},
      {"--profile",
       "print how long each function took: medians of several rounds after one that is not counted",
       &a->profile},
      {"--rounds N", "rounds of --profile", &a->rounds, false, {}, at_least(1)},
      {"--chip CHIP", text(kChipHelp, "; adds what the call costs there"), &a->chip}};
  for (Option& option : chip_options(a->changes)) options.push_back(std::move(option));
  for (Option& option : goal_options(a->goal)) options.push_back(std::move(option));
  return {.name = "run",
          .does = "calls a function of a built program on arrays in .npy files",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); },
          .details =
              "A tensor program writes its results into parameters: those that it only writes take no input, and\n"
              "are named by --output. Without --output results are described and not kept."};
}

}  // namespace sator::cli
