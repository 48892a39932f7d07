#include "llm/params.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/float16.h"

namespace sator::llm {

using runtime::Dims;
using runtime::Tensor;

int64_t ParamSpec::bytes() const { return Tensor::bytes_of(shape, dtype).value_or(0); }

const SafeTensor* find_weight(const SafeTensors& checkpoint, const std::string& name) {
  if (const SafeTensor* t = checkpoint.find(name)) return t;
  for (std::string_view prefix : {"transformer.", "model."}) {
    if (name.starts_with(prefix)) {
      if (const SafeTensor* t = checkpoint.find(name.substr(prefix.size()))) return t;
    }
  }
  return nullptr;
}

std::vector<float> activation_scales(const std::vector<float>& ranges, const ActivationFormat& format) {
  const float top = static_cast<float>((1 << (format.bits - 1)) - 1);
  size_t groups = format.granularity == Granularity::tensor  ? 1
                  : format.granularity == Granularity::input ? ranges.size()
                                                             : static_cast<size_t>(format.groups);
  std::vector<float> scales(groups, 0.f);
  for (size_t k = 0; k < ranges.size(); ++k) {
    float& s = scales[k * groups / ranges.size()];
    s = std::max(s, ranges[k] / top);
  }
  // A feature that was always 0 keeps a scale of 1: its codes are 0 and its weights stay as they are.
  for (float& s : scales) {
    if (s == 0) s = 1;
  }
  return scales;
}

namespace {

std::vector<float> floats_of(const SafeTensor& t) {
  if (!t.dtype.is_float() || t.dtype.bits > 32)
    fail({.what = text("tensor ", t.name, " is ", t.dtype),
          .needs = "float32, float16 or bfloat16 weights",
          .hint = "convert the checkpoint to one of them first"});
  std::vector<float> out(static_cast<size_t>(t.elements()));
  if (t.dtype == f32) {
    std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
    return out;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t half;
    std::memcpy(&half, t.bytes.data() + 2 * i, 2);
    out[i] = t.dtype == f16 ? f16_to_f32(half) : bf16_to_f32(half);
  }
  return out;
}

/// A weight as f32[rows, cols] (a vector: [1, cols]).
struct Matrix {
  std::vector<float> values;
  int64_t rows = 0, cols = 0;
};

class Maker {
 public:
  Maker(const SafeTensors& checkpoint, const ActivationRanges& ranges) : checkpoint_(checkpoint), ranges_(ranges) {}

  Ref<Tensor> make(const ParamSpec& spec) {
    Ref<Tensor> made = part(spec);
    if (!(made->shape() == spec.shape) || made->dtype() != spec.dtype) {
      std::string names = join(spec.source.tensors, ", ");
      fail({.what = text("parameter ",
                         spec.name,
                         " should be ",
                         spec.dtype,
                         "[",
                         join(spec.shape, ", "),
                         "], but ",
                         names,
                         " gives ",
                         *made),
            .needs = "a checkpoint whose shapes are those of config.json",
            .hint = "check that weights and config.json belong together"});
    }
    return made;
  }

 private:
  Ref<Tensor> part(const ParamSpec& spec) {
    if (spec.part == ParamPart::activation_scale) {
      std::vector<float> scales = activation_scales(ranges_of(spec), *spec.activation);
      return to_dtype(scales, Dims{static_cast<int64_t>(scales.size())}, f32);
    }
    if (spec.part == ParamPart::plain) {
      Matrix m = load(spec.source);
      bool is_vector = spec.shape.size() == 1;
      Dims shape = is_vector ? Dims{m.rows * m.cols} : Dims{m.rows, m.cols};
      return to_dtype(m.values, shape, spec.dtype);
    }
    const QuantizedMatrix& q = quantized(spec);
    switch (spec.part) {
      case ParamPart::codes: return q.codes;
      case ParamPart::scale: return q.scale;
      default: return q.zero;
    }
  }

  const std::vector<float>& ranges_of(const ParamSpec& spec) {
    auto at = ranges_.find(spec.layer);
    if (at == ranges_.end())
      fail({.what = text("there are no activation ranges for layer ", spec.layer),
            .needs = "a calibration text, for this scheme's activation scales are static",
            .hint = "pass --calibration FILE"});
    return at->second;
  }

  const QuantizedMatrix& quantized(const ParamSpec& spec) {
    // One weight at a time is kept: its parts follow each other.
    if (quantized_source_ && *quantized_source_ == spec.source.tensors) return quantized_;
    Matrix m = load(spec.source);
    if (spec.activation && spec.activation->is_static()) {
      std::vector<float> scales = activation_scales(ranges_of(spec), *spec.activation);
      size_t cols = static_cast<size_t>(m.cols), groups = scales.size();
      for (size_t i = 0; i < m.values.size(); ++i) m.values[i] *= scales[(i % cols) * groups / cols];
    }
    quantized_ = quantize(m.values, m.rows, m.cols, *spec.format);
    quantized_source_ = spec.source.tensors;
    return quantized_;
  }

  Matrix load(const WeightSource& source) {
    Matrix all;
    for (const std::string& name : source.tensors) {
      const SafeTensor* t = find_weight(checkpoint_, name);
      if (!t) checkpoint_.get(name);  // says which names are near
      std::vector<float> values = floats_of(*t);
      int64_t rows = t->shape.size() == 2 ? t->shape[0] : 1, cols = t->shape.empty() ? 1 : t->shape.back();
      if (t->shape.size() > 2)
        fail({.what = text("tensor ", name, " has ", t->shape.size(), " dimensions"),
              .needs = "matrices and vectors",
              .hint = "check that weights and config.json belong together"});
      if (source.transposed && t->shape.size() == 2) {
        std::vector<float> turned(values.size());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < cols; ++c)
            turned[static_cast<size_t>(c * rows + r)] = values[static_cast<size_t>(r * cols + c)];
        }
        values = std::move(turned);
        std::swap(rows, cols);
      }
      bool is_vector = t->shape.size() < 2;
      if (all.values.empty()) {
        all = {std::move(values), rows, cols};
      } else if (is_vector ? false : cols != all.cols) {
        fail({.what = text("tensors ", join(source.tensors, ", "), " cannot be laid under each other"),
              .needs = "the same number of inputs in each",
              .hint = "check the checkpoint's shapes"});
      } else {
        all.values.insert(all.values.end(), values.begin(), values.end());
        is_vector ? all.cols += cols : all.rows += rows;
      }
    }
    return all;
  }

  const SafeTensors& checkpoint_;
  const ActivationRanges& ranges_;
  std::optional<std::vector<std::string>> quantized_source_;
  QuantizedMatrix quantized_;
};

}  // namespace

std::vector<Ref<Tensor>> make_params(const std::vector<ParamSpec>& specs, const SafeTensors& checkpoint,
                                     const ActivationRanges& ranges, const std::function<void(size_t done)>& progress) {
  Maker maker(checkpoint, ranges);
  std::vector<Ref<Tensor>> params;
  for (const ParamSpec& spec : specs) {
    params.push_back(maker.make(spec));
    if (progress) progress(params.size());
  }
  return params;
}

WeightSize weight_size(const std::vector<ParamSpec>& specs, const SafeTensors& checkpoint) {
  WeightSize size;
  std::set<std::string> counted;
  for (const ParamSpec& spec : specs) {
    size.bytes += spec.bytes();
    if (spec.part != ParamPart::plain && spec.part != ParamPart::codes) continue;
    for (const std::string& name : spec.source.tensors) {
      const SafeTensor* t = find_weight(checkpoint, name);
      if (t && counted.insert(name).second) size.weights += t->elements();
    }
  }
  return size;
}

}  // namespace sator::llm
