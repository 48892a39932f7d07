#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/app.h"
#include "cli/chip_options.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "frontend/hf_config.h"
#include "study/json.h"
#include "study/phase.h"
#include "study/route_table.h"
#include "study/study.h"
#include "study/terminal.h"
#include "study/workers.h"

namespace sator::cli {

namespace {

struct StudyArguments {
  std::string model;
  std::vector<std::string> schemes, chips;
  int64_t prompt_len = study::StudyOptions{}.prompt_len, gen_len = study::StudyOptions{}.gen_len;
  int64_t windows = study::StudyOptions{}.windows;
  std::optional<std::string> text, calibration, folder;
  std::optional<int64_t> threads;
  bool shapes_only = false, chakra = false, again = false, replace = false;
  int64_t parallel = 1;
  std::vector<int64_t> batches, contexts;
  ChipArguments changes;
  GoalArguments goal;
  RouteArguments routes;
};

/// "study-NAME" in the current folder, for a model's folder NAME.
std::string default_folder(const fs::path& model) { return text("study-", fs::canonical(model).filename().string()); }

void run(const StudyArguments& a, Streams& io) {
  const fs::path model = model_folder(a.model);
  study::StudyOptions options{.model = model,
                              .schemes = a.schemes,
                              .chips = a.chips,
                              .changes = changes_of(a.changes),
                              .prompt_len = a.prompt_len,
                              .gen_len = a.gen_len,
                              .windows = a.windows,
                              .shapes_only = a.shapes_only,
                              .threads = a.threads,
                              .folder = a.folder.value_or(default_folder(model)),
                              .version = version_line()};
  options.changes.chips = a.parallel;
  options.goal = goal_of(a.goal);
  options.sweep = {a.batches, a.contexts};
  if (a.again) options.speed_age_s = 0;
  options.replace = a.replace;
  options.routes = a.routes.compare;
  if (a.text) options.text = *a.text;
  if (a.calibration) options.calibration = *a.calibration;
  const std::optional<Chip> host =  // a mistake in its name does not cost a study
      a.routes.compare ? std::optional(dataflow::described_chip(a.routes.host)) : std::nullopt;
  ProgressLines lines(io.notes);
  study::Study result =
      run_study(options, study::model_workers(), [&](const std::string& line, bool passing) { lines(line, passing); });
  lines.end();
  io.out << terminal_table(result) << "\n";
  if (host) {
    study::RouteQuestion question{
        .model = model,
        .schemes = {},
        .chips = {},
        .host = *host,
        .lengths = {.prompt_len = result.protocol.prompt_len, .context = result.protocol.decode_context}};
    for (const study::SchemeResult& s : result.schemes) question.schemes.push_back(llm::scheme_for(model, s.name));
    for (const std::string& name : a.chips.empty() ? study::default_chips() : a.chips)
      question.chips.push_back(dataflow::described_chip(name, changes_of(a.changes)));
    result.routes = compare_routes(question, [&](const std::string& line, bool passing) { lines(line, passing); });
    result.routes_host = study::facts_of(*host);
    lines.end();
    io.out << routes_table(result.routes);
  }
  io.json = to_json(result);
  write_study(result, options.folder, {.traces = a.chakra, .replace = a.replace});
  io.out << "written: " << (options.folder / "index.html").string() << ", study.json, study.csv, kernels.csv"
         << (options.sweep.empty() ? "" : ", sweep.csv") << (a.routes.compare ? ", routes.csv" : "")
         << (a.chakra ? ", chakra/" : "") << "\n";
}

}  // namespace

Command study_command() {
  auto a = std::make_shared<StudyArguments>();
  std::vector<Option> changes = chip_options(a->changes), routes = route_options(a->routes),
                      goal = goal_options(a->goal);
  return {
      .name = "study",
      .does = "evaluates, measures and costs a model: quantization schemes by chips",
      .options =
          {
              {.name = "MODEL",
               .help = "a Hugging Face folder, its config.json, a GGUF file, or a folder that convert_weight and "
                       "gen_config wrote",
               .into = &a->model,
               .required = true},
              {.name = "--quant SCHEME",
               .help = "a quantization scheme, may be repeated; `sator schemes` lists them",
               .into = &a->schemes,
               .also = {"--quantization", "--quantize", "-q", "--scheme"}},
              {"--chip CHIP", text(kChipHelp, ", may be repeated"), &a->chips},
              std::move(changes[0]),
              std::move(changes[1]),
              std::move(changes[2]),
              std::move(goal[0]),
              std::move(goal[1]),
              std::move(routes[0]),
              std::move(routes[1]),
              {"--prompt-len N", "tokens of the prompt", &a->prompt_len, false, {}, at_least(1)},
              {"--gen-len N", "tokens generated", &a->gen_len, false, {}, at_least(1)},
              {"--batch N,N",
               "sequences decoded together: a table of costs besides, with --context",
               &a->batches,
               false,
               {},
               at_least(1)},
              {"--context N,N", "tokens of each sequence, for that table", &a->contexts, false, {}, at_least(1)},
              {"--parallel N",
               "chips that share each layer, joined by the chip's link",
               &a->parallel,
               false,
               {},
               at_least(1)},
              {"--chakra", "write each phase as an execution trace of MLCommons Chakra", &a->chakra},
              {"--text FILE", "the text to predict; validation.txt of the model's folder unless told", &a->text},
              {"--calibration FILE",
               "a text for static activation scales; calibration.txt there unless told",
               &a->calibration},
              {"--windows N", "windows of the text, at most", &a->windows, false, {}, at_least(1)},
              {"--again", "measure the speeds here again, also where an earlier run of the last hour has", &a->again},
              {"--shapes-only", "costs alone, from config.json: nothing is run", &a->shapes_only},
              {"--threads N", "worker threads; all cores unless told", &a->threads, false, {}, between(1, 1024)},
              {"-o,--output FOLDER", "where results go; study-MODEL in the current folder unless told", &a->folder},
              {"--replace", "replace files that no study wrote and that stand where results go", &a->replace},
          },
      .run = [a](Streams& io) { run(*a, io); },
      .details = text(
          "Schemes unless told: ",
          join(llm::default_schemes(), ", "),
          "; beside f16 also f16+a16 where the fast units of a chip take 16 bits, and ratios are to it.\nChips unless "
          "told: ",
          join(study::default_chips(), ", "),
          ".\nWritten are index.html, study.json, study.csv and kernels.csv; finished schemes are kept under .parts/\n"
          "and not run again, speeds here for an hour. Files of an earlier study there are replaced as long as nobody "
          "changed "
          "them; others are left. Costs are estimates for the described chip, per kernel of the compiled program."),
      .also = {"compare", "report"}};
}

}  // namespace sator::cli
