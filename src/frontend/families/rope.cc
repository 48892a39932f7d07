// Rotary embedding as config.json spells it.
#include <cmath>
#include <set>

#include "base/error.h"
#include "frontend/families/keys.h"

namespace sator::families {

namespace {

using Kind = RopeScaling::Kind;

std::string rope_type(const JsonAt& rope) {
  for (const char* name : {"rope_type", "type"})
    if (auto type = rope.find(name)) return type->string();
  return "default";
}

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
  if (auto at = rope.find(kKey)) return at->integer(1, kMaxPositions);
  if (auto at = config.find(kKey)) return at->integer(1, kMaxPositions);
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

void read_longrope(const JsonAt& rope, const JsonAt& config, const ModelConfig& model, int64_t dims, RopeScaling& s) {
  const int64_t pairs = dims / 2;
  s.original_positions = read_original(rope, config, 0);
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
///   dims  of each head that are rotated
RopeScaling read_scaling(const JsonAt& rope, const JsonAt& config, const ModelConfig& model, int64_t dims) {
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
    s.original_positions = read_original(rope, config, model.max_positions);
  } else if (type == "yarn") {
    s.kind = Kind::yarn;
    s.original_positions = read_original(rope, config, model.max_positions);
    read_yarn(rope, s);
  } else if (type == "longrope" || type == "su") {
    s.kind = Kind::longrope;
    read_longrope(rope, config, model, dims, s);
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
void require_one_theta(const JsonAt& config, const Places& at) {
  std::optional<JsonAt> known = config.find("rope_theta");
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
///   otherwise  where it does not
double rotated_share(const JsonAt& config, const Places& places, double otherwise) {
  std::optional<double> share;
  auto see = [&](const std::optional<JsonAt>& at) {
    for (const char* name : {"partial_rotary_factor", "rotary_pct", "rope_pct"}) {
      auto given = at ? at->find(name) : std::nullopt;
      if (!given) continue;
      const double value = given->number();
      if (!(value > 0 && value <= 1)) given->fail(text("is ", value), "a share of each head: above 0, at most 1");
      if (share && *share != value)
        given->fail(text("is ", value, ", where another place of the file gives ", *share),
                    "one share, or the same twice");
      share = value;
    }
  };
  see(config);
  for (const std::optional<JsonAt>& form : {places.old_form, places.new_form}) see(form);
  return share.value_or(otherwise);
}

Rope read_one(const JsonAt& config, const ModelConfig& model, const Places& places, const RopeRules& rules) {
  const auto& [old_form, new_form] = places;
  require_one_theta(config, places);
  Rope rope{.theta = rules.theta};
  const auto head_dim = static_cast<double>(model.attention.head_dim);
  rope.dims = static_cast<int64_t>(head_dim * rotated_share(config, places, rules.share));
  must_divide(config, "2 (rotary pairs)", 2, "rotated elements of a head", rope.dims);
  if (rope.dims < 2)
    config.fail(text("rotates no element of a head of ", model.attention.head_dim),
                "a share that is two elements or more");
  for (const char* name : {"rope_theta", "rotary_emb_base"}) rope.theta = positive_or(config, name, rope.theta);
  if (new_form) {
    rope.scaling = read_scaling(*new_form, config, model, rope.dims);
    if (!old_form) rope.theta = positive_or(*new_form, "rope_theta", rope.theta);
  }
  if (old_form) {
    RopeScaling scaling = read_scaling(*old_form, config, model, rope.dims);
    if (rope.scaling.kind != Kind::none && rope.scaling != scaling)
      config.fail("has two different rotary scalings in rope_scaling and rope_parameters",
                  "one scaling, or the same twice",
                  "remove the one that the model was not trained with");
    rope.scaling = scaling;
    bool outside = config.find("rope_theta").has_value();
    double in_new = new_form ? positive_or(*new_form, "rope_theta", rope.theta) : rope.theta;
    rope.theta = positive_or(*old_form, "rope_theta", outside ? rope.theta : in_new);
  }
  return rope;
}

}  // namespace

void read_rope(const JsonAt& config, ModelConfig& model, const RopeRules& rules) {
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
  own.scaling = read_scaling(*in_window, config, model, own.dims);
  own.theta = positive_or(*in_window, "rope_theta", own.theta);
}

}  // namespace sator::families
