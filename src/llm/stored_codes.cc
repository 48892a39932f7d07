#include "llm/stored_codes.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <set>

#include "base/error.h"

namespace sator::llm {

using runtime::Dims;
using runtime::Tensor;
using Method = StoredQuantization::Method;

namespace {

constexpr int64_t kWordBits = 32;
constexpr int64_t kMicroscaled = 32;  // elements that share a scale
constexpr int kAwqOrder[] = {
    0, 2, 4, 6, 1, 3, 5, 7};  // of the outputs whose codes a word holds, from its lowest bits on

/// Words of a tensor at any address.
class Words {
 public:
  explicit Words(const SafeTensor& t) : bytes_(t.bytes.data()) {}
  uint32_t operator[](int64_t i) const {
    uint32_t word;
    std::memcpy(&word, bytes_ + 4 * i, 4);
    return word;
  }
  /// Code number j from word `from` on, of codes of some bits in words that stand `step` apart.
  uint32_t code(int64_t from, int64_t step, int64_t j, int bits) const {
    const int64_t bit = j * bits, word = bit / kWordBits, in = bit % kWordBits;
    uint64_t both = (*this)[from + word * step];
    if (in + bits > kWordBits) both |= static_cast<uint64_t>((*this)[from + (word + 1) * step]) << kWordBits;
    return static_cast<uint32_t>(both >> in) & ((1u << bits) - 1);
  }

 private:
  const std::byte* bytes_;
};

Ref<Tensor> zeros(const Dims& shape, DType dtype) {
  Ref<Tensor> t = Tensor::empty(shape, dtype);
  std::memset(t->data(), 0, static_cast<size_t>(t->size_bytes()));
  return t;
}

/// The parts of one layer, their extents checked. They are tensors of `file`.
struct Layer {
  std::shared_ptr<const SafeTensors> file;
  std::string name;  ///< "model.layers.0.self_attn.q_proj"
  StoredQuantization how;
  const SafeTensor *codes = nullptr, *scales = nullptr, *zeros = nullptr, *groups = nullptr;
  int64_t rows = 0, cols = 0, count = 0;  ///< outputs, inputs, groups of a row
  int64_t group() const { return how.group > 0 ? how.group : cols; }
};

[[noreturn]] void fail_layer(const std::string& tensor, const std::string& problem, const std::string& needs) {
  fail({.what = text("tensor ", tensor, " ", problem),
        .needs = needs,
        .hint = "check that weights and quantization_config belong together"});
}

void require_shape(const SafeTensor& t, const std::vector<int64_t>& shape, std::initializer_list<DType> dtypes) {
  if (std::ranges::find(dtypes, t.dtype) == dtypes.end())
    fail_layer(t.name, text("is ", t.dtype), join(std::vector<DType>(dtypes), " or "));
  if (t.shape != shape)
    fail_layer(
        t.name, text("is [", join(t.shape, ", "), "]"), text("[", join(shape, ", "), "], as the layer's codes say"));
}

const SafeTensor& part(const SafeTensors& all, const std::string& name) {
  const SafeTensor* t = all.find(name);
  if (!t) fail_layer(name, "is missing", "codes with their scales and zero points");
  return *t;
}

int64_t words_for(int64_t codes, int bits) { return (codes * bits + kWordBits - 1) / kWordBits; }

/// Zero points of one layer as uint8 [rows * count], row by row.
std::vector<uint8_t> zero_points(const Layer& l) {
  std::vector<uint8_t> out(static_cast<size_t>(l.rows * l.count), static_cast<uint8_t>(1 << (l.how.bits - 1)));
  if (!l.zeros) return out;
  const Words words(*l.zeros);
  auto put = [&](int64_t row, int64_t g, uint32_t zero) {
    if (zero > 255) fail_layer(l.zeros->name, text("has the zero point ", zero), "zero points of at most 255");
    out[static_cast<size_t>(row * l.count + g)] = static_cast<uint8_t>(zero);
  };
  const int bits = l.how.bits;
  if (l.how.method == Method::packed) {
    if (l.zeros->dtype == i8) {
      const auto* z = reinterpret_cast<const int8_t*>(l.zeros->bytes.data());
      for (int64_t i = 0; i < l.rows * l.count; ++i) put(i / l.count, i % l.count, static_cast<uint32_t>(z[i] + 128));
      return out;
    }
    for (int64_t row = 0; row < l.rows; ++row)
      for (int64_t g = 0; g < l.count; ++g) put(row, g, words.code(g, l.count, row, bits));
    return out;
  }
  const int64_t per_group = words_for(l.rows, bits);
  for (int64_t g = 0; g < l.count; ++g) {
    for (int64_t row = 0; row < l.rows; ++row) {
      if (l.how.method == Method::awq) {
        const int64_t nibble = std::ranges::find(kAwqOrder, row % 8) - kAwqOrder;
        put(row, g, words[g * per_group + row / 8] >> (4 * nibble) & 15);
      } else {
        put(row, g, words.code(g * per_group, 1, row, bits) + (l.how.zeros_less_one ? 1 : 0));
      }
    }
  }
  return out;
}

/// GPTQ's zero points of symmetric codes are known: files that hold them as they are, and call themselves of the first version,
/// which holds them less 1, are of the second.
void settle_version(Layer& l, std::vector<uint8_t>& zero) {
  if (l.how.method != Method::gptq || !l.how.symmetric || !l.how.zeros_less_one) return;
  const int middle = 1 << (l.how.bits - 1);
  if (std::ranges::all_of(zero, [&](uint8_t z) { return z == middle + 1; })) {
    l.how.zeros_less_one = false;
    std::ranges::fill(zero, static_cast<uint8_t>(middle));
  }
}

/// The inputs in the order of their groups; empty where they stand so already.
std::vector<int32_t> input_order(const Layer& l) {
  if (!l.groups) return {};
  const Words words(*l.groups);
  std::vector<int32_t> order(static_cast<size_t>(l.cols));
  std::vector<int64_t> sizes(static_cast<size_t>(l.count));
  std::iota(order.begin(), order.end(), 0);
  bool in_order = true;
  for (int64_t k = 0; k < l.cols; ++k) {
    const uint32_t g = words[k];
    if (g >= static_cast<uint64_t>(l.count))
      fail_layer(l.groups->name,
                 text("puts input ", k, " into group ", static_cast<int32_t>(g)),
                 text("groups 0 to ", l.count - 1));
    ++sizes[g];
    in_order &= g == static_cast<uint64_t>(k / l.group());
  }
  if (in_order) return {};
  for (int64_t g = 0; g < l.count; ++g)
    if (sizes[static_cast<size_t>(g)] != std::min(l.group(), l.cols - g * l.group()))
      fail_layer(l.groups->name,
                 text("has ", sizes[static_cast<size_t>(g)], " inputs in group ", g),
                 text(l.group(), " in each"));
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return words[a] < words[b]; });
  return order;
}

Ref<Tensor> packed_codes(const Layer& l, const std::vector<int32_t>& order) {
  const int bits = l.how.bits;
  const int64_t out_words = words_per_row(l.cols, bits);
  Ref<Tensor> out = zeros({l.rows, out_words}, u32);
  auto* to = out->data_as<uint32_t>();
  const Words words(*l.codes);
  const int64_t file_words = words_for(l.cols, bits);
  auto input = [&](int64_t k) -> int64_t { return order.empty() ? k : order[static_cast<size_t>(k)]; };
  for (int64_t row = 0; row < l.rows; ++row, to += out_words) {
    if (l.how.method == Method::packed && l.codes->dtype == i8) {
      const auto* from = reinterpret_cast<const int8_t*>(l.codes->bytes.data()) + row * l.cols;
      for (int64_t k = 0; k < l.cols; ++k) put_code(to, k, 8, static_cast<uint32_t>(from[input(k)] + 128));
    } else if (l.how.method == Method::packed && order.empty()) {
      for (int64_t w = 0; w < file_words; ++w) to[w] = words[row * file_words + w];
    } else if (l.how.method == Method::packed) {
      for (int64_t k = 0; k < l.cols; ++k) put_code(to, k, bits, words.code(row * file_words, 1, input(k), bits));
    } else if (l.how.method == Method::awq) {
      const int64_t shift = 4 * (std::ranges::find(kAwqOrder, row % 8) - kAwqOrder);
      for (int64_t k = 0; k < l.cols; ++k) put_code(to, k, 4, words[k * (l.rows / 8) + row / 8] >> shift & 15);
    } else if (order.empty()) {
      for (int64_t w = 0; w < file_words; ++w) to[w] = words[w * l.rows + row];
    } else {
      for (int64_t k = 0; k < l.cols; ++k) put_code(to, k, bits, words.code(row, l.rows, input(k), bits));
    }
  }
  return out;
}

/// Scales [rows * count], row by row, as the file has them.
Ref<Tensor> scales_of(const Layer& l, const Dims& shape) {
  Ref<Tensor> out = Tensor::empty(shape, l.scales->dtype);
  const auto size = static_cast<size_t>(l.scales->dtype.bytes());
  const std::byte* from = l.scales->bytes.data();
  for (int64_t row = 0; row < l.rows; ++row)
    for (int64_t g = 0; g < l.count; ++g) {
      const int64_t at = l.how.method == Method::packed ? row * l.count + g : g * l.rows + row;
      std::memcpy(out->data_as<std::byte>() + static_cast<size_t>(row * l.count + g) * size,
                  from + static_cast<size_t>(at) * size,
                  size);
    }
  return out;
}

/// What holds for all elements of a layer's codes; the files' small parts are read for it.
StoredWeight weight_of(Layer l) {
  std::vector<uint8_t> zero = zero_points(l);
  settle_version(l, zero);
  std::vector<int32_t> order = input_order(l);
  IntegerFormat f{.bits = l.how.bits,
                  .granularity = l.how.group > 0 ? Granularity::group : Granularity::channel,
                  .group = static_cast<int>(l.how.group),
                  .scale_dtype = l.scales->dtype};
  const bool alike = std::ranges::all_of(zero, [&](uint8_t z) { return z == zero.front(); });
  if (alike)
    f.zero = zero.front();
  else
    f.asymmetric = true;
  f.reordered = !order.empty();
  auto read = [l, f, zero = std::move(zero), order = std::move(order)] {
    QuantizedMatrix q{.format = f, .rows = l.rows, .cols = l.cols, .parts = {}};
    for (const MatrixPart& p : parts_of(f, l.rows, l.cols)) {
      Ref<Tensor>& made = q.parts[p.part];
      if (p.part == ParamPart::codes) made = packed_codes(l, order);
      if (p.part == ParamPart::scale) made = scales_of(l, p.shape);
      if (p.part == ParamPart::zero) made = Tensor::of(zero, p.shape, u8);
      if (p.part == ParamPart::order) made = Tensor::of(order, p.shape, i32);
    }
    return q;
  };
  return {.name = l.name + ".weight", .shape = {l.rows, l.cols}, .format = f, .codes = std::move(read)};
}

constexpr std::initializer_list<DType> kScaleDTypes = {f16, bf16, f32};

/// A layer of GPTQ or AWQ. Errors: as of weights_with_codes.
Layer packed_by_words(const SafeTensors& all, const std::string& name, const StoredQuantization& how) {
  Layer l{.name = name, .how = how, .codes = &part(all, name + ".qweight"), .scales = &part(all, name + ".scales")};
  l.zeros = &part(all, name + ".qzeros");
  const SafeTensor &codes = *l.codes, &scales = *l.scales;
  if (codes.shape.size() != 2 || scales.shape.size() != 2)
    fail_layer(codes.name,
               text("is [", join(codes.shape, ", "), "], its scales [", join(scales.shape, ", "), "]"),
               "two dimensions");
  const bool awq = how.method == Method::awq;
  l.rows = scales.shape[1];
  l.cols = awq ? codes.shape[0] : codes.shape[0] * kWordBits / how.bits;
  l.count = (l.cols + l.group() - 1) / std::max<int64_t>(l.group(), 1);
  if (l.rows == 0 || l.cols == 0 || l.cols % kWordBits != 0 || (awq && l.rows % 8 != 0))
    fail_layer(codes.name,
               text("has ", l.rows, " outputs of ", l.cols, " inputs"),
               text("inputs in multiples of ", kWordBits, awq ? ", outputs of 8" : ""));
  require_shape(codes, {awq ? l.cols : words_for(l.cols, how.bits), awq ? l.rows / 8 : l.rows}, {i32, u32});
  require_shape(scales, {l.count, l.rows}, kScaleDTypes);
  require_shape(*l.zeros, {l.count, words_for(l.rows, how.bits)}, {i32, u32});
  if (const SafeTensor* groups = all.find(name + ".g_idx"); groups && !awq) {
    require_shape(*groups, {l.cols}, {i32});
    l.groups = groups;
  }
  if (how.reordered && l.count > 1 && !l.groups)
    fail_layer(name + ".g_idx", "is missing", "the group of each input, as desc_act says that they are not in order");
  return l;
}

bool is_filled(const SafeTensor& t, int byte) {
  return std::ranges::all_of(t.bytes, [&](std::byte b) { return std::to_integer<int>(b) == byte; });
}

/// Errors: zero points of codes that are said to be symmetric are others than theirs.
void require_middle(const Layer& l) {
  for (int zero : zero_points(l))
    if (const int middle = 1 << (l.how.bits - 1); zero != middle)
      fail_layer(l.zeros->name,
                 text("has the zero point ", zero - middle, ", and quantization_config says symmetric: true"),
                 "symmetric: false, or zero points that are 0");
}

/// Errors: `weight_shape` is another shape than that of the codes.
void require_said_shape(const Layer& l, const SafeTensor& shape) {
  require_shape(shape, {2}, {i64, i32});
  int64_t said[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    if (shape.dtype == i64) {
      std::memcpy(&said[i], shape.bytes.data() + 8 * i, 8);
    } else {
      said[i] = static_cast<int32_t>(Words(shape)[static_cast<int64_t>(i)]);
    }
  }
  if (said[0] != l.rows || said[1] != l.cols)
    fail_layer(shape.name,
               text("says [", said[0], ", ", said[1], "], and ", l.codes->name, " holds [", l.rows, ", ", l.cols, "]"),
               "the shape of the codes");
}

/// A list of groups that the configuration does not speak of: programs differ in whether they follow it.
/// Errors: it puts an input elsewhere than among its neighbours.
void require_in_order(Layer& l) {
  const bool unset = is_filled(*l.groups, 0xff);  // -1, as compressed-tensors has them before it knows
  if (!unset && !input_order(l).empty())
    fail_layer(l.groups->name,
               "puts inputs that lie apart into one group, and quantization_config does not say actorder: \"group\"",
               "actorder: \"group\", or groups of neighbours");
  l.groups = nullptr;
}

/// A layer of compressed-tensors: codes and scales lie [out, ...].
Layer packed_by_rows(const SafeTensors& all, const std::string& name, const StoredQuantization& how) {
  const bool words = how.bits < 8 || all.find(name + ".weight_packed");
  Layer l{.name = name,
          .how = how,
          .codes = &part(all, name + (words ? ".weight_packed" : ".weight")),
          .scales = &part(all, name + ".weight_scale")};
  const SafeTensor &codes = *l.codes, &scales = *l.scales;
  if (codes.shape.size() != 2 || scales.shape.size() != 2)
    fail_layer(codes.name,
               text("is [", join(codes.shape, ", "), "], its scales [", join(scales.shape, ", "), "]"),
               "two dimensions");
  l.rows = codes.shape[0];
  l.cols = words ? codes.shape[1] * kWordBits / how.bits : codes.shape[1];
  if (l.rows == 0 || l.cols == 0 || l.cols % kWordBits != 0)
    fail_layer(codes.name,
               text("has ", l.rows, " outputs of ", l.cols, " inputs"),
               text("inputs in multiples of ", kWordBits));
  l.count = (l.cols + l.group() - 1) / l.group();
  require_shape(codes, codes.shape, words ? std::initializer_list<DType>{i32, u32} : std::initializer_list<DType>{i8});
  require_shape(scales, {l.rows, l.count}, kScaleDTypes);
  l.zeros = all.find(name + ".weight_zero_point");
  if (!l.zeros && !how.symmetric)
    fail_layer(name + ".weight_zero_point", "is missing", "zero points, as the codes are asymmetric");
  // Symmetric codes have none, which int8 zeros may say once more.
  if (l.zeros && how.symmetric && l.zeros->dtype == i8 && is_filled(*l.zeros, 0)) l.zeros = nullptr;
  if (l.zeros && words) require_shape(*l.zeros, {words_for(l.rows, how.bits), l.count}, {i32, u32});
  if (l.zeros && !words) require_shape(*l.zeros, {l.rows, l.count}, {i8});
  if (l.zeros && how.symmetric) require_middle(l);
  if (const SafeTensor* shape = all.find(name + ".weight_shape")) require_said_shape(l, *shape);
  l.groups = how.reordered ? &part(all, name + ".weight_g_idx") : all.find(name + ".weight_g_idx");
  if (l.groups) require_shape(*l.groups, {l.cols}, {i32});
  if (l.groups && !how.reordered) require_in_order(l);
  return l;
}

std::vector<StoredWeight> weights_by_layer(const std::shared_ptr<const SafeTensors>& file,
                                           const StoredQuantization& how) {
  const SafeTensors& tensors = *file;
  const bool rows = how.method == Method::packed;
  const std::string_view codes = !rows                                         ? ".qweight"
                                 : how.bits == 8 && !tensors.tensors().empty() ? ".weight_scale"
                                                                               : ".weight_packed";
  std::vector<StoredWeight> out;
  std::set<std::string, std::less<>> layers;
  for (const SafeTensor& t : tensors.tensors())
    if (t.name.ends_with(codes)) layers.insert(t.name.substr(0, t.name.size() - codes.size()));
  auto is_part = [&](const SafeTensor& t) {
    const size_t dot = t.name.rfind('.');
    return dot != std::string::npos && t.name.substr(dot) != ".bias" && layers.contains(t.name.substr(0, dot));
  };
  for (const SafeTensor& t : tensors.tensors())
    if (!is_part(t)) out.push_back({.name = t.name, .shape = t.shape, .dtype = t.dtype, .bytes = t.bytes});
  for (const std::string& layer : layers) {
    if (const SafeTensor* global = tensors.find(layer + ".weight_global_scale"))
      fail_layer(
          global->name, "scales the weights once more, as formats do that are not read", "one scale for each group");
    Layer parts = rows ? packed_by_rows(tensors, layer, how) : packed_by_words(tensors, layer, how);
    parts.file = file;
    out.push_back(weight_of(std::move(parts)));
  }
  return out;
}

/// Of one expert: blocks u8 [rows, groups, 16] and scales u8 [rows, groups], at some place of the two tensors.
/// Errors: a scale that stands for no number.
QuantizedMatrix microscaled(const std::byte* blocks, const std::byte* scales, int64_t rows, int64_t groups,
                            const std::string& name) {
  const int64_t cols = groups * kMicroscaled;
  QuantizedMatrix q{.format = mxfp4_format(), .rows = rows, .cols = cols, .parts = {}};
  for (const MatrixPart& p : parts_of(q.format, rows, cols)) q.parts[p.part] = Tensor::empty(p.shape, p.dtype);
  // The first code of a byte is its low half, as in our words.
  std::memcpy(q.parts.at(ParamPart::codes)->data(), blocks, static_cast<size_t>(rows * cols / 2));
  auto* scale = q.parts.at(ParamPart::scale)->data_as<uint16_t>();
  for (int64_t i = 0; i < rows * groups; ++i) {
    const auto exponent = std::to_integer<uint8_t>(scales[i]);
    if (exponent == 255) fail_layer(name, "has the scale 255, which stands for no number", "exponents of at most 254");
    scale[i] = mxfp4_scale(exponent);
  }
  return q;
}

/// gpt-oss: "<stack>_blocks" u8 [experts, rows, groups, 16] with "<stack>_scales" u8 [experts, rows, groups].
std::vector<StoredWeight> microscaled_experts(const std::shared_ptr<const SafeTensors>& file,
                                              const std::vector<ExpertStack>& stacks) {
  constexpr std::string_view kBlocks = "_blocks", kScales = "_scales";
  std::vector<StoredWeight> out;
  auto stack_of = [&](std::string_view tensor, std::string_view ending) {
    return std::ranges::find_if(stacks,
                                [&](const ExpertStack& s) { return tensor.ends_with(text(".", s.all, ending)); });
  };
  for (const SafeTensor& t : file->tensors()) {
    const auto stack = stack_of(t.name, kBlocks);
    if (stack == stacks.end()) {
      if (stack_of(t.name, kScales) == stacks.end()) std::ranges::move(floats_of(t, stacks), std::back_inserter(out));
      continue;
    }
    const std::string name = t.name.substr(0, t.name.size() - kBlocks.size());
    const SafeTensor& scales = part(*file, name + std::string(kScales));
    if (t.shape.size() != 4) fail_layer(t.name, text("is [", join(t.shape, ", "), "]"), "four dimensions");
    const int64_t experts = t.shape[0], rows = t.shape[1], groups = t.shape[2];
    require_shape(t, {experts, rows, groups, kMicroscaled / 2}, {u8});
    require_shape(scales, {experts, rows, groups}, {u8});
    const std::string block = name.substr(0, name.size() - stack->all.size());
    for (int64_t e = 0; e < experts; ++e) {
      const std::byte *from = t.bytes.data() + e * rows * groups * (kMicroscaled / 2),
                      *exponents = scales.bytes.data() + e * rows * groups;
      out.push_back({.name = block + numbered(stack->each, e),
                     .shape = {rows, groups * kMicroscaled},
                     .format = mxfp4_format(),
                     .codes = [file, from, exponents, rows, groups, name = scales.name] {
                       return microscaled(from, exponents, rows, groups, name);
                     }});
    }
  }
  return out;
}

/// A scale for each output, or for each group of its inputs, of a tensor of scales.
struct SmallFloatScales {
  const SafeTensor* tensor;
  int64_t rows, cols;                      ///< of the weight
  int64_t block_rows = 0, block_cols = 0;  ///< that share a scale; 0: all
  int64_t per_row() const { return block_cols > 0 ? (cols + block_cols - 1) / block_cols : 1; }
};

SmallFloatScales small_float_scales(const SafeTensor& t, const SafeTensor& scales, const StoredQuantization& how) {
  SmallFloatScales s{.tensor = &scales, .rows = t.shape[0], .cols = t.shape[1]};
  if (std::ranges::find(kScaleDTypes, scales.dtype) == std::end(kScaleDTypes) || scales.float8 != Float8::none)
    fail_layer(scales.name, text("is ", scales.dtype), "float16 or bfloat16 or float32");
  if (scales.elements() == 1) {
    s.block_rows = s.rows;
  } else if (how.block_rows > 0) {
    s.block_rows = how.block_rows, s.block_cols = how.group;
    require_shape(scales, {(s.rows + s.block_rows - 1) / s.block_rows, s.per_row()}, kScaleDTypes);
  } else {
    s.block_rows = 1;
    if (scales.shape.size() == 1)
      require_shape(scales, {s.rows}, kScaleDTypes);
    else
      require_shape(scales, {s.rows, 1}, kScaleDTypes);
  }
  return s;
}

/// Codes as they lie in the file, and the scales, one for each row and group.
/// Errors: a code that is no finite number.
QuantizedMatrix read_small_floats(const SafeTensor& t, const SmallFloatScales& s, const IntegerFormat& f) {
  QuantizedMatrix q{.format = f, .rows = s.rows, .cols = s.cols, .parts = {}};
  for (const MatrixPart& p : parts_of(f, s.rows, s.cols)) q.parts[p.part] = Tensor::empty(p.shape, p.dtype);
  const int first_bad = f.codebook == Codebook::e4m3 ? 0x7f : 0x7c;
  for (size_t i = 0; i < t.bytes.size(); ++i)
    if ((std::to_integer<int>(t.bytes[i]) & 0x7f) >= first_bad)
      fail_layer(
          t.name,
          text("has the code ", std::to_integer<int>(t.bytes[i]), " at element ", i, ", which stands for no number"),
          "finite weights");
  std::memcpy(q.parts.at(ParamPart::codes)->data(), t.bytes.data(), t.bytes.size());
  const auto size = static_cast<size_t>(f.scale_dtype.bytes());
  std::byte* to = q.parts.at(ParamPart::scale)->data_as<std::byte>();
  for (int64_t row = 0; row < s.rows; ++row) {
    const std::byte* from = s.tensor->bytes.data() + static_cast<size_t>(row / s.block_rows * s.per_row()) * size;
    to = std::copy_n(from, static_cast<size_t>(s.per_row()) * size, to);
  }
  return q;
}

/// "<layer>.weight" of 8-bit floats, with "<layer>.weight_scale_inv" or "<layer>.weight_scale". What the inputs were scaled
/// by ("input_scale") is left, as they stay floats.
std::vector<StoredWeight> small_floats(const std::shared_ptr<const SafeTensors>& file, const StoredQuantization& how) {
  constexpr std::string_view kWeight = ".weight", kOfLayer[] = {".weight_scale_inv",
                                                                ".weight_scale",
                                                                ".input_scale",
                                                                ".input_scale_ub",
                                                                ".k_scale",
                                                                ".v_scale"};
  std::vector<StoredWeight> out;
  auto is_scale = [&](const SafeTensor& t) {
    return std::ranges::any_of(kOfLayer, [&](std::string_view ending) { return t.name.ends_with(ending); });
  };
  for (const SafeTensor& t : file->tensors()) {
    if (t.float8 == Float8::none) {
      if (!is_scale(t)) out.push_back({.name = t.name, .shape = t.shape, .dtype = t.dtype, .bytes = t.bytes});
      continue;
    }
    if (!t.name.ends_with(kWeight) || t.shape.size() != 2)
      fail_layer(t.name, text("is [", join(t.shape, ", "), "] of 8-bit floats"), "a matrix \"<layer>.weight\"");
    if (t.elements() == 0 || t.shape[1] % kWordBits != 0)
      fail_layer(t.name,
                 text("has ", t.shape[0], " outputs of ", t.shape[1], " inputs"),
                 text("inputs in multiples of ", kWordBits));
    const SafeTensor* scales = file->find(t.name + "_scale_inv");
    if (!scales) scales = &part(*file, t.name + "_scale");
    const SmallFloatScales s = small_float_scales(t, *scales, how);
    const IntegerFormat f{.bits = 8,
                          .granularity = s.block_cols > 0 ? Granularity::group : Granularity::channel,
                          .group = static_cast<int>(s.block_cols),
                          .scale_dtype = scales->dtype,
                          .zero = 0,
                          .codebook = t.float8 == Float8::e4m3 ? Codebook::e4m3 : Codebook::e5m2};
    out.push_back({.name = t.name, .shape = t.shape, .format = f, .codes = [file, t, s, f] {
                     return read_small_floats(t, s, f);
                   }});
  }
  return out;
}

}  // namespace

/// What one stack takes of a tensor, expert by expert (head by head).
static void take_floats(const SafeTensor& t, const ExpertStack& stack, std::vector<StoredWeight>& out) {
  const bool by_rows = stack.rows > 0;
  if (by_rows ? t.shape.size() != 2 || t.shape.front() % stack.stride != 0
              : t.shape.size() < 2 || t.shape.size() > 3 || t.shape.front() == 0)
    fail_layer(t.name,
               text("is [", join(t.shape, ", "), "]"),
               by_rows ? text("a matrix with ", stack.stride, " rows a head") : "a matrix or a vector for each expert");
  const std::string block = t.name.substr(0, t.name.size() - stack.all.size());
  std::vector<int64_t> shape =
      by_rows ? std::vector{stack.rows, t.shape[1]} : std::vector(t.shape.begin() + 1, t.shape.end());
  const bool transposed = stack.transposed && shape.size() == 2;
  const int64_t parts = by_rows ? t.shape.front() / stack.stride : t.shape.front();
  const size_t unit = parts == 0 ? 0 : t.bytes.size() / static_cast<size_t>(by_rows ? t.shape.front() : parts);
  const auto rows = static_cast<size_t>(by_rows ? stack.rows : 1),
             stride = static_cast<size_t>(by_rows ? stack.stride : 1);
  if (transposed) std::swap(shape[0], shape[1]);
  for (int64_t e = 0; e < parts; ++e)
    out.push_back({.name = block + numbered(stack.each, e),
                   .shape = shape,
                   .dtype = t.dtype,
                   .bytes = t.bytes.subspan((static_cast<size_t>(e) * stride + static_cast<size_t>(stack.first)) * unit,
                                            rows * unit),
                   .transposed = transposed});
}

std::vector<StoredWeight> floats_of(const SafeTensor& t, const std::vector<ExpertStack>& stacks) {
  std::vector<StoredWeight> out;
  for (const ExpertStack& stack : stacks)
    if (t.name.ends_with(text(".", stack.all))) take_floats(t, stack, out);
  if (out.empty())
    out.push_back({.name = t.name, .shape = t.shape, .dtype = t.dtype, .bytes = t.bytes, .float8 = t.float8});
  return out;
}

/// The values of the matrices of codes that are cut by rows. Parts of one matrix are read one after the other, so the last one is
/// kept, and one alone: all heads' matrices of a large model would fill the memory.
class CutMatrices {
 public:
  std::vector<float> rows(const StoredWeight& whole, int64_t first, int64_t count) {
    const std::lock_guard lock(one_at_a_time_);
    if (name_ != whole.name) values_ = values_of(whole), name_ = whole.name;
    const auto row = values_.begin() + first * whole.shape[1];
    return {row, row + count * whole.shape[1]};
  }

 private:
  std::mutex one_at_a_time_;
  std::string name_;
  std::vector<float> values_;
};

/// The parts of a matrix of codes that are used head by head, as floats: a head's rows, or columns, need not be whole groups.
/// Errors: it is no matrix of whole heads.
static void take_values(const StoredWeight& w, const ExpertStack& stack, const std::shared_ptr<CutMatrices>& matrices,
                        std::vector<StoredWeight>& out) {
  if (stack.rows == 0 || w.shape.size() != 2 || w.shape[0] % stack.stride != 0)
    fail({.what = text("tensor ", w.name, " of codes is [", join(w.shape, ", "), "], and is used part by part"),
          .needs = stack.rows == 0 ? "floats there" : text("a matrix with ", stack.stride, " rows a head"),
          .hint = "use a checkpoint that leaves this layer out, or the one before it was quantized"});
  const std::string block = w.name.substr(0, w.name.size() - stack.all.size());
  std::vector<int64_t> shape = {stack.rows, w.shape[1]};
  if (stack.transposed) std::swap(shape[0], shape[1]);
  for (int64_t e = 0; e < w.shape[0] / stack.stride; ++e)
    out.push_back({.name = block + numbered(stack.each, e),
                   .shape = shape,
                   .transposed = stack.transposed,
                   .floats = [matrices, w, first = e * stack.stride + stack.first, count = stack.rows] {
                     return matrices->rows(w, first, count);
                   }});
}

std::vector<StoredWeight> by_part(std::vector<StoredWeight> weights, const std::vector<ExpertStack>& stacks) {
  const auto matrices = std::make_shared<CutMatrices>();
  std::vector<StoredWeight> out;
  for (StoredWeight& w : weights) {
    const auto holds = [&](const ExpertStack& s) { return w.name.ends_with(text(".", s.all)); };
    if (std::ranges::none_of(stacks, holds)) {
      out.push_back(std::move(w));
    } else if (w.format) {
      for (const ExpertStack& stack : stacks)
        if (holds(stack)) take_values(w, stack, matrices, out);
    } else {
      std::ranges::move(floats_of({.name = w.name, .dtype = w.dtype, .shape = w.shape, .bytes = w.bytes}, stacks),
                        std::back_inserter(out));
    }
  }
  return out;
}

std::vector<StoredWeight> weights_with_codes(const SafeTensors& tensors, const ModelConfig& config) {
  const auto file = std::make_shared<const SafeTensors>(tensors);
  switch (config.quantization->method) {
    case Method::mxfp4: return microscaled_experts(file, config.names.expert_stacks);
    case Method::fp8: return by_part(small_floats(file, *config.quantization), config.names.expert_stacks);
    default: return by_part(weights_by_layer(file, *config.quantization), config.names.expert_stacks);
  }
}

IntegerFormat format_of(const StoredQuantization& q, DType dtype) {
  if (q.method == Method::mxfp4) return mxfp4_format();
  IntegerFormat f{.bits = q.bits,
                  .granularity = q.group > 0 ? Granularity::group : Granularity::channel,
                  .group = static_cast<int>(q.group),
                  .scale_dtype = dtype};
  if (q.method == Method::gptq || q.method == Method::awq) f.scale_dtype = f16;
  if (q.method == Method::fp8) {
    if (q.block_rows > 0) f.scale_dtype = f32;  // weight_scale_inv
    f.zero = 0;
    f.codebook = Codebook::e4m3;
  } else if (q.symmetric) {
    f.zero = 1 << (q.bits - 1);
  } else {
    f.asymmetric = true;
  }
  return f;
}

std::string scheme_name_of(const StoredQuantization& q) {
  if (q.method == Method::mxfp4) return "mxfp4";
  if (q.method == Method::fp8) return q.block_rows > 0 ? text("fp8-block", q.group) : "fp8";
  const char* method = q.method == Method::gptq ? "gptq" : q.method == Method::awq ? "awq" : "packed";
  return text(method, "-int", q.bits, q.group > 0 ? text("-group", q.group) : "-channel");
}

}  // namespace sator::llm
