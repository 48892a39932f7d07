#include "frontend/gguf.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <regex>

#include "base/error.h"

namespace sator {

namespace {

constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {30, "BF16", 1, 2},
    {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},
    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},
    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},
    {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210},
    {20, "IQ4_NL", 32, 18},
    {23, "IQ4_XS", 256, 136},
    {39, "MXFP4", 32, 17},
};

/// Types of the format that are not read, for errors.
struct OtherType {
  uint32_t id;
  const char* name;
};
constexpr OtherType kOthers[] = {{9, "Q8_1"},
                                 {15, "Q8_K"},
                                 {16, "IQ2_XXS"},
                                 {17, "IQ2_XS"},
                                 {18, "IQ3_XXS"},
                                 {19, "IQ1_S"},
                                 {21, "IQ3_S"},
                                 {22, "IQ2_S"},
                                 {24, "I8"},
                                 {25, "I16"},
                                 {26, "I32"},
                                 {27, "I64"},
                                 {28, "F64"},
                                 {29, "IQ1_M"},
                                 {34, "TQ1_0"},
                                 {35, "TQ2_0"},
                                 {40, "NVFP4"}};

enum class ValueType : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
constexpr int64_t kSmallestValue[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // bytes that one takes at least
constexpr int64_t kMaxTensors = 1 << 20, kMaxDims = 4, kMaxAlignment = 1 << 20;

/// Reads a file's bytes from front to back.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string source) : bytes_(bytes), source_(std::move(source)) {}

  template <class T>
  T number() {
    T v;
    std::memcpy(&v, take(sizeof v).data(), sizeof v);
    return v;
  }
  std::string_view words() {
    const auto size = number<uint64_t>();
    const auto at = take(size);
    return {reinterpret_cast<const char*>(at.data()), at.size()};
  }
  Json value(uint32_t type) {
    using enum ValueType;
    switch (ValueType{type}) {
      case u8: return number<uint8_t>();
      case i8: return number<int8_t>();
      case u16: return number<uint16_t>();
      case i16: return number<int16_t>();
      case u32: return number<uint32_t>();
      case i32: return number<int32_t>();
      case u64: return number<uint64_t>();
      case i64: return number<int64_t>();
      case f32: return number<float>();
      case f64: return number<double>();
      case boolean: return number<uint8_t>() != 0;
      case string: return std::string(words());
      case array: return elements();
      default: fail_here(text("has a value of type ", type), "types 0 to 12");
    }
  }
  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void fail_here(const std::string& problem, const std::string& needs) const {
    fail({.what = text(source_, " ", problem, ", before byte ", at_),
          .needs = needs,
          .hint = "the file may be cut off or damaged: compare its size with the original's"});
  }

 private:
  std::span<const std::byte> take(uint64_t size) {
    if (size > left()) fail_here(text("ends within something of ", size, " bytes"), "a whole GGUF file");
    const auto part = bytes_.subspan(at_, size);
    at_ += size;
    return part;
  }
  Json elements() {
    const auto type = number<uint32_t>();
    const auto count = number<uint64_t>();
    if (type >= std::size(kSmallestValue) || ValueType{type} == ValueType::array)
      fail_here(text("has an array of type ", type), "numbers or strings");
    if (count > left() / static_cast<uint64_t>(kSmallestValue[type]))
      fail_here(text("has an array of ", count, " elements"), "arrays within the file");
    Json out = Json::array();
    out.get_ref<Json::array_t&>().reserve(count);
    for (uint64_t i = 0; i < count; ++i) out.push_back(value(type));
    return out;
  }

  std::span<const std::byte> bytes_;
  std::string source_;
  size_t at_ = 0;
};

/// Where a tensor lies, before the data's begin is known.
struct Place {
  GgufTensor tensor;
  uint64_t offset = 0, size = 0;
};

Place read_tensor(Reader& r) {
  Place p;
  p.tensor.name = r.words();
  const std::string words = text("tensor ", string_literal(p.tensor.name));
  const auto dims = r.number<uint32_t>();
  if (dims < 1 || dims > kMaxDims) r.fail_here(text(words, " has ", dims, " dimensions"), text("1 to ", kMaxDims));
  uint64_t elements = 1;
  bool too_large = false;
  for (uint32_t d = 0; d < dims; ++d) {
    const auto extent = r.number<uint64_t>();
    if (extent == 0 || extent > INT64_MAX)
      r.fail_here(text(words, " has a dimension of ", extent), "at least one element");
    too_large |= __builtin_mul_overflow(elements, extent, &elements) || elements > INT64_MAX / 64;
    p.tensor.shape.insert(p.tensor.shape.begin(), static_cast<int64_t>(extent));
  }
  if (too_large) r.fail_here(text(words, " is [", join(p.tensor.shape, ", "), "]"), "a size that fits the file");
  const auto type = r.number<uint32_t>();
  p.tensor.type = gguf_type(type);
  if (!p.tensor.type) {
    std::string name = text("number ", type);
    for (const OtherType& other : kOthers)
      if (other.id == type) name = other.name;
    std::vector<std::string_view> known;
    for (const GgufType& t : kTypes) known.push_back(t.name);
    fail({.what = text(words, " is of type ", name, ", which is not supported"),
          .needs = join(known, ", "),
          .hint = "take a file of another quantization of the same model, such as Q4_K_M or Q8_0"});
  }
  const GgufType& t = *p.tensor.type;
  if (p.tensor.shape.back() % t.block_elements != 0)
    r.fail_here(text(words, " has rows of ", p.tensor.shape.back(), " elements"),
                text("whole blocks of ", t.block_elements, " for ", t.name));
  p.offset = r.number<uint64_t>();
  p.size = elements / static_cast<uint64_t>(t.block_elements) * static_cast<uint64_t>(t.block_bytes);
  return p;
}

/// The parts of "name-00002-of-00005.gguf", in order; of another name the file alone.
std::vector<fs::path> parts_of(const fs::path& file) {
  static const std::regex split("(.*)-([0-9]{5})-of-([0-9]{5})\\.gguf");
  std::smatch m;
  const std::string name = file.filename().string();
  if (!std::regex_match(name, m, split)) return {file};
  const int count = std::stoi(m[3]);
  std::vector<fs::path> out;
  for (int i = 1; i <= count; ++i) {
    std::string number = std::to_string(i);
    number.insert(0, 5 - number.size(), '0');
    out.push_back(file.parent_path() / text(m[1].str(), "-", number, "-of-", m[3].str(), ".gguf"));
  }
  return out;
}

}  // namespace

const GgufType* gguf_type(uint32_t id) {
  for (const GgufType& t : kTypes)
    if (t.id == id) return &t;
  return nullptr;
}

void GgufFile::add_part(const fs::path& path) {
  Ref<MappedFile> file = MappedFile::open(path);
  const std::string source = path.string();
  Reader r(file->bytes(), source);
  if (r.left() < 24 || r.number<uint32_t>() != 0x46554747)
    fail({.what = text(source, " is no GGUF file"),
          .needs = "a file that begins with the letters GGUF",
          .hint = "download the file again; a few bytes of text are often a Git LFS pointer"});
  const auto version = r.number<uint32_t>();
  if (version != 2 && version != 3)
    fail({.what = text(source, " is of GGUF version ", version),
          .needs = "version 2 or 3, little-endian",
          .hint = "convert the model again with a present version of llama.cpp's scripts"});
  const auto tensors = r.number<uint64_t>(), values = r.number<uint64_t>();
  if (tensors > kMaxTensors || values > r.left() / 13)
    r.fail_here(text("states ", tensors, " tensors and ", values, " values"), "numbers within the file");
  std::map<std::string, Json, std::less<>> metadata;
  for (uint64_t i = 0; i < values; ++i) {
    std::string key(r.words());
    const auto type = r.number<uint32_t>();
    if (!metadata.emplace(key, r.value(type)).second)
      r.fail_here(text("has ", string_literal(key), " twice"), "each key once");
  }
  std::vector<Place> places;
  for (uint64_t i = 0; i < tensors; ++i) places.push_back(read_tensor(r));
  uint64_t alignment = 32;
  if (auto at = metadata.find("general.alignment"); at != metadata.end()) {
    if (!at->second.is_number_unsigned() || at->second.get<uint64_t>() == 0 ||
        at->second.get<uint64_t>() > kMaxAlignment)
      r.fail_here("has another general.alignment than a number", text("1 to ", kMaxAlignment));
    alignment = at->second.get<uint64_t>();
  }
  const uint64_t begin = (r.at() + alignment - 1) / alignment * alignment, size = file->bytes().size();
  const uint64_t data = begin > size ? 0 : size - begin;
  std::ranges::stable_sort(places, {}, &Place::offset);
  uint64_t covered = 0;
  for (Place& p : places) {
    if (p.offset < covered || p.offset > data || p.size > data - p.offset)
      fail({.what = text(source,
                         ": tensor ",
                         string_literal(p.tensor.name),
                         " takes bytes ",
                         p.offset,
                         " to ",
                         p.offset + p.size,
                         " of ",
                         data,
                         " bytes of data"),
            .needs = "tensors within the file, one behind the other",
            .hint = "the file may be cut off: compare its size with the original's"});
    covered = p.offset + p.size;
    p.tensor.bytes = file->bytes().subspan(begin + p.offset, p.size);
    if (!by_name_.emplace(p.tensor.name, tensors_.size()).second)
      fail({.what = text(source, ": tensor ", string_literal(p.tensor.name), " is there twice"),
            .needs = "each tensor once",
            .hint = "remove parts of another version of the model"});
    tensors_.push_back(std::move(p.tensor));
  }
  if (files_.empty()) metadata_ = std::move(metadata);
  files_.push_back(std::move(file));
}

GgufFile GgufFile::open(const fs::path& file) {
  GgufFile out;
  out.path_ = file;
  const std::vector<fs::path> parts = parts_of(file);
  for (const fs::path& part : parts) {
    if (!fs::exists(part))
      fail({.what = text(part.string(), " is missing"),
            .needs = text("all ", parts.size(), " parts of the model in one folder")});
    out.add_part(part);
  }
  if (const Json* count = out.find_value("split.count");
      count && count->is_number_integer() && count->get<int64_t>() > 1 && count->get<size_t>() != parts.size())
    fail({.what = text(file.string(), " is one of ", count->get<int64_t>(), " parts, and its name does not say which"),
          .needs = "the name that it was published with: NAME-00001-of-00003.gguf"});
  return out;
}

const Json* GgufFile::find_value(std::string_view key) const {
  auto at = metadata_.find(key);
  return at == metadata_.end() ? nullptr : &at->second;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &tensors_[at->second];
}

}  // namespace sator
