// Rotary embedding as config.json spells it.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

namespace {

using Kind = RopeScaling::Kind;

std::string rope_type(const JsonAt& rope) { return rope.string_or("rope_type", rope.string_or("type", "default")); }

/// The places where a file may describe one rotary embedding.
struct Places {
  std::optional<JsonAt> old_form, new_form;  // `rope_scaling`, `rope_parameters`
};

std::vector<double> read_factors(const JsonAt& at, int64_t pairs) {
  std::vector<double> out;
  at.each([&](const JsonAt& factor) { out.push_back(read_positive(factor)); });
  if (std::ssize(out) != pairs)
    at.fail(text("has ", out.size(), " factors"), text("one for each of the ", pairs, " pairs of rotated elements"));
  return out;
}

/// The positions that the frequencies were trained for.
int64_t read_original(const JsonAt& rope, const JsonAt& config, int64_t otherwise) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const auto outside = config.find(kKey);
  if (auto at = rope.find(kKey)) {
    if (outside && outside->json() != at->json())
      at->fail(text("is ", at->json().dump(), ", where the file says ", outside->json().dump(), " outside of it"),
               "one number of positions, or the same twice",
               "remove the one that the model was not trained with");
    return at->integer(1, kMaxPositions);
  }
  if (outside) return outside->integer(1, kMaxPositions);
  if (otherwise < 1) rope.at(kKey);
  return otherwise;
}

void read_yarn(const JsonAt& rope, RopeScaling& s) {
  s.factor = read_positive(rope.at("factor"));
  s.beta_fast = positive_or(rope, "beta_fast", s.beta_fast);
  s.beta_slow = positive_or(rope, "beta_slow", s.beta_slow);
  s.truncate = rope.boolean_or("truncate", true);
  // Two scales that only differ where a checkpoint scales attention itself (DeepSeek); source: YaRN, equation 22.
  auto get_scale = [&](double m) { return s.factor <= 1 ? 1 : 0.1 * m * std::log(s.factor) + 1; };
  auto mscale = rope.find("mscale"), all = rope.find("mscale_all_dim");
  if (auto given = rope.find("attention_factor"))
    s.attention_factor = read_positive(*given);
  else if (mscale && all && mscale->number() != 0 && all->number() != 0)
    s.attention_factor = get_scale(mscale->number()) / get_scale(all->number());
  else
    s.attention_factor = get_scale(1);
}

void read_longrope(const JsonAt& rope, const JsonAt& config, const ModelConfig& model, int64_t dims,
                   int64_t original_positions, RopeScaling& s) {
  const int64_t pairs = dims / 2;
  s.original_positions = read_original(rope, config, original_positions);
  s.short_factor = read_factors(rope.at("short_factor"), pairs);
  s.long_factor = read_factors(rope.at("long_factor"), pairs);
  s.factor = static_cast<double>(model.max_positions) / static_cast<double>(s.original_positions);
  if (auto given = rope.find("factor"); given && !config.find("original_max_position_embeddings"))
    s.factor = read_positive(*given);
  if (auto given = rope.find("attention_factor"))
    s.attention_factor = read_positive(*given);
  else if (s.factor > 1)
    s.attention_factor = std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_positions)));
}

/// One rotary dictionary, in the old spelling (`rope_scaling`) or the new (`rope_parameters`).
///   dims                of each head that are rotated
///   original_positions  of longrope, where the file does not say; 0: it has to
RopeScaling read_scaling(const JsonAt& rope, const JsonAt& config, const ModelConfig& model, int64_t dims,
                         int64_t original_positions) {
  const std::string type = rope_type(rope);
  RopeScaling s;
  if (type == "default" || type == "none") return s;
  if (type == "linear") {
    s.kind = Kind::linear;
    s.factor = read_positive(rope.at("factor"));
  } else if (type == "dynamic") {
    s.kind = Kind::dynamic;
    if (dims < 4) rope.fail(text("stretches ", dims, " rotated elements"), "four or more elements of each head");
    s.factor = read_positive(rope.at("factor"));
    // Transformers 5.24 divides by max_position_embeddings, whatever the file calls the original.
    s.original_positions = model.max_positions;
    for (const JsonAt& at : {rope, config}) at.find("original_max_position_embeddings");
  } else if (type == "yarn") {
    s.kind = Kind::yarn;
    s.original_positions = read_original(rope, config, model.max_positions);
    read_yarn(rope, s);
  } else if (type == "longrope" || type == "su") {
    s.kind = Kind::longrope;
    read_longrope(rope, config, model, dims, original_positions, s);
  } else if (type == "llama3") {
    s.kind = Kind::llama3;
    s.factor = read_positive(rope.at("factor"));
    s.low_freq_factor = read_positive(rope.at("low_freq_factor"));
    s.high_freq_factor = read_positive(rope.at("high_freq_factor"));
    s.original_positions = rope.at("original_max_position_embeddings").integer(1, kMaxPositions);
    if (s.low_freq_factor >= s.high_freq_factor)
      rope.fail(text("has low_freq_factor ", s.low_freq_factor, " and high_freq_factor ", s.high_freq_factor),
                "low_freq_factor < high_freq_factor");
  } else {
    rope.fail(text("asks for rotary scaling of type ", string_literal(type), ", which is not supported"),
              "default, linear, dynamic, yarn, longrope or llama3",
              "dropping it would change the model's results, so it is refused");
  }
  return s;
}

/// Errors: two places of the file give different bases, of which Transformers 4 takes the one outside of the dictionaries,
/// Transformers 5 the one inside.
void require_one_theta(const JsonAt& config, const Places& at, std::string_view key) {
  std::optional<JsonAt> known = config.find(key);
  for (const std::optional<JsonAt>& form : {at.old_form, at.new_form}) {
    const std::optional<JsonAt> inside = form ? form->find("rope_theta") : std::nullopt;
    if (known && inside && known->number() != inside->number())
      inside->fail(text("is ", inside->number(), ", where another place of the file gives ", known->number()),
                   "one base of the rotary embedding, or the same twice",
                   "remove the one that the model was not trained with");
    if (inside) known = inside;
  }
}

/// The share of each head that is rotated, wherever the file states it.
double rotated_share(const JsonAt& config, const Places& places, const RopeRules& rules) {
  std::optional<double> share;
  auto see = [&](const std::optional<JsonAt>& at, std::string_view name) {
    auto given = at ? at->find(name) : std::nullopt;
    if (!given) return;
    const double value = given->number();
    if (!(value > 0 && value <= 1)) given->fail(text("is ", value), "a share of each head: above 0, at most 1");
    if (share && *share != value)
      given->fail(text("is ", value, ", where another place of the file gives ", *share),
                  "one share, or the same twice");
    share = value;
  };
  see(config, rules.share_key);
  for (const std::optional<JsonAt>& form : {places.old_form, places.new_form}) see(form, "partial_rotary_factor");
  return share.value_or(rules.share);
}

Rope read_one(const JsonAt& config, const ModelConfig& model, const Places& places, const RopeRules& rules) {
  const auto& [old_form, new_form] = places;
  require_one_theta(config, places, rules.theta_key);
  Rope rope{.theta = positive_or(config, rules.theta_key, rules.theta)};
  const auto head_dim = static_cast<double>(model.attention.head_dim);
  rope.dims = static_cast<int64_t>(head_dim * rotated_share(config, places, rules));
  must_divide(config, "2 (rotary pairs)", 2, "rotated elements of a head", rope.dims);
  if (rope.dims < 2)
    config.fail(text("rotates no element of a head of ", model.attention.head_dim),
                "a share that is two elements or more");
  if (!new_form && !old_form && rules.scaling) rope.scaling = *rules.scaling;
  if (new_form) {
    rope.scaling = read_scaling(*new_form, config, model, rope.dims, rules.original_positions);
    if (!old_form) rope.theta = positive_or(*new_form, "rope_theta", rope.theta);
  }
  if (old_form) {
    RopeScaling scaling = read_scaling(*old_form, config, model, rope.dims, rules.original_positions);
    if (rope.scaling.kind != Kind::none && rope.scaling != scaling)
      config.fail("has two different rotary scalings in rope_scaling and rope_parameters",
                  "one scaling, or the same twice",
                  "remove the one that the model was not trained with");
    rope.scaling = scaling;
    bool outside = config.find(rules.theta_key).has_value();
    // Transformers 5 forgets the new form where the old one is given, and its base with it.
    if (new_form && new_form->find("rope_theta") && !outside && !old_form->find("rope_theta"))
      old_form->fail("is given beside rope_parameters, whose rope_theta would be lost",
                     "one of the two, or rope_theta in both",
                     "write the scaling into rope_parameters");
    double in_new = new_form ? positive_or(*new_form, "rope_theta", rope.theta) : rope.theta;
    rope.theta = positive_or(*old_form, "rope_theta", outside ? rope.theta : in_new);
  }
  return rope;
}

void read_ropes(const JsonAt& config, ModelConfig& model, const RopeRules& rules) {
  Places places{config.find("rope_scaling"), config.find("rope_parameters")};
  std::optional<JsonAt> in_window;
  if (rules.window_theta && places.new_form) {
    in_window = places.new_form->find("sliding_attention");
    if (auto full = places.new_form->find("full_attention")) places.new_form = full;
  }
  for (const auto& form : {places.old_form, places.new_form}) {
    if (!form) continue;
    form->each_member([](const std::string&, const JsonAt& member) {
      if (member.is_object())
        member.fail("gives each kind of layer its own rotary embedding, which is not supported",
                    "one dictionary for all layers");
    });
  }
  Rope& rope = model.attention.rope.emplace(read_one(config, model, places, rules));
  if (!rules.any_share && rope.dims != model.attention.head_dim)
    config.fail(text("rotates a part of each head (partial_rotary_factor), which ", model.model_type, " does not"),
                "partial_rotary_factor 1, or none");
  if (!rules.window_theta) return;
  Rope& own = model.attention.window_rope.emplace(Rope{.dims = rope.dims});
  own.theta = positive_or(config, "rope_local_base_freq", *rules.window_theta);
  if (!in_window) return;
  own.scaling = read_scaling(*in_window, config, model, own.dims, rules.original_positions);
  own.theta = positive_or(*in_window, "rope_theta", own.theta);
}

}  // namespace

void read_rope(const JsonAt& config, ModelConfig& model, const RopeRules& rules) {
  read_ropes(config, model, rules);
  // Model cards (Qwen's) say to add YaRN and to leave max_position_embeddings, which then are the original ones.
  const RopeScaling& s = model.attention.rope->scaling;
  if (s.kind == Kind::yarn) model.max_positions = std::max(model.max_positions, s.stretched(s.original_positions));
}

}  // namespace sator::families
