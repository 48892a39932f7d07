#include "llm/scheme.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "frontend/gguf_model.h"

namespace sator::llm {

namespace {

struct GranularityName {
  const char* text;
  Granularity granularity;
  int size;  ///< group size, or number of activation groups
};
constexpr GranularityName kWeightGranularities[] = {
    {"tensor", Granularity::tensor, 0},
    {"channel", Granularity::channel, 0},
    {"input", Granularity::input, 0},
    {"group32", Granularity::group, 32},
    {"group64", Granularity::group, 64},
    {"group128", Granularity::group, 128},
};
constexpr GranularityName kEmbeddingGranularities[] = {
    {"tensor", Granularity::tensor, 0}, {"channel", Granularity::channel, 0}, {"group32", Granularity::group, 32}};
constexpr GranularityName kActivationGranularities[] = {
    {"token", Granularity::token, 0},
    {"group", Granularity::group, 0},
    {"tensor", Granularity::tensor, 0},
    {"embedding", Granularity::input, 0},
    {"peg8", Granularity::peg, 8},
};

constexpr const char* kGrammar =
    "f32, {f16|bf16|q4f16_1}[+a16], float{6..28}-channel[+embed], embed-int{2..8}-{tensor|channel|group32}, or "
    "int{2..8}-{tensor|channel|input|group32|group64|group128} followed, in this order, by any of -asym, -s16 (of "
    "groups), +embed, "
    "+a16 or +a{4..8}[-token|-group|-tensor|-embedding|-peg8]; of a file that holds codes its own "
    "name[+a16|+a{4..8}[-group]]";

constexpr std::string_view kNarrow = "+a16";

/// Names a user may have meant: the named schemes and a few of each family.
std::vector<std::string> examples() {
  std::vector<std::string> names = {"f32", "f16", "f16+a16", "bf16", "bf16+a16", "q4f16_1", "q4f16_1+a16"};
  for (int bits = 2; bits <= 8; ++bits) {
    for (const auto& g : kWeightGranularities) {
      names.push_back(text("int", bits, "-", g.text));
      names.push_back(text("int", bits, "-", g.text, "-asym"));
      if (g.granularity == Granularity::group) names.push_back(text("int", bits, "-", g.text, "-s16"));
      for (const auto& a : kActivationGranularities) names.push_back(text("int", bits, "-", g.text, "+a8-", a.text));
      names.push_back(text("int", bits, "-", g.text, "+a8"));
      names.push_back(text("int", bits, "-", g.text, "+a16"));
      names.push_back(text("int", bits, "-", g.text, "+embed"));
    }
    for (const auto& g : kEmbeddingGranularities) names.push_back(text("embed-int", bits, "-", g.text));
  }
  return names;
}

/// What other programs call schemes, and the nearest of ours.
struct OtherName {
  const char* theirs;
  std::vector<std::string> ours;
};
const std::vector<OtherName>& other_names() {
  static const std::vector<OtherName> rows = {{"int8", {"int8-channel", "int8-channel+a8", "int8-group128"}},
                                              {"int4", {"int4-group32", "int4-group128", "q4f16_1"}},
                                              {"int3", {"int3-group32"}},
                                              {"int2", {"int2-group32"}},
                                              {"fp32", {"f32"}},
                                              {"float32", {"f32"}},
                                              {"float", {"f32"}},
                                              {"fp16", {"f16", "f16+a16"}},
                                              {"float16", {"f16", "f16+a16"}},
                                              {"half", {"f16", "f16+a16"}},
                                              {"bfloat16", {"bf16", "bf16+a16"}},
                                              {"q0f32", {"f32"}},
                                              {"q0f16", {"f16", "f16+a16"}},
                                              {"q4f16_0", {"q4f16_1"}},
                                              {"q4f32_1", {"q4f16_1"}},
                                              {"q3f16_1", {"int3-group32"}},
                                              {"q4_0", {"int4-group32", "q4f16_1"}},
                                              {"q4_1", {"int4-group32-asym"}},
                                              {"q5_0", {"int5-group32"}},
                                              {"q5_1", {"int5-group32-asym"}},
                                              {"q8_0", {"int8-group32"}},
                                              {"q2_k", {"int2-group32-asym"}},
                                              {"q3_k", {"int3-group32-asym"}},
                                              {"q4_k", {"int4-group32-asym"}},
                                              {"q5_k", {"int5-group32-asym"}},
                                              {"q6_k", {"int6-group32"}},
                                              {"awq", {"int4-group128-asym"}},
                                              {"gptq", {"int4-group128"}},
                                              {"nf4", {"int4-group32", "int4-group128"}},
                                              {"fp4", {"int4-group32", "int4-group128"}},
                                              {"mxfp4", {"int4-group32"}},
                                              {"fp8", {"int8-channel", "int8-channel+a8"}},
                                              {"w8a8", {"int8-channel+a8"}},
                                              {"w4a8", {"int4-group128+a8"}},
                                              {"w4a16", {"int4-group128+a16"}},
                                              {"w8a16", {"int8-channel+a16"}}};
  return rows;
}

std::vector<std::string> called_elsewhere(std::string lower) {
  if (lower.size() > 4 && lower[0] == 'q' && lower.substr(2, 2) == "_k") lower.resize(4);  // "Q4_K_M"
  for (const OtherName& row : other_names())
    if (lower == row.theirs) return row.ours;
  return {};
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name), rest_(name) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool done() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  int bits(int least) {
    int v = 0;
    auto [end, err] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    const bool is_one_digit = end - rest_.data() == 1;  // "08" is no other name of 8
    if (err != std::errc() || v < least || v > 8 || !is_one_digit) refuse(text("bits from ", least, " to 8"));
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return v;
  }

  int float_bits() {
    constexpr int kLeast = 6, kMost = 28;
    int v = 0;
    auto [end, err] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), v);
    if (err != std::errc() || v < kLeast || v > kMost || rest_.starts_with('0'))
      refuse(text("bits from ", kLeast, " to ", kMost));
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return v;
  }

  /// The longest name that stands here: "group128" before "group12...".
  template <size_t N>
  const GranularityName& granularity(const GranularityName (&among)[N]) {
    const GranularityName* best = nullptr;
    for (const GranularityName& g : among) {
      std::string_view word = g.text;
      if (!rest_.starts_with(word)) continue;
      if (!best || word.size() > std::string_view(best->text).size()) best = &g;
    }
    if (!best) {
      std::vector<std::string> names;
      for (const GranularityName& g : among) names.push_back(g.text);
      refuse(join(names, ", "));
    }
    take(best->text);
    return *best;
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    const std::string lower = lower_case(std::string(name_));
    std::vector<std::string> near = in_order();
    if (near.empty()) near = called_elsewhere(lower);
    if (near.empty()) near = nearest_names(lower, examples());
    fail({.what = text("there is no quantization scheme ",
                       string_literal(name_),
                       ": at ",
                       rest_.empty() ? std::string("its end") : string_literal(rest_),
                       " it should have ",
                       expected),
          .needs = kGrammar,
          .hint = near.empty() ? std::string("`sator schemes` lists them with their meaning")
                               : text("the nearest are: ", join(near, ", "), "; `sator schemes` lists all")});
  }

 private:
  /// "int8-channel+embed+a8" for "int8-channel+a8+embed": all is read but the suffix that stands too late.
  std::vector<std::string> in_order() const {
    const std::string_view read = name_.substr(0, name_.size() - rest_.size());
    const size_t first = read.find('+');
    if (rest_ != "+embed" || first == read.npos || read.find(rest_) != read.npos) return {};
    return {text(read.substr(0, first), rest_, read.substr(first))};
  }

  std::string_view name_, rest_;
};

/// "+a8", "+a8-tensor", ...; nothing where something else stands there.
std::optional<ActivationFormat> read_activation(Reader& r) {
  if (!r.take("+a")) return {};
  ActivationFormat a{.bits = r.bits(4)};
  if (r.take("-")) {
    const GranularityName& g = r.granularity(kActivationGranularities);
    a.granularity = g.granularity;
    a.groups = g.size;
  }
  return a;
}

IntegerFormat read_format(Reader& r, int bits, const GranularityName& g) {
  IntegerFormat format{.bits = bits, .granularity = g.granularity, .group = g.size};
  format.asymmetric = r.take("-asym");
  if (g.granularity == Granularity::group && r.take("-s16")) format.scale_dtype = f16;
  return format;
}

}  // namespace

/// The values of the 256 codes of a sign, so many bits of exponent and so many of mantissa, as if all were finite.
static std::vector<float> floats_of_bits(int exponent_bits, int mantissa_bits, int bias) {
  std::vector<float> out;
  for (int code = 0; code < 256; ++code) {
    const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1),
              mantissa = code & ((1 << mantissa_bits) - 1);
    const int whole = exponent > 0 ? mantissa | 1 << mantissa_bits : mantissa;
    const double value = std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
    out.push_back(static_cast<float>(code & 128 ? -value : value));
  }
  return out;
}

const std::vector<float>& values_of(Codebook codebook) {
  static const std::vector<float> none,
      nl4 = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113},
      fp4 = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  static const std::vector<float> e4m3 = floats_of_bits(4, 3, 7), e5m2 = floats_of_bits(5, 2, 15);
  switch (codebook) {
    case Codebook::nl4: return nl4;
    case Codebook::fp4: return fp4;
    case Codebook::e4m3: return e4m3;
    case Codebook::e5m2: return e5m2;
    default: return none;
  }
}

IntegerFormat mxfp4_format() {
  return {.bits = 4,
          .granularity = Granularity::group,
          .group = 32,
          .scale_dtype = bf16,
          .zero = 0,
          .codebook = Codebook::fp4};
}

uint16_t mxfp4_scale(uint8_t exponent) {
  return static_cast<uint16_t>(exponent < 2 ? 0x20 << exponent : (exponent - 1) << 7);
}

std::string_view bare_name(std::string_view tensor) {
  for (std::string_view prefix : {"transformer.", "model."})
    if (tensor.starts_with(prefix)) return tensor.substr(prefix.size());
  return tensor;
}

static std::optional<IntegerFormat> stored_format(const Scheme& s, const std::string& tensor) {
  auto at = s.stored->codes.find(bare_name(tensor));
  return at == s.stored->codes.end() ? std::nullopt : std::optional(at->second);
}

std::optional<IntegerFormat> linear_format(const Scheme& s, const std::string& tensor) {
  return s.stored ? stored_format(s, tensor) : s.linear;
}

std::optional<IntegerFormat> embedding_format(const Scheme& s, const std::string& tensor) {
  return s.stored ? stored_format(s, tensor) : s.embedding;
}

std::optional<ActivationFormat> activation_of_head(const Scheme& s) {
  return s.activation && !s.activation->is_static() ? s.activation : std::nullopt;
}

DType plain_dtype(const Scheme& s, const std::string& tensor) {
  if (!s.stored) return s.storage;
  auto at = s.stored->plain.find(bare_name(tensor));
  return at == s.stored->plain.end() ? f32 : at->second;  // values of codes are no 16-bit floats
}

bool have_same_weights(const Scheme& a, const Scheme& b) {
  if (a.stored || b.stored) return a.stored && b.stored && *a.stored == *b.stored;
  return a.storage == b.storage && a.linear == b.linear && a.experts_only == b.experts_only &&
         a.embedding == b.embedding && a.activation == b.activation;
}

Scheme parse_scheme(std::string_view name) {
  Scheme scheme{.name = std::string(name)};
  const bool narrow = name.ends_with(kNarrow);
  const std::string_view stored = narrow ? name.substr(0, name.size() - kNarrow.size()) : name;
  if (narrow) scheme.factors = stored == "bf16" ? bf16 : f16;
  if (name == "f32" || stored == "f16" || stored == "bf16") {
    scheme.storage = name == "f32" ? f32 : stored == "f16" ? f16 : bf16;
    return scheme;
  }
  if (stored == "q4f16_1") {
    IntegerFormat mlc{.bits = 4, .granularity = Granularity::group, .group = 32, .scale_dtype = f16, .mlc = true};
    scheme.linear = mlc;
    scheme.embedding = mlc;
    return scheme;
  }
  Reader r(name);
  if (r.take("embed-int")) {
    int bits = r.bits(2);
    if (!r.take("-")) r.refuse("-");
    const GranularityName& g = r.granularity(kEmbeddingGranularities);
    scheme.embedding = IntegerFormat{.bits = bits, .granularity = g.granularity, .group = g.size};
    if (!r.done()) r.refuse("nothing more");
    return scheme;
  }
  if (r.take("float")) {
    scheme.linear = IntegerFormat{.bits = r.float_bits(), .exponent_bits = 4};
    if (!r.take("-channel")) r.refuse("-channel");
    if (r.take("+embed")) scheme.embedding = scheme.linear;
    if (!r.done()) r.refuse("+embed or nothing more");
    scheme.storage = scheme.linear->bits > 16 ? f32 : bf16;
    return scheme;
  }
  if (!r.take("int")) r.refuse("f32, f16, bf16, q4f16_1, float.., int.. or embed-int..");
  int bits = r.bits(2);
  if (!r.take("-")) r.refuse("-");
  scheme.linear = read_format(r, bits, r.granularity(kWeightGranularities));
  if (r.take("+embed")) scheme.embedding = scheme.linear;
  if (r.rest() == kNarrow)
    r.take(kNarrow);
  else
    scheme.activation = read_activation(r);
  if (!r.done()) r.refuse("-asym, -s16 of groups, +embed, then +a16 or +a{4..8}[-granularity], in this order");
  return scheme;
}

std::optional<Scheme> stored_scheme_named(const Scheme& own, std::string_view name) {
  if (!name.starts_with(own.name)) return {};
  Scheme scheme = own;
  scheme.name = name;
  Reader r(name);
  r.take(own.name);
  if (r.rest() == kNarrow) {
    scheme.factors = f16;
    return scheme;
  }
  scheme.activation = read_activation(r);
  if (!r.done()) return {};
  if (scheme.activation && own.stored && own.stored->codes.empty())
    fail({.what = text(own.name, " are floats: there are no products by codes whose inputs could be integers"),
          .needs = text(own.name, " as it is, or another scheme"),
          .hint = text("int8-channel+a", scheme.activation->bits, " quantizes them")});
  if (scheme.activation && scheme.activation->is_static())
    fail({.what = text("the codes of ", own.name, " are given, and static scales of inputs would change them"),
          .needs = "scales that are taken from each row",
          .hint = text(own.name, "+a", scheme.activation->bits)});
  if (scheme.activation) scheme.remark.clear();  // which says that inputs stay floats
  return scheme;
}

const std::vector<SchemeFamily>& scheme_families() {
  static const std::vector<SchemeFamily> families = {
      {"f32", "all weights as 32-bit floats: the exact reference", "-"},
      {"f16, bf16", "all weights as 16-bit floats; arithmetic in f32", "-"},
      {"int{2..8}-tensor",
       "linear layers inside the blocks as b-bit integers, per tensor; all that is not quantized is float16",
       "S[]"},
      {"int{2..8}-channel", "the same, per output channel", "S[out]"},
      {"int{2..8}-input", "the same, per embedding (input feature)", "S[in]"},
      {"int{2..8}-group{32|64|128}", "the same, per group of consecutive inputs", "S[out, in/g]"},
      {"...-asym", "with a zero point: codes from min(w, 0) to max(w, 0)", "as above, and Z with the same indices"},
      {"...-group{32|64|128}[-asym]-s16", "the same with scales of float16, as GGUF's and MLC-LLM's are", "as above"},
      {"...+embed", "token embedding and head too, in the same way", "as above"},
      {"...+a{4..8}, +a{4..8}-token",
       "inputs of those layers (with +embed of the head too) as integers, per token, taken from the row (dynamic); in "
       "attention bfloat16, where the model has 16 bits",
       "S[token]"},
      {"...+a{4..8}-group", "the same, and per group of inputs, as the weights have them (dynamic)", "S[token, in/g]"},
      {"...+a{4..8}-tensor", "the same, but for the head's; one scale from the calibration text (static)", "S[]"},
      {"...+a{4..8}-embedding", "the same, one scale per input feature (static), folded into the weights", "S[in]"},
      {"...+a{4..8}-peg8",
       "the same, 8 groups of consecutive features (static), folded into the weights",
       "S[8 in/features]"},
      {"{f16|bf16|int..|q4f16_1}+a16",
       "every product, also attention's, of 16-bit floats (those of the weights, else f16), summed in f32; KV cache "
       "of 16 bits",
       "as above"},
      {"{Q4_K_M|awq-int4-group128|...}[+a16|+a{4..8}[-group]]",
       "the codes that a file holds, under its own name; with +a8 inputs of products by codes of integers are integers "
       "too",
       "as the file has them"},
      {"float{6..28}-channel[+embed]",
       "floats of a sign, 4 bits of exponent and the rest of mantissa, a power of two for each channel: float32 in 28 "
       "bits, bfloat16 in 12, exact but for weights below 2^-14 of the largest of their channel",
       "S[out]"},
      {"embed-int{2..8}-{tensor|channel|group32}", "token embedding and head alone", "S[], S[token id], S[id, in/32]"},
      {"q4f16_1",
       "MLC-LLM's 4-bit format, bit for bit: groups of 32, f16 scales, embedding and head too",
       "S[out, in/32]"},
  };
  return families;
}

static std::string describe(const IntegerFormat& f, bool embedding) {
  std::string per;
  switch (f.granularity) {
    case Granularity::tensor: per = "one scale per tensor"; break;
    case Granularity::channel:
      per = embedding ? "one scale per token of the vocabulary" : "one scale per output channel";
      break;
    case Granularity::input: per = "one scale per input feature (embedding)"; break;
    case Granularity::group: per = text("one scale per ", f.group, " consecutive inputs"); break;
    default: internal_error("a weight has no such granularity");
  }
  const bool of_floats = f.codebook != Codebook::none || f.exponent_bits > 0;
  const std::string codes = of_floats ? text(f.bits, "-bit floats") : text("int", f.bits);
  return text(codes,
              ", ",
              per,
              of_floats      ? ""
              : f.asymmetric ? ", with zero points"
                             : ", symmetric",
              f.scale_dtype == f32 ? "" : text(", ", f.scale_dtype, " scales"),
              f.mlc ? ", as MLC-LLM" : "");
}

/// With one scale per input feature of the weights, what is quantized is x[k] * s[k] (ActivationFormat).
static std::string describe(const ActivationFormat& a, bool of_inputs) {
  std::string per;
  switch (a.granularity) {
    case Granularity::token: per = "one scale per token, dynamic"; break;
    case Granularity::group: per = "one scale per token and group of inputs, dynamic"; break;
    case Granularity::tensor: per = "one scale per tensor, static"; break;
    case Granularity::input: per = "one scale per embedding (input feature), static"; break;
    case Granularity::peg: per = text(a.groups, " groups of consecutive features, static"); break;
    default: internal_error("an activation has no such granularity");
  }
  if (of_inputs && a.is_static())
    per = "one scale for all features, static (they are multiplied by the weights' scales first)";
  return text("int", a.bits, ", ", per);
}

/// What is done beside keeping codes as they are.
static std::string describe_beside_codes(const Scheme& s) {
  return text(s.activation ? text("; activations: ", describe(*s.activation, false)) : "",
              s.factors ? text("; products of ", *s.factors) : "",
              s.remark.empty() ? "" : text("; ", s.remark));
}

/// What holds codes of that name; nothing where it is none.
static std::optional<std::string> holder_of(std::string_view own) {
  for (const auto& [number, type] : gguf_file_types())
    if (own == type) return "a GGUF file of that type";
  constexpr std::pair<std::string_view, const char*> kMethods[] = {
      {"gptq-int", "a checkpoint of GPTQ"},
      {"awq-int", "a checkpoint of AWQ"},
      {"packed-int", "a checkpoint of compressed-tensors"}};
  for (const auto& [method, holder] : kMethods) {
    if (!own.starts_with(method)) continue;
    std::string_view rest = own.substr(method.size());  // "4-group128", "8-channel"
    if (rest.empty() || rest[0] < '2' || rest[0] > '8') return {};
    rest.remove_prefix(1);
    constexpr std::string_view kGroup = "-group", kDigits = "0123456789";
    const bool is_group = rest.starts_with(kGroup) && rest.size() > kGroup.size() &&
                          rest.find_first_not_of(kDigits, kGroup.size()) == rest.npos;
    return rest == "-channel" || is_group ? std::optional<std::string>(holder) : std::nullopt;
  }
  return {};
}

std::optional<std::string> describe_stored(std::string_view name) {
  const std::string_view own_name = name.substr(0, name.find('+'));
  const std::optional<std::string> holder = holder_of(own_name);
  if (!holder) return {};
  auto formats = std::make_shared<StoredFormats>();
  const bool floats = own_name == "F32" || own_name == "F16" || own_name == "BF16";
  if (!floats) formats->codes.emplace("a matrix", IntegerFormat{});
  const Scheme own{.name = std::string(own_name), .stored = std::move(formats)};
  const std::optional<Scheme> named = stored_scheme_named(own, name);
  if (!named) return {};
  return text("the ", floats ? "floats" : "codes", " of ", *holder, " as they are", describe_beside_codes(*named));
}

std::string describe(const Scheme& s) {
  std::vector<std::string> parts;
  if (s.stored && s.stored->codes.empty()) return "the floats of the checkpoint as they are";
  if (s.stored)
    return text(
        "the codes of the checkpoint as they are, ", s.stored->codes.size(), " matrices", describe_beside_codes(s));
  if (s.linear)
    parts.push_back((s.experts_only ? "linear layers of experts: " : "linear layers: ") + describe(*s.linear, false));
  if (s.embedding) parts.push_back("embedding and head: " + describe(*s.embedding, true));
  if (s.activation)
    parts.push_back(text("activations: ",
                         describe(*s.activation, s.linear && s.linear->granularity == Granularity::input),
                         s.embedding && !activation_of_head(s) ? ", the head's input stays a float" : ""));
  if (s.factors) parts.push_back(text("products of ", *s.factors));
  parts.push_back(text(s.linear || s.embedding ? "the rest " : "all weights ", s.storage));
  if (!s.remark.empty()) parts.push_back(s.remark);
  return join(parts, "; ");
}

const std::vector<std::string>& default_schemes() {
  static const std::vector<std::string> names = {"f32",
                                                 "f16",
                                                 "int8-tensor",
                                                 "int8-channel",
                                                 "int8-input",
                                                 "int8-channel+a8",
                                                 "int8-channel+a8-tensor",
                                                 "int8-channel+a8-embedding",
                                                 "int8-channel+a8-peg8",
                                                 "int4-group32",
                                                 "int4-group32+a8",
                                                 "q4f16_1"};
  return names;
}

}  // namespace sator::llm
