// Low-rank adapters (LoRA), as PEFT keeps them: added to the weights of a checkpoint when it is read.
#pragma once

#include "llm/checkpoint.h"

namespace sator::llm {

/// An adapter's folder: adapter_config.json and adapter_model.safetensors.
class Adapter {
 public:
  /// Errors: the folder is none; it is no LoRA, or asks for what is not added here (DoRA, trained biases, whole modules, factors that
  /// hold a part of the model's own weights) or is not known, by name; a factor without its other; another rank than it says.
  static Adapter open(const fs::path& folder);

  /// Puts W + s B A in the place of each weight W that the adapter names: s = alpha / r, or alpha / sqrt(r) with rslora.
  ///   model  what its tensors are called: which layers hold their weight [in, out], which is the head
  /// Errors: adapter_config.json does not give the layer factors (target_modules, exclude_modules, layers_to_transform), or gives them
  /// to a layer of which the file has none; the checkpoint has no such weight, has it as codes, or in another shape; the head is the
  /// embedding; where the weight is read: the adapter's copy of it is another one; a factor or the sum is not finite.
  /// Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, section 4.1.
  void add_to(Checkpoint& checkpoint, const ModelConfig& model) const;
  /// The files that it lies in.
  std::vector<fs::path> paths() const;

 private:
  struct Pair {
    std::string given;  ///< what the adapter calls the layer, for a model of text and pictures
    const SafeTensor *a = nullptr, *b = nullptr;  ///< [r, in], [out, r]
    double alpha = 0;
  };
  /// What the adapter would call a layer, by what it calls another one.
  std::string given_name(const std::string& layer) const;
  /// Errors: the configuration gives factors to a layer of the model that has none here.
  void require_all(const Checkpoint& checkpoint, const ModelConfig& model) const;
  fs::path folder_;
  std::shared_ptr<const Json> config_;
  std::shared_ptr<const SafeTensors> tensors_;
  std::map<std::string, Pair> layers_;               ///< "model.layers.0.self_attn.q_proj"
  std::map<std::string, const SafeTensor*> copies_;  ///< by layer: its weight in the model, which PEFT saves of a head
  bool by_root_ = false;
};

}  // namespace sator::llm
