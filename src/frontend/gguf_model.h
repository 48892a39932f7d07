// A model in a GGUF file, in the terms of a Hugging Face folder: configuration, names of tensors, tokenizer.
#pragma once

#include <map>

#include "frontend/gguf.h"
#include "frontend/model_config.h"

namespace sator {

/// The file's metadata as the config.json of the same model.
/// Errors: an architecture that is not read, by its name; a key that is missing, or that changes the mathematics in a way that is
/// not read.
Json config_of_gguf(const GgufFile& file);

/// What a converter to GGUF has changed in the weights is taken back in the description: norms hold 1 + w already, matrices
/// are stored [out, in], queries, keys and values one after the other, gate and up of experts lie apart. How llama.cpp computes what
/// the families' own programs do in another way is as there: which norms have the file's epsilon, how experts are chosen.
void describe_as_in_gguf(const GgufFile& file, ModelConfig& config);

/// A tensor by the name that the Hugging Face checkpoint has for it.
struct GgufWeight {
  std::string name;
  GgufTensor tensor;  ///< the file's, or what of it is one expert's
  /// Of queries and keys that the converter ordered for rotation in neighbouring pairs: row i is the file's row row_order[i].
  std::vector<int64_t> row_order = {};
};
/// Those that belong to the model, and under their own names others.
std::vector<GgufWeight> weights_of_gguf(const GgufFile& file, const ModelConfig& config);

/// The tokenizer.json of the file's tokenizer: byte-level BPE ("gpt2") with the cutting that `tokenizer.ggml.pre` names, or
/// SentencePiece's BPE ("llama"), its merges in the order of the scores.
/// Errors: another kind or cutting, by its name; lists that do not fit each other.
Json tokenizer_of_gguf(const GgufFile& file);

/// Names of llama.cpp's LLAMA_FTYPE by their numbers, as far as they are read.
const std::map<int64_t, std::string>& gguf_file_types();
/// "Q4_K_M", as general.file_type has it; "gguf" where it has none.
std::string file_type_of_gguf(const GgufFile& file);

}  // namespace sator
