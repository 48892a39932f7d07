#include "frontend/families/keys.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sator::families {

namespace {

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

/// The first of several spellings that is given.
std::optional<JsonAt> find_any(const JsonAt& config, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (auto member = config.find(name)) return member;
  return {};
}

/// A key that would change the mathematics, with the value at which it does nothing.
struct Foreign {
  std::string_view name;
  Json neutral;
};
}  // namespace

Activation read_activation(const JsonAt& at) {
  std::vector<std::string> names;
  for (const ActivationRow& row : kActivations) {
    if (row.name == at.string()) return row.activation;
    names.emplace_back(row.name);
  }
  at.fail(text("is ", string_literal(at.string()), ", an activation that is not supported"),
          text("one of ", join(names, ", ")));
}

int64_t read_size(const JsonAt& config, std::initializer_list<std::string_view> names, int64_t max) {
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

void refuse_if_true(const JsonAt& config, std::string_view name) {
  if (auto member = config.find(name); member && member->boolean())
    member->fail("is true, which is not supported", text(name, ": false"));
}

void must_divide(const JsonAt& config, std::string_view part, int64_t a, std::string_view whole, int64_t b) {
  if (b % a != 0)
    config.fail(text("has ", whole, " = ", b, ", not a multiple of ", part, " = ", a), text(part, " divides ", whole));
}

void read_equal_heads(const JsonAt& config, ModelConfig& model, std::initializer_list<std::string_view> names,
                      std::string_view whole) {
  AttentionConfig& a = model.attention;
  a.heads = a.kv_heads = read_size(config, names);
  must_divide(config, *names.begin(), a.heads, whole, model.hidden_size);
  a.head_dim = model.hidden_size / a.heads;
  a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
}

void refuse_foreign(const JsonAt& config, std::initializer_list<std::string_view> but) {
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
                                 {"qk_layernorm", false},
                                 {"rope_interleaved", false},
                                 {"rope_local_base_freq", nullptr},
                                 {"use_parallel_residual", false},
                                 {"parallel_attn", false},
                                 {"alibi", false},
                                 {"use_bidirectional_attention", false},
                                 {"num_local_experts", nullptr},
                                 {"num_experts", nullptr},
                                 {"n_routed_experts", nullptr},
                                 {"kv_lora_rank", nullptr},
                                 {"swiglu_limit", nullptr},
                                 {"swiglu_alpha", nullptr},
                                 {"no_rope_layers", nullptr},
                                 {"no_rope_layer_interval", nullptr},
                                 {"rotary_dim", nullptr},
                                 {"new_decoder_architecture", false},
                                 {"apply_residual_connection_post_layernorm", false}};
  for (const Foreign& row : rows) {
    if (std::ranges::find(but, row.name) != but.end()) continue;
    const std::optional<JsonAt> at = config.find(row.name);
    if (at && at->json() != row.neutral)
      at->fail(text("is set, which ", config.at("model_type").string(), " has not"),
               row.neutral.is_null() ? "no such key" : text(row.name, ": ", row.neutral.dump()),
               "take it out if the model was trained without it");
  }
}

}  // namespace sator::families
