// Models of texts and pictures whose text part runs by itself.
#include "frontend/text_part.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "frontend/hf_config.h"

namespace sator {

namespace {

struct Wrapper {
  std::string_view model_type, text_type;
  Json defaults;  // sizes that published files leave out
};

const std::vector<Wrapper>& wrappers() {
  // Source: Gemma3TextConfig and Gemma3ForConditionalGeneration of Transformers 5.24; the latter caps no logits.
  static const std::vector<Wrapper> rows = {{"gemma3",
                                             "gemma3_text",
                                             {{"vocab_size", 262208},
                                              {"hidden_size", 2304},
                                              {"intermediate_size", 9216},
                                              {"num_hidden_layers", 26},
                                              {"num_attention_heads", 8}}}};
  return rows;
}

/// Of pictures, and of where they stand among tokens.
constexpr std::string_view kOfPictures[] = {"vision_config",
                                            "mm_tokens_per_image",
                                            "image_token_index",
                                            "image_token_id",
                                            "boi_token_index",
                                            "boi_token_id",
                                            "eoi_token_index",
                                            "eoi_token_id"};
/// What a file says of the whole goes before what it says of the text part.
constexpr std::string_view kOfAll[] = {"eos_token_id",
                                       "bos_token_id",
                                       "quantization_config",
                                       "dtype",
                                       "torch_dtype",
                                       "tie_word_embeddings",
                                       "architectures"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

Json config_of_text_part(const Json& config, std::string_view source) {
  const JsonAt at(config, std::string(source));
  const Json type = config.is_object() && config.contains("model_type") ? config["model_type"] : Json();
  const auto wrapper = std::ranges::find_if(wrappers(), [&](const Wrapper& w) { return type == w.model_type; });
  if (wrapper == wrappers().end()) return config;
  const JsonAt inside = at.at("text_config");
  Json out = wrapper->defaults;
  inside.each_member([&](const std::string& name, const JsonAt& member) { out[name] = member.json(); });
  if (auto own = inside.find("model_type"); own && own->json() != wrapper->text_type)
    own->fail(text("is ", own->json().dump(), " in a ", wrapper->model_type), string_literal(wrapper->text_type));
  at.each_member([&](const std::string& name, const JsonAt& member) {
    if (name == "text_config" || is_one_of(name, kOfPictures) || member.json().is_null()) return;
    if (is_one_of(name, kOfAll) || !out.contains(name)) out[name] = member.json();
  });
  out["model_type"] = wrapper->text_type;
  out["final_logit_softcapping"] = nullptr;
  return out;
}

std::string hint_of_text_part(const Json& config) {
  const JsonAt at(config, "config.json");
  const auto inside = at.find("text_config");
  const auto type = inside && inside->is_object() ? inside->find("model_type") : std::nullopt;
  if (!type || !type->is_string()) return "";
  const std::vector<std::string> supported = supported_model_types();
  if (std::ranges::find(supported, type->string()) == supported.end()) return "";
  return text("its text part is a ",
              type->string(),
              ", which runs where it is saved as a model of its own (save_pretrained of the language model)");
}

}  // namespace sator
