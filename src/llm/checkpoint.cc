#include "llm/checkpoint.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "frontend/gguf_model.h"
#include "llm/gguf_codes.h"
#include "llm/mlc_codes.h"
#include "llm/stored_codes.h"

namespace sator::llm {

int64_t StoredWeight::elements() const {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

void Checkpoint::add(StoredWeight weight) {
  if (!by_name_.emplace(weight.name, weights_.size()).second)
    fail({.what = text("the checkpoint holds ", weight.name, " twice"),
          .needs = "each tensor once",
          .hint = "remove files of another version of the model"});
  weights_.push_back(std::move(weight));
}

void Checkpoint::finish(std::string source, std::string scheme) {
  source_ = std::move(source);
  if (scheme.empty()) return;
  auto formats = std::make_shared<StoredFormats>();
  for (const StoredWeight& w : weights_) {
    const std::string name(bare_name(w.name));
    if (w.format)
      formats->codes.emplace(name, *w.format);
    else
      formats->plain.emplace(name, w.dtype);
  }
  formats_ = std::move(formats);
  scheme_name_ = std::move(scheme);
}

Checkpoint Checkpoint::of(const SafeTensors& tensors, const std::vector<ExpertStack>& stacks) {
  Checkpoint out;
  out.files_ = tensors.files();
  for (const SafeTensor& t : tensors.tensors())
    for (StoredWeight& weight : floats_of(t, stacks)) out.add(std::move(weight));
  out.finish(tensors.files().empty() ? "the model" : tensors.files().front()->path().string(), "");
  return out;
}

Checkpoint Checkpoint::open_gguf(const fs::path& file, const ModelConfig& config) {
  const auto gguf = std::make_shared<const GgufFile>(GgufFile::open(file));
  Checkpoint out;
  out.files_ = gguf->files();
  std::vector<StoredWeight> weights;
  for (const GgufWeight& w : weights_of_gguf(*gguf, config)) {
    const GgufTensor& t = w.tensor;
    StoredWeight stored{.name = w.name, .shape = t.shape};
    if (const GgufFormat* format = gguf_format(t.type->name)) {
      if (t.shape.size() != 2)
        fail({.what = text("tensor ", t.name, " is [", join(t.shape, ", "), "] of ", t.type->name),
              .needs = "codes of a matrix"});
      stored.format = format->format;
      stored.codes = [gguf, t, format, order = w.row_order] { return read_gguf_codes(t, *format, order); };
    } else {
      stored.dtype = t.type->name == "F32" ? f32 : t.type->name == "F16" ? f16 : bf16;
      stored.bytes = t.bytes;
      stored.row_order = w.row_order;
    }
    weights.push_back(std::move(stored));
  }
  for (StoredWeight& w : by_part(std::move(weights), config.names.expert_stacks)) out.add(std::move(w));
  out.is_exact_ = true;
  out.finish(file.string(), file_type_of_gguf(*gguf));
  return out;
}

/// Whether two layers have the same parts, byte by byte.
static bool have_same_records(const MlcWeights& stored, const std::string& layer, const std::string& other) {
  std::map<std::string, MlcWeights::Stored> records;
  for (MlcWeights::Stored& s : stored.stored()) records.emplace(s.name, s);
  return std::ranges::all_of(records, [&](const auto& record) {
    const auto& [name, s] = record;
    if (!name.starts_with(layer + ".")) return true;
    const auto same = records.find(other + name.substr(layer.size()));
    return same != records.end() && same->second.dtype == s.dtype && same->second.shape == s.shape &&
           std::ranges::equal(same->second.bytes, s.bytes);
  });
}

/// Errors: the weights hold a head that is not the embedding, where the configuration says that it is. MLC-LLM's programs have no head
/// then, and leave it unread, but for GPT-2, whose head repeats the embedding.
static void require_tied(const Checkpoint& checkpoint, const MlcWeights& stored, const TensorNames& names) {
  const StoredWeight *head = checkpoint.find(names.head + ".weight"),
                     *embedding = checkpoint.find(names.embedding + ".weight");
  if (!head || !embedding || have_same_records(stored, names.head, names.embedding)) return;
  // Linear layers may lie transposed where tables do not.
  if (head->format && head->format == embedding->format && values_of(*head) == values_of(*embedding)) return;
  fail({.what = text(checkpoint.source(),
                     " holds ",
                     head->name,
                     ", and tie_word_embeddings is true, but it is not ",
                     embedding->name),
        .needs = "one matrix for both, or tie_word_embeddings: false",
        .hint = text("say false in the model_config of ", kMlcConfigFile, ": the head is then used as it is")});
}

Checkpoint Checkpoint::open_mlc(const fs::path& folder, const ModelConfig& config, const MlcScheme& scheme) {
  const auto stored = std::make_shared<const MlcWeights>(MlcWeights::open(folder));
  Checkpoint out;
  out.files_ = stored->files();
  for (StoredWeight& weight : weights_of_mlc(stored, config, scheme)) out.add(std::move(weight));
  out.is_exact_ = true;
  out.finish(folder.string(), std::string(scheme.name));
  if (config.tie_word_embeddings) require_tied(out, *stored, config.names);
  return out;
}

Checkpoint Checkpoint::open(const fs::path& folder, const ModelConfig& config) {
  if (GgufFile::is_named_so(folder)) return open_gguf(folder, config);
  if (const MlcScheme* scheme = mlc_checkpoint_scheme(folder)) return open_mlc(folder, config, *scheme);
  const SafeTensors tensors = SafeTensors::open_folder(folder).of_text_part();
  if (!config.quantization) return of(tensors, config.names.expert_stacks);
  Checkpoint out;
  out.files_ = tensors.files();
  for (StoredWeight& weight : weights_with_codes(tensors, config)) out.add(std::move(weight));
  if (out.weights_.empty() ||
      std::ranges::none_of(out.weights_, [](const StoredWeight& w) { return w.format.has_value(); }))
    fail({.what = text("config.json says that the weights are quantized, and ", folder.string(), " has no codes"),
          .needs = "tensors as quantization_config says",
          .hint = "check that weights and config.json belong together"});
  out.finish(folder.string(), scheme_name_of(*config.quantization));
  return out;
}

const StoredWeight* Checkpoint::find(std::string_view name) const {
  auto at = by_name_.find(name);
  if (at == by_name_.end()) at = by_name_.find(bare_name(name));
  return at == by_name_.end() ? nullptr : &weights_[at->second];
}

const StoredWeight& Checkpoint::get(std::string_view name) const {
  if (const StoredWeight* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const StoredWeight& w : weights_) names.push_back(w.name);
  const std::vector<std::string> near = nearest_names(name, names);
  fail({.what = text("there is no tensor ", string_literal(name), " in ", source_, " (", names.size(), " tensors)"),
        .needs = "all weights of the model's architecture",
        .hint = near.empty() ? "" : text("nearest names: ", join(near, ", "))});
}

std::vector<fs::path> Checkpoint::paths() const {
  std::vector<fs::path> out;
  for (const Ref<MappedFile>& file : files_) out.push_back(file->path());
  return out;
}

void Checkpoint::change(std::string_view name, std::function<void(std::vector<float>&)> by) {
  StoredWeight& w = weights_[static_cast<size_t>(&get(name) - weights_.data())];
  if (w.format) fail({.what = text(w.name, " is stored as codes"), .needs = "floats"});
  w.change = std::move(by);
}

std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t cols) {
  std::vector<float> out;
  out.reserve(values.size());
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) out.push_back(values[static_cast<size_t>(r * cols + c)]);
  return out;
}

bool has_rows(const StoredWeight& w) {
  return !w.format && !w.transposed && !w.floats && !w.change && w.shape.size() == 2;
}

std::vector<float> values_of(const StoredWeight& w, int64_t first, int64_t count) {
  const auto row_bytes = static_cast<size_t>(w.shape.back() * w.dtype.bytes());
  if (w.row_order.empty())
    return to_f32(w.bytes.subspan(static_cast<size_t>(first) * row_bytes, static_cast<size_t>(count) * row_bytes),
                  w.dtype);
  std::vector<float> out;
  for (int64_t row = first; row < first + count; ++row) {
    const auto from = static_cast<size_t>(w.row_order[static_cast<size_t>(row)]);
    const std::vector<float> one = to_f32(w.bytes.subspan(from * row_bytes, row_bytes), w.dtype);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

void release(const StoredWeight& w) {
  static const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(w.bytes.data()), end = begin + w.bytes.size();
  const uintptr_t from = (begin + page - 1) / page * page, to = end / page * page;
  if (from < to) ::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
}

std::vector<float> values_of(const StoredWeight& weight) {
  if (weight.format) return dequantize(weight.codes());
  std::vector<float> values = weight.floats ? weight.floats() : to_f32(weight.bytes, weight.dtype);
  if (weight.transposed) values = transposed(values, weight.shape.back(), weight.shape.front());
  if (!weight.row_order.empty()) {
    const auto cols = static_cast<ptrdiff_t>(values.size() / weight.row_order.size());
    std::vector<float> ordered(values.size());
    auto to = ordered.begin();
    for (int64_t row : weight.row_order) to = std::copy_n(values.begin() + row * cols, cols, to);
    values = std::move(ordered);
  }
  if (weight.change) weight.change(values);
  return values;
}

}  // namespace sator::llm
