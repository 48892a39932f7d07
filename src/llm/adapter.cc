#include "llm/adapter.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace sator::llm {

namespace {

constexpr const char *kConfig = "adapter_config.json", *kWeights = "adapter_model.safetensors";
constexpr std::string_view kPrefix = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight";

/// Refuses what would change the sum.
void require_plain(const JsonAt& config) {
  if (config.string_or("peft_type", "LORA") != "LORA") config.at("peft_type").fail("is no LoRA", "LORA");
  for (const char* key : {"use_dora", "use_qalora", "use_bdlora"})
    if (config.boolean_or(key, false)) config.at(key).fail("is true, which is not supported", "false");
  if (config.string_or("bias", "none") != "none")
    config.at("bias").fail("asks for trained biases, which are not supported", "none");
  for (const char* key : {"modules_to_save",
                          "rank_pattern",
                          "alpha_pattern",
                          "trainable_token_indices",
                          "target_parameters",
                          "layer_replication",
                          "alora_invocation_tokens"})
    if (auto at = config.find(key); at && !at->json().empty())
      at->fail("is given, which is not supported",
               "one rank and one alpha for all layers, and nothing but their factors");
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
  const Json tree = parse_json(read_file(file), file.string());
  const JsonAt config(tree, file.string());
  require_plain(config);
  out.alpha_ = config.at("lora_alpha").number();
  if (config.find("r")) out.rank_ = config.at("r").integer(1);
  out.by_root_ = config.boolean_or("use_rslora", false);
  out.transposed_ = config.boolean_or("fan_in_fan_out", false);
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
  for (const auto& [name, pair] : out.layers_)
    if (!pair.a || !pair.b)
      fail({.what = text((folder / kWeights).string(), " has one of the two factors of ", name), .needs = "both"});
    else if (out.rank_ && pair.a->shape[0] != *out.rank_)
      config.at("r").fail(text("is ", *out.rank_, ", and the factors of ", name, " have rank ", pair.a->shape[0]),
                          "the rank that the factors have: the scale rests on it");
  return out;
}

std::vector<fs::path> Adapter::paths() const { return {folder_ / kConfig, folder_ / kWeights}; }

void Adapter::add_to(Checkpoint& checkpoint) const {
  for (const auto& [layer, pair] : layers_) {
    const std::string name = layer + ".weight";
    const StoredWeight& w = checkpoint.get(name);
    if (w.format)
      fail({.what = text("the adapter changes ", name, ", of which the checkpoint holds codes"),
            .needs = "a checkpoint of floats",
            .hint = "give the folder of the model before it was quantized"});
    const int64_t rank = pair.a->shape[0], in = pair.a->shape[1], out = pair.b->shape[0];
    const std::vector<int64_t> shape = transposed_ ? std::vector{in, out} : std::vector{out, in};
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
        [tensors = tensors_, pair = pair, rank, in, out, scale, turned = transposed_](std::vector<float>& values) {
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
