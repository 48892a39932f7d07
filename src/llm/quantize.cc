#include "llm/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float16.h"

namespace sator::llm {

using runtime::Tensor;

namespace {

/// Which scale an element uses.
class ScaleIndex {
 public:
  ScaleIndex(const IntegerFormat& f, int64_t rows, int64_t cols) : f_(f), dims_(scale_dims(f, rows, cols)) {}
  const runtime::Dims& dims() const { return dims_; }
  int64_t count() const {
    int64_t n = 1;
    for (int64_t d : dims_) n *= d;
    return n;
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
  runtime::Dims dims_;
};

void put_code(uint32_t* row, int64_t j, int bits, uint32_t code) {
  int64_t bit = j * bits;
  row[bit >> 5] |= code << (bit & 31);
  if ((bit & 31) + bits > 32) row[(bit >> 5) + 1] |= code >> (32 - (bit & 31));
}

float round_to(float v, DType dtype) {
  if (dtype == f16) return f16_to_f32(f32_to_f16(v));
  if (dtype == bf16) return bf16_to_f32(f32_to_bf16(v));
  return v;
}

struct Range {
  float lo = 0, hi = 0, largest = 0;
};

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

QuantizedMatrix quantize(std::span<const float> w, int64_t rows, int64_t cols, const IntegerFormat& format) {
  if (static_cast<int64_t>(w.size()) != rows * cols) internal_error("quantize: the matrix has another size");
  if (format.bits < 2 || format.bits > 8) internal_error("quantize: bits outside of 2 .. 8");
  ScaleIndex index(format, rows, cols);
  // MLC computes in f16 after casting the checkpoint to it; all others in f32.
  DType compute = format.mlc ? f16 : f32;
  std::vector<Range> ranges(static_cast<size_t>(index.count()));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      float v = round_to(w[static_cast<size_t>(r * cols + c)], compute);
      if (!std::isfinite(v))
        fail({.what = text("the weight at row ", r, ", column ", c, " is not finite"),
              .needs = format.mlc ? "finite weights that fit f16" : "finite weights",
              .hint = "check the checkpoint; it may have diverged in training"});
      Range& range = ranges[static_cast<size_t>(index(r, c))];
      range.lo = std::min(range.lo, v);
      range.hi = std::max(range.hi, v);
      range.largest = std::max(range.largest, std::fabs(v));
    }
  }

  const int levels = (1 << format.bits) - 1, half = (1 << (format.bits - 1)) - 1;
  std::vector<float> scales(ranges.size());
  std::vector<uint8_t> zeros(ranges.size(), static_cast<uint8_t>(half));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const float range = format.asymmetric ? ranges[i].hi - ranges[i].lo : ranges[i].largest;
    const float steps = static_cast<float>(format.asymmetric ? levels : half);
    // Through the reciprocal, as GPUs divide by a scalar. Of weights that lie half a step from both codes, which
    // checkpoints of few bits have many of, this decides the code, and these are the codes of the published perplexities.
    const float s = format.mlc ? range / steps : range * (1.f / steps);
    scales[i] = round_to(round_to(s, compute), format.scale_dtype);
    if (format.asymmetric)
      zeros[i] = scales[i] > 0
                     ? static_cast<uint8_t>(std::clamp(std::nearbyint(-ranges[i].lo / scales[i]), 0.f, float(levels)))
                     : 0;
  }

  QuantizedMatrix q{.format = format, .rows = rows, .cols = cols};
  int64_t words = words_per_row(cols, format.bits);
  q.codes = Tensor::empty({rows, words}, u32);
  std::memset(q.codes->data(), 0, static_cast<size_t>(q.codes->size_bytes()));
  for (int64_t r = 0; r < rows; ++r) {
    uint32_t* row = q.codes->data_as<uint32_t>() + r * words;
    for (int64_t c = 0; c < cols; ++c) {
      size_t at = static_cast<size_t>(index(r, c));
      float v = round_to(w[static_cast<size_t>(r * cols + c)], compute), s = scales[at];
      float zero = zeros[at];
      float code = zero;
      if (s > 0) {
        float ratio = round_to(v / s, compute);
        // MLC adds the offset before it rounds, in f16; the sum of the others is exact.
        code = format.mlc ? std::nearbyint(round_to(ratio + zero, compute)) : std::nearbyint(ratio) + zero;
      }
      float top = format.asymmetric ? static_cast<float>(levels) : 2.f * static_cast<float>(half);
      put_code(row, c, format.bits, static_cast<uint32_t>(std::clamp(code, 0.f, top)));
    }
    if (!format.asymmetric && !format.mlc) {  // the padding dequantizes to 0
      for (int64_t c = cols; c < (cols + 31) / 32 * 32; ++c) put_code(row, c, format.bits, static_cast<uint32_t>(half));
    }
  }
  q.scale = to_dtype(scales, index.dims(), format.scale_dtype);
  if (format.asymmetric) q.zero = Tensor::of(zeros, index.dims(), u8);
  return q;
}

std::vector<float> dequantize(const QuantizedMatrix& q) {
  ScaleIndex index(q.format, q.rows, q.cols);
  std::vector<float> scales = to_f32(*q.scale);
  const uint8_t* zeros = q.zero ? q.zero->data_as<uint8_t>() : nullptr;
  const float half = static_cast<float>((1 << (q.format.bits - 1)) - 1);
  int64_t words = words_per_row(q.cols, q.format.bits);
  std::vector<float> w(static_cast<size_t>(q.rows * q.cols));
  for (int64_t r = 0; r < q.rows; ++r) {
    const uint32_t* row = q.codes->data_as<uint32_t>() + r * words;
    for (int64_t c = 0; c < q.cols; ++c) {
      size_t at = static_cast<size_t>(index(r, c));
      float v = static_cast<float>(code_at(row, c, q.format.bits)) - (zeros ? float(zeros[at]) : half);
      w[static_cast<size_t>(r * q.cols + c)] = round_to(v * scales[at], q.format.mlc ? f16 : f32);
    }
  }
  return w;
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
