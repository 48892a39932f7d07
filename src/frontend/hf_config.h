#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "engine/chat_template.h"
#include "engine/tokenizer/tokenizer.h"
#include "frontend/model_config.h"

namespace sator {

/// The folder of a model that is given by its folder or by its `config.json` or `mlc-chat-config.json`, as MLC-LLM's
/// commands take it: "." for the bare name of such a file. A GGUF file stands for itself, and for its folder if that holds no
/// other model.
/// Errors: there is no such path; it is a file of another name.
fs::path model_folder(const fs::path& given);
/// Whether models are read from files of this name: configurations, tokenizers, chat templates, weights, adapters,
/// and the texts that studies find there.
bool is_model_file(const fs::path& file);

/// Reads `config.json` of a folder, or the file itself. A folder without one is read by its `mlc-chat-config.json`, a GGUF file
/// by its metadata. Of a folder whose embeddings are tied, the weights are looked at too: a head that differs from the
/// embedding is not tied, as in Transformers 5.
/// Cost: where a folder holds an equal head nevertheless, both are read.
/// Errors: the file is missing or malformed; the model type or something that changes its arithmetic (an
/// activation, a rotary scaling, a sliding window, cross attention, weights quantized already) is not
/// supported; a member is unknown and may change what is computed; a size is missing, not positive, absurd, or does
/// not divide (heads into hidden_size, kv heads into heads).
ModelConfig read_model_config(const fs::path& folder);

/// The tokenizer of a folder (Tokenizer::load) or of a GGUF file.
Tokenizer load_tokenizer(const fs::path& model);
/// Its chat template, as of ChatTemplate::load, or from the metadata of a GGUF file; nothing where there is none.
std::optional<ChatTemplate> load_chat_template(const fs::path& model);

/// The model types that read_model_config knows.
std::vector<std::string> supported_model_types();

/// What `generation_config.json` suggests; all of it may be absent, and so may the file.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> bos_token_id, pad_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k, no_repeat_ngram_size, max_new_tokens;
  std::optional<int64_t> max_length;      // tokens of prompt and answer together, where max_new_tokens is not given
  std::vector<std::string> stop_strings;  // the text ends before them
  std::vector<int32_t> suppressed;        // ids that are never drawn
  std::optional<int64_t> min_new_tokens, min_length;  // tokens before the text may end; min_length counts the prompt
  std::vector<std::vector<int32_t>> bad_words;        // sequences of tokens that are never completed
  std::vector<std::pair<std::vector<int32_t>, double>> sequence_bias;  // added to the logit of a sequence's last token
  /// What the file asks for that would change the result and is not done here, in words: "num_beams 4". Names that nobody
  /// knows are among them.
  std::vector<std::string> not_done;
};

/// Errors: the file exists and is malformed, or a value is out of its range.
GenerationConfig read_generation_config(const fs::path& folder);

}  // namespace sator
