#include "frontend/hf_config.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "frontend/mlc_config.h"
#include "frontend/token_ids.h"

namespace sator {

namespace {

// Larger values are mistakes or attacks, and products of any two of them stay far below 2^63.
constexpr int64_t kMaxDim = int64_t{1} << 24, kMaxLayers = 4096, kMaxPositions = int64_t{1} << 28;

struct ActivationRow {
  std::string_view name;
  Activation activation;
};
const ActivationRow kActivations[] = {
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu", Activation::gelu_erf},
    {"relu", Activation::relu},
    {"silu", Activation::silu},
    {"swish", Activation::silu},
};

Activation read_activation(const JsonAt& at) {
  std::vector<std::string> names;
  for (const ActivationRow& row : kActivations) {
    if (row.name == at.string()) return row.activation;
    names.emplace_back(row.name);
  }
  at.fail(text("is ", string_literal(at.string()), ", an activation that is not supported"),
          text("one of ", join(names, ", ")));
}

/// The first of several spellings that is given.
std::optional<JsonAt> find_any(const JsonAt& config, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (auto member = config.find(name)) return member;
  return {};
}

int64_t read_size(const JsonAt& config, std::initializer_list<std::string_view> names, int64_t max = kMaxDim) {
  if (auto member = find_any(config, names)) return member->integer(1, max);
  config.at(*names.begin());
  internal_error("at() of an absent member returned");
}

double read_positive(const JsonAt& at) {
  double value = at.number();
  if (!(value > 0)) at.fail(text("is ", value), "a positive number");
  return value;
}

double positive_or(const JsonAt& config, std::string_view name, double otherwise) {
  auto member = config.find(name);
  return member ? read_positive(*member) : otherwise;
}

/// Refuses a switch that is on: what it asks for would change the arithmetic.
void refuse_if_true(const JsonAt& config, std::string_view name) {
  if (auto member = config.find(name); member && member->boolean())
    member->fail("is true, which is not supported", text(name, ": false"));
}

void must_divide(const JsonAt& config, std::string_view part, int64_t a, std::string_view whole, int64_t b) {
  if (b % a != 0)
    config.fail(text("has ", whole, " = ", b, ", not a multiple of ", part, " = ", a), text(part, " divides ", whole));
}

std::string rope_type(const JsonAt& rope) {
  if (auto type = find_any(rope, {"rope_type", "type"})) return type->string();
  return "default";
}

/// One rotary dictionary, in the old spelling (`rope_scaling`) or the new (`rope_parameters`).
RopeScaling read_rope_scaling(const JsonAt& rope) {
  using Kind = RopeScaling::Kind;
  std::string type = rope_type(rope);
  if (auto partial = rope.find("partial_rotary_factor"); partial && partial->number() != 1)
    partial->fail(text("is ", partial->number(), ", which is not supported for Llama"),
                  "rotary embedding of the whole head");
  if (type == "default" || type == "none") return {};
  RopeScaling scaling;
  if (type == "linear") {
    scaling.kind = Kind::linear;
    scaling.factor = read_positive(rope.at("factor"));
    return scaling;
  }
  if (type != "llama3")
    rope.fail(text("asks for rotary scaling of type ", string_literal(type), ", which is not supported"),
              "default, linear or llama3",
              "dropping it would change the model's results, so it is refused");
  scaling.kind = Kind::llama3;
  scaling.factor = read_positive(rope.at("factor"));
  scaling.low_freq_factor = read_positive(rope.at("low_freq_factor"));
  scaling.high_freq_factor = read_positive(rope.at("high_freq_factor"));
  scaling.original_positions = rope.at("original_max_position_embeddings").integer(1, kMaxPositions);
  if (scaling.low_freq_factor >= scaling.high_freq_factor)
    rope.fail(text("has low_freq_factor ", scaling.low_freq_factor, " and high_freq_factor ", scaling.high_freq_factor),
              "low_freq_factor < high_freq_factor");
  return scaling;
}

/// Errors: two places of the file give different bases, of which Transformers 4 takes the one outside of the dictionaries,
/// Transformers 5 the one inside.
void require_one_theta(const JsonAt& config, std::initializer_list<std::optional<JsonAt>> forms) {
  std::optional<JsonAt> known = config.find("rope_theta");
  for (const std::optional<JsonAt>& form : forms) {
    const std::optional<JsonAt> inside = form ? form->find("rope_theta") : std::nullopt;
    if (known && inside && known->number() != inside->number())
      inside->fail(text("is ", inside->number(), ", where another place of the file gives ", known->number()),
                   "one base of the rotary embedding, or the same twice",
                   "remove the one that the model was not trained with");
    if (inside) known = inside;
  }
}

/// Keys by which relatives of Llama scale or arrange what Llama does not, with the value at which they do nothing. A file that
/// calls itself llama and sets one was made for another program.
struct Foreign {
  std::string_view name;
  Json neutral;
};
void refuse_foreign(const JsonAt& config) {
  static const Foreign rows[] = {{"embedding_multiplier", 1},
                                 {"residual_multiplier", 1},
                                 {"attention_multiplier", nullptr},
                                 {"logits_scaling", 1},
                                 {"logit_scale", 1},
                                 {"scale_emb", 1},
                                 {"scale_depth", nullptr},
                                 {"attn_logit_softcapping", nullptr},
                                 {"final_logit_softcapping", nullptr},
                                 {"query_pre_attn_scalar", nullptr},
                                 {"clip_qkv", nullptr},
                                 {"use_qk_norm", false},
                                 {"rope_interleaved", false},
                                 {"use_parallel_residual", false},
                                 {"num_local_experts", nullptr},
                                 {"no_rope_layers", nullptr}};
  for (const Foreign& row : rows) {
    const std::optional<JsonAt> at = config.find(row.name);
    if (at && at->json() != row.neutral)
      at->fail("is set, which Llama has not",
               row.neutral.is_null() ? "no such key" : text(row.name, ": ", row.neutral.dump()),
               "take it out if the model was trained without it");
  }
}

/// Base and scaling of the rotary embedding. Files give it in the old spelling (`rope_theta`,
/// `rope_scaling`), the new
/// (`rope_parameters`) or both; as in Transformers 5, `rope_scaling` goes before `rope_parameters`, and a
/// theta inside the dictionary before the one outside.
void read_rope(const JsonAt& config, LlamaConfig& llama) {
  auto old_form = config.find("rope_scaling"), new_form = config.find("rope_parameters");
  for (const auto& form : {old_form, new_form}) {
    if (!form) continue;
    form->each_member([](const std::string&, const JsonAt& member) {
      if (member.is_object())
        member.fail("gives each kind of layer its own rotary embedding, which Llama has not",
                    "one dictionary for all layers");
    });
  }
  if (auto partial = config.find("partial_rotary_factor"); partial && partial->number() != 1)
    partial->fail("is not 1, which is not supported for Llama", "rotary embedding of the whole head");
  require_one_theta(config, {old_form, new_form});
  llama.rope_theta = positive_or(config, "rope_theta", llama.rope_theta);
  if (new_form) {
    llama.rope_scaling = read_rope_scaling(*new_form);
    if (!old_form) llama.rope_theta = positive_or(*new_form, "rope_theta", llama.rope_theta);
  }
  if (old_form) {
    RopeScaling scaling = read_rope_scaling(*old_form);
    if (llama.rope_scaling.kind != RopeScaling::Kind::none && llama.rope_scaling != scaling)
      config.fail("has two different rotary scalings in rope_scaling and rope_parameters",
                  "one scaling, or the same twice",
                  "remove the one that the model was not trained with");
    llama.rope_scaling = scaling;
    bool outside = config.find("rope_theta").has_value();
    double in_new = new_form ? positive_or(*new_form, "rope_theta", llama.rope_theta) : llama.rope_theta;
    llama.rope_theta = positive_or(*old_form, "rope_theta", outside ? llama.rope_theta : in_new);
  }
}

void read_gpt2(const JsonAt& config, ModelConfig& model) {
  Gpt2Config gpt2;
  gpt2.hidden_size = read_size(config, {"n_embd", "hidden_size"});
  gpt2.layers = read_size(config, {"n_layer", "num_hidden_layers"}, kMaxLayers);
  gpt2.heads = read_size(config, {"n_head", "num_attention_heads"});
  gpt2.intermediate_size = config.integer_or("n_inner", 4 * gpt2.hidden_size, 1, 4 * kMaxDim);
  gpt2.layer_norm_eps = positive_or(config, "layer_norm_epsilon", gpt2.layer_norm_eps);
  if (auto name = config.find("activation_function")) gpt2.activation = read_activation(*name);
  gpt2.scale_attn_weights = config.boolean_or("scale_attn_weights", true);
  gpt2.scale_attn_by_inverse_layer_idx = config.boolean_or("scale_attn_by_inverse_layer_idx", false);
  must_divide(config, "n_head", gpt2.heads, "n_embd", gpt2.hidden_size);
  refuse_if_true(config, "add_cross_attention");
  model.max_positions = read_size(config, {"n_positions", "max_position_embeddings", "n_ctx"}, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", true);
  model.family = gpt2;
}

void read_llama(const JsonAt& config, ModelConfig& model) {
  LlamaConfig llama;
  llama.hidden_size = read_size(config, {"hidden_size"});
  llama.intermediate_size = read_size(config, {"intermediate_size"});
  llama.layers = read_size(config, {"num_hidden_layers"}, kMaxLayers);
  llama.heads = read_size(config, {"num_attention_heads"});
  llama.kv_heads = config.integer_or("num_key_value_heads", llama.heads, 1, kMaxDim);
  must_divide(config, "num_key_value_heads", llama.kv_heads, "num_attention_heads", llama.heads);
  if (auto head_dim = config.find("head_dim")) {
    llama.head_dim = head_dim->integer(1, kMaxDim);
  } else {
    must_divide(config, "num_attention_heads", llama.heads, "hidden_size", llama.hidden_size);
    llama.head_dim = llama.hidden_size / llama.heads;
  }
  must_divide(config, "2 (rotary pairs)", 2, "head_dim", llama.head_dim);
  if (llama.heads * llama.head_dim > kMaxDim)
    config.fail(text("has ", llama.heads, " heads of ", llama.head_dim), text("heads * head_dim <= ", kMaxDim));
  llama.rms_norm_eps = positive_or(config, "rms_norm_eps", llama.rms_norm_eps);
  llama.attention_bias = config.boolean_or("attention_bias", false);
  llama.mlp_bias = config.boolean_or("mlp_bias", false);
  if (auto name = config.find("hidden_act")) llama.activation = read_activation(*name);
  read_rope(config, llama);
  refuse_foreign(config);
  if (auto window = config.find("sliding_window"); window && config.boolean_or("use_sliding_window", true))
    window->fail("asks for attention in a sliding window, which is not supported for Llama", "sliding_window: null");
  if (auto types = config.find("layer_types"))
    types->each([](const JsonAt& type) {
      if (type.string() != "full_attention")
        type.fail(text("is ", string_literal(type.string()), ", which is not supported for Llama"),
                  "full_attention in each layer");
    });
  model.max_positions = config.integer_or("max_position_embeddings", 2048, 1, kMaxPositions);
  model.tie_word_embeddings = config.boolean_or("tie_word_embeddings", false);
  model.family = llama;
}

struct FamilyRow {
  std::string_view model_type;
  void (*read)(const JsonAt& config, ModelConfig& model);
};
const FamilyRow kFamilies[] = {
    {"gpt2", read_gpt2},
    {"llama", read_llama},
};

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const FamilyRow& row : kFamilies) names.emplace_back(row.model_type);
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
  const FamilyRow* family = nullptr;
  for (const FamilyRow& row : kFamilies)
    if (row.model_type == model.model_type) family = &row;
  if (!family)
    type.fail(text("is ", string_literal(model.model_type), ", a model that is not supported"),
              text("one of ", join(supported_model_types(), ", ")));
  if (auto quantized = config.find("quantization_config"))
    quantized->fail("says that the weights are quantized already, which is not supported",
                    "a checkpoint of floating-point weights",
                    "start from the original checkpoint and pick a scheme here");
  model.vocab_size = read_size(config, {"vocab_size"});
  model.eos_token_ids = read_token_ids(config, "eos_token_id");
  model.bos_token_id = read_token_id(config, "bos_token_id");
  family->read(config, model);
  return model;
}

}  // namespace sator
