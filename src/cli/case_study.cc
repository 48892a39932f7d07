#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "frontend/hf_config.h"
#include "study/case_study.h"

namespace sator::cli {

namespace {

struct CaseStudyArguments {
  std::string model;
  std::string chip = study::CaseStudyOptions{}.chip, host = study::CaseStudyOptions{}.host;
  int64_t prompt_len = study::CaseStudyOptions{}.prompt_len;
  std::vector<int64_t> contexts;
  std::optional<std::string> output;
};

/// The command line that gives the same document.
std::string command_of(const CaseStudyArguments& a) {
  const CaseStudyArguments unless_told;
  std::string line = text("./sator case_study ", a.model);
  if (a.chip != unless_told.chip) line += " --chip " + a.chip;
  if (a.host != unless_told.host) line += " --host " + a.host;
  if (a.prompt_len != unless_told.prompt_len) line += text(" --prompt-len ", a.prompt_len);
  for (size_t c = 0; c < a.contexts.size(); ++c) line += text(c ? "," : " --context ", a.contexts[c]);
  return a.output ? line + " -o " + *a.output : line;
}

void run(const CaseStudyArguments& a, Streams& io) {
  study::CaseStudyOptions options{
      .model = model_folder(a.model), .chip = a.chip, .host = a.host, .prompt_len = a.prompt_len};
  if (!a.contexts.empty())
    options.contexts = a.contexts;
  else  // as far as the model goes
    std::erase_if(options.contexts,
                  [limit = read_model_config(options.model).max_positions](int64_t c) { return c > limit; });
  ProgressLines lines(io.notes);
  const study::CaseStudy result =
      make_case_study(options, [&](const std::string& line, bool passing) { lines(line, passing); });
  lines.end();
  const std::string words = case_study_text(result, command_of(a));
  if (a.output) {
    write_file(*a.output, words);
    io.out << "written: " << *a.output << "\n";
  } else {
    io.out << words;
  }
}

}  // namespace

Command case_study_command() {
  auto a = std::make_shared<CaseStudyArguments>();
  std::string contexts;
  for (int64_t c : study::CaseStudyOptions{}.contexts) contexts += text(contexts.empty() ? "" : ",", c);
  return {
      .name = "case_study",
      .does = "writes a document on a model's matrix products and what they cost, by kinds of quantization",
      .options =
          {
              {.name = "MODEL",
               .help = "a Hugging Face folder, or its config.json",
               .into = &a->model,
               .required = true},
              {"--chip CHIP", "a described chip: a name, a TOML file, or a folder with TENET's files", &a->chip},
              {"--host CHIP", "the described chip that runs what a route leaves off CHIP", &a->host},
              {"--prompt-len N", "tokens of the prompt", &a->prompt_len, false, {}, at_least(1)},
              {"--context LIST",
               text("contexts of the decode steps, in tokens, as far as the model goes [", contexts, "]"),
               &a->contexts,
               false,
               {},
               at_least(1)},
              {"-o,--output FILE", "write the document there instead of printing it", &a->output},
          },
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Markdown: question, method, one row per kernel with its i, j, k, the kinds of quantization, and what "
          "follows.\n"
          "config.json suffices; nothing is run. docs/case-study-gpt2.md is what it writes of GPT-2.",
  };
}

}  // namespace sator::cli
