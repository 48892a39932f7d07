#include "llm/adapter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "engine/tokenizer/regex.h"

namespace sator::llm {

namespace {

constexpr const char *kConfig = "adapter_config.json", *kWeights = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

/// Keys that are read, or by which the factors and what is done with them do not change. `fan_in_fan_out` says how the layer
/// holds its weight, which the model knows better: as PEFT itself, which corrects it.
constexpr std::string_view kKnown[] = {"peft_type",
                                       "r",
                                       "lora_alpha",
                                       "rank_pattern",
                                       "alpha_pattern",
                                       "use_rslora",
                                       "fan_in_fan_out",
                                       "bias",
                                       "init_lora_weights",
                                       "task_type",
                                       "auto_mapping",
                                       "base_model_name_or_path",
                                       "revision",
                                       "inference_mode",
                                       "target_modules",
                                       "exclude_modules",
                                       "layers_to_transform",
                                       "layers_pattern",
                                       "lora_dropout",
                                       "loftq_config",
                                       "eva_config",
                                       "corda_config",
                                       "lora_ga_config",
                                       "megatron_config",
                                       "megatron_core",
                                       "qalora_group_size",
                                       "runtime_config",
                                       "ensure_weight_tying",
                                       "peft_version"};
/// Ways to begin the training that leave the model's weights as they are; the others move a part of these into the factors,
/// and the rest is stored nowhere.
constexpr std::string_view kInitsApart[] = {"gaussian", "eva", "orthogonal", "mica"};

/// Refuses what would change the sum, and what is not known not to.
void require_plain(const JsonAt& config) {
  if (config.string_or("peft_type", "LORA") != "LORA") config.at("peft_type").fail("is no LoRA", "LORA");
  if (config.string_or("bias", "none") != "none")
    config.at("bias").fail("asks for trained biases, which are not supported", "none");
  if (auto at = config.find("init_lora_weights"); at && at->is_string()) {
    const std::string init = lower_case(at->string());
    if (std::ranges::count(kInitsApart, init) == 0)
      at->fail(text("is ", string_literal(at->string()), ", by which training changed the model's own weights"),
               text("true, false, ", join(kInitsApart, ", ")),
               "save the adapter converted to a plain one: PEFT's path_initial_model_for_weight_conversion");
  }
  config.each_member([](const std::string& name, const JsonAt& at) {
    const Json& value = at.json();
    if (std::ranges::count(kKnown, name) > 0 || value == false || value.empty()) return;
    at.fail("is given, which is not supported",
            "nothing but the factors of linear layers, with their ranks and alphas",
            "take it out if the adapter was trained without it");
  });
}

/// Where an expression, written for Python's `re`, matches a layer's name from its beginning.
std::optional<std::pair<size_t, size_t>> match_of(const JsonAt& at, const std::string& expression,
                                                  const std::string& layer) {
  try {
    return Regex::of_rust("\\A" + expression).find(layer, 0);
  } catch (const Error& e) {
    at.fail(text("cannot be read as a regular expression: ", e.reason.what),
            "what Python's expressions and Rust's have in common",
            "name the layers in a list");
  }
}

std::vector<JsonAt> elements_of(const JsonAt& at) {
  std::vector<JsonAt> out;
  if (at.is_array())
    at.each([&](const JsonAt& element) { out.push_back(element); });
  else
    out.push_back(at);
  return out;
}

/// Whether the key names the layer: an expression for its whole name, or a list of last parts.
bool names_layer(const JsonAt& at, const std::string& layer) {
  if (at.is_string()) return match_of(at, text("(?:", at.string(), ")\\z"), layer).has_value();
  return std::ranges::any_of(elements_of(at), [&](const JsonAt& element) {
    return layer == element.string() || layer.ends_with("." + element.string());
  });
}

/// The number of the block that the layer is in: the first behind two parts of its name, or behind one that layers_pattern names.
std::optional<int64_t> block_of(const JsonAt& config, const std::string& layer) {
  std::vector<std::string> patterns;
  const std::optional<JsonAt> given = config.find("layers_pattern");
  if (given)
    for (const JsonAt& element : elements_of(*given))
      if (!element.string().empty()) patterns.push_back(element.string());
  if (patterns.empty()) patterns.emplace_back("[^.]*");
  for (const std::string& pattern : patterns) {
    const auto found = match_of(given.value_or(config), text(".*?\\.(?:", pattern, ")\\.[0-9]+\\."), layer);
    if (!found) continue;
    const size_t end = found->second - 1, begin = layer.rfind('.', end - 1) + 1;
    int64_t number = -1;
    std::from_chars(layer.data() + begin, layer.data() + end, number);
    return number;
  }
  return {};
}

/// What the keys of `patterns`, expressions for a whole name or for its last parts, give the layer; nothing where none fits. PEFT takes the
/// first that fits, in an order that the file need not keep. Source: PEFT's get_pattern_key.
std::optional<JsonAt> by_pattern(const JsonAt& config, const std::string& patterns, const std::string& layer) {
  const std::optional<JsonAt> at = config.find(patterns);
  std::optional<JsonAt> found;
  if (!at) return found;
  at->each_member([&](const std::string& expression, const JsonAt& value) {
    if (!match_of(*at, text("(?:.*\\.)?(?:", expression, ")\\z"), layer)) return;
    if (found && found->json() != value.json())
      value.fail(text("and another expression before it fit ", layer, ", and differ"),
                 "one value for each layer",
                 "write expressions of which one fits");
    found = value;
  });
  return found;
}

/// Why PEFT would give the layer no factors; nothing if it would. Source: PEFT's check_target_module_exists.
std::optional<std::string> why_untargeted(const JsonAt& config, const std::string& layer, bool is_head) {
  if (auto at = config.find("exclude_modules"); at && names_layer(*at, layer)) return "exclude_modules leaves it out";
  const auto targets = config.find("target_modules");
  if (!targets) return {};
  if (targets->is_string() && lower_case(targets->string()) == "all-linear") {
    if (is_head) return "all-linear is all linear layers but the head";
    return {};
  }
  if (!names_layer(*targets, layer)) return "target_modules does not name it";
  const auto blocks = config.find("layers_to_transform");
  if (targets->is_string() || !blocks || blocks->json().empty()) return {};
  const std::optional<int64_t> block = block_of(config, layer);
  const bool listed = block && std::ranges::any_of(elements_of(*blocks),
                                                   [&](const JsonAt& element) { return element.integer() == *block; });
  return listed ? std::nullopt : std::optional<std::string>("layers_to_transform does not list its block");
}

/// The linear layers that every token passes, and that the model uses as wholes.
std::vector<std::string> linear_layers(const ModelConfig& model) {
  const TensorNames& n = model.names;
  std::vector<std::string> within = {n.out, n.mlp_out, n.shared_out, n.query_down, n.query_up, n.latent_down};
  for (const std::vector<std::string>* several : {&n.qkv, &n.mlp_in, &n.shared_in})
    within.insert(within.end(), several->begin(), several->end());
  std::vector<std::string> out = {n.project_in, n.project_out};
  for (int64_t block = 0; block < model.layers; ++block)
    for (const std::string& name : within)
      if (!name.empty()) out.push_back(text(n.block, block, ".", name));
  if (!model.tie_word_embeddings) out.push_back(n.head);
  std::erase(out, "");
  return out;
}

/// Errors: a value is not finite.
std::vector<float> factor_of(const SafeTensor& t, const fs::path& file) {
  std::vector<float> values = to_f32(t.bytes, t.dtype);
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (bad != values.end())
    fail({.what =
              text(file.string(), ": tensor ", t.name, " has the value ", *bad, " at element ", bad - values.begin()),
          .needs = "finite factors",
          .hint = "save the adapter from an earlier step of its training"});
  return values;
}

/// W + s B A in the place of W.
struct Update {
  std::shared_ptr<const SafeTensors> tensors;  ///< what the pointers point into
  fs::path file;
  std::string layer;
  const SafeTensor *a, *b, *copy;  ///< [r, in], [out, r], the adapter's copy of W or null
  double scale;
  bool turned;  ///< W is [in, out]

  void add_to(std::vector<float>& values) const {
    if (copy && to_f32(copy->bytes, copy->dtype) != values)
      fail({.what = text("the adapter's ", copy->name, " is not this model's weight"),
            .needs = "an adapter of this very model, which leaves the weight itself as it is",
            .hint = "save it again with save_embedding_layers=False"});
    const std::vector<float> down = factor_of(*a, file), up = factor_of(*b, file);
    const int64_t rank = a->shape[0], in = a->shape[1], out = b->shape[0];
    std::vector<double> row(static_cast<size_t>(in));
    for (int64_t o = 0; o < out; ++o) {
      std::ranges::fill(row, 0);
      for (int64_t r = 0; r < rank; ++r) {
        const double factor = up[static_cast<size_t>(o * rank + r)];
        for (int64_t i = 0; i < in; ++i) row[static_cast<size_t>(i)] += factor * down[static_cast<size_t>(r * in + i)];
      }
      for (int64_t i = 0; i < in; ++i) {
        float& v = values[static_cast<size_t>(turned ? i * out + o : o * in + i)];
        const auto sum = static_cast<float>(v + scale * row[static_cast<size_t>(i)]);
        if (std::isfinite(v) && !std::isfinite(sum))
          fail({.what = text(file.string(), ": the factors of ", layer, " make a weight infinite"),
                .needs = "finite sums with the model's weights",
                .hint = text("check r, lora_alpha and alpha_pattern in ", kConfig)});
        v = sum;
      }
    }
  }
};

}  // namespace

Adapter Adapter::open(const fs::path& folder) {
  Adapter out;
  out.folder_ = folder;
  const fs::path file = folder / kConfig;
  if (!fs::exists(file) || !fs::exists(folder / kWeights))
    fail({.what = text(folder.string(), " holds no adapter"),
          .needs = text(kConfig, " and ", kWeights, ", as PEFT saves them"),
          .hint = "check the path"});
  out.config_ = std::make_shared<const Json>(parse_json(read_regular_file(file), file.string()));
  const JsonAt config(*out.config_, file.string());
  require_plain(config);
  const double alpha = config.at("lora_alpha").number();
  out.by_root_ = config.boolean_or("use_rslora", false);
  out.tensors_ = std::make_shared<const SafeTensors>(SafeTensors::open(folder / kWeights));
  for (const SafeTensor& t : out.tensors_->tensors()) {
    std::string name = t.name;
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    if (constexpr std::string_view kCopy = ".base_layer.weight"; name.ends_with(kCopy) && is_storage_dtype(t.dtype)) {
      out.copies_.emplace(name_in_text_part(name.substr(0, name.size() - kCopy.size())), &t);
      continue;
    }
    const bool is_a = name.ends_with(kA);
    if ((!is_a && !name.ends_with(kB)) || t.shape.size() != 2 || !is_storage_dtype(t.dtype))
      fail({.what = text((folder / kWeights).string(), ": tensor ", t.name, " is no factor of a linear layer"),
            .needs = "matrices of floats called LAYER.lora_A.weight and LAYER.lora_B.weight"});
    const std::string given = name.substr(0, name.size() - kA.size());
    Pair& pair = out.layers_[name_in_text_part(given)];
    if (!pair.given.empty() && pair.given != given)
      fail({.what = text(
                (folder / kWeights).string(), " has factors of ", pair.given, " and of ", given, ", the same layer"),
            .needs = "two factors of each layer, under one name"});
    pair.given = given;
    (is_a ? pair.a : pair.b) = &t;
  }
  if (out.layers_.empty())
    fail({.what = text((folder / kWeights).string(), " holds no factors: the adapter would change nothing"),
          .needs = "matrices called LAYER.lora_A.weight and LAYER.lora_B.weight",
          .hint = "save the adapter again, or leave it out"});
  for (const auto& [name, copy] : out.copies_)
    if (!out.layers_.contains(name))
      fail({.what = text((folder / kWeights).string(), " holds ", copy->name, ", and no factors of ", name),
            .needs = "copies of the weights that the factors change, and of no others"});
  for (auto& [name, pair] : out.layers_) {
    if (!pair.a || !pair.b)
      fail({.what = text((folder / kWeights).string(), " has one of the two factors of ", name), .needs = "both"});
    const std::optional<JsonAt> own_rank = by_pattern(config, "rank_pattern", pair.given),
                                own_alpha = by_pattern(config, "alpha_pattern", pair.given);
    const std::optional<JsonAt> rank = own_rank ? own_rank : config.find("r");
    if (rank && rank->integer(1) != pair.a->shape[0])
      rank->fail(text("is ", rank->integer(1), ", and the factors of ", name, " have rank ", pair.a->shape[0]),
                 "the rank that the factors have: the scale rests on it");
    pair.alpha = own_alpha ? own_alpha->number() : alpha;
  }
  return out;
}

std::vector<fs::path> Adapter::paths() const { return {folder_ / kConfig, folder_ / kWeights}; }

std::string Adapter::given_name(const std::string& layer) const {
  const auto& [known, pair] = *layers_.rbegin();  // of a block, where there is one: heads come first
  const auto [a, b] = std::ranges::mismatch(known.rbegin(), known.rend(), pair.given.rbegin(), pair.given.rend());
  const std::string ours(known.begin(), a.base()), theirs(pair.given.begin(), b.base());
  return layer.starts_with(ours) ? theirs + layer.substr(ours.size()) : layer;
}

void Adapter::require_all(const Checkpoint& checkpoint, const ModelConfig& model) const {
  const JsonAt config(*config_, (folder_ / kConfig).string());
  if (!config.find("target_modules")) return;
  for (const std::string& layer : linear_layers(model)) {
    if (layers_.contains(layer) || !checkpoint.find(layer + ".weight")) continue;
    if (why_untargeted(config, given_name(layer), layer == model.names.head)) continue;
    fail(
        {.what = text((folder_ / kWeights).string(), " has no factors of ", layer, ", and target_modules names it"),
         .needs = text("factors of all layers that ", kConfig, " gives them, as PEFT saves them"),
         .hint = "get the file again; if fewer layers were trained, say so by layers_to_transform or exclude_modules"});
  }
}

void Adapter::add_to(Checkpoint& checkpoint, const ModelConfig& model) const {
  const TensorNames& names = model.names;
  const JsonAt config(*config_, (folder_ / kConfig).string());
  for (const auto& [layer, pair] : layers_) {
    if (const std::optional<std::string> why = why_untargeted(config, pair.given, layer == names.head))
      fail({.what = text((folder_ / kWeights).string(), " holds factors of ", pair.given, ", and ", *why),
            .needs = text("factors of the layers that ", kConfig, " gives them: PEFT leaves the others out"),
            .hint = "add the layer there if it was trained; else take its factors out of the file"});
    const std::string name = layer + ".weight";
    if (layer == names.head && !checkpoint.find(name))
      fail({.what = text("the adapter changes ", layer, ", which is this model's embedding too"),
            .needs = "an adapter of other layers: the embedding would change with it",
            .hint = "store the head apart from the embedding in the checkpoint, with tie_word_embeddings: false"});
    if (std::ranges::any_of(names.expert_stacks,
                            [&](const ExpertStack& stack) { return name.ends_with("." + stack.all); }))
      fail({.what =
                text("the adapter changes ", layer, ", which is used part by part: a matrix for each head or expert"),
            .needs = "an adapter that leaves it as it is",
            .hint = "merge the adapter into the model with PEFT's merge_and_unload, and give that folder"});
    const StoredWeight& w = checkpoint.get(name);
    if (w.format)
      fail({.what = text("the adapter changes ", name, ", of which the checkpoint holds codes"),
            .needs = "a checkpoint of floats",
            .hint = "give the folder of the model before it was quantized"});
    const int64_t rank = pair.a->shape[0], in = pair.a->shape[1], out = pair.b->shape[0];
    const bool is_transposed = names.transposed && layer.starts_with(names.block);
    const std::vector<int64_t> shape = is_transposed ? std::vector{in, out} : std::vector{out, in};
    if (pair.b->shape[1] != rank || rank == 0 || w.shape != shape)
      fail({.what = text("the adapter adds [",
                         out,
                         ", ",
                         pair.b->shape[1],
                         "] x [",
                         rank,
                         ", ",
                         in,
                         "] to ",
                         name,
                         ", which is [",
                         join(w.shape, ", "),
                         "]"),
            .needs = "an adapter of this very model",
            .hint = "base_model_name_or_path of adapter_config.json says which it was trained on"});
    const auto copied = copies_.find(layer);
    const SafeTensor* copy = copied == copies_.end() ? nullptr : copied->second;
    const double scale = pair.alpha / (by_root_ ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
    const Update update{tensors_, folder_ / kWeights, layer, pair.a, pair.b, copy, scale, is_transposed};
    checkpoint.change(name, [update](std::vector<float>& values) { update.add_to(values); });
  }
  require_all(checkpoint, model);
}

}  // namespace sator::llm
