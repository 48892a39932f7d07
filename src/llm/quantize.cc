#include "llm/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"
#include "llm/small_floats.h"

namespace sator::llm {

using runtime::Tensor;

namespace {

/// Which scale an element uses.
class ScaleIndex {
 public:
  ScaleIndex(const IntegerFormat& f, int64_t rows, int64_t cols)
      : f_(f), cols_(cols), dims_(scale_dims(f, rows, cols)) {}
  const runtime::Dims& dims() const { return dims_; }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
  }
  /// Consecutive columns from `col` on that share their scale.
  int64_t run(int64_t col) const {
    switch (f_.granularity) {
      case Granularity::input: return 1;
      case Granularity::group: return std::min<int64_t>(f_.group - col % f_.group, cols_ - col);
      default: return cols_ - col;
    }
  }
  int64_t operator()(int64_t row, int64_t col) const {
    switch (f_.granularity) {
      case Granularity::channel: return row;
      case Granularity::input: return col;
      case Granularity::group: return row * dims_[1] + col / f_.group;
      default: return 0;
    }
  }

 private:
  const IntegerFormat& f_;
  int64_t cols_;
  runtime::Dims dims_;
};

float round_to(float v, DType dtype) {
  if (dtype == f16) return f16_to_f32(f32_to_f16(v));
  if (dtype == bf16) return bf16_to_f32(f32_to_bf16(v));
  return v;
}

struct Extremes {
  float lo = 0, hi = 0;
  float largest() const { return std::max(-lo, hi); }
};

constexpr float kLargestFloat16 = 65504;

/// The nearest integer, ties to even, of |v| < 2^22: beyond 2^23 floats are integers.
float nearest(float v) { return (v + 12582912.f) - 12582912.f; }

/// Numbers that lie together and share a scale: widens the range to them. False: one is not finite.
bool widen(std::span<const float> values, Extremes& range) {
  float lo = range.lo, hi = range.hi, sum = 0;
  for (float v : values) {
    lo = std::min(lo, v), hi = std::max(hi, v);
    sum += v - v;  // 0, or NaN
  }
  range.lo = lo, range.hi = hi;
  return sum == 0;
}

/// Codes of numbers that share a scale.
void to_codes(std::span<const float> values, const IntegerFormat& f, float scale, float zero, uint8_t* codes) {
  const float top = static_cast<float>(f.asymmetric ? (1 << f.bits) - 1 : 2 * ((1 << (f.bits - 1)) - 1));
  for (size_t i = 0; i < values.size(); ++i) {
    float code = zero;
    if (scale > 0) {
      const float ratio = f.mlc ? round_to(values[i] / scale, f.scale_dtype) : values[i] / scale;
      // MLC adds the offset before it rounds, in f16; the sum of the others is exact. Ratios are at most a few codes beyond the
      // ends but where the scale is rounded to 16 bits.
      const float bounded = std::clamp(ratio, -65536.f, 65536.f);
      code = f.mlc ? nearest(round_to(bounded + zero, f.scale_dtype)) : nearest(bounded) + zero;
    }
    codes[i] = static_cast<uint8_t>(std::clamp(code, 0.f, top));
  }
}

/// Codes of a row into its words, which are 0.
void pack_row(const std::vector<uint8_t>& codes, int bits, uint32_t* words) {
  if (32 % bits != 0) {
    for (size_t c = 0; c < codes.size(); ++c) put_code(words, static_cast<int64_t>(c), bits, codes[c]);
    return;
  }
  const size_t per_word = static_cast<size_t>(32 / bits);
  for (size_t c = 0; c < codes.size(); ++c)
    words[c / per_word] |= static_cast<uint32_t>(codes[c]) << (c % per_word * static_cast<size_t>(bits));
}

}  // namespace

runtime::Dims scale_dims(const IntegerFormat& f, int64_t rows, int64_t cols) {
  switch (f.granularity) {
    case Granularity::tensor: return {1};
    case Granularity::channel: return {rows};
    case Granularity::input: return {cols};
    case Granularity::group: return {rows, (cols + f.group - 1) / f.group};
    default: internal_error("a weight has no such granularity");
  }
}

std::vector<MatrixPart> parts_of(const IntegerFormat& f, int64_t rows, int64_t cols) {
  const runtime::Dims scales = scale_dims(f, rows, cols);
  runtime::Dims blocks;
  if (f.super_block > 0) blocks = {rows, (cols + f.super_block - 1) / f.super_block};
  std::vector<MatrixPart> parts = {{ParamPart::codes, ".q_weight", {rows, words_per_row(cols, f.bits)}, u32},
                                   {ParamPart::scale, ".q_scale", scales, f.scale_dtype}};
  if (f.super_block > 0) parts.push_back({ParamPart::super_scale, ".q_super_scale", blocks, f16});
  if (f.minimum) parts.push_back({ParamPart::minimum, ".q_min", scales, f.scale_dtype});
  if (f.minimum && f.super_block > 0) parts.push_back({ParamPart::super_minimum, ".q_super_min", blocks, f16});
  if (f.asymmetric) parts.push_back({ParamPart::zero, ".q_zero", scales, u8});
  if (f.reordered) parts.push_back({ParamPart::order, ".q_order", {cols}, i32});
  return parts;
}

namespace {

/// Errors: the first of these numbers that is not finite, by where the run of them begins.
[[noreturn]] void refuse_infinite(std::span<const float> run, int64_t row, int64_t col, const IntegerFormat& format) {
  const auto bad = std::ranges::find_if(run, [](float v) { return !std::isfinite(v); });
  fail({.what = text("the weight at row ", row, ", column ", col + (bad - run.begin()), " is not finite"),
        .needs = format.mlc ? text("finite weights that fit ", format.scale_dtype) : "finite weights",
        .hint = "check the checkpoint; it may have diverged in training"});
}

/// Of each channel the power of two that brings its largest weight between 1 and 2, or to 1 where it is rounded up to 2.
QuantizedMatrix quantize_to_floats(std::span<const float> w, int64_t rows, int64_t cols, const IntegerFormat& format,
                                   int64_t first_row) {
  const SmallFloat small{format.bits, format.exponent_bits};
  const int64_t words = words_per_row(cols, format.bits);
  Ref<Tensor> codes = Tensor::empty({rows, words}, u32);
  std::memset(codes->data(), 0, static_cast<size_t>(codes->size_bytes()));
  std::vector<float> scales(static_cast<size_t>(rows), 1);
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<const float> row = w.subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols));
    Extremes range;
    if (!widen(row, range)) refuse_infinite(row, first_row + r, 0, format);
    if (range.largest() == 0) continue;
    int exponent = std::ilogb(range.largest());
    if (exponent < 127 && small.magnitude(std::ldexp(range.largest(), -exponent)) > small.largest()) ++exponent;
    scales[static_cast<size_t>(r)] = std::ldexp(1.f, exponent);
    // In two steps, each of which is a float.
    const int first = std::clamp(-exponent, -126, 126);
    const float up = std::ldexp(1.f, first), rest = std::ldexp(1.f, -exponent - first);
    uint32_t* to = codes->data_as<uint32_t>() + r * words;
    for (int64_t c = 0; c < cols; ++c) {
      const float v = row[static_cast<size_t>(c)] * up * rest;
      // What would be rounded to 2^128 stays below it.
      const uint32_t magnitude = std::min(small.magnitude(v), small.largest());
      put_code(to, c, format.bits, magnitude | (std::signbit(v) ? small.sign() : 0));
    }
  }
  QuantizedMatrix q{.format = format, .rows = rows, .cols = cols, .parts = {}};
  q.parts[ParamPart::codes] = std::move(codes);
  q.parts[ParamPart::scale] = to_dtype(scales, {rows}, format.scale_dtype);
  return q;
}

}  // namespace

QuantizedMatrix quantize(std::span<const float> w, int64_t rows, int64_t cols, const IntegerFormat& format,
                         int64_t first_row) {
  if (static_cast<int64_t>(w.size()) != rows * cols) internal_error("quantize: the matrix has another size");
  if (format.exponent_bits > 0) return quantize_to_floats(w, rows, cols, format, first_row);
  if (format.bits < 2 || format.bits > 8) internal_error("quantize: bits outside of 2 .. 8");
  ScaleIndex index(format, rows, cols);
  // MLC computes in the scales' dtype after casting the checkpoint to it; all others in f32.
  const DType compute = format.mlc ? format.scale_dtype : f32;
  std::vector<float> cast(static_cast<size_t>(format.mlc ? cols : 0));
  auto row_of = [&](int64_t r) {
    const std::span<const float> row = w.subspan(static_cast<size_t>(r * cols), static_cast<size_t>(cols));
    if (!format.mlc) return row;
    std::ranges::transform(row, cast.begin(), [&](float v) { return round_to(v, format.scale_dtype); });
    return std::span<const float>(cast);
  };
  std::vector<Extremes> ranges(static_cast<size_t>(index.count()));
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<const float> row = row_of(r);
    for (int64_t c = 0; c < cols; c += index.run(c)) {
      const std::span<const float> run = row.subspan(static_cast<size_t>(c), static_cast<size_t>(index.run(c)));
      if (widen(run, ranges[static_cast<size_t>(index(r, c))])) continue;
      refuse_infinite(run, first_row + r, c, format);
    }
  }

  const int levels = (1 << format.bits) - 1, half = (1 << (format.bits - 1)) - 1;
  std::vector<float> scales(ranges.size());
  std::vector<uint8_t> zeros(ranges.size(), static_cast<uint8_t>(half));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const float range = format.asymmetric ? ranges[i].hi - ranges[i].lo : ranges[i].largest();
    const float steps = static_cast<float>(format.asymmetric ? levels : half);
    // Through the reciprocal, as GPUs divide by a scalar. Of weights that lie half a step from both codes, which
    // checkpoints of few bits have many of, this decides the code, and these are the codes of the published perplexities.
    const float s = format.mlc ? range / steps : range * (1.f / steps);
    scales[i] = round_to(round_to(s, compute), format.scale_dtype);
    if (!std::isfinite(scales[i]))
      fail({.what = text("weights of a range of ",
                         range,
                         " have the scale ",
                         s,
                         ", which ",
                         format.scale_dtype,
                         " does not hold"),
            .needs = "a scale of at most 65504",
            .hint = "leave -s16 out: scales are then float32"});
    if (format.asymmetric)
      zeros[i] = scales[i] > 0
                     ? static_cast<uint8_t>(std::clamp(std::nearbyint(-ranges[i].lo / scales[i]), 0.f, float(levels)))
                     : 0;
  }

  const int64_t words = words_per_row(cols, format.bits);
  Ref<Tensor> codes = Tensor::empty({rows, words}, u32);
  std::memset(codes->data(), 0, static_cast<size_t>(codes->size_bytes()));
  // The padding dequantizes to 0.
  const int64_t padded = format.asymmetric || format.mlc ? cols : (cols + 31) / 32 * 32;
  std::vector<uint8_t> row_codes(static_cast<size_t>(padded), static_cast<uint8_t>(half));
  for (int64_t r = 0; r < rows; ++r) {
    const std::span<const float> row = row_of(r);
    for (int64_t c = 0; c < cols; c += index.run(c)) {
      const auto at = static_cast<size_t>(index(r, c));
      const std::span<const float> run = row.subspan(static_cast<size_t>(c), static_cast<size_t>(index.run(c)));
      to_codes(run, format, scales[at], zeros[at], row_codes.data() + c);
    }
    pack_row(row_codes, format.bits, codes->data_as<uint32_t>() + r * words);
  }
  QuantizedMatrix q{.format = format, .rows = rows, .cols = cols, .parts = {}};
  q.parts[ParamPart::codes] = std::move(codes);
  q.parts[ParamPart::scale] = to_dtype(scales, index.dims(), format.scale_dtype);
  if (format.asymmetric) q.parts[ParamPart::zero] = Tensor::of(zeros, index.dims(), u8);
  return q;
}

namespace {

/// Numbers of a part, times those of the super-blocks they lie in.
std::vector<float> scaled(const QuantizedMatrix& q, ParamPart part, ParamPart by_block) {
  const Tensor& own = q[part];
  std::vector<float> out;
  if (own.dtype() == i8) {
    out.assign(own.data_as<int8_t>(), own.data_as<int8_t>() + own.num_elements());
  } else {
    out = to_f32(own);
  }
  if (q.format.super_block == 0) return out;
  const std::vector<float> blocks = to_f32(q[by_block]);
  const auto groups = static_cast<size_t>(own.dim(1)), of_row = static_cast<size_t>(q[by_block].dim(1));
  const auto in_block = static_cast<size_t>(q.format.super_block / q.format.group);
  for (size_t i = 0; i < out.size(); ++i) out[i] = blocks[i / groups * of_row + i % groups / in_block] * out[i];
  return out;
}

}  // namespace

std::vector<float> dequantize(const QuantizedMatrix& q) {
  const IntegerFormat& f = q.format;
  ScaleIndex index(f, q.rows, q.cols);
  const std::vector<float> scales = scaled(q, ParamPart::scale, ParamPart::super_scale), &table = values_of(f.codebook);
  const std::vector<float> minima =
      f.minimum ? scaled(q, ParamPart::minimum, ParamPart::super_minimum) : std::vector<float>();
  const uint8_t* zeros = f.asymmetric ? q[ParamPart::zero].data_as<uint8_t>() : nullptr;
  const auto zero = static_cast<float>(f.zero_code());
  const int32_t* order = f.reordered ? q[ParamPart::order].data_as<int32_t>() : nullptr;
  int64_t words = words_per_row(q.cols, f.bits);
  std::vector<float> w(static_cast<size_t>(q.rows * q.cols));
  for (int64_t r = 0; r < q.rows; ++r) {
    const uint32_t* row = q[ParamPart::codes].data_as<uint32_t>() + r * words;
    for (int64_t c = 0; c < q.cols; ++c) {
      size_t at = static_cast<size_t>(index(r, c));
      const uint32_t code = code_at(row, c, f.bits);
      const float v = f.exponent_bits > 0 ? SmallFloat{f.bits, f.exponent_bits}.value(code)
                      : table.empty()     ? static_cast<float>(code) - (zeros ? float(zeros[at]) : zero)
                                          : table[code];
      const float value = v * scales[at];
      w[static_cast<size_t>(r * q.cols + (order ? order[c] : c))] =
          f.minimum ? value - minima[at] : round_to(value, f.mlc ? f.scale_dtype : f32);
    }
  }
  return w;
}

void require_finite(const QuantizedMatrix& q, const std::string& name) {
  if (!rounds_to_float16(q.format)) return;
  const float code = static_cast<float>(1 << q.format.bits), limit = kLargestFloat16 / code;
  const std::vector<float> scales = to_f32(q[ParamPart::scale]);
  // No code of such scales can reach the end.
  if (std::ranges::all_of(scales, [&](float s) { return std::abs(s) <= limit; })) return;
  const std::vector<float> values = dequantize(q);
  const auto bad = std::ranges::find_if(values, [](float v) { return !std::isfinite(v); });
  if (bad == values.end()) return;
  const int64_t at = bad - values.begin();
  fail({.what = text(name, ": the value of the code at row ", at / q.cols, ", column ", at % q.cols, " is ", *bad),
        .needs = "scales whose products with codes fit float16, to which they are rounded",
        .hint = "check the scales; they may be damaged, or of another format"});
}

std::vector<float> to_f32(std::span<const std::byte> bytes, DType dtype) {
  if (!is_storage_dtype(dtype)) internal_error(text("to_f32: ", dtype, " is not a storage dtype"));
  std::vector<float> out(bytes.size() / static_cast<size_t>(dtype.bytes()));
  if (dtype == f32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    out[i] = dtype == f16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
  return out;
}

Ref<Tensor> to_dtype(std::span<const float> values, const runtime::Dims& shape, DType dtype) {
  Ref<Tensor> t = Tensor::empty(shape, dtype);
  if (dtype == f32) {
    std::copy(values.begin(), values.end(), t->data_as<float>());
  } else if (dtype == f16) {
    std::transform(values.begin(), values.end(), t->data_as<uint16_t>(), f32_to_f16);
  } else if (dtype == bf16) {
    std::transform(values.begin(), values.end(), t->data_as<uint16_t>(), f32_to_bf16);
  } else {
    internal_error(text("to_dtype: ", dtype, " is not a storage dtype"));
  }
  return t;
}

}  // namespace sator::llm
