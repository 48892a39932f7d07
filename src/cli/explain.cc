#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "study/explain.h"
#include "study/json.h"
#include "study/kernels_csv.h"

namespace sator::cli {

namespace {

struct ExplainArguments {
  std::string folder;
  std::optional<std::string> figure, scheme, chip, phase, kernel;
};

/// The place of a name among those that there are; without a name, that of the only one.
size_t choose(const std::string& option, const std::optional<std::string>& name,
              const std::vector<std::string>& among) {
  if (!name && among.size() == 1) return 0;
  for (size_t i = 0; i < among.size(); ++i)
    if (name && among[i] == *name) return i;
  fail({.what = name ? text(option, " ", *name, ": the study has none of that name") : text(option, " is missing"),
        .needs = text("one of ", join(among, ", ")),
        .hint = name ? text("nearest is ", join(nearest_names(*name, among), ", "))
                     : text("as in ", option, " ", among.empty() ? "NAME" : among[0])});
}

void run(const ExplainArguments& a, Streams& io) {
  const fs::path folder = a.folder;
  const fs::path file = fs::is_directory(folder) ? folder / "study.json" : folder;
  study::Study study = study::from_json(parse_json(read_file(file), file.string()), file.string());
  const fs::path kernels = file.parent_path() / "kernels.csv";
  add_kernels(study, read_file(kernels), kernels.string());

  std::vector<std::string> names, schemes, chips;
  for (const study::FigureName& f : study::figures()) names.emplace_back(f.name);
  for (const study::SchemeResult& s : study.schemes) schemes.push_back(s.name);
  for (const study::ChipFacts& c : study.chips) chips.push_back(c.name);
  const study::Figure figure = study::figures()[choose("FIGURE", a.figure.value_or("latency"), names)].figure;
  const size_t scheme = choose("--scheme", a.scheme, schemes);
  const bool of_model = figure == study::Figure::perplexity || figure == study::Figure::weight_bytes;
  const size_t chip = of_model && !a.chip ? 0 : choose("--chip", a.chip, chips);

  std::vector<std::vector<std::string>> answers;
  for (const study::PhaseName& phase : study::kPhases) {
    if (a.phase && *a.phase != phase.name) continue;
    if (of_model && !answers.empty()) continue;
    if (!a.kernel) {
      answers.push_back(explain(study, scheme, chip, phase, figure));
      continue;
    }
    for (const study::KernelRow* row : kernels_named(study.schemes[scheme].chips.at(chip).*phase.result, *a.kernel)) {
      answers.push_back(explain_kernel(*row, study.chips[chip], figure));
      answers.back().front() = text(phase.name, ": ", answers.back().front());
    }
  }
  for (size_t i = 0; i < answers.size(); ++i) {
    if (i) io.out << "\n";
    for (const std::string& line : answers[i]) io.out << line << "\n";
  }
  io.json = {{"figure", a.figure.value_or("latency")}, {"answers", answers}};
}

}  // namespace

Command explain_command() {
  auto a = std::make_shared<ExplainArguments>();
  std::string asks = "Figures:\n";
  std::vector<std::string> names;
  for (const study::FigureName& f : study::figures()) {
    names.emplace_back(f.name);
    asks += text("  ", f.name, std::string(14 - f.name.size(), ' '), f.asks, "\n");
  }
  asks += "Numbers are those of study.json and kernels.csv, or computed from them; sums are checked.";
  return {.name = "explain",
          .does = "says why a figure of a study is what it is, in words and formulas",
          .options =
              {
                  {.name = "STUDY", .help = "a folder that `sator study` wrote", .into = &a->folder, .required = true},
                  {.name = "FIGURE", .help = "what to explain; latency unless told", .into = &a->figure},
                  {"--scheme NAME", "one of the study's schemes", &a->scheme},
                  {"--chip NAME", "one of the study's chips", &a->chip},
                  {"--phase PHASE", "both unless told", &a->phase, false, {"prefill", "decode"}},
                  {"--kernel NAME", "one call of a kernel, by its function or layer", &a->kernel},
              },
          .run = [a](Streams& io) { run(*a, io); },
          .details = asks};
}

}  // namespace sator::cli
