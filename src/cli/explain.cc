#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/suggest.h"
#include "study/compare.h"
#include "study/explain.h"
#include "study/json.h"
#include "study/kernels_csv.h"

namespace sator::cli {

namespace {

struct ExplainArguments {
  std::string folder;
  std::optional<std::string> figure, scheme, chip, phase, kernel;
};

/// The place of a name among those that there are.
size_t choose(const std::string& option, const std::string& name, const std::vector<std::string>& among) {
  for (size_t i = 0; i < among.size(); ++i)
    if (among[i] == name) return i;
  fail({.what = text(option, " ", name, ": the study has none of that name"),
        .needs = text("one of ", join(among, ", ")),
        .hint = did_you_mean(nearest_names(name, among), text("leave ", option, " out"))});
}

void require_something(const study::Study& study, const fs::path& file) {
  if (study.schemes.empty() || study.chips.empty())
    fail({.what = text(file.string(), " has no scheme on a chip"),
          .needs = "a study of at least one scheme and chip",
          .hint = "run `sator study MODEL -o FOLDER`"});
}

/// The chip on which a request is answered soonest: by the scheme, or by each chip's winner.
size_t fastest_chip(const study::Study& study, std::optional<size_t> scheme) {
  const std::vector<study::Verdict> verdicts = study::verdicts(study);
  size_t best = 0;
  auto seconds = [&](size_t chip) {
    const size_t s = scheme.value_or(verdicts[chip].winner);
    return study::request_s(study.schemes[s].chips[chip], study.protocol);
  };
  for (size_t chip = 1; chip < study.chips.size(); ++chip)
    if (seconds(chip) < seconds(best)) best = chip;
  return best;
}

/// What was not asked for and is explained, with the verdict where it is the winner.
std::vector<std::string> chosen_words(const study::Study& study, size_t scheme, size_t chip, const ExplainArguments& a,
                                      bool of_model) {
  const study::Verdict verdict = study::verdicts(study).at(chip);
  std::vector<std::string> lines;
  if (verdict.winner == scheme && !of_model) lines.push_back(verdict.sentence);
  std::vector<std::string> others;
  if (!a.scheme && study.schemes.size() > 1) others.emplace_back("--scheme NAME");
  if (!a.chip && !of_model && study.chips.size() > 1) others.emplace_back("--chip NAME");
  lines.push_back(text("Explained is ",
                       study.schemes[scheme].name,
                       of_model ? "" : text(" on ", study.chips[chip].name),
                       others.empty() ? "." : text("; others: ", join(others, ", "), ".")));
  return lines;
}

/// The study's file, of which its folder is told.
/// Errors: there is none; a model is none, nor is an unfinished study.
fs::path study_file(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    if (fs::exists(folder)) return folder;
    fail({.what = text("there is no study ", folder.string()),
          .needs = "the folder that `sator study MODEL -o FOLDER` wrote",
          .hint = "check the path"});
  }
  const fs::path file = folder / "study.json";
  if (fs::exists(file)) return file;
  const std::string name = folder.string();
  const bool begun = fs::exists(folder / ".parts"), is_model = fs::exists(folder / "config.json");
  fail({.what = text(name,
                     begun      ? " holds an unfinished study"
                     : is_model ? " is a model, and no study"
                                : " holds no study"),
        .needs = "a folder with study.json",
        .hint = begun      ? "run the same `sator study` again: it goes on with what is done"
                : is_model ? text("`sator study ", name, " -o FOLDER`, then `sator explain FOLDER`")
                           : "give the folder that `sator study MODEL -o FOLDER` wrote"});
}

void run(const ExplainArguments& a, Streams& io) {
  const fs::path folder = a.folder;
  const fs::path file = study_file(folder);
  study::Study study = study::from_json(parse_json(read_file(file), file.string()), file.string());
  const fs::path kernels = file.parent_path() / "kernels.csv";
  add_kernels(study, read_file(kernels), kernels.string());

  std::vector<std::string> names, schemes, chips;
  for (const study::FigureName& f : study::figures()) names.emplace_back(f.name);
  for (const study::SchemeResult& s : study.schemes) schemes.push_back(s.name);
  for (const study::ChipFacts& c : study.chips) chips.push_back(c.name);
  const study::Figure figure = study::figures()[choose("FIGURE", a.figure.value_or("latency"), names)].figure;
  const bool of_model = figure == study::Figure::perplexity || figure == study::Figure::weight_bytes;
  require_something(study, file);
  std::optional<size_t> asked;
  if (a.scheme) asked = choose("--scheme", *a.scheme, schemes);
  const size_t chip = a.chip ? choose("--chip", *a.chip, chips) : fastest_chip(study, asked);
  const size_t scheme = asked ? *asked : study::verdicts(study).at(chip).winner;

  std::vector<std::vector<std::string>> answers;
  const bool chose_scheme = !a.scheme && schemes.size() > 1, chose_chip = !of_model && !a.chip && chips.size() > 1;
  if (chose_scheme || chose_chip) answers.push_back(chosen_words(study, scheme, chip, a, of_model));
  for (const study::PhaseName& phase : study::kPhases) {
    if (!of_model && a.phase && *a.phase != phase.name) continue;
    if (of_model && &phase != &study::kPhases[0]) continue;
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
                  {"--scheme NAME", "one of the study's schemes; the fastest on the chip unless told", &a->scheme},
                  {"--chip NAME", "one of the study's chips; the one that answers soonest unless told", &a->chip},
                  {"--phase PHASE", "both unless told", &a->phase, false, {"prefill", "decode"}},
                  {"--kernel NAME", "one call of a kernel, by its function or layer", &a->kernel},
              },
          .run = [a](Streams& io) { run(*a, io); },
          .details = asks,
          .also = {"why"}};
}

}  // namespace sator::cli
