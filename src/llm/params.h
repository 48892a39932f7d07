// The parameters of a compiled model: what each is, and how it is made from a checkpoint.
#pragma once

#include <functional>
#include <map>

#include "llm/checkpoint.h"

namespace sator::llm {

/// Rows of several parts that a checkpoint holds by group: so many rows of each part, and so on `groups` times. The model uses
/// all rows of the first part, then those of the next (queries, keys and values by head of keys; gate and up by unit).
struct GroupedRows {
  int64_t groups = 0;  ///< 0: rows are used in the order in which they are stored
  std::vector<int64_t> parts = {};
  auto operator<=>(const GroupedRows&) const = default;

  /// The stored row of each used one.
  std::vector<int64_t> stored_rows() const;
};

/// A weight as the model uses it, by the tensors it is made of.
///   tensors     names in the checkpoint; several are laid one under the other (q, k, v; gate, up)
///   transposed  they are stored [in, out] (GPT-2's Conv1D), and used as [out, in]
///   experts     there is a weight for each of so many, in tensors of their own, one after the other; 0: one weight
///   rows        how those of one tensor are arranged
struct WeightSource {
  std::vector<std::string> tensors;
  bool transposed = false;
  int64_t experts = 0;
  GroupedRows rows = {};
  auto operator<=>(const WeightSource&) const = default;
};

/// One parameter of the compiled program, in the order of its tuple.
struct ParamSpec {
  std::string name;  ///< "transformer.h.0.attn.c_attn.q_weight": the checkpoint's, with MLC's endings
  ParamPart part = ParamPart::plain;
  runtime::Dims shape;
  DType dtype;
  WeightSource source;
  std::optional<IntegerFormat> format;         ///< of a quantized weight
  std::optional<ActivationFormat> activation;  ///< static scales that are folded into the weight
  std::string layer;                           ///< with static activation scales: the layer they belong to
  bool is_table = false;                       ///< a step reads rows of it: an embedding that is not the head as well
  double read_share = 1;  ///< of it, that a step of one token reads: of experts those that it takes

  int64_t bytes() const;
};

/// Largest |x| of each input feature of each quantized layer, by the layer's name, over the calibration text.
using ActivationRanges = std::map<std::string, std::vector<float>>;

/// Scales of a layer's inputs from its ranges: max / (2^(b-1)-1) per tensor, per feature, or per group of features.
///   →  [1] | [features] | [groups] f32
std::vector<float> activation_scales(const std::vector<float>& ranges, const ActivationFormat& format);

/// Whether a checkpoint has what the parameters are made from; dtypes and shapes are looked at, no data is read.
/// Errors: a tensor is missing, is neither f32, f16 nor bf16, or has another shape than the configuration says; an exact
/// checkpoint holds one that nothing is made from.
void require_sources(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint);

/// Whether published folders hold a tensor of that name in vain: a mask or a position table that follows from config.json.
bool follows_from_config(std::string_view tensor);

/// Names of tensors that no parameter is made from, without those that follow from config.json, and the head where it
/// is tied to the embedding.
std::vector<std::string> unused_tensors(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint);

/// Parameters that are made while they are taken, by threads that are ahead of the taker by few: what is made and has not been
/// taken is at most 64 MB and a weight per thread. Takers ask in about the order of the specs; all before the one that is asked
/// for are made first. Each weight is read and quantized once, however many parameters are parts of it.
class ParamStream {
 public:
  ///   specs, checkpoint, ranges  outlive the stream; ranges are needed where the scheme has static activation scales
  ///   threads                    that make parameters, each a weight at a time; as many are in memory as floats
  /// Errors: as of require_sources; those of take: a weight is not finite; static scales without ranges.
  ParamStream(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint, const ActivationRanges& ranges,
              int threads);
  ~ParamStream();
  /// Parameter `index`, once.
  Ref<runtime::Tensor> take(int64_t index);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// All of them.
///   progress  told how many parameters are done
/// Errors: as of ParamStream.
std::vector<Ref<runtime::Tensor>> make_params(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint,
                                              const ActivationRanges& ranges = {},
                                              const std::function<void(size_t done)>& progress = {}, int threads = 1);

/// All stored bytes and all parameters of the checkpoint they stand for: bits_per_weight = bytes * 8 / weights.
struct WeightSize {
  int64_t bytes = 0;
  int64_t weights = 0;
  double bits_per_weight() const { return static_cast<double>(bytes) * 8 / static_cast<double>(weights); }
};
WeightSize weight_size(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint);

}  // namespace sator::llm
