#include "cli/sampling_options.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/figures.h"
#include "engine/json_schema/constraint.h"
#include "engine/prompt.h"
#include "frontend/hf_config.h"

namespace sator::cli {

static constexpr int64_t kMaxTokens = 128;

void SamplingArguments::check() const {
  if (greedy && (temperature.value_or(0) != 0 || top_p || top_k || min_p))
    fail({.what = "--greedy beside --temperature, --top-p, --top-k or --min-p",
          .needs = "one of the two: the most likely token, or a sample",
          .hint = "leave out --greedy to sample"});
  if (std::ranges::find(stop, "") != stop.end())
    fail({.what = "--stop is given an empty text",
          .needs = "one character or more: a text ends before the first of them",
          .hint = "leave it out for the model's own ends"});
}

/// "ID=BIAS".
static std::pair<int32_t, double> read_bias(const std::string& given) {
  const size_t at = given.find('=');
  int32_t id = -1;
  double bias = 0;
  const char *begin = given.data(), *middle = begin + std::min(at, given.size()), *end = begin + given.size();
  auto is_all = [](const std::from_chars_result& read, const char* last) {
    return read.ptr == last && read.ec == std::errc{};
  };
  const bool good = at != given.npos && is_all(std::from_chars(begin, middle, id), middle) && middle + 1 < end &&
                    id >= 0 && is_all(std::from_chars(middle + 1, end, bias), end) &&
                    (std::fabs(bias) <= kLargestBias || bias == -INFINITY);
  if (!good)
    fail({.what = text("--logit-bias is given ", string_literal(given)),
          .needs = text("a token's id and what is added to its logit, at most ", kLargestBias, " in size: 50256=-inf"),
          .hint = "`sator tokenize` tells the ids of a text"});
  return {id, bias};
}

SamplingParams sampling_of(const SamplingArguments& a, const GenerationConfig& suggested) {
  SamplingParams p{.seed = static_cast<uint64_t>(a.seed),
                   .repetition_penalty = a.repetition_penalty.value_or(suggested.repetition_penalty.value_or(1)),
                   .no_repeat_ngram_size = a.no_repeat_ngram_size.value_or(suggested.no_repeat_ngram_size.value_or(0))};
  p.frequency_penalty = a.frequency_penalty.value_or(0);
  p.presence_penalty = a.presence_penalty.value_or(0);
  for (const std::string& given : a.logit_bias) p.logit_bias.push_back(read_bias(given));
  if (a.min_tokens && a.max_tokens && *a.min_tokens > *a.max_tokens)
    fail({.what = text("--min-tokens ", *a.min_tokens, " and --max-tokens ", *a.max_tokens),
          .needs = "at least as many at most",
          .hint = text("--max-tokens ", *a.min_tokens)});
  p.min_new_tokens = a.min_tokens.value_or(suggested.min_new_tokens.value_or(0));
  p.min_length = suggested.min_length.value_or(0);
  p.sequence_bias = suggested.sequence_bias;
  p.bad_words = suggested.bad_words;
  if (a.greedy || !(a.asks_to_sample() || suggested.do_sample.value_or(false))) return p;
  p.temperature = a.temperature.value_or(suggested.temperature.value_or(1.0));
  p.top_k = a.top_k.value_or(suggested.top_k.value_or(0));
  p.top_p = a.top_p.value_or(suggested.top_p.value_or(1.0));
  p.min_p = a.min_p.value_or(suggested.min_p.value_or(0));
  return p;
}

void say_what_is_not_done(const GenerationConfig& suggested, Streams& io) {
  if (!suggested.not_done.empty())
    io.notes << "generation_config.json asks for what is not done here: " << join(suggested.not_done, ", ") << "\n";
}

int64_t tokens_suggested(const GenerationConfig& suggested, std::span<const int32_t> prompt, Streams& io) {
  if (suggested.max_new_tokens) return *suggested.max_new_tokens;
  if (!suggested.max_length) return kMaxTokens;
  const int64_t left = *suggested.max_length - static_cast<int64_t>(prompt.size());
  if (left < 1)
    io.notes << "generation_config.json asks for a max_length of " << *suggested.max_length
             << " tokens, which the prompt has already; one is generated\n";
  return std::max<int64_t>(left, 1);
}

/// Ids of the model's vocabulary that no token has: it was padded to a round size, or its tokenizer lost tokens.
static std::vector<int32_t> ids_without_token(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (int64_t id = 0; id < vocab_size; ++id)
    if (!tokenizer.token_of(static_cast<int32_t>(id))) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

void fit_to_model(GenerateOptions& options, const SamplingArguments& a, const Tokenizer& tokenizer,
                  const ModelConfig& model, const GenerationConfig& suggested, Streams& io) {
  const int64_t vocab = model.vocab_size;
  options.sampling.excluded = ids_without_token(tokenizer, vocab);
  if (!options.sampling.excluded.empty())
    io.notes << options.sampling.excluded.size() << " of the vocabulary's " << vocab
             << " ids have no token, and are never drawn\n";
  options.sampling.excluded.insert(
      options.sampling.excluded.end(), suggested.suppressed.begin(), suggested.suppressed.end());
  options.prompt_lookup = a.prompt_lookup;
  options.stop_strings = a.stop.empty() ? suggested.stop_strings : a.stop;
  for (int64_t id : suggested.eos_token_ids.empty() ? model.eos_token_ids : suggested.eos_token_ids)
    options.stop_ids.push_back(static_cast<int32_t>(id));
  options.sampling.ends = options.stop_ids;
  // As transformers: a bad word that is nothing but the end of the text is none.
  std::erase_if(options.sampling.bad_words, [&](const std::vector<int32_t>& word) {
    return word.size() == 1 && std::ranges::count(options.stop_ids, word[0]) > 0;
  });
  for (int32_t id : options.stop_ids)
    if (id >= vocab)
      io.notes << "eos_token_id " << id << " is no id of the vocabulary, which ends at " << vocab - 1
               << ": it ends no text\n";
  for (const auto& [id, bias] : options.sampling.logit_bias)
    if (id >= vocab)
      fail({.what = text("--logit-bias is given the id ", id),
            .needs = text("ids of the vocabulary, below ", vocab),
            .hint = "`sator tokenize` tells the ids of a text"});
  auto require_ids = [&](const char* name, const std::vector<int32_t>& ids) {
    for (int32_t id : ids)
      if (id >= vocab)
        fail({.what = text("generation_config.json: ", name, " has the id ", id),
              .needs = text("ids of the vocabulary, below ", vocab),
              .hint = "the file belongs to another model"});
  };
  for (const std::vector<int32_t>& word : options.sampling.bad_words) require_ids("bad_words_ids", word);
  for (const auto& [sequence, bias] : options.sampling.sequence_bias) require_ids("sequence_bias", sequence);
}

std::shared_ptr<const json_schema::Shapes> schema_of(const SamplingArguments& a, Streams& io) {
  if (!a.json_schema) return nullptr;
  json_schema::Schema schema =
      json_schema::Schema::read(read_text_file(*a.json_schema, "a JSON schema"), *a.json_schema);
  if (!schema.ignored.empty())
    io.notes << *a.json_schema << ": what these keywords say is not enforced: " << join(schema.ignored, ", ") << "\n";
  return std::make_shared<const json_schema::Shapes>(json_schema::Shapes::of(std::move(schema)));
}

void follow_schema(GenerateOptions& options, const std::shared_ptr<const json_schema::Shapes>& shapes,
                   const Tokenizer& tokenizer, const llm::OpenModel& model) {
  if (shapes)
    options.constraint = std::make_shared<json_schema::JsonConstraint>(shapes, tokenizer, model.limits.vocab_size);
}

void say_lookup(const Generated& done, Streams& io) {
  if (done.proposed == 0) return;
  io.notes << "prompt lookup: " << done.accepted << " of " << done.proposed << " proposed tokens came ("
           << percent(static_cast<double>(done.accepted) / static_cast<double>(done.proposed)) << "), "
           << done.decode_steps << " tokens in " << done.runs << " runs of the model\n";
}

void say_if_short(const GenerateOptions& options, const Generated& done, int64_t prompt_tokens, int64_t tokens,
                  Streams& io) {
  const int64_t least = options.sampling.least_tokens(prompt_tokens);
  if (!options.constraint || done.reason != StopReason::complete || tokens >= least) return;
  io.notes << "note: the JSON document ends after " << counted(tokens, "token") << ", before the minimum of " << least
           << "\n";
}

Reason document_is_cut(int64_t tokens) {
  return {.what = text("the JSON document is not complete after ", counted(tokens, "token")),
          .needs = "a text that goes on to the document's end",
          .hint = "leave out --stop: what ends a text may stand in a document"};
}

std::string name_of(StopReason reason) {
  switch (reason) {
    case StopReason::stop_token: return "stop_token";
    case StopReason::stop_string: return "stop_string";
    case StopReason::max_tokens: return "max_tokens";
    case StopReason::context_full: return "context_full";
    case StopReason::told: return "interrupt";
    case StopReason::complete: return "complete";
  }
  return "";
}

nlohmann::json rate(int64_t tokens, double seconds) {
  return tokens > 0 && seconds > 0 ? nlohmann::json(static_cast<double>(tokens) / seconds) : nlohmann::json(nullptr);
}

std::vector<Option> sampling_options(SamplingArguments& a) {
  std::vector<Option> options;
  auto add = [&](Option option) { options.push_back(std::move(option)); };
  add({"--greedy", "always take the most likely token", &a.greedy});
  add({.name = "--max-tokens N",
       .help = text("tokens to generate at most; ", kMaxTokens, " unless told, in a chat as many as fit"),
       .into = &a.max_tokens,
       .range = at_least(1),
       .also = {"-n", "--n-predict", "--num-predict", "--max-new-tokens", "--gen-len", "--length"}});
  add({.name = "--min-tokens N",
       .help = "tokens before the text may end, a document of --json-schema where it can go on; 0 unless told",
       .into = &a.min_tokens,
       .range = at_least(0),
       .also = {"--min-new-tokens", "--min-length"}});
  add({.name = "--temperature T",
       .help = "divides the logits before sampling; 1 unless told, 0 is greedy",
       .into = &a.temperature,
       .range = at_least(0)});
  add({.name = "--top-p P",
       .help = "sample among the most likely tokens that reach P together; 1 unless told",
       .into = &a.top_p,
       .range = Range{.least = 0, .most = 1, .beyond_least = true}});
  add({.name = "--top-k K",
       .help = "sample among the K most likely tokens; 0 unless told, which is all",
       .into = &a.top_k,
       .range = at_least(0)});
  add({.name = "--min-p P",
       .help = "sample among tokens with at least P times the largest probability; 0 unless told, which is all",
       .into = &a.min_p,
       .range = between(0, 1)});
  add({.name = "--repetition-penalty X",
       .help = "divides positive logits of tokens that the text has, multiplies negative ones; 1 unless told",
       .into = &a.repetition_penalty,
       .range = above(0),
       .also = {"--repeat-penalty"}});
  add({.name = "--frequency-penalty X",
       .help = "taken from a token's logit for each time that it was generated; 0 unless told",
       .into = &a.frequency_penalty,
       .range = between(-kLargestBias, kLargestBias)});
  add({.name = "--presence-penalty X",
       .help = "taken from the logits of tokens that were generated; 0 unless told",
       .into = &a.presence_penalty,
       .range = between(-kLargestBias, kLargestBias)});
  add({.name = "--logit-bias ID=X",
       .help = "added to the logit of a token, -inf forbids it; may be repeated",
       .into = &a.logit_bias});
  add({.name = "--stop TEXT",
       .help = "the text ends before this one; may be repeated; those of generation_config.json unless told",
       .into = &a.stop,
       .also = {"--stop-string", "--reverse-prompt"}});
  add({.name = "--no-repeat-ngram-size N",
       .help = "never repeat N tokens in a row; 0 unless told, which allows it",
       .into = &a.no_repeat_ngram_size,
       .range = at_least(0)});
  add({.name = "--json-schema FILE",
       .help = "the text is a JSON document of this schema",
       .into = &a.json_schema,
       .also = {"--schema", "--grammar", "--response-format"}});
  add({.name = "--prompt-lookup N",
       .help = "propose up to N tokens from what the text had before, and check several at once: the same text, sooner",
       .into = &a.prompt_lookup,
       .range = between(0, 1000),
       .also = {"--prompt-lookup-num-tokens", "--lookup", "--speculative", "--draft"}});
  add({.name = "--seed S", .help = "the same seed gives the same text", .into = &a.seed, .range = at_least(0)});
  return options;
}

}  // namespace sator::cli
