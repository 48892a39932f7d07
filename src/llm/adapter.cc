#include "llm/adapter.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace sator::llm {

namespace {

constexpr const char *kConfig = "adapter_config.json", *kWeights = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

/// Keys that are read, or by which the factors and what is done with them do not change. `fan_in_fan_out` says how the layer
/// holds its weight, which the model knows better: as PEFT itself, which corrects it.
constexpr std::string_view kKnown[] = {"peft_type",
                                       "r",
                                       "lora_alpha",
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
            "one rank and one alpha for all layers, and nothing but their factors",
            "take it out if the adapter was trained without it");
  });
}

}  // namespace

Adapter Adapter::open(const fs::path& folder) {
  Adapter out;
  out.folder_ = folder;
  const fs::path file = folder / kConfig;
  if (!fs::exists(file) || !fs::exists(folder / kWeights))
    fail({.what = text(folder.string(), " holds no adapter"),
          .needs = text(kConfig, " and ", kWeights, ", as PEFT saves them"),
          .hint = "check the path"});
  const Json tree = parse_json(read_regular_file(file), file.string());
  const JsonAt config(tree, file.string());
  require_plain(config);
  out.alpha_ = config.at("lora_alpha").number();
  if (config.find("r")) out.rank_ = config.at("r").integer(1);
  out.by_root_ = config.boolean_or("use_rslora", false);
  out.tensors_ = std::make_shared<const SafeTensors>(SafeTensors::open(folder / kWeights));
  for (const SafeTensor& t : out.tensors_->tensors()) {
    std::string name = t.name;
    if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
    const bool is_a = name.ends_with(kA);
    if ((!is_a && !name.ends_with(kB)) || t.shape.size() != 2 || !is_storage_dtype(t.dtype))
      fail({.what = text((folder / kWeights).string(), ": tensor ", t.name, " is no factor of a linear layer"),
            .needs = "matrices of floats called LAYER.lora_A.weight and LAYER.lora_B.weight"});
    Pair& pair = out.layers_[name.substr(0, name.size() - kA.size())];
    (is_a ? pair.a : pair.b) = &t;
  }
  if (out.layers_.empty())
    fail({.what = text((folder / kWeights).string(), " holds no factors: the adapter would change nothing"),
          .needs = "matrices called LAYER.lora_A.weight and LAYER.lora_B.weight",
          .hint = "save the adapter again, or leave it out"});
  for (const auto& [name, pair] : out.layers_)
    if (!pair.a || !pair.b)
      fail({.what = text((folder / kWeights).string(), " has one of the two factors of ", name), .needs = "both"});
    else if (out.rank_ && pair.a->shape[0] != *out.rank_)
      config.at("r").fail(text("is ", *out.rank_, ", and the factors of ", name, " have rank ", pair.a->shape[0]),
                          "the rank that the factors have: the scale rests on it");
  return out;
}

std::vector<fs::path> Adapter::paths() const { return {folder_ / kConfig, folder_ / kWeights}; }

void Adapter::add_to(Checkpoint& checkpoint, const TensorNames& names) const {
  for (const auto& [layer, pair] : layers_) {
    const std::string name = layer + ".weight";
    if (layer == names.head && !checkpoint.find(name))
      fail({.what = text("the adapter changes ", layer, ", which is this model's embedding too"),
            .needs = "an adapter of other layers: the embedding would change with it",
            .hint = "store the head apart from the embedding in the checkpoint, with tie_word_embeddings: false"});
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
    const double scale = alpha_ / (by_root_ ? std::sqrt(static_cast<double>(rank)) : static_cast<double>(rank));
    checkpoint.change(
        name,
        [tensors = tensors_, pair = pair, rank, in, out, scale, turned = is_transposed](std::vector<float>& values) {
          const std::vector<float> a = to_f32(pair.a->bytes, pair.a->dtype), b = to_f32(pair.b->bytes, pair.b->dtype);
          std::vector<double> row(static_cast<size_t>(in));
          for (int64_t o = 0; o < out; ++o) {
            std::ranges::fill(row, 0);
            for (int64_t r = 0; r < rank; ++r) {
              const double factor = b[static_cast<size_t>(o * rank + r)];
              for (int64_t i = 0; i < in; ++i)
                row[static_cast<size_t>(i)] += factor * a[static_cast<size_t>(r * in + i)];
            }
            for (int64_t i = 0; i < in; ++i) {
              float& v = values[static_cast<size_t>(turned ? i * out + o : o * in + i)];
              v = static_cast<float>(v + scale * row[static_cast<size_t>(i)]);
            }
          }
        });
  }
}

}  // namespace sator::llm
