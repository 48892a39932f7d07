#include "frontend/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace sator {

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;  // little-endian uint64 before the header
constexpr int64_t kMaxRank = 64;

/// The format's dtype names. A void dtype is one we know and do not read.
struct DTypeRow {
  std::string_view name;
  DType dtype;
  Float8 float8 = Float8::none;
};
const DTypeRow kDTypes[] = {
    {"F32", f32},
    {"F16", f16},
    {"BF16", bf16},
    {"F64", f64},
    {"I8", i8},
    {"I16", i16},
    {"I32", i32},
    {"I64", i64},
    {"U8", u8},
    {"U16", u16},
    {"U32", u32},
    {"U64", u64},
    {"BOOL", boolean},
    {"F8_E4M3", u8, Float8::e4m3},
    {"F8_E5M2", u8, Float8::e5m2},
    {"F8_E8M0", {}},
    {"F4", {}},
    {"F6_E2M3", {}},
    {"F6_E3M2", {}},
    {"C64", {}},
};

std::string supported_dtypes() {
  std::vector<std::string> names;
  for (const DTypeRow& row : kDTypes)
    if (!row.dtype.is_void()) names.emplace_back(row.name);
  return join(names, ", ");
}

const DTypeRow& read_stored_dtype(const JsonAt& at) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name != at.string()) continue;
    if (row.dtype.is_void())
      at.fail(text("is ", row.name, ", which is not supported yet"),
              text("one of ", supported_dtypes()),
              "convert the checkpoint to bfloat16 or float16 first");
    return row;
  }
  at.fail(text("is ", string_literal(at.string().substr(0, 40)), ", which is no safetensors dtype"),
          text("one of ", supported_dtypes()));
}

struct Entry {
  SafeTensor tensor;
  uint64_t begin, end;
};

Entry read_entry(const std::string& name, const JsonAt& at, uint64_t data_bytes) {
  const DTypeRow& row = read_stored_dtype(at.at("dtype"));
  Entry entry{{.name = name, .dtype = row.dtype, .float8 = row.float8}, 0, 0};
  // The product of the dims that are not zero must fit, so that no order of multiplying them overflows.
  uint64_t size_bytes = static_cast<uint64_t>(entry.tensor.dtype.bytes());
  bool empty = false, too_large = false;
  JsonAt shape = at.at("shape");
  shape.each([&](const JsonAt& dim) {
    int64_t extent = dim.integer(0);
    entry.tensor.shape.push_back(extent);
    empty |= extent == 0;
    too_large |= extent != 0 && __builtin_mul_overflow(size_bytes, static_cast<uint64_t>(extent), &size_bytes);
  });
  if (entry.tensor.shape.size() > static_cast<size_t>(kMaxRank))
    shape.fail(text("has ", entry.tensor.shape.size(), " dims"), text("at most ", kMaxRank, " dims"));
  if (too_large || size_bytes > static_cast<uint64_t>(INT64_MAX))
    shape.fail(text("is [", join(entry.tensor.shape, ", "), "], more bytes than 64 bits count"),
               "a size that fits the file");
  if (empty) size_bytes = 0;

  JsonAt offsets = at.at("data_offsets");
  std::vector<uint64_t> ends;
  offsets.each([&](const JsonAt& end) { ends.push_back(static_cast<uint64_t>(end.integer(0))); });
  if (ends.size() != 2) offsets.fail(text("has ", ends.size(), " elements"), "[begin, end]");
  entry.begin = ends[0], entry.end = ends[1];
  if (entry.begin > entry.end || entry.end > data_bytes)
    offsets.fail(text("is [",
                      entry.begin,
                      ", ",
                      entry.end,
                      "], outside the file's ",
                      grouped(static_cast<int64_t>(data_bytes)),
                      " bytes of data"),
                 "0 <= begin <= end <= bytes after the header",
                 "the file may be cut off: compare its size with the original");
  if (entry.end - entry.begin != size_bytes)
    at.fail(text("spans ",
                 entry.end - entry.begin,
                 " bytes, but ",
                 entry.tensor.dtype,
                 " [",
                 join(entry.tensor.shape, ", "),
                 "] takes ",
                 size_bytes),
            "end - begin = product of the shape * bytes of the dtype");
  at.each_member([&](const std::string& member, const JsonAt& value) {
    if (member != "dtype" && member != "shape" && member != "data_offsets")
      value.fail("is no member of the format", "dtype, shape and data_offsets");
  });
  return entry;
}

}  // namespace

int64_t SafeTensor::elements() const {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

void SafeTensors::add_file(const fs::path& path) {
  Ref<MappedFile> file = MappedFile::open(path);
  std::span<const std::byte> bytes = file->bytes();
  std::string source = path.string();
  if (bytes.size() < kLengthBytes)
    fail({.what = text(source, " has ", bytes.size(), " bytes, too few for a safetensors file"),
          .needs = "8 bytes of header length, the header, the data",
          .hint = "download the file again; a few bytes of text are often a Git LFS pointer"});
  uint64_t header_bytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;) header_bytes = header_bytes << 8 | static_cast<uint64_t>(bytes[i]);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - kLengthBytes)
    fail({.what = text(source, " states a header of ", header_bytes, " bytes in a file of ", bytes.size()),
          .needs = text("a header within the file and of at most ", kMaxHeaderBytes, " bytes"),
          .hint = "the file is cut off or no safetensors file (a Git LFS pointer, another format)"});
  std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, header_bytes);
  if (!header.starts_with('{'))
    fail({.what = text(source, ": the header does not begin with '{'"), .needs = "a JSON object as header"});
  std::span<const std::byte> data = bytes.subspan(kLengthBytes + header_bytes);

  Json tree = parse_json(header, source);
  std::vector<Entry> entries;
  JsonAt(tree, source).each_member([&](const std::string& name, const JsonAt& at) {
    if (name == "__metadata__")
      at.each_member([&](const std::string& key, const JsonAt& value) { metadata_[key] = value.string(); });
    else
      entries.push_back(read_entry(name, at, data.size()));
  });
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t covered = 0;
  for (Entry& entry : entries) {
    if (entry.begin != covered)
      fail({.what = text(source,
                         ": ",
                         string_literal(entry.tensor.name),
                         " begins at byte ",
                         entry.begin,
                         " of the data, but the tensor before it ends at ",
                         covered),
            .needs = "tensors that cover the data without overlap or holes"});
    covered = entry.end;
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    tensors_.push_back(std::move(entry.tensor));
  }
  if (covered != data.size())
    fail({.what = text(source, ": the tensors end at byte ", covered, " of ", data.size(), " bytes of data"),
          .needs = "tensors that cover the data without overlap or holes",
          .hint = "the header and the data belong to different files, or something was appended"});
  files_.push_back(std::move(file));
}

void SafeTensors::index_names() {
  for (size_t i = 0; i < tensors_.size(); ++i)
    if (!by_name_.try_emplace(tensors_[i].name, i).second)
      fail({.what = text("tensor ", string_literal(tensors_[i].name), " is in two shards"),
            .needs = "each tensor in one shard",
            .hint = "remove shards of another version of the model from the folder"});
}

SafeTensors SafeTensors::open(const fs::path& file) {
  SafeTensors result;
  result.add_file(file);
  result.index_names();
  return result;
}

/// A shard's file name made a path inside the folder; it may be a link to elsewhere, as in the hub's cache.
static fs::path shard_path(const fs::path& folder, const JsonAt& at) {
  const std::string& name = at.string();
  fs::path relative(name);
  bool leaves = name.empty() || name.find('\0') != std::string::npos || relative.is_absolute();
  for (const fs::path& part : relative) leaves |= part == "..";
  if (leaves)
    at.fail(text("is ", string_literal(name.substr(0, 100)), ", a path outside the model's folder"),
            "a file inside the folder");
  return folder / relative;
}

static constexpr const char *kSingleFile = "model.safetensors", *kIndexFile = "model.safetensors.index.json";

bool SafeTensors::are_in(const fs::path& folder) {
  return fs::exists(folder / kSingleFile) || fs::exists(folder / kIndexFile);
}

SafeTensors SafeTensors::open_folder(const fs::path& folder) {
  fs::path single = folder / kSingleFile, index = folder / kIndexFile;
  if (fs::exists(single)) return open(single);
  if (!fs::exists(index))
    fail({.what = text("there are no weights in ", folder.string()),
          .needs = "model.safetensors, or model.safetensors.index.json and its shards",
          .hint = fs::exists(folder / "pytorch_model.bin")
                      ? "pytorch_model.bin is not read: save the model with safe_serialization=True"
                      : "give the folder of a Hugging Face model"});
  std::string source = index.string();
  Json tree = parse_json(read_regular_file(index), source);
  JsonAt weight_map = JsonAt(tree, source).at("weight_map");

  SafeTensors result;
  std::map<fs::path, std::pair<size_t, size_t>> shards;  // file -> its range in result.tensors_
  std::vector<std::pair<std::string, fs::path>> listed;
  weight_map.each_member([&](const std::string& name, const JsonAt& at) {
    fs::path shard = shard_path(folder, at);
    listed.emplace_back(name, shard);
    shards.try_emplace(shard);
  });
  for (auto& [shard, range] : shards) {
    range.first = result.tensors_.size();
    result.add_file(shard);
    range.second = result.tensors_.size();
  }
  result.index_names();
  for (const auto& [name, shard] : listed) {
    auto found = result.by_name_.find(name);
    auto [begin, end] = shards.at(shard);
    if (found == result.by_name_.end() || found->second < begin || found->second >= end)
      fail({.what = text(source, ": tensor ", string_literal(name), " is not in ", shard.filename().string()),
            .needs = "each tensor in the shard that the index names",
            .hint = "download the shards again"});
  }
  return result;
}

std::string name_in_text_part(std::string_view name) {
  // The names that Transformers 4 wrote and 5 writes.
  constexpr std::pair<std::string_view, std::string_view> kText[] = {
      {"language_model.model.", "model."}, {"language_model.lm_head", "lm_head"}, {"model.language_model.", "model."}};
  for (const auto& [theirs, own] : kText)
    if (name.starts_with(theirs)) return text(own, name.substr(theirs.size()));
  return std::string(name);
}

SafeTensors SafeTensors::of_text_part() const {
  constexpr std::string_view kPictures[] = {
      "vision_tower.", "multi_modal_projector.", "model.vision_tower.", "model.multi_modal_projector."};
  auto starts = [](std::string_view name) {
    return [name](std::string_view start) { return name.starts_with(start); };
  };
  if (std::ranges::none_of(tensors_, [](const SafeTensor& t) {
        return t.name.starts_with("language_model.") || t.name.starts_with("model.language_model.");
      }))
    return *this;
  SafeTensors out;
  out.metadata_ = metadata_;
  out.files_ = files_;
  for (SafeTensor tensor : tensors_) {
    if (std::ranges::any_of(kPictures, starts(tensor.name))) continue;
    tensor.name = name_in_text_part(tensor.name);
    out.tensors_.push_back(std::move(tensor));
  }
  out.index_names();
  return out;
}

const SafeTensor* SafeTensors::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const SafeTensor& SafeTensors::get(std::string_view name) const {
  if (const SafeTensor* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const SafeTensor& tensor : tensors_) names.push_back(tensor.name);
  std::vector<std::string> near = nearest_names(name, names);
  std::string source = files_.empty() ? "the model" : files_[0]->path().string();
  fail({.what = text("there is no tensor ", string_literal(name), " in ", source, " (", names.size(), " tensors)"),
        .needs = "all weights of the model's architecture",
        .hint = near.empty() ? "" : text("nearest names: ", join(near, ", "))});
}

int64_t SafeTensors::size_bytes() const {
  int64_t sum = 0;
  for (const SafeTensor& tensor : tensors_) sum += static_cast<int64_t>(tensor.bytes.size());
  return sum;
}

void write_safetensors(const fs::path& file, std::span<const SafeTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Written by hand because the order of the members is that of the data.
  std::string header = "{";
  auto begin_member = [&](std::string_view name) {
    if (header.size() > 1) header += ',';
    header += Json(name).dump();
    header += ':';
  };
  if (!metadata.empty()) {
    begin_member("__metadata__");
    header += Json(metadata).dump();
  }
  std::set<std::string_view> names;
  size_t offset = 0;
  for (const SafeTensor& tensor : tensors) {
    const DTypeRow* row = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const DTypeRow& r) {
      return !r.dtype.is_void() && r.dtype == tensor.dtype && r.float8 == tensor.float8;
    });
    if (row == std::end(kDTypes))
      fail({.what =
                text("tensor ", string_literal(tensor.name), " has dtype ", tensor.dtype, ", which safetensors lacks"),
            .needs = text("one of ", supported_dtypes())});
    if (tensor.name == "__metadata__" || !names.insert(tensor.name).second)
      fail({.what = text("tensor name ", string_literal(tensor.name), " is given twice or reserved"),
            .needs = "distinct names"});
    if (static_cast<size_t>(tensor.elements() * tensor.dtype.bytes()) != tensor.bytes.size())
      fail({.what = text("tensor ",
                         string_literal(tensor.name),
                         " has ",
                         tensor.bytes.size(),
                         " bytes for ",
                         tensor.dtype,
                         " [",
                         join(tensor.shape, ", "),
                         "]"),
            .needs = "product of the shape * bytes of the dtype"});
    begin_member(tensor.name);
    header += text("{\"dtype\":\"",
                   row->name,
                   "\",\"shape\":[",
                   join(tensor.shape, ","),
                   "],\"data_offsets\":[",
                   offset,
                   ",",
                   offset + tensor.bytes.size(),
                   "]}");
    offset += tensor.bytes.size();
  }
  header += '}';
  while (header.size() % 8 != 0) header += ' ';

  std::string out;
  out.reserve(kLengthBytes + header.size() + offset);
  for (size_t i = 0; i < kLengthBytes; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  out += header;
  for (const SafeTensor& tensor : tensors)
    out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  write_file(file, out);
}

}  // namespace sator
