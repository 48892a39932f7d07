#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/figures.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/progress.h"
#include "engine/evaluate.h"

namespace sator::cli {

namespace {

struct PerplexityArguments {
  ModelArguments model;
  std::string text;
  std::optional<int64_t> windows, window_length, stride;
};

/// Tokens of a window: those asked for, else 512, or the whole context where it is shorter.
int64_t window_tokens_of(const PerplexityArguments& a, int64_t context, Streams& io) {
  if (a.window_length && *a.window_length > context)
    fail({.what = text("--window-length ", *a.window_length, ", and the context window is ", counted(context, "token")),
          .needs = text("from 2 to ", context, " tokens"),
          .hint = "leave --window-length out"});
  if (a.window_length) return *a.window_length;
  if (context < kWindowTokens)
    io.notes << "the context window is " << counted(context, "token") << ", and so are the windows of the text\n";
  return std::min(kWindowTokens, context);
}

std::string result_line(const Perplexity& p, int64_t window_tokens, double speed) {
  const std::string error = p.standard_error() ? text(" +- ", fixed(*p.standard_error(), 4)) : "";
  return text("perplexity ",
              fixed(p.perplexity(), 4),
              error,
              "  (",
              p.windows(),
              p.windows() == 1 ? " window, so no standard error; of " : " windows of ",
              window_tokens,
              " tokens, ",
              p.predictions(),
              " predictions; ",
              fixed(speed, 0),
              " tokens/s)\n");
}

void run(const PerplexityArguments& a, Streams& io) {
  const TextEnd end = a.stride ? TextEnd::open : TextEnd::marked;
  const std::vector<int32_t> stream =
      a.text == "-" ? llm::token_stream_of(a.model.folder(), standard_input(io), "standard input", end)
                    : llm::token_stream_of(a.model.folder(), fs::path(a.text), end);
  llm::OpenModel model = open(a.model, io);
  const int64_t window_tokens = window_tokens_of(a, model.limits.context_window, io);
  const std::vector<Window> windows = windows_of(stream, window_tokens, a.windows, a.stride);
  Session session = model.session();
  auto start = std::chrono::steady_clock::now();
  const auto total = static_cast<int64_t>(windows.size());
  int64_t tokens = 0;
  for (const Window& w : windows) tokens += static_cast<int64_t>(w.ids.size());
  ProgressLines lines(io.notes);
  Perplexity p = evaluate_perplexity(
      session, windows, [&](int64_t done) { lines(text("predicting windows, ", done, " of ", total), true); });
  lines.end();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double speed = static_cast<double>(tokens) / seconds;
  const auto error = p.standard_error();
  io.json = {{"perplexity", p.perplexity()},
             {"standard_error", error ? nlohmann::json(*error) : nlohmann::json(nullptr)},
             {"windows", p.windows()},
             {"window_tokens", window_tokens},
             {"stride", a.stride ? nlohmann::json(*a.stride) : nlohmann::json(nullptr)},
             {"predictions", p.predictions()},
             {"tokens_per_s", speed},
             {"quantization", model.scheme.name},
             {"bits_per_weight", model.size.bits_per_weight()}};
  io.out << result_line(p, window_tokens, speed);
}

}  // namespace

Command perplexity_command() {
  auto a = std::make_shared<PerplexityArguments>();
  std::vector<Option> options = model_options(a->model);
  options.push_back(
      {.name = "--text FILE", .help = "the text to predict; - for standard input", .into = &a->text, .required = true});
  options.push_back({.name = "--windows N",
                     .help = "only the first N windows; all unless told",
                     .into = &a->windows,
                     .range = at_least(1)});
  options.push_back({.name = "--window-length N",
                     .help = "tokens of a window; 512 unless told, or the whole context where that is shorter",
                     .into = &a->window_length,
                     .range = at_least(2)});
  options.push_back({.name = "--stride N",
                     .help =
                         "a window begins every N tokens, so that each token but the first ones is predicted with at "
                         "least window-length - N tokens before it; no overlap unless told",
                     .into = &a->stride,
                     .range = at_least(1)});
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
          "perplexity = exp(mean of -ln p). The standard error is that of the windows' means, carried over; one window "
          "has none.\n"
          "With --stride windows overlap, the last one ends with the text (without an end mark that the tokenizer does "
          "not\n"
          "itself set), and each token is scored once, in the first window that has it: the sliding-window evaluation "
          "of\n"
          "Hugging Face's documentation. The smaller the stride, the more context a token has, the better the "
          "perplexity,\n"
          "and the longer it takes.",
      .also = {"ppl", "quality"}};
}

}  // namespace sator::cli
