// The options that commands which generate text share.
#pragma once

#include "cli/model_options.h"
#include "engine/generate.h"
#include "engine/json_schema/shapes.h"
#include "engine/tokenizer/tokenizer.h"

namespace sator::cli {

struct SamplingArguments {
  bool greedy = false;
  std::optional<int64_t> max_tokens;
  std::optional<double> temperature, top_p, min_p, repetition_penalty, frequency_penalty, presence_penalty;
  std::vector<std::string> logit_bias, stop;
  std::optional<int64_t> top_k, no_repeat_ngram_size, min_tokens;
  int64_t seed = 0, prompt_lookup = 0;
  std::optional<std::string> json_schema;

  bool asks_to_sample() const { return temperature || top_p || top_k || min_p; }
  /// Errors: --greedy beside options that ask for a sample; an empty stop string.
  void check() const;
};

std::vector<Option> sampling_options(SamplingArguments& arguments);

/// What is not told comes from generation_config.json.
SamplingParams sampling_of(const SamplingArguments& a, const GenerationConfig& suggested);

void say_what_is_not_done(const GenerationConfig& suggested, Streams& io);

/// How many tokens to generate where nobody says: what generation_config.json asks for, of which max_length counts the prompt too.
int64_t tokens_suggested(const GenerationConfig& suggested, std::span<const int32_t> prompt, Streams& io);

/// The ids and strings that end a text, and the ids that are never drawn, because no token has them or the makers say so.
/// Errors: a bias for an id that is not in the vocabulary.
void fit_to_model(GenerateOptions& options, const SamplingArguments& a, const Tokenizer& tokenizer,
                  const ModelConfig& model, const GenerationConfig& suggested, Streams& io);

/// The schema that texts must follow; null where none was asked for. Keywords that say nothing are named.
std::shared_ptr<const json_schema::Shapes> schema_of(const SamplingArguments& a, Streams& io);
/// Makes texts follow it.
void follow_schema(GenerateOptions& options, const std::shared_ptr<const json_schema::Shapes>& shapes,
                   const Tokenizer& tokenizer, const llm::OpenModel& model);

/// Says that a document has fewer tokens than were asked for, if it has.
void say_if_short(const GenerateOptions& options, const Generated& done, int64_t prompt_tokens, int64_t tokens,
                  Streams& io);
/// Why a text is no document of its schema.
Reason document_is_cut(int64_t tokens);
/// As results write it: "stop_token", "stop_string", "max_tokens", "context_full", "interrupt", "complete".
std::string name_of(StopReason reason);

/// What a lookup brought, if there was one.
void say_lookup(const Generated& done, Streams& io);

/// Tokens per second; null where no step ran.
nlohmann::json rate(int64_t tokens, double seconds);

}  // namespace sator::cli
