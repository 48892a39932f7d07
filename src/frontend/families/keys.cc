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

/// Refuses another value than the one that is computed.
void must_be_json(const JsonAt& config, std::string_view name, const Json& value) {
  if (auto member = config.find(name); member && member->json() != value)
    member->fail(text("is ", member->json().dump(), ", which is not supported"), text(name, ": ", value.dump()));
}

}  // namespace

std::optional<Activation> activation_of(std::string_view name) {
  for (const ActivationRow& row : kActivations)
    if (row.name == name) return row.activation;
  return {};
}

Activation read_activation(const JsonAt& at) {
  if (auto activation = activation_of(at.string())) return *activation;
  std::vector<std::string> names;
  for (const ActivationRow& row : kActivations) names.emplace_back(row.name);
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

void must_be(const JsonAt& config, std::string_view name, bool value) { must_be_json(config, name, value); }
void must_be(const JsonAt& config, std::string_view name, int64_t value) { must_be_json(config, name, value); }
void must_be(const JsonAt& config, std::string_view name, const char* value) { must_be_json(config, name, value); }

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

}  // namespace sator::families
