#include "llm/mlc_weights.h"

#include <md5.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "frontend/mlc_config.h"

namespace sator::llm {

using runtime::Dims;
using runtime::Tensor;

namespace {

constexpr int64_t kShardBytes = int64_t{32} << 20, kOwnShardBytes = int64_t{16} << 20;
constexpr const char* kIndexNames[] = {"tensor-cache.json", "ndarray-cache.json"};

std::string md5_of(std::span<const std::byte> bytes) {
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  uint8_t digest[MD5_DIGEST_LENGTH];
  MD5Final(digest, &context);
  std::string out;
  for (uint8_t b : digest) out += text("0123456789abcdef"[b >> 4], "0123456789abcdef"[b & 15]);
  return out;
}

std::string shard_name(size_t i) { return text("params_shard_", i, ".bin"); }

/// Collects tensors until a shard is full.
class ShardWriter {
 public:
  explicit ShardWriter(OwnedFolder& files) : files_(files) {}

  void add(const std::string& name, const Tensor& t) {
    const int64_t bytes = t.size_bytes();
    const bool has_own = bytes >= kOwnShardBytes;
    if (has_own || static_cast<int64_t>(pending_.size()) + bytes >= kShardBytes) flush();
    records_.push_back({{"name", name},
                        {"shape", std::vector<int64_t>(t.shape().begin(), t.shape().end())},
                        {"dtype", t.dtype().name()},
                        {"format", "raw"},
                        {"nbytes", bytes},
                        {"byteOffset", pending_.size()}});
    pending_.append(static_cast<const char*>(t.data()), static_cast<size_t>(bytes));
    if (has_own) flush();
  }

  Json finish() {
    flush();
    return std::move(shards_);
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    const std::string name = shard_name(shards_.size());
    files_.put(name, pending_);
    shards_.push_back({{"dataPath", name},
                       {"format", "raw-shard"},
                       {"nbytes", pending_.size()},
                       {"md5sum", md5_of(std::as_bytes(std::span(pending_)))},
                       {"records", std::move(records_)}});
    records_ = Json::array();
    pending_.clear();
  }

  OwnedFolder& files_;
  std::string pending_;
  Json records_ = Json::array(), shards_ = Json::array();
};

/// The folder of an earlier conversion states the md5 sums of its shards; one that has no list of files yet is known by them.
void adopt_shards(OwnedFolder& files, const fs::path& folder) {
  for (const char* name : kIndexNames) {
    if (!fs::is_regular_file(folder / name)) continue;
    try {
      const Json tree = parse_json(read_regular_file(folder / name), name);
      for (const Json& shard : tree.at("records")) {
        const std::string path = shard.at("dataPath");
        if (fs::path(path).filename() != path || !fs::is_regular_file(folder / path) || fs::is_symlink(folder / path))
          continue;
        if (md5_of(MappedFile::open(folder / path)->bytes()) == shard.at("md5sum").get<std::string>())
          files.adopt(path);
      }
      files.adopt(name);
    } catch (const Error&) {  // not such an index: then it is in the way
    } catch (const Json::exception&) {
    }
  }
}

}  // namespace

MlcWriter::MlcWriter(const fs::path& folder, bool replace) : files_(folder, "convert_weight", replace) {
  if (!fs::exists(folder / ".sator-convert_weight.json")) adopt_shards(files_, folder);
  files_.require_free({kIndexNames[0], shard_name(0)});
}

void MlcWriter::write(const std::vector<ParamSpec>& specs, const std::vector<Ref<Tensor>>& params, int64_t weights) {
  OwnedFolder& files = files_;
  ShardWriter writer(files);
  double bytes = 0;
  for (size_t i = 0; i < specs.size(); ++i) {
    writer.add(specs[i].name, *params[i]);
    bytes += static_cast<double>(params[i]->size_bytes());
  }
  const Json index = {{"metadata",
                       {{"ParamSize", specs.size()},
                        {"ParamBytes", bytes},
                        {"BitsPerParam", bytes * 8 / static_cast<double>(weights)}}},
                      {"records", writer.finish()}};
  files.put(kIndexNames[0], index.dump(2) + "\n");
  // The indices go first: without one a folder has no weights.
  files.finish({std::begin(kIndexNames), std::end(kIndexNames)});
}

bool MlcWeights::is_in(const fs::path& folder) {
  for (const char* name : kIndexNames)
    if (fs::is_regular_file(folder / name)) return true;
  return false;
}

MlcWeights MlcWeights::open(const fs::path& folder) {
  MlcWeights out;
  for (const char* name : kIndexNames)
    if (out.index_.empty() && fs::is_regular_file(folder / name)) out.index_ = folder / name;
  if (out.index_.empty())
    fail({.what = text("there is no ", (folder / kIndexNames[0]).string()),
          .needs = "converted weights beside mlc-chat-config.json",
          .hint = "write them with `sator convert_weight`"});
  const std::string source = out.index_.string();
  const Json tree = parse_json(read_regular_file(out.index_), source);
  const JsonAt index(tree, source);
  double bytes = 0;
  index.at("records").each([&](const JsonAt& shard) {
    const JsonAt path = shard.at("dataPath");
    if (fs::path(path.string()).filename() != path.string())
      path.fail(text("is ", string_literal(path.string())), "the name of a file in the same folder");
    out.shards_.push_back({MappedFile::open(folder / path.string()), shard.string_or("md5sum", "")});
    const auto size = static_cast<int64_t>(out.shards_.back().file->bytes().size());
    shard.at("records").each([&](const JsonAt& at) {
      Record r{.shard = out.shards_.size() - 1};
      std::vector<int64_t> dims;
      at.at("shape").each([&](const JsonAt& d) { dims.push_back(d.integer(0)); });
      r.shape = Dims(std::span<const int64_t>(dims));
      const std::string& named = at.at("dtype").string();
      if (named == "float8_e4m3fn" || named == "e4m3_float8") r.float8 = Float8::e4m3;
      if (named == "float8_e5m2" || named == "e5m2_float8") r.float8 = Float8::e5m2;
      auto dtype = r.float8 != Float8::none ? u8 : DType::parse(named);
      if (!dtype || !dtype->is_scalar()) at.at("dtype").fail("is unknown", "a dtype such as float16 or uint32");
      r.dtype = *dtype;
      const std::string format = at.string_or("format", "raw");
      r.is_bf16 = format == "f32-to-bf16" && r.dtype == f32;
      if (format != "raw" && format != "f32-to-bf16")
        at.at("format").fail(text("is ", string_literal(format)), "raw or f32-to-bf16");
      r.offset = at.at("byteOffset").integer(0);
      r.bytes = at.at("nbytes").integer(0);
      auto full = Tensor::bytes_of(dims, r.dtype);
      if (!full || r.bytes != (r.is_bf16 ? *full / 2 : *full))
        at.at("nbytes").fail(text("is ", r.bytes), text("the size of ", r.dtype, " of that shape"));
      if (r.offset > size || r.bytes > size - r.offset)
        at.fail(text("lies beyond the end of ", path.string(), ", which has ", size, " bytes"),
                "a whole shard",
                "convert or download the weights again");
      bytes += static_cast<double>(r.bytes);
      out.records_[at.at("name").string()] = r;
    });
  });
  if (auto metadata = index.find("metadata")) {
    const double bits = metadata->number_or("BitsPerParam", 0);
    if (bits > 0) out.original_weights_ = std::llround(metadata->number_or("ParamBytes", bytes) * 8 / bits);
  }
  return out;
}

std::vector<MlcWeights::Stored> MlcWeights::stored() const {
  std::vector<Stored> out;
  for (const auto& [name, r] : records_)
    out.push_back(
        {.name = name,
         .shape = {r.shape.begin(), r.shape.end()},
         .dtype = r.is_bf16 ? bf16 : r.dtype,
         .float8 = r.float8,
         .bytes = shards_[r.shard].file->bytes().subspan(static_cast<size_t>(r.offset), static_cast<size_t>(r.bytes))});
  return out;
}

std::vector<Ref<MappedFile>> MlcWeights::files() const {
  std::vector<Ref<MappedFile>> out;
  for (const Shard& shard : shards_) out.push_back(shard.file);
  return out;
}

Ref<Tensor> MlcWeights::load(const Record& r) const {
  Ref<Tensor> tensor = Tensor::empty(r.shape, r.dtype);
  const std::byte* from = shards_[r.shard].file->bytes().data() + r.offset;
  if (!r.is_bf16) {
    std::memcpy(tensor->data(), from, static_cast<size_t>(r.bytes));
    return tensor;
  }
  for (int64_t i = 0; i < tensor->num_elements(); ++i) {
    uint16_t half;
    std::memcpy(&half, from + 2 * i, 2);
    const uint32_t whole = uint32_t{half} << 16;
    std::memcpy(tensor->data_as<float>() + i, &whole, 4);
  }
  return tensor;
}

const MlcWeights::Record& MlcWeights::record_of(const ParamSpec& spec) const {
  auto at = records_.find(spec.name);
  if (at == records_.end())
    fail({.what = text(index_.string(), " has no tensor ", spec.name),
          .needs = "all parameters of the model under its quantization",
          .hint = "convert the weights with the quantization that mlc-chat-config.json names"});
  const Record& r = at->second;
  if (r.shape == spec.shape && r.dtype == spec.dtype) return r;
  // Earlier versions left what a scheme does not quantize in the checkpoint's dtype.
  const bool of_earlier_version = spec.part == ParamPart::plain && r.shape == spec.shape && is_storage_dtype(r.dtype) &&
                                  is_storage_dtype(spec.dtype);
  const std::optional<MlcModel> model = of_earlier_version ? read_mlc_model(index_.parent_path()) : std::nullopt;
  fail({.what = text(spec.name, " is ", r.dtype, "[", join(r.shape, ", "), "] in ", index_.string()),
        .needs = text(spec.dtype, "[", join(spec.shape, ", "), "]"),
        .hint = of_earlier_version
                    ? text("an earlier version may have written it; convert the original weights again: `sator "
                           "convert_weight MODEL --quantization ",
                           model ? model->quantization : "SCHEME",
                           " -o ",
                           index_.parent_path().string(),
                           "`")
                    : "convert the weights with the quantization that mlc-chat-config.json names"});
}

void MlcWeights::require(const std::vector<ParamSpec>& specs) const {
  std::set<std::string_view> asked;
  for (const ParamSpec& spec : specs) record_of(spec), asked.insert(spec.name);
  for (const auto& [name, record] : records_)
    if (!asked.contains(name))
      fail({.what = text(index_.string(), ": no part of the model is made of tensor ", name),
            .needs = text("the parameters of the model that ", kMlcConfigFile, " describes, and no others"),
            .hint = text("compare its layers and tie_word_embeddings with the model's; `sator gen_config` writes it")});
}

std::vector<Ref<Tensor>> MlcWeights::params(const std::vector<ParamSpec>& specs) const {
  std::vector<Ref<Tensor>> out;
  QuantizedMatrix matrix;  // its parts follow each other, codes first; experts' rows stand under each other
  for (const ParamSpec& spec : specs) {
    const Ref<Tensor>& tensor = out.emplace_back(load(record_of(spec)));
    if (!spec.format) continue;
    if (spec.part == ParamPart::codes) {
      const int64_t words = tensor->dim(tensor->rank() - 1);
      matrix = {.format = *spec.format, .rows = tensor->num_elements() / words, .cols = words * 32 / spec.format->bits};
    }
    matrix.parts[spec.part] = tensor;
    if (matrix.parts.size() == parts_of(matrix.format, matrix.rows, matrix.cols).size())
      require_finite(matrix, spec.source.tensors.front());
  }
  return out;
}

std::vector<fs::path> MlcWeights::paths() const {
  std::vector<fs::path> out = {index_};
  for (const Shard& shard : shards_) out.push_back(shard.file->path());
  return out;
}

void MlcWeights::verify() const {
  for (const Shard& s : shards_)
    if (!s.md5.empty() && md5_of(s.file->bytes()) != s.md5)
      fail({.what =
                text(s.file->path().string(), " is damaged: its md5 sum is not that of ", index_.filename().string()),
            .needs = "the shard as it was written",
            .hint = "convert or download the weights again"});
}

}  // namespace sator::llm
