// The binary form of an executable, little-endian throughout:
//
//   magic[8] "SATORBC1" | u32 version | u64 hash of the payload | payload
//   payload = functions, constants, instructions, arguments, each a u32 count and its items
//   string  = u32 length, bytes;  dtype = its name as a string
//
// Damage is found by the hash; bytes made to pass it still meet bounds checks and `why_invalid`.
#include <bit>
#include <cstring>

#include "base/file.h"
#include "runtime/bytecode.h"

namespace sator::runtime {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "SATORBC1";
constexpr uint32_t kVersion = 1;

enum class ConstantKind : uint8_t { null, integer, floating, dtype, string, shape, tensor };

class Writer {
 public:
  template <class T>
  void number(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view s) {
    count(s.size());
    out += s;
  }
  void count(size_t n) { number(static_cast<uint32_t>(n)); }
  void dtype(DType d) { string(d.name()); }
  void dims(const Dims& d) {
    count(d.size());
    for (int64_t extent : d) number(extent);
  }
  std::string out;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  /// A count of items that take at least `item_bytes` each: no more than the rest of the file could hold.
  size_t count(size_t item_bytes) {
    size_t n = number<uint32_t>();
    if (n > (bytes_.size() - at_) / item_bytes)
      refuse(text("it promises ", n, " items"), "no more items than the file has room for");
    return n;
  }
  std::string string() {
    auto chars = take(count(1));
    return std::string(reinterpret_cast<const char*>(chars.data()), chars.size());
  }
  DType dtype() {
    std::string name = string();
    std::optional<DType> dtype = DType::parse(name);
    if (!dtype) refuse(text("dtype ", string_literal(name)), "the name of a dtype");
    return *dtype;
  }
  template <class E>
  E choice(E last) {
    auto value = number<uint8_t>();
    if (value > static_cast<uint8_t>(last))
      refuse(text("tag ", value), text("a tag from 0 to ", static_cast<int>(last)));
    return static_cast<E>(value);
  }
  bool boolean() { return choice(uint8_t{1}) != 0; }
  Dims dims() {
    Dims d;
    d.resize(count(sizeof(int64_t)));
    for (size_t i = 0; i < d.size(); ++i) d[i] = number<int64_t>();
    return d;
  }
  std::span<const std::byte> take(size_t n) {
    if (n > bytes_.size() - at_) refuse(text("it ends after ", bytes_.size(), " bytes"), text(n, " more bytes here"));
    auto taken = bytes_.subspan(at_, n);
    at_ += n;
    return taken;
  }
  size_t left() const { return bytes_.size() - at_; }
  [[noreturn]] void refuse(std::string what, std::string needs) const {
    fail({.what = "bytecode cannot be read: " + std::move(what),
          .needs = std::move(needs),
          .hint = "compile the model again",
          .where = text("byte ", at_)});
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

void write(Writer& w, const FunctionInfo& f) {
  w.number(f.kind);
  w.string(f.name);
  if (f.kind == FunctionKind::vm) {
    w.count(f.vm.params.size());
    for (const std::string& param : f.vm.params) w.string(param);
    w.number(f.vm.num_registers);
    w.number(f.vm.begin);
    w.number(f.vm.end);
  }
  if (f.kind == FunctionKind::kernel) {
    w.count(f.kernel.params.size());
    for (const KernelParam& p : f.kernel.params) {
      w.string(p.name);
      w.dtype(p.dtype);
      w.number(static_cast<uint8_t>(p.is_tensor));
      w.number(p.value);
      w.count(p.dims.size());
      for (const KernelDim& d : p.dims) {
        w.number(d.kind);
        w.number(d.value);
      }
    }
    w.count(f.kernel.values.size());
    for (const KernelValue& v : f.kernel.values) {
      w.string(v.name);
      w.number(v.param);
      w.number(v.dim);
    }
  }
}

FunctionInfo read_function(Reader& r) {
  FunctionInfo f;
  f.kind = r.choice(FunctionKind::kernel);
  f.name = r.string();
  if (f.kind == FunctionKind::vm) {
    f.vm.params.resize(r.count(4));
    for (std::string& param : f.vm.params) param = r.string();
    f.vm.num_registers = r.number<int32_t>();
    f.vm.begin = r.number<int32_t>();
    f.vm.end = r.number<int32_t>();
  }
  if (f.kind == FunctionKind::kernel) {
    f.kernel.params.resize(r.count(17));
    for (KernelParam& p : f.kernel.params) {
      p.name = r.string();
      p.dtype = r.dtype();
      p.is_tensor = r.boolean();
      p.value = r.number<int32_t>();
      p.dims.resize(r.count(9));
      for (KernelDim& d : p.dims) {
        d.kind = r.choice(KernelDim::Kind::any);
        d.value = r.number<int64_t>();
      }
    }
    f.kernel.values.resize(r.count(12));
    for (KernelValue& v : f.kernel.values) {
      v.name = r.string();
      v.param = r.number<int32_t>();
      v.dim = r.number<int32_t>();
    }
  }
  return f;
}

void write(Writer& w, const Value& constant) {
  if (const int64_t* v = constant.as_int()) {
    w.number(ConstantKind::integer);
    w.number(*v);
  } else if (const double* v = constant.as_float()) {
    w.number(ConstantKind::floating);
    w.number(*v);
  } else if (const DType* v = constant.as_dtype()) {
    w.number(ConstantKind::dtype);
    w.dtype(*v);
  } else if (const std::string* v = constant.as_string()) {
    w.number(ConstantKind::string);
    w.string(*v);
  } else if (const Shape* v = constant.as<Shape>()) {
    w.number(ConstantKind::shape);
    w.dims(v->dims);
  } else if (const Tensor* v = constant.as<Tensor>()) {
    w.number(ConstantKind::tensor);
    w.dtype(v->dtype());
    w.dims(v->shape());
    w.number(v->size_bytes());
    w.out.append(static_cast<const char*>(v->data()), static_cast<size_t>(v->size_bytes()));
  } else if (constant.is_null()) {
    w.number(ConstantKind::null);
  } else {
    internal_error(text("Executable::save: ", constant.describe(), " cannot be a constant"));
  }
}

Value read_tensor(Reader& r) {
  DType dtype = r.dtype();
  Dims shape = r.dims();
  auto size_bytes = r.number<int64_t>();
  std::optional<int64_t> expected = Tensor::bytes_of(shape, dtype);
  if (dtype.is_void() || expected != size_bytes || static_cast<uint64_t>(size_bytes) > r.left())
    r.refuse(text("a ", dtype, shape, " constant of ", size_bytes, " bytes"), "the bytes of its shape and dtype");
  Ref<Tensor> tensor = Tensor::empty(shape, dtype);
  auto bytes = r.take(static_cast<size_t>(size_bytes));
  if (size_bytes > 0) std::memcpy(tensor->data(), bytes.data(), bytes.size());
  return tensor;
}

Value read_constant(Reader& r) {
  switch (r.choice(ConstantKind::tensor)) {
    case ConstantKind::null: return {};
    case ConstantKind::integer: return r.number<int64_t>();
    case ConstantKind::floating: return r.number<double>();
    case ConstantKind::dtype: return r.dtype();
    case ConstantKind::string: return r.string();
    case ConstantKind::shape: return Shape::of(r.dims());
    case ConstantKind::tensor: return read_tensor(r);
  }
  internal_error("read_constant: unknown kind");
}

void write(Writer& w, const Instruction& i) {
  w.number(i.op);
  w.number(i.reg);
  w.number(i.function);
  w.number(i.first_arg);
  w.number(i.num_args);
  w.number(i.offset);
  w.number(i.annotation);
}

Instruction read_instruction(Reader& r) {
  Instruction i;
  i.op = r.choice(Opcode::if_);
  i.reg = r.number<int32_t>();
  i.function = r.number<int32_t>();
  i.first_arg = r.number<uint32_t>();
  i.num_args = r.number<uint32_t>();
  i.offset = r.number<int32_t>();
  i.annotation = r.number<int32_t>();
  return i;
}

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string Executable::save() const {
  Writer payload;
  payload.count(functions.size());
  for (const FunctionInfo& f : functions) write(payload, f);
  payload.count(constants.size());
  for (const Value& c : constants) write(payload, c);
  payload.count(code.size());
  for (const Instruction& i : code) write(payload, i);
  payload.count(args.size());
  for (const Arg& a : args) {
    payload.number(a.kind);
    payload.number(a.value);
  }
  Writer file;
  file.out += kMagic;
  file.number(kVersion);
  file.number(hash_bytes(payload.out));
  return file.out + payload.out;
}

Ref<Executable> Executable::load(std::span<const std::byte> bytes) {
  Reader r(bytes);
  if (bytes.size() < kMagic.size() || chars(r.take(kMagic.size())) != kMagic)
    r.refuse("this is no bytecode", text("a file that begins with ", kMagic));
  if (auto version = r.number<uint32_t>(); version != kVersion)
    r.refuse(text("it has version ", version), text("version ", kVersion));
  auto hash = r.number<uint64_t>();
  if (hash != hash_bytes(chars(bytes.last(r.left()))))
    r.refuse("it is damaged or cut short", "the bytes that were written");
  Ref<Executable> e(new Executable());
  e->functions.resize(r.count(5));
  for (FunctionInfo& f : e->functions) f = read_function(r);
  e->constants.resize(r.count(1));
  for (Value& c : e->constants) c = read_constant(r);
  e->code.resize(r.count(25));
  for (Instruction& i : e->code) i = read_instruction(r);
  e->args.resize(r.count(9));
  for (Arg& a : e->args) {
    a.kind = r.choice(ArgKind::function);
    a.value = r.number<int64_t>();
  }
  if (r.left() != 0) r.refuse(text(r.left(), " bytes follow the end"), "nothing after the last argument");
  if (std::optional<Reason> reason = why_invalid(*e)) {
    reason->what = "bytecode cannot be run: " + reason->what;
    reason->hint = "compile the model again";
    fail(std::move(*reason));
  }
  return e;
}

}  // namespace sator::runtime
