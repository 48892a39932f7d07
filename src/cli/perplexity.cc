#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "engine/evaluate.h"

namespace sator::cli {

namespace {

struct PerplexityArguments {
  ModelArguments model;
  std::string text;
  std::optional<int64_t> windows;
};

void run(const PerplexityArguments& a, Streams& io) {
  if (a.windows && *a.windows < 1)
    fail({.what = text("--windows ", *a.windows), .needs = "at least 1", .hint = "leave it out for the whole text"});
  const std::vector<int32_t> stream = llm::token_stream_of(a.model.folder(), a.text);
  llm::OpenModel model = open(a.model, io);
  const int64_t window_tokens = std::min(kWindowTokens, model.limits.context_window);
  if (window_tokens < kWindowTokens)
    io.notes << "the context window is " << window_tokens << " tokens, and so are the windows of the text\n";
  const std::vector<std::span<const int32_t>> windows = windows_of(stream, window_tokens, a.windows);
  Session session = model.session();
  auto start = std::chrono::steady_clock::now();
  auto total = static_cast<int64_t>(windows.size());
  ProgressLines lines(io.notes);
  Perplexity p = evaluate_perplexity(
      session, windows, [&](int64_t done) { lines(text("predicting windows, ", done, " of ", total), true); });
  lines.end();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double speed = static_cast<double>(total * window_tokens) / seconds;
  io.json = {{"perplexity", p.perplexity()},
             {"standard_error", p.standard_error()},
             {"windows", p.windows()},
             {"window_tokens", window_tokens},
             {"predictions", p.predictions()},
             {"tokens_per_s", speed},
             {"quantization", model.scheme.name},
             {"bits_per_weight", model.size.bits_per_weight()}};
  char line[200];
  std::snprintf(line,
                sizeof line,
                "perplexity %.4f +- %.4f  (%lld windows of %lld tokens, %lld predictions; %.0f tokens/s)\n",
                p.perplexity(),
                p.standard_error(),
                static_cast<long long>(p.windows()),
                static_cast<long long>(window_tokens),
                static_cast<long long>(p.predictions()),
                speed);
  io.out << line;
}

}  // namespace

Command perplexity_command() {
  auto a = std::make_shared<PerplexityArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back({.name = "--text FILE", .help = "the text to predict", .into = &a->text, .required = true});
  options.push_back({"--windows N", "only the first N windows; all unless told", &a->windows});
  return {
      .name = "perplexity",
      .does = "measures how well a model predicts a text",
      .options = std::move(options),
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "Protocol: the text is cut into works at lines `<|endoftext|>`, each is encoded as a whole with the "
          "model's marks\n"
          "around it, all ids form one stream. It is cut into windows of 512 tokens (of the whole context where "
          "that is\n"
          "shorter) that do not overlap; the incomplete last one is dropped. Each window is run alone from position "
          "0; its\n"
          "tokens from the second on are predicted.\n"
          "perplexity = exp(mean of -ln p). The standard error is that of the windows' means, carried over."};
}

}  // namespace sator::cli
