#include "engine/generate.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"

namespace sator::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  std::string prompt;
  bool greedy = false;
  int64_t max_tokens = 128;
  std::optional<double> temperature, top_p;
  std::optional<int64_t> top_k;
  int64_t seed = 0;
};

void run(const GenerateArguments& a, Streams& io) {
  if (a.max_tokens < 1)
    fail({.what = text("--max-tokens ", a.max_tokens), .needs = "at least 1", .hint = "leave it out for 128"});
  if (a.greedy && (a.temperature.value_or(0) != 0 || a.top_p || a.top_k))
    fail({.what = "--greedy beside --temperature, --top-p or --top-k",
          .needs = "one of the two: the most likely token, or a sample",
          .hint = "leave out --greedy to sample"});
  require_utf8(a.prompt, "--prompt");
  const fs::path folder = a.model.folder();
  Tokenizer tokenizer = Tokenizer::load(folder);
  GenerationConfig suggested = read_generation_config(folder);
  std::vector<int32_t> prompt = tokenizer.encode(a.prompt, true);
  if (prompt.empty()) {
    std::optional<int64_t> begin = tokenizer.bos_id();
    if (!begin) begin = suggested.bos_token_id;
    if (!begin) begin = read_model_config(folder).bos_token_id;
    if (begin) prompt = {static_cast<int32_t>(*begin)};
  }
  if (prompt.empty())
    fail({.what = "the prompt is empty, and the model names no token to begin with",
          .needs = "a text that is continued",
          .hint = "pass --prompt TEXT"});
  GenerateOptions options{.max_tokens = a.max_tokens};
  if (!a.greedy) {
    bool sampled = a.temperature || a.top_p || a.top_k || suggested.do_sample.value_or(false);
    options.sampling = {.temperature = a.temperature.value_or(sampled ? suggested.temperature.value_or(1.0) : 0.0),
                        .top_k = a.top_k.value_or(sampled ? suggested.top_k.value_or(0) : 0),
                        .top_p = a.top_p.value_or(sampled ? suggested.top_p.value_or(1.0) : 1.0),
                        .seed = static_cast<uint64_t>(a.seed)};
  }
  Sampler check(options.sampling);  // refuses before the model is compiled
  llm::OpenModel model = open(a.model, io);
  for (int64_t id : suggested.eos_token_ids.empty() ? model.config.eos_token_ids : suggested.eos_token_ids)
    options.stop_ids.push_back(static_cast<int32_t>(id));

  Session session = model.session();
  StreamDecoder decoder(tokenizer);
  decoder.begin_after(prompt);
  std::vector<int32_t> generated;
  std::string all;
  bool begun = false;  // the prompt is shown once the model has taken it
  auto show = [&](const std::string& piece) {
    if (!begun) io.out << a.prompt;
    begun = true;
    all += piece;
    io.out << piece << std::flush;
  };
  auto start = std::chrono::steady_clock::now();
  StopReason reason = generate(session, prompt, options, [&](int32_t id) {
    generated.push_back(id);
    show(decoder.push(id));
    return true;
  });
  show(decoder.finish());
  io.out << "\n";
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const char* why = reason == StopReason::stop_token     ? "stop_token"
                    : reason == StopReason::context_full ? "context_full"
                                                         : "max_tokens";
  io.json = {{"prompt", a.prompt},
             {"prompt_ids", prompt},
             {"ids", generated},
             {"text", all},
             {"stopped_by", why},
             {"tokens_per_s", static_cast<double>(generated.size()) / seconds}};
  if (reason == StopReason::context_full) io.notes << "the context window is full\n";
}

}  // namespace

Command generate_command() {
  auto a = std::make_shared<GenerateArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back(
      {.name = "--prompt TEXT", .help = "what the text begins with", .into = &a->prompt, .required = true});
  options.push_back({"--greedy", "always take the most likely token", &a->greedy});
  options.push_back({"--max-tokens N", "tokens to generate at most", &a->max_tokens});
  options.push_back(
      {"--temperature T", "divides the logits before sampling; 1 unless told, 0 is greedy", &a->temperature});
  options.push_back(
      {"--top-p P", "sample among the most likely tokens that reach P together; 1 unless told", &a->top_p});
  options.push_back({"--top-k K", "sample among the K most likely tokens; 0 unless told, which is all", &a->top_k});
  options.push_back({"--seed S", "the same seed gives the same text", &a->seed});
  return {.name = "generate",
          .does = "continues a text, streaming it",
          .options = std::move(options),
          .run = [a](Streams& io) { run(*a, io); },
          .details =
              "What is not told comes from the model's generation_config.json first. Where neither that nor an "
              "option asks to\nsample, the most likely token is always taken."};
}

}  // namespace sator::cli
