// generation_config.json: what a model's makers suggest for generating text.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/generation_keys.h"
#include "frontend/hf_config.h"
#include "frontend/token_ids.h"

namespace sator {

namespace {

/// Names that are acted on, or that change no generated token here.
constexpr std::string_view kKnown[] = {
    "eos_token_id",
    "bos_token_id",
    "pad_token_id",
    "do_sample",
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "max_new_tokens",
    "max_length",
    "stop_strings",
    "suppress_tokens",
    "min_new_tokens",
    "min_length",
    "bad_words_ids",
    "sequence_bias",
    // where a text comes from, how it is computed, what is returned beside it
    "_from_model_config",
    "transformers_version",
    "_commit_hash",
    "use_cache",
    "cache_implementation",
    "cache_config",
    "return_dict_in_generate",
    "return_legacy_cache",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "compile_config",
    "disable_compile",
    "max_matching_ngram_size",
    "generation_kwargs",
    "trust_remote_code",
    // of models that translate, and of drafts that propose tokens: another model's business
    "decoder_start_token_id",
    "is_encoder_decoder",
    "is_assistant",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "assistant_early_exit",
    "assistant_lookbehind",
    "target_lookbehind",
    "prompt_lookup_num_tokens",
    "low_memory"};

/// Names that change what is generated, with the values at which they do nothing.
struct Neutral {
  std::string_view name;
  std::vector<Json> values;
};
const std::vector<Neutral>& neutral_values() {
  static const std::vector<Neutral> rows = {{"num_return_sequences", {1}},
                                            {"num_beams", {1}},
                                            {"num_beam_groups", {1}},
                                            {"diversity_penalty", {0}},
                                            {"length_penalty", {1}},
                                            {"early_stopping", {false}},
                                            {"penalty_alpha", {0}},
                                            {"typical_p", {1}},
                                            {"epsilon_cutoff", {0}},
                                            {"eta_cutoff", {0}},
                                            {"top_h", {}},
                                            {"max_time", {}},
                                            {"force_words_ids", {}},
                                            {"constraints", {}},
                                            {"forced_bos_token_id", {}},
                                            {"forced_eos_token_id", {}},
                                            {"begin_suppress_tokens", {}},
                                            {"forced_decoder_ids", {}},
                                            {"guidance_scale", {1}},
                                            {"token_healing", {false}},
                                            {"watermarking_config", {}},
                                            {"renormalize_logits", {false}},
                                            {"dola_layers", {}},
                                            {"exponential_decay_length_penalty", {}},
                                            {"remove_invalid_values", {false}},
                                            {"encoder_repetition_penalty", {1}},
                                            {"encoder_no_repeat_ngram_size", {0}}};
  return rows;
}

/// "num_beams 4"; a long value is cut.
std::string in_words(const std::string& name, const Json& value) {
  constexpr size_t kMost = 40;
  const std::string words = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text(name, " ", words.size() > kMost ? words.substr(0, kMost) + "..." : words);
}

std::vector<std::string> not_done(const Json& config) {
  std::vector<std::string> out;
  for (const auto& [name, value] : config.items()) {
    if (value.is_null() || std::ranges::count(kKnown, name) > 0) continue;
    const auto row = std::ranges::find(neutral_values(), name, &Neutral::name);
    if (row == neutral_values().end()) {
      out.push_back(in_words(name, value) + " (unknown)");
      continue;
    }
    if (std::ranges::count(row->values, value) > 0) continue;
    if ((value.is_array() || value.is_object()) && value.empty()) continue;
    out.push_back(in_words(name, value));
  }
  return out;
}

/// A number of the file that has to satisfy `holds`.
template <class Holds>
std::optional<double> number_of(const JsonAt& config, std::string_view name, Holds holds, std::string_view needs) {
  const auto at = config.find(name);
  if (!at) return {};
  if (!holds(at->number())) at->fail(text("is ", at->number()), needs);
  return at->number();
}

}  // namespace

bool is_generation_key(std::string_view name) {
  return std::ranges::count(kKnown, name) > 0 || std::ranges::count(neutral_values(), name, &Neutral::name) > 0;
}

/// Ids, one or more.
static std::vector<int32_t> read_sequence(const JsonAt& at) {
  std::vector<int32_t> ids;
  at.each([&](const JsonAt& id) { ids.push_back(static_cast<int32_t>(id.integer(0, INT32_MAX))); });
  if (ids.empty()) at.fail("is empty", "ids of tokens, one or more");
  return ids;
}

/// [ids, bias].
static std::pair<std::vector<int32_t>, double> read_biased(const JsonAt& at) {
  std::vector<JsonAt> parts;
  at.each([&](const JsonAt& part) { parts.push_back(part); });
  if (parts.size() != 2)
    at.fail(text("has ", parts.size(), " members"), "ids of tokens, and what is added: [[5, 9], -1.5]");
  return {read_sequence(parts[0]), parts[1].number()};
}

GenerationConfig read_generation_config(const fs::path& folder) {
  fs::path file = folder / "generation_config.json";
  GenerationConfig generation;
  if (!fs::exists(file)) return generation;
  std::string source = file.string();
  Json tree = parse_json(read_regular_file(file), source);
  JsonAt config(tree, source);
  generation.eos_token_ids = read_token_ids(config, "eos_token_id");
  generation.bos_token_id = read_token_id(config, "bos_token_id");
  generation.pad_token_id = read_token_id(config, "pad_token_id");
  if (auto at = config.find("do_sample")) generation.do_sample = at->boolean();
  if (auto at = config.find("top_k")) generation.top_k = at->integer(0, INT32_MAX);
  if (auto at = config.find("no_repeat_ngram_size")) generation.no_repeat_ngram_size = at->integer(0, INT32_MAX);
  if (auto at = config.find("max_new_tokens")) generation.max_new_tokens = at->integer(1, INT32_MAX);
  if (auto at = config.find("max_length")) generation.max_length = at->integer(1, INT32_MAX);
  generation.temperature = number_of(config, "temperature", [](double v) { return v >= 0; }, "a temperature >= 0");
  generation.top_p = number_of(config, "top_p", [](double v) { return v > 0 && v <= 1; }, "0 < top_p <= 1");
  generation.min_p = number_of(config, "min_p", [](double v) { return v >= 0 && v <= 1; }, "0 <= min_p <= 1");
  generation.repetition_penalty =
      number_of(config, "repetition_penalty", [](double v) { return v > 0; }, "a positive number");
  if (auto stops = config.find("stop_strings")) {
    auto add = [&](const JsonAt& at) {
      if (at.string().empty()) at.fail("is empty", "a text of one character or more");
      generation.stop_strings.push_back(at.string());
    };
    if (stops->is_string())
      add(*stops);
    else
      stops->each(add);
  }
  if (auto never = config.find("suppress_tokens"))
    never->each(
        [&](const JsonAt& at) { generation.suppressed.push_back(static_cast<int32_t>(at.integer(0, INT32_MAX))); });
  if (auto at = config.find("min_new_tokens")) generation.min_new_tokens = at->integer(0, INT32_MAX);
  if (auto at = config.find("min_length")) generation.min_length = at->integer(0, INT32_MAX);
  if (auto words = config.find("bad_words_ids"))
    words->each([&](const JsonAt& at) { generation.bad_words.push_back(read_sequence(at)); });
  if (auto biases = config.find("sequence_bias"))
    biases->each([&](const JsonAt& at) {
      auto [sequence, bias] = read_biased(at);
      // Of two biases of one sequence the later one holds.
      std::erase_if(generation.sequence_bias, [&](const auto& row) { return row.first == sequence; });
      generation.sequence_bias.emplace_back(std::move(sequence), bias);
    });
  generation.not_done = not_done(tree);
  return generation;
}

}  // namespace sator
