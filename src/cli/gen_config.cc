#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "base/owned_folder.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/suggest.h"
#include "frontend/hf_config.h"
#include "frontend/mlc_config.h"
#include "llm/mlc_weights.h"
#include "llm/scheme.h"

namespace sator::cli {

namespace {

struct GenConfigArguments {
  std::string config, output;
  MlcConfigOptions options;
  bool replace = false;
};

/// Errors: MLC-LLM has no such template.
void require_template(const std::string& name) {
  const std::vector<std::string>& all = mlc_conv_templates();
  if (std::ranges::count(all, name) > 0) return;
  fail({.what = text("MLC-LLM has no conversation template ", string_literal(name)),
        .needs = text("one of ", join(all, ", ")),
        .hint = did_you_mean(nearest_names(name, all), "LM is plain text")});
}

/// Errors: the folder holds weights that were converted for another scheme.
void require_same_scheme(const GenConfigArguments& a) {
  const fs::path file = fs::path(a.output) / kMlcConfigFile;
  if (a.replace || !llm::MlcWeights::is_in(a.output) || !fs::exists(file)) return;
  const Json earlier = parse_json(read_regular_file(file), file.string());
  const std::string scheme = JsonAt(earlier, file.string()).string_or("quantization", a.options.quantization);
  if (scheme == a.options.quantization) return;
  fail({.what = text(a.output, " holds weights stored as ", scheme, ", which ", a.options.quantization, " cannot read"),
        .needs = "one scheme for weights and configuration",
        .hint = text("choose another folder with -o, convert with `sator convert_weight --quantization ",
                     a.options.quantization,
                     "`, or give --replace to write the configuration first")});
}

void run(const GenConfigArguments& a, Streams& io) {
  const fs::path folder = model_folder(a.config);
  refuse_gguf(folder);
  llm::parse_scheme(a.options.quantization);
  require_template(a.options.conv_template);
  require_same_scheme(a);
  const std::vector<std::string> files = tokenizer_files_of(folder);
  if (files.empty()) io.notes << "note: " << folder.string() << " has no tokenizer files; text needs them\n";
  io.json = mlc_chat_config(folder, a.options, files);
  OwnedFolder::Files results;
  for (const std::string& name : files) results.emplace_back(name, read_regular_file(folder / name));
  results.emplace_back(kMlcConfigFile, io.json.dump(2) + "\n");
  OwnedFolder(a.output, "gen_config", a.replace).replace(results);
  io.out << "written: " << (fs::path(a.output) / kMlcConfigFile).string();
  for (const std::string& name : files) io.out << ", " << name;
  io.out << "\n";
}

}  // namespace

Command gen_config_command() {
  auto a = std::make_shared<GenConfigArguments>();
  return {
      .name = "gen_config",
      .does = "writes mlc-chat-config.json and copies the tokenizer",
      .options = conversion_options(
          a->config,
          a->options.quantization,
          {{.name = "--conv-template NAME",
            .help = "one of MLC-LLM's conversation templates; LM, plain text, unless told",
            .into = &a->options.conv_template},
           {.name = "-o,--output FOLDER", .help = "where the files go", .into = &a->output, .required = true},
           {"--replace", "replace files that gen_config did not write and that stand where its own go", &a->replace},
           {"--context-window-size N",
            "positions; the model's own unless told",
            &a->options.context_window_size,
            false,
            {},
            at_least(1)},
           {"--prefill-chunk-size N",
            "tokens of one step at most",
            &a->options.prefill_chunk_size,
            false,
            {},
            at_least(1)},
           {"--max-batch-size N",
            "sequences at once; 1 unless told",
            &a->options.max_batch_size,
            false,
            {},
            at_least(1)}}),
      .run = [a](Streams& io) { run(*a, io); }};
}

}  // namespace sator::cli
