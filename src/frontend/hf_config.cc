#include "frontend/hf_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/families/keys.h"
#include "frontend/mlc_config.h"
#include "frontend/stored_quantization.h"
#include "frontend/token_ids.h"

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

fs::path model_folder(const fs::path& given) {
  if (fs::is_directory(given)) return given;
  if (!fs::exists(given)) fail_absent(given);
  if (given.filename() != "config.json" && given.filename() != kMlcConfigFile)
    fail({.what = text(given.string(), " is neither a folder nor a model's configuration"),
          .needs = text("a folder, its config.json or its ", kMlcConfigFile),
          .hint = "give the model's folder"});
  return given.has_parent_path() ? given.parent_path() : fs::path(".");
}

ModelConfig read_model_config(const fs::path& folder) {
  fs::path file = fs::is_directory(folder) ? folder / "config.json" : folder;
  const bool converted = !fs::exists(file) && fs::exists(folder / kMlcConfigFile);
  if (converted) file = folder / kMlcConfigFile;
  if (!fs::exists(file)) fail_absent(file);
  std::string source = file.string();
  Json tree = parse_json(read_file(file), source);
  if (converted) tree = config_of_mlc(tree, source);
  JsonAt config(tree, source);

  ModelConfig model;
  JsonAt type = config.at("model_type");
  model.model_type = type.string();
  const families::Family* family = nullptr;
  for (const families::Family& row : families::all())
    if (row.model_type == model.model_type) family = &row;
  if (!family)
    type.fail(text("is ", string_literal(model.model_type), ", a model that is not supported"),
              text("one of ", join(supported_model_types(), ", ")));
  if (auto quantized = config.find("quantization_config")) model.quantization = read_stored_quantization(*quantized);
  model.vocab_size = families::read_size(config, {"vocab_size"});
  model.eos_token_ids = read_token_ids(config, "eos_token_id");
  model.bos_token_id = read_token_id(config, "bos_token_id");
  family->read(config, model);
  return model;
}

}  // namespace sator
