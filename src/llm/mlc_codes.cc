#include "llm/mlc_codes.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sator::llm {

using runtime::Tensor;
using Stored = MlcWeights::Stored;

namespace {

[[noreturn]] void fail_record(const std::string& name, const std::string& problem, const std::string& needs) {
  fail({.what = text("tensor ", name, " ", problem),
        .needs = needs,
        .hint = "check that weights and mlc-chat-config.json belong together"});
}

void require_record(const Stored& s, const std::vector<int64_t>& shape, std::initializer_list<DType> dtypes) {
  if (std::ranges::find(dtypes, s.dtype) == dtypes.end())
    fail_record(s.name, text("is ", s.dtype), join(std::vector<DType>(dtypes), " or "));
  if (s.shape != shape)
    fail_record(
        s.name, text("is [", join(s.shape, ", "), "]"), text("[", join(shape, ", "), "], as the configuration says"));
}

/// A part of a matrix or vector: so many rows from one on, under the name that a checkpoint has for it.
struct PartRows {
  std::string layer;  ///< "model.layers.0.self_attn.q_proj", or with ".weight" where `is_whole`
  int64_t first = 0, count = 0, inputs = 0;
  bool is_whole = false;
};

/// What MLC-LLM calls the layer that it fuses of queries, keys and values.
constexpr std::string_view kFusedQkv[] = {"self_attn.qkv_proj", "self_attn.c_attn"};
constexpr std::string_view kFusedMlp = "mlp.gate_up_proj", kExpertsIn = "moe.e1_e3", kExpertsOut = "moe.e2",
                           kRouter = "moe.gate";

/// Everything with rows: the parts that a layer of MLC-LLM's falls into. `rows`: all that it has, of all experts.
class Parts {
 public:
  explicit Parts(const ModelConfig& config) : c_(config) {}

  /// Tables of embeddings lie [rows, words] under every scheme: MLC-LLM transposes linear layers alone.
  bool is_table(const std::string& layer) const { return layer == c_.names.embedding || layer == c_.names.positions; }

  std::vector<PartRows> of(const std::string& layer, int64_t rows) const {
    std::string block, within = layer;
    if (layer.starts_with(c_.names.block)) {
      const size_t dot = layer.find('.', c_.names.block.size());
      if (dot != std::string::npos) block = layer.substr(0, dot + 1), within = layer.substr(dot + 1);
    }
    const TensorNames& n = c_.names;
    const AttentionConfig& a = c_.attention;
    if (std::ranges::find(kFusedQkv, within) != std::end(kFusedQkv) && n.qkv.size() == 3)
      return split(layer, block, n.qkv, {a.heads * a.head_dim, a.kv_heads * a.head_dim, a.kv_heads * a.head_dim}, rows);
    if (within == kFusedMlp && n.mlp_in.size() == 2)
      return split(layer, block, n.mlp_in, {c_.mlp.units, c_.mlp.units}, rows);
    if (within == kExpertsIn && n.expert_in.size() == 2)
      return experts(layer, block, n.expert_in, c_.experts.units, c_.hidden_size, rows);
    if (within == kExpertsOut && !n.expert_out.empty())
      return experts(layer, block, {n.expert_out}, c_.hidden_size, c_.experts.units, rows);
    if (within == kRouter && !n.router.empty()) return {{block + n.router, 0, rows, c_.hidden_size}};
    const int64_t inputs = within == n.out ? a.heads * a.head_dim : within == n.mlp_out ? c_.mlp.units : c_.hidden_size;
    return {{layer, 0, rows, inputs}};
  }

 private:
  std::vector<PartRows> split(const std::string& layer, const std::string& block, const std::vector<std::string>& names,
                              const std::vector<int64_t>& counts, int64_t rows) const {
    std::vector<PartRows> out;
    int64_t first = 0;
    for (size_t i = 0; i < names.size(); first += counts[i++])
      out.push_back({block + names[i], first, counts[i], c_.hidden_size});
    if (first != rows) fail_record(layer, text("has ", rows, " outputs"), text(first, ", as the configuration says"));
    return out;
  }
  std::vector<PartRows> experts(const std::string& layer, const std::string& block,
                                const std::vector<std::string>& names, int64_t each, int64_t inputs,
                                int64_t rows) const {
    std::vector<PartRows> out;
    for (int64_t e = 0; e < c_.experts.count; ++e)
      for (const std::string& name : names)
        out.push_back({block + numbered(name, e), std::ssize(out) * each, each, inputs, true});
    if (std::ssize(out) * each != rows)
      fail_record(layer, text("has ", rows, " outputs"), text(std::ssize(out) * each, ", as the configuration says"));
    return out;
  }

  const ModelConfig& c_;
};

std::string tensor_of(const PartRows& r, std::string_view ending) {
  return r.is_whole ? r.layer : text(r.layer, ending);
}

uint32_t word_at(const Stored& s, int64_t i) {
  uint32_t word;
  std::memcpy(&word, s.bytes.data() + 4 * i, 4);
  return word;
}

/// Element i of 16- or 32-bit floats to the same of `to`, which may be wider.
void copy_scale(const Stored& s, int64_t i, Tensor& to, int64_t at) {
  const int64_t from = s.dtype.bytes();
  if (s.dtype == to.dtype()) {
    std::memcpy(to.data_as<std::byte>() + at * from, s.bytes.data() + i * from, static_cast<size_t>(from));
    return;
  }
  to.data_as<float>()[at] =
      to_f32(s.bytes.subspan(static_cast<size_t>(i * from), static_cast<size_t>(from)), s.dtype)[0];
}

QuantizedMatrix empty_matrix(const IntegerFormat& f, int64_t rows, int64_t cols) {
  QuantizedMatrix q{.format = f, .rows = rows, .cols = cols, .parts = {}};
  for (const MatrixPart& p : parts_of(f, rows, cols)) q.parts[p.part] = Tensor::empty(p.shape, p.dtype);
  Tensor& codes = *q.parts.at(ParamPart::codes);
  std::memset(codes.data(), 0, static_cast<size_t>(codes.size_bytes()));
  return q;
}

/// Codes of a group scheme: 32 / bits of them in a word, and whole words for each group.
struct GroupCodes {
  Stored codes, scales;
  MlcScheme scheme;
  bool transposed = false;  ///< they lie [words, rows]
  int64_t all_rows = 0;

  IntegerFormat format() const {
    return {.bits = scheme.bits,
            .granularity = Granularity::group,
            .group = scheme.group,
            .scale_dtype = scheme.dtype,
            .mlc = true};
  }
  QuantizedMatrix read(const PartRows& r) const {
    QuantizedMatrix q = empty_matrix(format(), r.count, r.inputs);
    const int64_t in_word = 32 / scheme.bits, in_group = scheme.group / in_word,
                  groups = (r.inputs + scheme.group - 1) / scheme.group, words = words_per_row(r.inputs, scheme.bits);
    const uint32_t mask = (1u << scheme.bits) - 1;
    auto place = [&](int64_t row, int64_t i, int64_t width) {
      return transposed ? i * all_rows + row : row * width + i;
    };
    Tensor& scale = *q.parts.at(ParamPart::scale);
    for (int64_t row = 0; row < r.count; ++row) {
      uint32_t* to = q.parts.at(ParamPart::codes)->data_as<uint32_t>() + row * words;
      for (int64_t k = 0; k < r.inputs; ++k) {
        const int64_t g = k / scheme.group, j = k % scheme.group, w = g * in_group + j / in_word;
        const uint32_t word = word_at(codes, place(r.first + row, w, groups * in_group));
        put_code(to, k, scheme.bits, word >> (j % in_word * scheme.bits) & mask);
      }
      for (int64_t g = 0; g < groups; ++g) copy_scale(scales, place(r.first + row, g, groups), scale, row * groups + g);
    }
    return q;
  }
};

/// AutoAWQ's codes: words hold those of eight outputs, in the order 0 2 4 6 1 3 5 7.
struct AwqCodes {
  Stored codes, zeros, scales;
  int64_t group = 128, all_rows = 0;

  static int64_t shift(int64_t row) { return (row % 2 * 4 + row % 8 / 2) * 4; }
  IntegerFormat format() const {
    return {.bits = 4,
            .granularity = Granularity::group,
            .group = static_cast<int>(group),
            .asymmetric = true,
            .scale_dtype = f16,
            .mlc = true};
  }
  QuantizedMatrix read(const PartRows& r) const {
    QuantizedMatrix q = empty_matrix(format(), r.count, r.inputs);
    const int64_t groups = (r.inputs + group - 1) / group, words = words_per_row(r.inputs, 4), width = all_rows / 8;
    for (int64_t row = 0; row < r.count; ++row) {
      const int64_t n = r.first + row;
      uint32_t* to = q.parts.at(ParamPart::codes)->data_as<uint32_t>() + row * words;
      for (int64_t k = 0; k < r.inputs; ++k) put_code(to, k, 4, word_at(codes, k * width + n / 8) >> shift(n) & 15);
      for (int64_t g = 0; g < groups; ++g) {
        q.parts.at(ParamPart::zero)->data_as<uint8_t>()[row * groups + g] =
            static_cast<uint8_t>(word_at(zeros, g * width + n / 8) >> shift(n) & 15);
        copy_scale(scales, g * all_rows + n, *q.parts.at(ParamPart::scale), row * groups + g);
      }
    }
    return q;
  }
};

/// 8-bit floats [out, in], with a scale of all, of each block, or none.
struct SmallFloatCodes {
  Stored codes;
  std::optional<Stored> scales;
  int64_t block = 0;  ///< outputs and inputs that share a scale; 0: all

  IntegerFormat format() const {
    return {.bits = 8,
            .granularity = block > 0 ? Granularity::group : Granularity::channel,
            .group = static_cast<int>(block),
            .scale_dtype = f32,
            .zero = 0,
            .codebook = codes.float8 == Float8::e4m3 ? Codebook::e4m3 : Codebook::e5m2};
  }
  QuantizedMatrix read(const PartRows& r) const {
    QuantizedMatrix q = empty_matrix(format(), r.count, r.inputs);
    const int64_t groups = block > 0 ? (r.inputs + block - 1) / block : 1;
    const int64_t words = words_per_row(r.inputs, 8);
    const int first_bad = codes.float8 == Float8::e4m3 ? 0x7f : 0x7c;
    for (int64_t row = 0; row < r.count; ++row) {
      const std::byte* from = codes.bytes.data() + (r.first + row) * r.inputs;
      for (int64_t k = 0; k < r.inputs; ++k)
        if ((std::to_integer<int>(from[k]) & 0x7f) >= first_bad)
          fail_record(codes.name,
                      text("has the code ", std::to_integer<int>(from[k]), ", which stands for no number"),
                      "finite weights");
      std::memcpy(q.parts.at(ParamPart::codes)->data_as<uint32_t>() + row * words, from, static_cast<size_t>(r.inputs));
      for (int64_t g = 0; g < groups; ++g) {
        Tensor& scale = *q.parts.at(ParamPart::scale);
        if (scales)
          copy_scale(*scales, block > 0 ? (r.first + row) / block * groups + g : 0, scale, row * groups + g);
        else
          scale.data_as<float>()[row * groups + g] = 1;
      }
    }
    return q;
  }
};

class MlcReader {
 public:
  MlcReader(std::shared_ptr<const MlcWeights> stored, const ModelConfig& config, const MlcScheme& scheme)
      : stored_(std::move(stored)), parts_(config), scheme_(scheme) {
    for (Stored& s : stored_->stored()) by_name_.emplace(s.name, std::move(s));
  }

  std::vector<StoredWeight> read() {
    constexpr std::string_view kCodes = ".q_weight", kAwq = ".qweight", kWeight = ".weight", kBias = ".bias";
    struct Part {
      std::string_view ending, of;
    };
    constexpr Part kParts[] = {{".q_scale", kCodes},
                               {".q_calibration_scale", kCodes},
                               {".qzeros", kAwq},
                               {".scales", kAwq},
                               {".weight_scale_inv", kWeight},
                               {".weight_scale", kWeight},
                               {".activation_scale", kWeight}};
    for (const auto& [name, s] : by_name_) {
      auto layer = [&](std::string_view ending) { return name.substr(0, name.size() - ending.size()); };
      if (name.ends_with(kCodes))
        s.float8 == Float8::none ? add_groups(layer(kCodes), s) : add_small_floats(layer(kCodes), s, ".q_scale", 0);
      else if (name.ends_with(kAwq))
        add_awq(layer(kAwq), s);
      else if (s.float8 != Float8::none && name.ends_with(kWeight))
        add_small_floats(layer(kWeight), s, ".weight_scale_inv", scheme_.group);
      else if (name.ends_with(kWeight) || name.ends_with(kBias))
        add_floats(name.ends_with(kWeight) ? layer(kWeight) : layer(kBias),
                   s,
                   std::string(name.ends_with(kWeight) ? kWeight : kBias));
      else if (const auto* p = std::ranges::find_if(kParts, [&](Part each) { return name.ends_with(each.ending); });
               p == std::end(kParts))
        out_.push_back({.name = name, .shape = s.shape, .dtype = s.dtype, .bytes = s.bytes});
      else if (const std::string whole = text(layer(p->ending), p->of); !find(whole))
        fail_record(
            name, text("is a part of ", whole, ", which is not there"), "scales and zero points with their codes");
    }
    return std::move(out_);
  }

 private:
  const Stored* find(const std::string& name) const {
    auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &at->second;
  }
  const Stored& part(const std::string& name) const {
    const Stored* s = find(name);
    if (!s) fail_record(name, "is missing", "codes with their scales and zero points");
    return *s;
  }
  void require_kind(const Stored& s, MlcScheme::Kind kind) const {
    if (scheme_.kind != kind)
      fail_record(s.name, text("holds codes that ", scheme_.name, " has not"), "weights as mlc-chat-config.json says");
  }
  /// [experts, rows, ...] as [experts * rows, ...].
  static Stored flat(Stored s) {
    if (s.shape.size() != 3) return s;
    s.shape = {s.shape[0] * s.shape[1], s.shape[2]};
    return s;
  }
  template <class Codes>
  void add(const std::string& layer, int64_t rows, const Codes& codes) {
    for (const PartRows& r : parts_.of(layer, rows))
      out_.push_back({.name = tensor_of(r, ".weight"),
                      .shape = {r.count, r.inputs},
                      .format = codes.format(),
                      .codes = [keep = stored_, codes, r] { return codes.read(r); }});
  }
  /// The inputs of a layer, which all its parts have.
  int64_t inputs_of(const std::string& layer, int64_t rows) const {
    const std::vector<PartRows> parts = parts_.of(layer, rows);
    if (parts.empty()) fail_record(layer, "has no parts", "a layer of the configuration");
    return parts.front().inputs;
  }

  void add_groups(const std::string& layer, const Stored& s) {
    require_kind(s, MlcScheme::Kind::group);
    const bool kn = scheme_.transposed && !parts_.is_table(layer);
    GroupCodes codes{flat(s), flat(part(layer + ".q_scale")), scheme_, kn};
    if (codes.codes.shape.size() != 2) fail_record(s.name, text("is [", join(s.shape, ", "), "]"), "two dimensions");
    if (kn && s.shape.size() == 3)
      fail_record(s.name, "holds experts whose codes lie [in, out]", "a scheme that ends in _1");
    codes.all_rows = codes.codes.shape[kn ? 1 : 0];
    const int64_t groups = (inputs_of(layer, codes.all_rows) + scheme_.group - 1) / scheme_.group;
    auto shape = [&](int64_t width) {
      return kn ? std::vector<int64_t>{width, codes.all_rows} : std::vector<int64_t>{codes.all_rows, width};
    };
    require_record(codes.codes, shape(groups * scheme_.group / (32 / scheme_.bits)), {u32});
    const DType on_disk = scheme_.dtype == f32 ? bf16 : scheme_.dtype;
    require_record(codes.scales, shape(groups), {scheme_.dtype, on_disk});
    add(layer, codes.all_rows, codes);
  }

  void add_awq(const std::string& layer, const Stored& s) {
    require_kind(s, MlcScheme::Kind::awq);
    AwqCodes codes{s, part(layer + ".qzeros"), part(layer + ".scales"), scheme_.group};
    if (codes.scales.shape.size() != 2) fail_record(codes.scales.name, "is no matrix", "[groups, out]");
    codes.all_rows = codes.scales.shape[1];
    const int64_t inputs = inputs_of(layer, codes.all_rows), groups = (inputs + codes.group - 1) / codes.group;
    if (codes.all_rows % 8 != 0)
      fail_record(s.name, text("has ", codes.all_rows, " outputs"), "outputs in multiples of 8");
    require_record(s, {inputs, codes.all_rows / 8}, {u32, i32});
    require_record(codes.zeros, {groups, codes.all_rows / 8}, {u32, i32});
    require_record(codes.scales, {groups, codes.all_rows}, {f16});
    add(layer, codes.all_rows, codes);
  }

  void add_small_floats(const std::string& layer, const Stored& s, const char* scale, int64_t block) {
    require_kind(s, block > 0 ? MlcScheme::Kind::block : MlcScheme::Kind::tensor);
    SmallFloatCodes codes{flat(s), {}, block};
    if (codes.codes.shape.size() != 2) fail_record(s.name, text("is [", join(s.shape, ", "), "]"), "two dimensions");
    const int64_t rows = codes.codes.shape[0], inputs = inputs_of(layer, rows);
    require_record(codes.codes, {rows, inputs}, {u8});
    if (const Stored* scales = find(layer + scale)) {
      codes.scales = flat(*scales);
      if (block > 0)
        require_record(*codes.scales, {(rows + block - 1) / block, (inputs + block - 1) / block}, {f32, bf16});
      else
        require_record(*codes.scales, {1}, {f32, bf16});
    } else if (block > 0 || s.float8 == Float8::e4m3) {
      part(layer + scale);
    }
    add(layer, rows, codes);
  }

  void add_floats(const std::string& layer, const Stored& s, const std::string& ending) {
    if (!is_storage_dtype(s.dtype) || s.shape.empty() || s.shape.size() > 3)
      fail_record(s.name, text("is ", s.dtype, " [", join(s.shape, ", "), "]"), "floats, matrices and vectors");
    const Stored whole = flat(s);
    const std::vector<PartRows> parts = parts_.of(layer, whole.shape.front());
    const auto row_bytes = whole.shape.front() > 0 ? whole.bytes.size() / static_cast<size_t>(whole.shape.front()) : 0;
    for (const PartRows& r : parts) {
      StoredWeight w{.name = tensor_of(r, ending), .shape = whole.shape, .dtype = whole.dtype};
      w.shape.front() = r.count;
      w.bytes = whole.bytes.subspan(static_cast<size_t>(r.first) * row_bytes, static_cast<size_t>(r.count) * row_bytes);
      out_.push_back(std::move(w));
    }
  }

  std::shared_ptr<const MlcWeights> stored_;
  Parts parts_;
  MlcScheme scheme_;
  std::map<std::string, Stored, std::less<>> by_name_;
  std::vector<StoredWeight> out_;
};

}  // namespace

std::vector<StoredWeight> weights_of_mlc(const std::shared_ptr<const MlcWeights>& stored, const ModelConfig& config,
                                         const MlcScheme& scheme) {
  return MlcReader(stored, config, scheme).read();
}

}  // namespace sator::llm
