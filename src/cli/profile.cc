#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/figures.h"
#include "base/text.h"
#include "cli/chip_options.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "runtime/thread_pool.h"
#include "study/json.h"
#include "study/parts.h"
#include "study/profile.h"
#include "study/route_table.h"
#include "target/calibration.h"

namespace sator::cli {

namespace {

constexpr int64_t kRoundsHere = 7;

struct ProfileArguments {
  ModelArguments model;
  std::optional<std::string> chip, records;
  std::optional<int64_t> prompt_len, rounds;
  ChipArguments changes;
  RouteArguments routes;
  bool each_call = false;
};

void run(const ProfileArguments& a, Streams& io) {
  study::ProfileOptions options;
  const dataflow::ChipChanges changes = changes_of(a.changes);
  if (!a.chip && changes.any())
    fail({.what = "--pe, --dataflow or --tile is given without a chip",
          .needs = "--chip CHIP, which they change",
          .hint = text("shipped are ", join(shipped_chips(), ", "))});
  if (!a.chip && a.routes.compare)
    fail({.what = "--routes is given without a chip",
          .needs = "--chip CHIP, to which the routes lead",
          .hint = text("shipped are ", join(shipped_chips(), ", "))});
  if (a.chip) options.chip = dataflow::described_chip(*a.chip, changes);
  const llm::OpenModel model = open(a.model, io);
  const int64_t prompt_len =
      a.prompt_len.value_or(std::clamp<int64_t>(study::longest_prompt(model.limits), 1, options.prompt_len));
  options.prompt_len = prompt_len;
  const bool here =
      options.chip && study::is_host(*options.chip, a.model.threads.value_or(runtime::default_num_threads()));
  options.rounds = a.rounds.value_or(here ? kRoundsHere : 1);
  const study::ModelProfile profile = study::profile_model(a.model.folder(), model, options);
  const std::string records = study::json_lines(profile.records);
  io.out << "prefill of " << counted(prompt_len, "token") << "\n"
         << profile.prefill.table(!a.each_call, !a.each_call) << "\ndecode of one token at " << prompt_len + 1 << "\n"
         << profile.decode.table(!a.each_call, !a.each_call);
  if (options.chip) {
    io.out << "\nestimates for " << options.chip->name << ", " << calibration_words(*options.chip) << "\n";
    if (here) io.out << "\nthis machine, medians of " << options.rounds << " rounds:\n" << comparison_table(profile);
  }
  if (a.routes.compare) {
    const auto routes = study::compare_routes({.model = a.model.folder(),
                                               .schemes = {model.scheme},
                                               .chips = {*options.chip},
                                               .host = dataflow::described_chip(a.routes.host),
                                               .lengths = {.prompt_len = prompt_len, .context = prompt_len + 1}},
                                              [](const std::string&, bool) {});
    io.out << "\n" << routes_table(routes);
    io.json["routes"] = routes_json(routes);
  }
  if (a.records) {
    write_file(*a.records, records);
    io.out << "\n" << profile.records.size() << " workload records written to " << *a.records << "\n";
  }
  io.json["quantization"] = model.scheme.name;
  for (size_t from = 0; from < records.size();) {
    const size_t to = records.find('\n', from);
    io.json["records"].push_back(nlohmann::json::parse(records.substr(from, to - from)));
    from = to + 1;
  }
}

}  // namespace

Command profile_command() {
  auto a = std::make_shared<ProfileArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back({"--prompt-len N",
                     text("tokens of the prefill, which one step takes in; ",
                          study::ProfileOptions().prompt_len,
                          ", or as many as the model takes, unless told"),
                     &a->prompt_len,
                     false,
                     {},
                     at_least(1)});
  options.push_back({"--chip CHIP", text(kChipHelp, "; adds estimates for it"), &a->chip});
  for (Option& option : chip_options(a->changes)) options.push_back(std::move(option));
  for (Option& option : route_options(a->routes)) options.push_back(std::move(option));
  options.push_back({"--rounds N",
                     text("runs, of which each call's median counts; 1 unless told, ",
                          kRoundsHere,
                          " where the chip is this machine (sator calibrate --host)"),
                     &a->rounds,
                     false,
                     {},
                     at_least(1)});
  options.push_back({"--records FILE", "write one workload record per kernel call, JSON lines", &a->records});
  options.push_back({"--each-call", "every call in its order instead of sums", &a->each_call});
  return {.name = "profile",
          .does = "times every kernel of a prefill and a decode step, with the work that it does",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); },
          .details =
              "MACs, i, j, k are those of the kernel's products: C[i, j] += A[i, k] * B[j, k]. The columns are added "
              "up over the\n"
              "calls of a row. --json FILE holds the workload records too."};
}

}  // namespace sator::cli
