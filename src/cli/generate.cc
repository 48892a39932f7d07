#include "engine/generate.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/app.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/unicode.h"
#include "frontend/hf_config.h"

namespace sator::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  std::string prompt;
  bool greedy = false;
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, no_repeat_ngram_size;
  int64_t seed = 0;

  bool asks_to_sample() const { return temperature || top_p || top_k || min_p; }
};

constexpr int64_t kMaxTokens = 128;

SamplingParams sampling_of(const GenerateArguments& a, const GenerationConfig& suggested) {
  SamplingParams p{.seed = static_cast<uint64_t>(a.seed),
                   .repetition_penalty = a.repetition_penalty.value_or(suggested.repetition_penalty.value_or(1)),
                   .no_repeat_ngram_size = a.no_repeat_ngram_size.value_or(suggested.no_repeat_ngram_size.value_or(0))};
  if (a.greedy || !(a.asks_to_sample() || suggested.do_sample.value_or(false))) return p;
  p.temperature = a.temperature.value_or(suggested.temperature.value_or(1.0));
  p.top_k = a.top_k.value_or(suggested.top_k.value_or(0));
  p.top_p = a.top_p.value_or(suggested.top_p.value_or(1.0));
  p.min_p = a.min_p.value_or(suggested.min_p.value_or(0));
  return p;
}

/// The prompt's ids; of an empty one the token that texts begin with.
std::vector<int32_t> prompt_ids(const std::string& prompt, const fs::path& folder, const Tokenizer& tokenizer,
                                const GenerationConfig& suggested) {
  std::vector<int32_t> ids = tokenizer.encode(prompt, true);
  if (!ids.empty()) return ids;
  std::optional<int64_t> begin = tokenizer.bos_id();
  if (!begin) begin = suggested.bos_token_id;
  if (!begin) begin = read_model_config(folder).bos_token_id;
  if (!begin)
    fail({.what = "the prompt is empty, and the model names no token to begin with",
          .needs = "a text that is continued",
          .hint = "pass --prompt TEXT"});
  return {static_cast<int32_t>(*begin)};
}

/// Ids of the model's vocabulary that no token has: it was padded to a round size, or its tokenizer lost tokens.
std::vector<int32_t> ids_without_token(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t id = 0; id < vocab_size; ++id)
    if (!tokenizer.token_of(static_cast<int32_t>(id))) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

void say_what_is_not_done(const GenerationConfig& suggested, Streams& io) {
  if (!suggested.not_done.empty())
    io.notes << "generation_config.json asks for what is not done here: " << join(suggested.not_done, ", ") << "\n";
}

/// How many tokens to generate where nobody says: what generation_config.json asks for, of which max_length counts the prompt too.
int64_t tokens_suggested(const GenerationConfig& suggested, std::span<const int32_t> prompt, Streams& io) {
  if (suggested.max_new_tokens) return *suggested.max_new_tokens;
  if (!suggested.max_length) return kMaxTokens;
  const int64_t left = *suggested.max_length - static_cast<int64_t>(prompt.size());
  if (left < 1)
    io.notes << "generation_config.json asks for a max_length of " << *suggested.max_length
             << " tokens, which the prompt has already; one is generated\n";
  return std::clamp<int64_t>(left, 1, kMaxTokens);
}

/// Tokens per second; null where no step ran.
nlohmann::json rate(int64_t tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? nlohmann::json(static_cast<double>(tokens) / seconds) : nlohmann::json(nullptr);
}

void run(const GenerateArguments& a, Streams& io) {
  if (a.greedy && (a.temperature.value_or(0) != 0 || a.top_p || a.top_k || a.min_p))
    fail({.what = "--greedy beside --temperature, --top-p, --top-k or --min-p",
          .needs = "one of the two: the most likely token, or a sample",
          .hint = "leave out --greedy to sample"});
  const fs::path folder = a.model.folder();
  const std::string prompt_text = a.prompt == "-" ? std::string(trim(standard_input(io))) : a.prompt;
  require_utf8(prompt_text, a.prompt == "-" ? "standard input" : "--prompt");
  Tokenizer tokenizer = load_tokenizer(folder);
  const GenerationConfig suggested = read_generation_config(folder);
  say_what_is_not_done(suggested, io);
  const std::vector<int32_t> prompt = prompt_ids(prompt_text, folder, tokenizer, suggested);
  GenerateOptions options{.sampling = sampling_of(a, suggested),
                          .max_tokens = a.max_tokens ? *a.max_tokens : tokens_suggested(suggested, prompt, io)};
  Sampler check(options.sampling);  // refuses before the model is compiled
  llm::OpenModel model = open(a.model, io);
  options.sampling.excluded = ids_without_token(tokenizer, model.limits.vocab_size);
  if (!options.sampling.excluded.empty())
    io.notes << options.sampling.excluded.size() << " of the vocabulary's " << model.limits.vocab_size
             << " ids have no token, and are never drawn\n";
  for (int64_t id : suggested.eos_token_ids.empty() ? model.config.eos_token_ids : suggested.eos_token_ids)
    options.stop_ids.push_back(static_cast<int32_t>(id));

  Session session = model.session();
  StreamDecoder decoder(tokenizer);
  decoder.begin_after(prompt);
  std::vector<int32_t> generated;
  std::string all;
  bool begun = false;  // the prompt is shown once the model has taken it
  auto show = [&](const std::string& piece) {
    if (!begun) io.out << prompt_text;
    begun = true;
    all += piece;
    io.out << piece << std::flush;
  };
  const Generated done = generate(session, prompt, options, [&](int32_t id) {
    generated.push_back(id);
    show(decoder.push(id));
    return true;
  });
  show(decoder.finish());
  io.out << "\n";
  const char* why = done.reason == StopReason::stop_token     ? "stop_token"
                    : done.reason == StopReason::context_full ? "context_full"
                                                              : "max_tokens";
  io.json = {{"prompt", prompt_text},
             {"prompt_ids", prompt},
             {"ids", generated},
             {"text", all},
             {"stopped_by", why},
             {"prefill_tokens_per_s", rate(static_cast<int64_t>(prompt.size()), done.prefill_s)},
             {"decode_tokens_per_s", rate(done.decode_steps, done.decode_s)},
             {"prefill_s", done.prefill_s},
             {"decode_s", done.decode_s},
             {"decode_steps", done.decode_steps}};
  if (done.reason == StopReason::context_full) io.notes << "the context window is full\n";
}

}  // namespace

Command generate_command() {
  auto a = std::make_shared<GenerateArguments>();
  std::vector<Option> options = model_options(a->model);
  auto add = [&](Option option) { options.push_back(std::move(option)); };
  add({.name = "--prompt TEXT",
       .help = "what the text begins with; - for standard input",
       .into = &a->prompt,
       .required = true,
       .also = {"-p"}});
  add({"--greedy", "always take the most likely token", &a->greedy});
  add({.name = "--max-tokens N",
       .help = text("tokens to generate at most; ", kMaxTokens, " unless told"),
       .into = &a->max_tokens,
       .range = at_least(1),
       .also = {"-n", "--n-predict", "--num-predict", "--max-new-tokens", "--gen-len", "--length"}});
  add({.name = "--temperature T",
       .help = "divides the logits before sampling; 1 unless told, 0 is greedy",
       .into = &a->temperature,
       .range = at_least(0)});
  add({.name = "--top-p P",
       .help = "sample among the most likely tokens that reach P together; 1 unless told",
       .into = &a->top_p,
       .range = Range{.least = 0, .most = 1, .beyond_least = true}});
  add({.name = "--top-k K",
       .help = "sample among the K most likely tokens; 0 unless told, which is all",
       .into = &a->top_k,
       .range = at_least(0)});
  add({.name = "--min-p P",
       .help = "sample among tokens with at least P times the largest probability; 0 unless told, which is all",
       .into = &a->min_p,
       .range = between(0, 1)});
  add({.name = "--repetition-penalty X",
       .help = "divides positive logits of tokens that the text has, multiplies negative ones; 1 unless told",
       .into = &a->repetition_penalty,
       .range = above(0),
       .also = {"--repeat-penalty"}});
  add({.name = "--no-repeat-ngram-size N",
       .help = "never repeat N tokens in a row; 0 unless told, which allows it",
       .into = &a->no_repeat_ngram_size,
       .range = at_least(0)});
  add({.name = "--seed S", .help = "the same seed gives the same text", .into = &a->seed, .range = at_least(0)});
  return {
      .name = "generate",
      .does = "continues a text, streaming it",
      .options = std::move(options),
      .run = [a](Streams& io) { run(*a, io); },
      .details =
          "What is not told comes from the model's generation_config.json first; what that asks for and is not done "
          "here is named.\n"
          "Where neither that nor an option asks to sample, the most likely token is always taken. Penalties hold "
          "for both.\n"
          "--json FILE holds the speeds of prompt (prefill) and generated tokens (decode).",
      .also = {"run", "chat", "complete", "infer", "predict"}};
}

}  // namespace sator::cli
