#include "runtime/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/staged_file.h"

namespace sator::runtime {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr std::string_view kZipMagic = "PK\x03\x04";
constexpr size_t kDataAlignment = 64;    // of the first element: what numpy.save writes since NumPy 1.16
constexpr size_t kMostHeader = 1 << 20;  // bytes; a thousand dimensions take fewer

/// What NumPy calls the dtypes that tensors have: the kind and the bytes of an element.
struct NpyDType {
  char kind;
  int64_t bytes;
  DType dtype;
};
constexpr NpyDType kDTypes[] = {{'b', 1, boolean},
                                {'i', 1, i8},
                                {'i', 2, i16},
                                {'i', 4, i32},
                                {'i', 8, i64},
                                {'u', 1, u8},
                                {'u', 2, u16},
                                {'u', 4, u32},
                                {'u', 8, u64},
                                {'f', 2, f16},
                                {'f', 4, f32},
                                {'f', 8, f64},
                                {'V', 2, bf16}};
constexpr const char* kReadable =
    "bool, an integer of 8 to 64 bits, float16, float32, float64, or bfloat16 of ml_dtypes";

/// The header's dictionary: a small part of Python, read from left to right.
///   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderReader {
 public:
  HeaderReader(std::string_view header, const fs::path& path) : rest_(header), path_(path) {}

  [[noreturn]] void refuse(std::string what, std::string hint = "write the array again with numpy.save") const {
    fail({.what = text(path_.string(), ": ", what),
          .needs = "the header of a .npy file: descr, fortran_order, shape",
          .hint = std::move(hint)});
  }

  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(text("the header lacks a ", c, " before ", string_literal(rest_.substr(0, 20))));
  }
  std::string_view string() {
    skip_spaces();
    const char quote = rest_.empty() ? '\0' : rest_[0];
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : rest_.npos;
    if (end == rest_.npos) refuse(text("the header lacks a text before ", string_literal(rest_.substr(0, 20))));
    std::string_view out = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return out;
  }
  bool boolean_word() {
    skip_spaces();
    for (bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return value;
    }
    refuse(text("the header lacks True or False before ", string_literal(rest_.substr(0, 20))));
  }
  int64_t extent() {
    skip_spaces();
    int64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0)
      refuse(text("the shape lacks an extent before ", string_literal(rest_.substr(0, 20))));
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    take('L');  // Python 2 wrote long integers so
    return value;
  }
  bool at_list() {
    skip_spaces();
    return !rest_.empty() && rest_[0] == '[';
  }
  bool is_at_end() {
    skip_spaces();
    return rest_.empty();
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
  const fs::path& path_;
};

struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  Dims shape;
};

NpyHeader read_header(std::string_view written, const fs::path& path) {
  HeaderReader in(written, path);
  NpyHeader out;
  bool has_descr = false, has_order = false, has_shape = false;
  in.expect('{');
  while (!in.take('}')) {
    const std::string_view key = in.string();
    in.expect(':');
    if (key == "descr") {
      if (in.at_list())
        in.refuse("its elements are records of several fields",
                  "write each field by itself: numpy.save(\"x.npy\", records[\"x\"])");
      out.descr = in.string();
      has_descr = true;
    } else if (key == "fortran_order") {
      out.fortran_order = in.boolean_word();
      has_order = true;
    } else if (key == "shape") {
      std::vector<int64_t> shape;
      in.expect('(');
      while (!in.take(')')) {
        shape.push_back(in.extent());
        if (!in.take(',')) {
          in.expect(')');
          break;
        }
      }
      out.shape = Dims(std::span<const int64_t>(shape));
      has_shape = true;
    } else {
      in.refuse(text("the header has the unknown key ", string_literal(key)));
    }
    if (!in.take(',')) {
      in.expect('}');
      break;
    }
  }
  if (!in.is_at_end()) in.refuse("the header goes on behind its }");
  if (!has_descr || !has_order || !has_shape)
    in.refuse(text("the header lacks ", !has_descr ? "descr" : !has_order ? "fortran_order" : "shape"));
  return out;
}

struct ElementForm {
  DType dtype;
  bool swapped = false;  // its bytes stand in the other order
};

ElementForm element_form(const std::string& descr, const fs::path& path) {
  std::string_view word = descr;
  const char order = word.empty() ? '\0' : word[0];
  if (order == '<' || order == '>' || order == '|' || order == '=') word.remove_prefix(1);
  const char kind = word.empty() ? '\0' : word[0];
  int64_t bytes = 0;
  const bool sized = word.size() > 1 && std::from_chars(word.data() + 1, word.data() + word.size(), bytes).ptr ==
                                            word.data() + word.size();
  for (const NpyDType& row : kDTypes)
    if (sized && row.kind == kind && row.bytes == bytes) return {row.dtype, order == '>' && bytes > 1};
  struct Known {
    char kind;
    const char *what, *hint;
  };
  static constexpr Known kOthers[] = {
      {'c', "complex numbers", "write their parts: numpy.save(\"re.npy\", x.real)"},
      {'O', "Python objects", "convert them first: x.astype(numpy.float32)"},
      {'U', "texts", "write numbers"},
      {'S', "texts", "write numbers"},
      {'M', "dates", "convert them first: x.astype(numpy.int64)"},
      {'m', "times", "convert them first: x.astype(numpy.int64)"},
      {'f', "floats of another size", "convert them first: x.astype(numpy.float64)"},
  };
  std::string what = "elements of an unknown dtype", hint = "convert them first: x.astype(numpy.float32)";
  for (const Known& k : kOthers)
    if (k.kind == kind) what = k.what, hint = k.hint;
  fail({.what = text(path.string(), " holds ", what, " (", string_literal(descr), ")"),
        .needs = kReadable,
        .hint = std::move(hint)});
}

/// Row-major from column-major, elements of T.
template <class T>
void reorder(const std::byte* from, T* to, const Dims& shape) {
  const auto rank = shape.size();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (size_t d = 1; d < rank; ++d) stride[d] = stride[d - 1] * shape[d - 1];
  const int64_t count = *count_elements(shape);
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i, from + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
    for (size_t d = rank; d-- > 0;) {
      at += stride[d];
      if (++index[d] < shape[d]) break;
      at -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
}

void copy_elements(const std::byte* from, Tensor& to, bool fortran_order) {
  if (!fortran_order || to.rank() < 2) {
    if (to.size_bytes() > 0) std::memcpy(to.data(), from, static_cast<size_t>(to.size_bytes()));
    return;
  }
  switch (to.dtype().bytes()) {
    case 1: return reorder(from, to.data_as<uint8_t>(), to.shape());
    case 2: return reorder(from, to.data_as<uint16_t>(), to.shape());
    case 4: return reorder(from, to.data_as<uint32_t>(), to.shape());
    default: return reorder(from, to.data_as<uint64_t>(), to.shape());
  }
}

void swap_bytes(Tensor& tensor) {
  char* bytes = tensor.data_as<char>();
  const int64_t size = tensor.dtype().bytes();
  for (int64_t i = 0; i < tensor.size_bytes(); i += size) std::reverse(bytes + i, bytes + i + size);
}

}  // namespace

Ref<Tensor> read_npy(const fs::path& path) {
  const Ref<MappedFile> file = MappedFile::open(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  auto refuse = [&](std::string what, std::string needs, std::string hint) {
    fail({.what = text(path.string(), " ", what), .needs = std::move(needs), .hint = std::move(hint)});
  };
  if (bytes.starts_with(kZipMagic))
    refuse("is an archive of arrays (.npz)",
           "one array: a .npy file",
           "write its arrays by themselves: numpy.save(\"x.npy\", numpy.load(FILE)[\"x\"])");
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < 10)
    refuse("is no .npy file", "what numpy.save writes", "numpy.save(\"x.npy\", x)");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3)
    refuse(text("is of version ", major, ".", static_cast<int>(bytes[7])), "version 1, 2 or 3", "write it again");
  const size_t begin = major == 1 ? 10 : 12;
  size_t header_bytes = 0;
  for (size_t i = begin; i-- > 8;)
    header_bytes = header_bytes << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0);
  const char* again = "copy or write the file again";
  if (header_bytes > kMostHeader) refuse(text("has a header of ", header_bytes, " bytes"), "a .npy file", again);
  if (bytes.size() < begin + header_bytes) refuse("is cut off in its header", "a whole file", again);
  const NpyHeader header = read_header(bytes.substr(begin, header_bytes), path);
  const ElementForm form = element_form(header.descr, path);
  const std::optional<int64_t> size = Tensor::bytes_of(header.shape, form.dtype);
  const size_t held = bytes.size() - begin - header_bytes;
  if (!size || static_cast<size_t>(*size) > held)
    refuse(text("is cut off: it holds ", held, " bytes of ", form.dtype, header.shape),
           size ? text(*size, " bytes") : "an array that fits into memory",
           again);
  if (static_cast<size_t>(*size) < held)
    refuse(text("has ", held - static_cast<size_t>(*size), " bytes behind its array of ", form.dtype, header.shape),
           "one array in a file",
           "numpy.save each array to a file of its own");
  Ref<Tensor> tensor = Tensor::empty(header.shape, form.dtype);
  copy_elements(file->bytes().data() + begin + header_bytes, *tensor, header.fortran_order);
  if (form.swapped) swap_bytes(*tensor);
  if (form.dtype.is_bool())
    for (int64_t i = 0; i < tensor->num_elements(); ++i) {
      uint8_t& v = tensor->data_as<uint8_t>()[i];
      v = v != 0;
    }
  return tensor;
}

void write_npy(const fs::path& path, const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const NpyDType* form = nullptr;
  for (const NpyDType& row : kDTypes) {
    const bool narrow =
        dtype.is_integer() && dtype.bits < 8 && row.bytes == 1 && row.kind == (dtype.is_int() ? 'i' : 'u');
    if (row.dtype == dtype || narrow) form = &row;
  }
  if (!form)
    fail({.what = text(path.string(), " cannot be written: NumPy has no dtype ", dtype),
          .needs = kReadable,
          .hint = "convert the result in the program"});
  std::string shape = "(";
  for (int64_t extent : tensor.shape()) shape += text(extent, ", ");
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  if (tensor.rank() == 1) shape.resize(shape.size() - 1);
  shape += ")";
  std::string header = text("{'descr': '",
                            form->bytes == 1 || form->kind == 'V' ? "|" : "<",
                            form->kind,
                            form->bytes,
                            "', 'fortran_order': False, 'shape': ",
                            shape,
                            ", }");
  const size_t without_padding = kNpyMagic.size() + 4 + header.size() + 1;
  header += std::string((kDataAlignment - without_padding % kDataAlignment) % kDataAlignment, ' ') + "\n";
  std::string head(kNpyMagic);
  head += '\x01';
  head += '\0';
  head += static_cast<char>(header.size() & 0xff);
  head += static_cast<char>(header.size() >> 8);
  StagedFile file(path);
  file.write(head + header);
  file.write({static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())});
  file.finish();
}

}  // namespace sator::runtime
