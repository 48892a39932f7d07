#include "frontend/hf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/families/keys.h"
#include "frontend/gguf_model.h"
#include "frontend/mlc_config.h"
#include "frontend/stored_quantization.h"
#include "frontend/text_part.h"
#include "frontend/tied_head.h"
#include "frontend/token_ids.h"
#include "frontend/unread_keys.h"

namespace sator {

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const families::Family& row : families::all()) names.emplace_back(row.model_type);
  return names;
}

/// "meta-llama/Llama-3.2-1B": an owner and a model, as the Hugging Face hub names them.
static bool is_hub_id(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == name.size() || name[0] == '.') return false;
  auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return std::ranges::all_of(name.substr(0, slash), plain) && std::ranges::all_of(name.substr(slash + 1), plain) &&
         !fs::exists(name.substr(0, slash)) && !name.ends_with(".json");
}

[[noreturn]] static void fail_absent(const fs::path& path) {
  if (const std::string id = path.string(); is_hub_id(id))
    fail({.what = text("there is no folder ", id, "; models are not fetched from the Hugging Face hub"),
          .needs = "a model's folder on this machine: config.json, safetensors, tokenizer.json",
          .hint = text("`pip install huggingface_hub`, then `hf download ",
                       id,
                       " --local-dir ",
                       path.filename().string(),
                       "`, then give ",
                       path.filename().string())});
  fail({.what = text("there is no ", path.string()),
        .needs = "the folder of a Hugging Face model: config.json, safetensors, tokenizer.json",
        .hint = "check the path"});
}

/// The GGUF file of a folder that holds nothing else to read a model from; the first part of a split one. Empty: there is none.
/// Errors: there are several.
static fs::path only_gguf(const fs::path& folder) {
  if (fs::exists(folder / "config.json") || fs::exists(folder / kMlcConfigFile)) return {};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool later_part = name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (GgufFile::is_named_so(entry.path()) && !later_part) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.size() > 1)
    fail({.what = text(folder.string(), " holds ", files.size(), " GGUF files"),
          .needs = "one of them",
          .hint = text("give its path: ", files.front().string())});
  return files.empty() ? fs::path() : files.front();
}

fs::path model_folder(const fs::path& given) {
  if (fs::is_directory(given)) {
    const fs::path file = only_gguf(given);
    return file.empty() ? given : file;
  }
  if (!fs::exists(given)) fail_absent(given);
  if (GgufFile::is_named_so(given)) return given;
  if (given.filename() != "config.json" && given.filename() != kMlcConfigFile)
    fail({.what = text(given.string(), " is neither a folder nor a model's configuration"),
          .needs = text("a folder, its config.json or its ", kMlcConfigFile, ", or a GGUF file"),
          .hint = "give the model's folder"});
  return given.has_parent_path() ? given.parent_path() : fs::path(".");
}

bool is_model_file(const fs::path& file) {
  static constexpr std::string_view kNames[] = {"config.json",
                                                kMlcConfigFile,
                                                "generation_config.json",
                                                "adapter_config.json",
                                                "tokenizer.json",
                                                "tokenizer.model",
                                                "tokenizer_config.json",
                                                "special_tokens_map.json",
                                                "added_tokens.json",
                                                "vocab.json",
                                                "merges.txt",
                                                "chat_template.jinja",
                                                "chat_template.json",
                                                "model.safetensors.index.json",
                                                "tensor-cache.json",
                                                "ndarray-cache.json",
                                                "calibration.txt",
                                                "validation.txt"};
  const std::string name = file.filename().string();
  return std::ranges::find(kNames, name) != std::end(kNames) || name.ends_with(".safetensors") ||
         name.ends_with(".tiktoken") || GgufFile::is_named_so(file) ||
         (name.starts_with("params_shard_") && name.ends_with(".bin"));
}

/// What newer files call `dtype` and older ones `torch_dtype`; float32 where it is missing or of another kind ("auto").
static DType dtype_of(const JsonAt& config) {
  for (const char* key : {"dtype", "torch_dtype"})
    if (auto name = config.find(key))
      for (DType dtype : {f16, bf16})
        if (name->json() == dtype.name()) return dtype;
  return f32;
}

/// Errors: the file names the head of another task than the next token.
static void require_language_model(const JsonAt& config) {
  const auto names = config.find("architectures");
  if (!names || !names->is_array()) return;
  names->each([](const JsonAt& name) {
    if (!name.is_string()) return;
    for (std::string_view task :
         {"ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"})
      if (const std::string& given = name.string(); given.ends_with(task))
        name.fail(text("is ", string_literal(given), ", whose head predicts no tokens"),
                  "a causal language model",
                  text("if the checkpoint has a language model's head too, name it ",
                       given.substr(0, given.size() - task.size()),
                       "ForCausalLM"));
  });
}

/// What the tree of a config.json says. Errors: as of read_model_config.
static ModelConfig model_config_of(const Json& whole, const std::string& source) {
  const Json tree = config_of_text_part(whole, source);
  JsonReads reads;
  JsonAt config(tree, source, &reads);
  ModelConfig model;
  JsonAt type = config.at("model_type");
  model.model_type = type.string();
  require_language_model(config);
  const families::Family* family = nullptr;
  for (const families::Family& row : families::all())
    if (row.model_type == model.model_type) family = &row;
  if (!family)
    type.fail(text("is ", string_literal(model.model_type), ", a model that is not supported"),
              text("one of ", join(supported_model_types(), ", "), "; of gemma3 its text part"),
              hint_of_text_part(tree));
  if (auto quantized = config.find("quantization_config")) {
    model.quantization = read_stored_quantization(*quantized);
    model.quantization->unread = unread_of_quantization(*quantized, reads);
  }
  model.dtype = dtype_of(config);
  model.vocab_size = families::read_size(config, {"vocab_size"});
  model.eos_token_ids = read_token_ids(config, "eos_token_id");
  model.bos_token_id = read_token_id(config, "bos_token_id");
  family->read(config, model);
  refuse_unread(config, reads, model);
  return model;
}

Tokenizer load_tokenizer(const fs::path& model) {
  if (!GgufFile::is_named_so(model)) return Tokenizer::load(model);
  const GgufFile file = GgufFile::open(model);
  auto role = [&](const char* key) -> std::optional<int32_t> {
    const Json* id = file.find_value(key);
    return id && id->is_number_integer() ? std::optional(id->get<int32_t>()) : std::nullopt;
  };
  return Tokenizer::from_tree(tokenizer_of_gguf(file),
                              model.string(),
                              role("tokenizer.ggml.bos_token_id"),
                              role("tokenizer.ggml.eos_token_id"));
}

std::optional<ChatTemplate> load_chat_template(const fs::path& model) {
  if (!GgufFile::is_named_so(model)) return ChatTemplate::load(model);
  const GgufFile file = GgufFile::open(model);
  const Json* source = file.find_value("tokenizer.chat_template");
  if (!source || !source->is_string()) return {};
  nlohmann::ordered_json special = nlohmann::ordered_json::object();
  const Json* tokens = file.find_value("tokenizer.ggml.tokens");
  for (const char* role : {"bos", "eos", "unknown", "padding"}) {
    const Json* id = file.find_value(text("tokenizer.ggml.", role, "_token_id"));
    if (!tokens || !id || !id->is_number_unsigned() || id->get<size_t>() >= tokens->size()) continue;
    const std::string_view name = role == std::string_view("unknown")   ? "unk"
                                  : role == std::string_view("padding") ? "pad"
                                                                        : role;
    special[text(name, "_token")] = tokens->at(id->get<size_t>()).get<std::string>();
  }
  return ChatTemplate::of(source->get<std::string>(), text(model.string(), ": tokenizer.chat_template"), special);
}

ModelConfig read_model_config(const fs::path& folder) {
  if (GgufFile::is_named_so(folder)) {
    if (!fs::exists(folder)) fail_absent(folder);
    const GgufFile file = GgufFile::open(folder);
    ModelConfig model = model_config_of(config_of_gguf(file), folder.string());
    describe_as_in_gguf(file, model);
    return model;
  }
  fs::path file = fs::is_directory(folder) ? folder / "config.json" : folder;
  const bool converted = !fs::exists(file) && fs::exists(folder / kMlcConfigFile);
  if (converted) file = folder / kMlcConfigFile;
  if (!fs::exists(file)) fail_absent(file);
  std::string source = file.string();
  Json tree = parse_json(read_regular_file(file), source);
  if (converted) tree = config_of_mlc(tree, source);
  ModelConfig model = model_config_of(tree, source);
  if (mlc_checkpoint_scheme(folder)) describe_as_in_mlc(model);
  if (model.tie_word_embeddings && fs::is_directory(folder) && has_head_of_its_own(folder, model.names))
    model.tie_word_embeddings = false;
  return model;
}

}  // namespace sator
