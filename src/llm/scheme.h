// Quantization schemes: rows of data. What a scheme means for weights, embeddings and activations, and how it is named.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace sator::llm {

/// What shares one scale. For a weight W[out, in] and an activation X[token, feature] the scale is S with these indices:
///   tensor     S[]            one for all
///   channel    S[out]         one per output channel
///   input      S[in]          one per input feature; for activations "per embedding" (one per feature)
///   group      S[out, in/g]   one per g consecutive inputs of an output channel
///   token      S[token]       activations only: one per row, taken from the row when it is there (dynamic)
///   group      S[token, in/g] of activations: one per row and group of the weights' inputs (dynamic)
///   peg        S[feature*n/features]  activations only: n groups of consecutive features
enum class Granularity { tensor, channel, input, group, token, peg };

/// Values that codes stand for, where they are no integers at equal distances: 16, or 256 of 8-bit floats.
///   nl4   llama.cpp's non-linear 4-bit values (IQ4_NL, IQ4_XS), closer to each other around 0
///   fp4   twice the E2M1 floats 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (OCP Microscaling Formats, 2023)
///   e4m3, e5m2   8-bit floats (Float8); codes that are no finite numbers are refused where they are read
enum class Codebook { none, nl4, fp4, e4m3, e5m2 };
/// Those values in the order of the codes; empty for `none`.
const std::vector<float>& values_of(Codebook codebook);

/// How one matrix is stored as integers.
///   symmetric   s = max|w| / (2^(b-1)-1),   q = clamp(round(w/s), -(2^(b-1)-1), 2^(b-1)-1),    w' = q*s
///   asymmetric  lo = min(w, 0), hi = max(w, 0), s = (hi-lo) / (2^b-1), z = round(-lo/s),
///               q = clamp(round(w/s) + z, 0, 2^b-1),                                         w' = (q-z)*s
/// round is to nearest, ties to even; all arithmetic is f32, and a scale is its range times the reciprocal of its steps.
struct IntegerFormat {
  int bits = 8;  ///< 2 .. 8; of floats 6 .. 28
  Granularity granularity = Granularity::channel;
  int group = 0;  ///< consecutive inputs per scale; with Granularity::group only
  bool asymmetric = false;
  DType scale_dtype = f32;  ///< s is rounded to it before q is found
  /// MLC-LLM's group quantization: arithmetic in the scales' dtype after the weights are cast to it, codes offset by
  /// 2^(b-1)-1; values are rounded to it too.
  bool mlc = false;

  /// Codes are floats: a sign, so many bits of exponent and the rest of mantissa, from the uppermost bit down, without infinities (small_floats.h);
  /// s is a power of two. 0: they are integers.
  int exponent_bits = 0;

  // Of checkpoints that were quantized elsewhere (stored_codes.h); nothing is quantized to these here:
  //   w' = (q - zero) * s - m     or     w' = codebook[q] * s
  std::optional<int> zero;  ///< of all groups, where it is not 2^(b-1)-1
  bool minimum = false;     ///< m is there: one for each scale, in the scales' dtype
  /// Consecutive inputs that share one float16 more, which their groups' integer scales (and minima, by another) are
  /// multiplied by; 0: there is none.
  int super_block = 0;
  Codebook codebook = Codebook::none;
  /// Column c of the codes is input order[c] of the layer, so that groups are consecutive (GPTQ's act-order).
  bool reordered = false;

  /// The code that stands for 0, where that is the same for all.
  int zero_code() const { return zero.value_or((1 << (bits - 1)) - 1); }
  bool operator==(const IntegerFormat&) const = default;
};

/// Microscaled E2M1 floats: 32 consecutive inputs share a power of two, 2^(e - 127), which is stored as bfloat16.
/// Source: OCP Microscaling Formats (MX) 1.0, 2023.
IntegerFormat mxfp4_format();
/// The scale of exponent e, at most 254: half of the power of two, for the codebook holds the doubled values.
uint16_t mxfp4_scale(uint8_t exponent);

/// A tensor's name without the `transformer.` or `model.` in front, which some published folders leave out.
std::string_view bare_name(std::string_view tensor);

/// How a checkpoint that was quantized elsewhere holds its tensors, by their bare names.
struct StoredFormats {
  std::map<std::string, IntegerFormat, std::less<>> codes;
  std::map<std::string, DType, std::less<>> plain;
  bool operator==(const StoredFormats&) const = default;
};

/// How the inputs of a quantized linear layer become integers, always symmetric. Scales of tokens and groups are dynamic; the others are
/// static, max|x| / (2^(b-1)-1) over the calibration text, and are multiplied into the weights before these are
/// quantized, so that the integer dot product stays whole. Where the weights have a scale s[k] per input feature, x[k] * s[k]
/// is what is quantized; its static scale is one for all features, for no other leaves the sum over k.
struct ActivationFormat {
  int bits = 8;
  Granularity granularity = Granularity::token;  ///< token, group, tensor, input (per embedding) or peg
  int groups = 0;                                ///< with peg: how many groups of features
  bool is_static() const { return granularity != Granularity::token && granularity != Granularity::group; }
  /// Static scales of a layer with that many input features: 1, one per feature, or one per group.
  int64_t num_scales(int64_t features) const {
    return granularity == Granularity::tensor ? 1 : granularity == Granularity::input ? features : groups;
  }
  bool operator==(const ActivationFormat&) const = default;
};

struct Scheme {
  std::string name;
  /// Of every tensor that is not quantized: embedding, head, norms and biases are stored alike by all schemes of integers, so
  /// that sizes and speeds differ by what is quantized alone.
  DType storage = f16;
  std::optional<IntegerFormat> linear;     ///< the linear layers inside the blocks
  bool experts_only = false;               ///< of these the matrices of experts alone
  std::optional<IntegerFormat> embedding;  ///< token embedding and head
  std::optional<ActivationFormat> activation;
  /// What the factors of every product are rounded to: inputs and weights of linear layers and head, queries, keys and
  /// values, and attention's weights. Sums and all else are f32. Nothing: factors are as the formats above leave them.
  std::optional<DType> factors;
  /// What a checkpoint asks for beyond its codes and does not get; empty: nothing.
  std::string remark = {};
  /// Every tensor as the checkpoint has it, in place of the formats above; null: as these say.
  std::shared_ptr<const StoredFormats> stored;
  /// Nothing was asked for: `storage`, or `stored`, is what the checkpoint's floats are, so that no value is rounded, nor are keys and values.
  bool is_exact = false;

  bool needs_calibration() const { return activation && activation->is_static(); }
};

/// How a scheme stores the weight of a linear layer, or of the token embedding, that the checkpoint calls `tensor`; nothing where
/// it stays a float.
std::optional<IntegerFormat> linear_format(const Scheme& scheme, const std::string& tensor);
std::optional<IntegerFormat> embedding_format(const Scheme& scheme, const std::string& tensor);
/// How the input of a quantized head becomes integers: as those of the linear layers where scales are dynamic. Static ones are measured of
/// the layers inside the blocks alone.
std::optional<ActivationFormat> activation_of_head(const Scheme& scheme);
/// In which dtype a scheme stores a tensor that is no code.
DType plain_dtype(const Scheme& scheme, const std::string& tensor);

/// Whether weights that are converted to one scheme are those of the other too: `f16` and `f16+a16`.
bool have_same_weights(const Scheme& a, const Scheme& b);

/// The scheme of that name.
/// Errors: the name does not follow the grammar; says which part is wrong and lists the nearest names.
Scheme parse_scheme(std::string_view name);

/// The scheme of a checkpoint's own codes (Scheme::stored), or that with `+a16` or `+a{4..8}[-group]` behind its name; nothing where `name` is
/// that of another one.
/// Errors: static scales of inputs, which would change the codes; inputs of integers where the checkpoint holds floats alone.
std::optional<Scheme> stored_scheme_named(const Scheme& own, std::string_view name);

/// One line of `sator schemes`: a family of names and what they mean.
struct SchemeFamily {
  std::string names;
  std::string means;
  std::string scales;  ///< which index the scale has
};
const std::vector<SchemeFamily>& scheme_families();

/// "linear layers: int8, one scale per output channel, symmetric; activations: int8, one scale per token, ..."
std::string describe(const Scheme& scheme);
/// What the name of a file's own codes means without the file: of a GGUF file's type, `gptq-int4-group128` and the like, with what may follow
/// it. Nothing where it is no such name. Errors: as of stored_scheme_named.
std::optional<std::string> describe_stored(std::string_view name);

/// What `sator study` runs unless told.
const std::vector<std::string>& default_schemes();

}  // namespace sator::llm
