#include "llm/params.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/float16.h"

namespace sator::llm {

using runtime::Dims;
using runtime::Tensor;

std::vector<int64_t> GroupedRows::stored_rows() const {
  const int64_t of_group = std::accumulate(parts.begin(), parts.end(), int64_t{0});
  std::vector<int64_t> rows;
  int64_t from = 0;
  for (int64_t part : parts) {
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i < part; ++i) rows.push_back(g * of_group + from + i);
    from += part;
  }
  return rows;
}

int64_t ParamSpec::bytes() const { return Tensor::bytes_of(shape, dtype).value_or(0); }

std::vector<float> activation_scales(const std::vector<float>& ranges, const ActivationFormat& format) {
  const float top = static_cast<float>((1 << (format.bits - 1)) - 1);
  const auto groups = static_cast<size_t>(format.num_scales(static_cast<int64_t>(ranges.size())));
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

/// The extents of a weight as it is used; a vector is one row.
struct Extents {
  int64_t rows = 0, cols = 0;
  bool is_vector = false;
};

Extents extents_of(const WeightSource& source, const Checkpoint& checkpoint) {
  Extents all;
  for (const std::string& name : source.tensors) {
    const StoredWeight& t = checkpoint.get(name);
    if (t.float8 != Float8::none)
      fail({.what = text(checkpoint.source(),
                         ": tensor ",
                         t.name,
                         " is F8_",
                         t.float8 == Float8::e4m3 ? "E4M3" : "E5M2",
                         ", and config.json has no quantization_config that says how it is scaled"),
            .needs = "float32, float16 or bfloat16 weights, or a quantization_config (fp8, compressed-tensors)",
            .hint = "take the config.json that was published with these weights"});
    if (!t.format && !is_storage_dtype(t.dtype))
      fail({.what = text(checkpoint.source(), ": tensor ", t.name, " is ", t.dtype),
            .needs = "float32, float16 or bfloat16 weights",
            .hint = "convert the checkpoint to one of them first"});
    if (t.shape.empty() || t.shape.size() > 2)
      fail({.what = text(checkpoint.source(), ": tensor ", t.name, " is [", join(t.shape, ", "), "]"),
            .needs = "matrices and vectors",
            .hint = "check that weights and config.json belong together"});
    Extents own{t.shape.front(), t.shape.back(), t.shape.size() == 1};
    if (own.is_vector) own.rows = 1;
    // Codes stand [out, in] in every file.
    if (source.transposed && !own.is_vector && !t.format) std::swap(own.rows, own.cols);
    if (&name == &source.tensors.front()) {
      all = own;
    } else if (own.is_vector != all.is_vector || (!own.is_vector && own.cols != all.cols)) {
      fail({.what = text("tensors ", join(source.tensors, ", "), " cannot be laid under each other"),
            .needs = "the same number of inputs in each",
            .hint = "check the checkpoint's shapes"});
    } else {
      (own.is_vector ? all.cols : all.rows) += own.is_vector ? own.cols : own.rows;
    }
  }
  return all;
}

/// With the experts in front, if there are any.
Dims of_experts(int64_t experts, const Dims& one) {
  std::vector<int64_t> all(one.begin(), one.end());
  if (experts > 0) all.insert(all.begin(), experts);
  return Dims(std::span<const int64_t>(all));
}

/// The shape that a parameter has when it is made from a weight of those extents.
Dims shape_from(const ParamSpec& spec, const Extents& e) {
  const int64_t experts = spec.source.experts, count = std::max<int64_t>(experts, 1);
  const bool is_vector = spec.part == ParamPart::plain && (spec.shape.size() == 1 || e.is_vector);
  const int64_t rows = e.rows / count;
  if ((is_vector ? e.cols : e.rows) % count != 0) return {e.rows, e.cols};
  switch (spec.part) {
    case ParamPart::plain: return of_experts(experts, is_vector ? Dims{e.rows * e.cols / count} : Dims{rows, e.cols});
    case ParamPart::activation_scale: return {spec.activation->num_scales(e.cols)};
    case ParamPart::rescale: return {1};
    default: break;
  }
  for (const MatrixPart& part : parts_of(*spec.format, rows, e.cols))
    if (part.part == spec.part) return of_experts(experts, part.shape);
  internal_error("a part of a weight without a shape");
}

/// Tensors of one dtype, one after the other.
Ref<Tensor> joined(const std::vector<QuantizedMatrix>& all, ParamPart part, const Dims& shape) {
  Ref<Tensor> out = Tensor::empty(shape, all.front()[part].dtype());
  std::byte* to = out->data_as<std::byte>();
  for (const QuantizedMatrix& m : all) {
    const Tensor& own = m[part];
    to = std::copy_n(own.data_as<std::byte>(), own.size_bytes(), to);
  }
  return out;
}

/// Matrices of one format and width, one under the other; or one after the other, where they are whole experts.
QuantizedMatrix stacked(const std::vector<QuantizedMatrix>& all, int64_t experts) {
  const QuantizedMatrix& first = all.front();
  QuantizedMatrix out{.format = first.format, .rows = 0, .cols = first.cols, .parts = {}};
  for (const QuantizedMatrix& m : all) out.rows += m.rows;
  const int64_t rows = out.rows / std::max<int64_t>(experts, 1);
  for (const MatrixPart& part : parts_of(out.format, rows, out.cols))
    out.parts[part.part] = joined(all, part.part, of_experts(experts, part.shape));
  return out;
}

/// The rows of a matrix in another order.
QuantizedMatrix with_rows(const QuantizedMatrix& q, const std::vector<int64_t>& order) {
  if (q.format.granularity != Granularity::group && q.format.granularity != Granularity::channel)
    internal_error("rows of a matrix whose scales are not those of rows are taken in another order");
  QuantizedMatrix out{.format = q.format, .rows = q.rows, .cols = q.cols, .parts = {}};
  for (const MatrixPart& part : parts_of(q.format, q.rows, q.cols)) {
    const Ref<Tensor>& own = q.parts.at(part.part);
    if (part.part == ParamPart::order) {  // of the inputs
      out.parts[part.part] = own;
      continue;
    }
    Ref<Tensor> ordered = Tensor::empty(part.shape, part.dtype);
    const int64_t bytes = own->size_bytes() / q.rows;
    std::byte* to = ordered->data_as<std::byte>();
    for (int64_t row : order) to = std::copy_n(own->data_as<std::byte>() + row * bytes, bytes, to);
    out.parts[part.part] = std::move(ordered);
  }
  return out;
}

/// Values that are floats at the same time while a weight is made: 16 MB of them.
constexpr int64_t kFloatsAtOnce = int64_t{1} << 22;

/// A weight as f32 [rows, cols].
struct Matrix {
  std::vector<float> values;
  int64_t rows = 0, cols = 0;
};

class Maker {
 public:
  Maker(const Checkpoint& checkpoint, const ActivationRanges& ranges) : checkpoint_(checkpoint), ranges_(ranges) {}

  Ref<Tensor> make(const ParamSpec& spec) {
    if (spec.part == ParamPart::activation_scale) {
      std::vector<float> scales = activation_scales(ranges_of(spec), *spec.activation);
      if (spec.format->granularity == Granularity::input)
        for (float& s : scales) s *= rescale_of(spec);
      return to_dtype(scales, spec.shape, f32);
    }
    if (spec.part == ParamPart::rescale) return to_dtype(std::vector{rescale_of(spec)}, spec.shape, f32);
    if (spec.part == ParamPart::plain) return plain(spec);
    return quantized(spec).parts.at(spec.part);
  }
  /// Lets go of the weight whose parts were made last.
  void forget() {
    quantized_source_.reset();
    quantized_ = {};
  }

 private:
  /// Tensor by tensor, each in its own place: experts may be many.
  Ref<Tensor> plain(const ParamSpec& spec) const {
    Ref<Tensor> out = Tensor::empty(spec.shape, spec.dtype);
    std::byte* to = out->data_as<std::byte>();
    for (const std::string& name : spec.source.tensors) {
      if (by_rows(spec.source, name)) {
        each_block(checkpoint_.get(name), [&](const std::vector<float>& values, int64_t) {
          if (spec.dtype == f16) require_in_f16(spec, values);
          const Ref<Tensor> own = to_dtype(values, {std::ssize(values)}, spec.dtype);
          to = std::copy_n(own->data_as<std::byte>(), own->size_bytes(), to);
        });
        continue;
      }
      const Matrix m = load({{name}, spec.source.transposed, spec.source.experts, spec.source.rows});
      if (spec.dtype == f16) require_in_f16(spec, m.values);
      const Ref<Tensor> own = to_dtype(m.values, {std::ssize(m.values)}, spec.dtype);
      to = std::copy_n(own->data_as<std::byte>(), own->size_bytes(), to);
    }
    return out;
  }

  /// Beyond its range a float16 would be infinite, and every result with it.
  static void require_in_f16(const ParamSpec& spec, const std::vector<float>& values) {
    for (float v : values) {
      if (!std::isfinite(v) || std::isfinite(f16_to_f32(f32_to_f16(v)))) continue;
      fail({.what = text(join(spec.source.tensors, ", "), " has the value ", v, ", which float16 does not hold"),
            .needs = "values of at most 65504 in tensors that the scheme stores as float16",
            .hint = "use the scheme f32 or bf16"});
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

  /// With a scale s[k] per input feature the integers are those of x[k] / a[k] * s[k], whose largest value by the
  /// calibration takes the place of the code 2^(b-1)-1. This one number leaves the sum over k.
  float rescale_of(const ParamSpec& spec) {
    const std::vector<float>& ranges = ranges_of(spec);
    const std::vector<float> a = activation_scales(ranges, *spec.activation),
                             s = to_f32(quantized(spec)[ParamPart::scale]);
    float largest = 0;
    for (size_t i = 0; i < s.size(); ++i) {  // those of all experts
      const size_t k = i % ranges.size();
      largest = std::max(largest, ranges[k] / a[k * a.size() / ranges.size()] * s[i]);
    }
    return largest > 0 ? largest / static_cast<float>((1 << (spec.activation->bits - 1)) - 1) : 1;
  }

  const QuantizedMatrix& quantized(const ParamSpec& spec) {
    // One weight at a time is kept: its parts follow each other.
    if (quantized_source_ && *quantized_source_ == spec.source.tensors) return quantized_;
    quantized_source_.reset();
    quantized_ = codes_of(spec);
    require_finite(quantized_, spec.source.tensors.front());
    quantized_source_ = spec.source.tensors;
    return quantized_;
  }

  QuantizedMatrix codes_of(const ParamSpec& spec) {
    if (are_stored_so(spec)) {
      std::vector<QuantizedMatrix> all;
      for (const std::string& name : spec.source.tensors) {
        all.push_back(checkpoint_.get(name).codes());
        if (spec.source.rows.groups > 0) all.back() = with_rows(all.back(), spec.source.rows.stored_rows());
      }
      return all.size() == 1 ? std::move(all.front()) : stacked(all, spec.source.experts);
    }
    if (spec.source.experts == 0)
      return are_separate(spec) ? quantized_by_rows(spec) : quantized_of(spec, load(spec.source));
    // An expert's matrix is quantized by itself, whatever shares a scale in it.
    std::vector<QuantizedMatrix> all;
    each_expert(spec.source, [&](Matrix m) { all.push_back(quantized_of(spec, std::move(m))); });
    return stacked(all, spec.source.experts);
  }

  /// Whether a tensor's rows are used as they stand.
  bool by_rows(const WeightSource& source, const std::string& name) const {
    return !source.transposed && source.rows.groups == 0 && has_rows(checkpoint_.get(name));
  }
  /// Whether each row is quantized by itself.
  bool are_separate(const ParamSpec& spec) const {
    const Granularity g = spec.format->granularity;
    return (g == Granularity::channel || g == Granularity::group) &&
           !(spec.activation && spec.activation->is_static()) &&
           std::ranges::all_of(spec.source.tensors, [&](const std::string& t) { return by_rows(spec.source, t); });
  }
  /// Calls `take(values, rows)` for blocks of rows, in their order.
  template <class F>
  static void each_block(const StoredWeight& w, const F& take) {
    const int64_t rows = w.shape.front(),
                  step = std::max<int64_t>(1, kFloatsAtOnce / std::max<int64_t>(1, w.shape.back()));
    for (int64_t first = 0; first < rows; first += step) {
      const int64_t count = std::min(step, rows - first);
      take(values_of(w, first, count), count);
    }
  }
  QuantizedMatrix quantized_by_rows(const ParamSpec& spec) const {
    const Extents extents = extents_of(spec.source, checkpoint_);
    QuantizedMatrix out{.format = *spec.format, .rows = extents.rows, .cols = extents.cols, .parts = {}};
    std::map<ParamPart, std::byte*> to;
    for (const MatrixPart& part : parts_of(out.format, out.rows, out.cols)) {
      out.parts[part.part] = Tensor::empty(part.shape, part.dtype);
      to[part.part] = out.parts[part.part]->data_as<std::byte>();
    }
    for (const std::string& name : spec.source.tensors) {
      const StoredWeight& w = checkpoint_.get(name);
      int64_t first = 0;
      each_block(w, [&](const std::vector<float>& values, int64_t count) {
        const QuantizedMatrix block = quantize(values, count, w.shape.back(), *spec.format, first);
        for (auto& [part, at] : to) at = std::copy_n(block[part].data_as<std::byte>(), block[part].size_bytes(), at);
        first += count;
      });
    }
    return out;
  }

  QuantizedMatrix quantized_of(const ParamSpec& spec, Matrix m) {
    if (spec.activation && spec.activation->is_static()) {
      std::vector<float> scales = activation_scales(ranges_of(spec), *spec.activation);
      size_t cols = static_cast<size_t>(m.cols), groups = scales.size();
      for (size_t i = 0; i < m.values.size(); ++i) m.values[i] *= scales[(i % cols) * groups / cols];
    }
    return quantize(m.values, m.rows, m.cols, *spec.format);
  }

  /// The experts' matrices one by one.
  template <class F>
  void each_expert(const WeightSource& source, F take) {
    const auto of_one = static_cast<ptrdiff_t>(source.tensors.size()) / source.experts;
    for (auto from = source.tensors.begin(); from != source.tensors.end(); from += of_one)
      take(load({{from, from + of_one}, source.transposed, 0, source.rows}));
  }

  /// Whether the checkpoint holds the codes of the parameter already.
  bool are_stored_so(const ParamSpec& spec) const {
    return !spec.activation && std::ranges::all_of(spec.source.tensors, [&](const std::string& name) {
      return checkpoint_.get(name).format == spec.format;
    });
  }

  /// Tensors of which require_sources has seen that they fit.
  Matrix load(const WeightSource& source) const {
    const Extents extents = extents_of(source, checkpoint_);
    Matrix all{.rows = extents.rows, .cols = extents.cols};
    all.values.reserve(static_cast<size_t>(all.rows * all.cols));
    for (const std::string& name : source.tensors) {
      const StoredWeight& t = checkpoint_.get(name);
      const std::vector<float> values = values_of(t);
      if (!source.transposed || t.format || t.shape.size() != 2) {
        all.values.insert(all.values.end(), values.begin(), values.end());
        continue;
      }
      const std::vector<float> used = transposed(values, t.shape[0], t.shape[1]);
      all.values.insert(all.values.end(), used.begin(), used.end());
    }
    if (source.rows.groups > 0) {
      const std::vector<int64_t> order = source.rows.stored_rows();
      const auto width = static_cast<ptrdiff_t>(all.values.size() / order.size());
      std::vector<float> ordered(all.values.size());
      auto to = ordered.begin();
      for (int64_t row : order) to = std::copy_n(all.values.begin() + row * width, width, to);
      all.values = std::move(ordered);
    }
    return all;
  }

  const Checkpoint& checkpoint_;
  const ActivationRanges& ranges_;
  std::optional<std::vector<std::string>> quantized_source_;
  QuantizedMatrix quantized_;
};

}  // namespace

void require_sources(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint) {
  for (const ParamSpec& spec : specs) {
    const Dims shape = shape_from(spec, extents_of(spec.source, checkpoint));
    if (shape == spec.shape) continue;
    fail({.what = text("parameter ",
                       spec.name,
                       " should be ",
                       spec.dtype,
                       "[",
                       join(spec.shape, ", "),
                       "], but ",
                       join(spec.source.tensors, ", "),
                       " gives [",
                       join(shape, ", "),
                       "]"),
          .needs = "a checkpoint whose shapes are those of config.json",
          .hint = "check that weights and config.json belong together"});
  }
  if (!checkpoint.is_exact()) return;
  if (const std::vector<std::string> unused = unused_tensors(specs, checkpoint); !unused.empty())
    fail({.what = text(checkpoint.source(), ": no part of the model is made of tensor ", unused.front()),
          .needs = "the tensors of the architecture that its configuration describes, and no others",
          .hint = "compare its number of layers with theirs; else it is of a variant that is not supported"});
}

bool follows_from_config(std::string_view tensor) {
  return std::ranges::any_of(std::array{".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"},
                             [&](std::string_view end) { return tensor.ends_with(end); });
}

std::vector<std::string> unused_tensors(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint) {
  std::set<std::string_view> used;
  for (const ParamSpec& spec : specs)
    for (const std::string& name : spec.source.tensors)
      if (const StoredWeight* t = checkpoint.find(name)) used.insert(t->name);
  std::vector<std::string> out;
  for (const StoredWeight& t : checkpoint.weights()) {
    const bool is_known = t.name == "lm_head.weight" || follows_from_config(t.name);
    if (!is_known && !used.contains(t.name)) out.push_back(t.name);
  }
  return out;
}

/// Bytes that are made before they are asked for.
static constexpr int64_t kAhead = int64_t{64} << 20;

struct ParamStream::State {
  const std::vector<ParamSpec>& specs;
  const Checkpoint& checkpoint;
  const ActivationRanges& ranges;

  std::mutex guard;  // of all below
  std::condition_variable changed;
  std::vector<Ref<Tensor>> made;  // by parameter; null before, and once taken
  std::vector<bool> taken;
  size_t next = 0;       // parameters before it are made or being made
  size_t wanted = 0;     // those before it are asked for
  int64_t waiting = 0;   // bytes that are made and not taken
  bool stopped = false;  // nobody asks any more
  std::exception_ptr failed;
  SharedObjects shared = {};
  std::vector<std::jthread> threads = {};

  void work() {
    Maker maker(checkpoint, ranges);
    std::unique_lock lock(guard);
    while (true) {
      changed.wait(lock,
                   [&] { return stopped || failed || next == specs.size() || next < wanted || waiting < kAhead; });
      if (stopped || failed || next == specs.size()) return;
      // The parts of one weight follow each other, and are made by one thread.
      const size_t from = next++;
      while (next < specs.size() && specs[next].source == specs[from].source) ++next;
      const size_t end = next;
      lock.unlock();
      std::vector<Ref<Tensor>> parts;
      std::exception_ptr thrown;
      try {
        for (size_t i = from; i < end; ++i) parts.push_back(maker.make(specs[i]));
        maker.forget();
        // What has been read is not read again, but by other weights of the same tensors.
        for (const std::string& name : specs[from].source.tensors) release(checkpoint.get(name));
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      if (thrown && !failed) failed = thrown;
      for (size_t i = from; i < end && !failed; ++i) {
        waiting += parts[i - from]->size_bytes();
        made[i] = std::move(parts[i - from]);
      }
      changed.notify_all();
    }
  }
};

ParamStream::ParamStream(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint,
                         const ActivationRanges& ranges, int threads)
    : state_(new State{.specs = specs, .checkpoint = checkpoint, .ranges = ranges}) {
  require_sources(specs, checkpoint);
  state_->made.resize(specs.size());
  state_->taken.resize(specs.size());
  for (int t = 0; t < threads; ++t) state_->threads.emplace_back([s = state_.get()] { s->work(); });
}

ParamStream::~ParamStream() {
  {
    const std::lock_guard lock(state_->guard);
    state_->stopped = true;
  }
  state_->changed.notify_all();
}

Ref<Tensor> ParamStream::take(int64_t index) {
  State& s = *state_;
  const auto i = static_cast<size_t>(index);
  std::unique_lock lock(s.guard);
  if (i >= s.specs.size() || s.taken[i])
    internal_error(text("parameter ", index, " of ", s.specs.size(), " is taken", i < s.specs.size() ? " twice" : ""));
  s.wanted = std::max(s.wanted, i + 1);
  s.changed.notify_all();
  s.changed.wait(lock, [&] { return s.made[i] || s.failed; });
  if (!s.made[i]) std::rethrow_exception(s.failed);
  s.taken[i] = true;
  s.waiting -= s.made[i]->size_bytes();
  s.changed.notify_all();
  return std::exchange(s.made[i], nullptr);
}

std::vector<Ref<Tensor>> make_params(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint,
                                     const ActivationRanges& ranges, const std::function<void(size_t done)>& progress,
                                     int threads) {
  ParamStream stream(specs, checkpoint, ranges, threads);
  std::vector<Ref<Tensor>> params;
  for (size_t i = 0; i < specs.size(); ++i) {
    params.push_back(stream.take(static_cast<int64_t>(i)));
    if (progress) progress(i + 1);
  }
  return params;
}

WeightSize weight_size(const std::vector<ParamSpec>& specs, const Checkpoint& checkpoint) {
  WeightSize size;
  std::set<std::string> counted;
  for (const ParamSpec& spec : specs) {
    size.bytes += spec.bytes();
    if (spec.part != ParamPart::plain && spec.part != ParamPart::codes) continue;
    for (const std::string& name : spec.source.tensors) {
      const StoredWeight* t = checkpoint.find(name);
      if (t && counted.insert(name).second) size.weights += t->elements();
    }
  }
  return size;
}

}  // namespace sator::llm
