// The machine behind interp.h: a program is a tree of closures over slots.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/float16.h"
#include "base/float8.h"
#include "tir/interp.h"
#include "tir/interp_races.h"

namespace sator::tir::interp {

/// A piece of memory; `written` marks its bytes where that is tracked, `accesses` says who touched the elements that begin
/// there.
struct Memory {
  uint8_t* data = nullptr;
  int64_t size_bytes = 0;
  std::vector<uint8_t> owned, written;
  std::vector<Accesses> accesses;
};
struct Pointer {
  Memory* memory = nullptr;
  int64_t offset_bytes = 0;
};
union Slot {
  int64_t i;
  double f;
  Pointer p;
  Slot() : p() {}
};

/// A buffer while it is in scope.
struct BufferState {
  uint8_t* base = nullptr;   ///< of element [0, ...]
  uint8_t* begin = nullptr;  ///< of the memory
  uint8_t* end = nullptr;
  uint8_t* written = nullptr;    ///< marks of `begin`, or null
  Accesses* accesses = nullptr;  ///< of `begin`, or null
  std::vector<int64_t> shape, strides;
};

struct BlockCounter {
  std::string name;
  BlockCount count;
};

struct Machine {
  std::vector<Slot> slots;
  std::vector<std::vector<Slot>> vectors;  ///< values of vector variables
  std::vector<BufferState> buffers;
  std::vector<Memory> allocations;
  std::vector<BlockCounter> counters;
  const RunOptions* options = nullptr;
  Strands* strands = nullptr;  ///< where races are looked for
  size_t block = 0;            ///< the counter of the block that runs
  int64_t iterations_left = 0;
  const std::string* function = nullptr;
  /// Sums of 16 rows and columns in a CPU's matrix tiles; empty: none were made.
  std::array<std::vector<int32_t>, 4> tiles;
  /// Under a branch whose condition is a vector: the lanes that run; null: all.
  const std::vector<bool>* mask = nullptr;

  /// Whether lane `lane` of `lanes` runs. Where there are fewer lanes than in the mask, or more, those of the narrower one
  /// belong to loops further out, and stand for several of the others in a row: one runs where one of these does.
  bool runs(int lane, int lanes) const {
    if (!mask) return true;
    const auto width = static_cast<size_t>(lanes);
    if (width >= mask->size())
      return (*mask)[std::min(static_cast<size_t>(lane) / (width / mask->size()), mask->size() - 1)];
    const auto each = static_cast<std::ptrdiff_t>(mask->size() / width);
    const auto first = mask->begin() + each * lane;
    return std::find(first, first + each, true) != first + each;
  }
  [[noreturn]] void fail(Reason reason) const;
  void step() {
    if (--iterations_left < 0) out_of_steps();
  }
  [[noreturn]] void out_of_steps() const;
};

// Values: `lane` selects the element of a vector.
struct IntCode {
  virtual ~IntCode() = default;
  virtual int64_t eval(Machine& m, int lane) const = 0;
};
struct FloatCode {
  virtual ~FloatCode() = default;
  virtual double eval(Machine& m, int lane) const = 0;
};
struct PointerCode {
  virtual ~PointerCode() = default;
  virtual Pointer eval(Machine& m, int lane) const = 0;
};
struct Code {
  virtual ~Code() = default;
  virtual void run(Machine& m) const = 0;
};
using Int = std::unique_ptr<IntCode>;
using Float = std::unique_ptr<FloatCode>;
using Ptr = std::unique_ptr<PointerCode>;
using Exec = std::unique_ptr<Code>;

template <class Fn>
struct IntClosure final : IntCode {
  explicit IntClosure(Fn f) : fn(std::move(f)) {}
  int64_t eval(Machine& m, int lane) const override { return fn(m, lane); }
  Fn fn;
};
template <class Fn>
struct FloatClosure final : FloatCode {
  explicit FloatClosure(Fn f) : fn(std::move(f)) {}
  double eval(Machine& m, int lane) const override { return fn(m, lane); }
  Fn fn;
};
template <class Fn>
struct PointerClosure final : PointerCode {
  explicit PointerClosure(Fn f) : fn(std::move(f)) {}
  Pointer eval(Machine& m, int lane) const override { return fn(m, lane); }
  Fn fn;
};
template <class Fn>
struct ExecClosure final : Code {
  explicit ExecClosure(Fn f) : fn(std::move(f)) {}
  void run(Machine& m) const override { fn(m); }
  Fn fn;
};
template <class Fn>
Int int_code(Fn f) {
  return std::make_unique<IntClosure<Fn>>(std::move(f));
}
template <class Fn>
Float float_code(Fn f) {
  return std::make_unique<FloatClosure<Fn>>(std::move(f));
}
template <class Fn>
Ptr pointer_code(Fn f) {
  return std::make_unique<PointerClosure<Fn>>(std::move(f));
}
template <class Fn>
Exec exec_code(Fn f) {
  return std::make_unique<ExecClosure<Fn>>(std::move(f));
}

/// An expression made ready: one of the three, by its dtype.
struct Value {
  DType dtype;
  Int i;
  Float f;
  Ptr p;
};

/// The bits of an integer without its sign.
inline uint64_t u(int64_t v) { return static_cast<uint64_t>(v); }

/// Keeps the low bits of a dtype, as machine arithmetic does.
struct Wrap {
  int shift;
  bool is_signed;
  explicit Wrap(DType d) : shift(d.is_bool() ? 63 : 64 - d.bits), is_signed(d.is_int()) {}
  int64_t operator()(uint64_t v) const {
    return is_signed ? static_cast<int64_t>(v << shift) >> shift : static_cast<int64_t>((v << shift) >> shift);
  }
};

/// Rounds to a floating dtype.
struct Round {
  enum class To : uint8_t { f64, f32, f16, bf16, e4m3, e5m2 } to;
  explicit Round(DType d)
      : to(d.is_bfloat()                 ? To::bf16
           : d.code == DType::Code::e4m3 ? To::e4m3
           : d.code == DType::Code::e5m2 ? To::e5m2
           : d.bits == 64                ? To::f64
           : d.bits == 32                ? To::f32
                                         : To::f16) {}
  double operator()(double v) const {
    switch (to) {
      case To::f32: return static_cast<float>(v);
      case To::f64: return v;
      case To::f16: return to_f16(v);
      case To::e4m3: return to_f8(v, DType::Code::e4m3);
      case To::e5m2: return to_f8(v, DType::Code::e5m2);
      default: return to_bf16(v);
    }
  }
  static double to_f16(double v);
  static double to_bf16(double v);
  static double to_f8(double v, DType::Code format);
};

/// An access: where an element of a buffer lies.
struct Address {
  struct Dim {
    int slot = -1;  ///< of a plain variable, else `code`
    Int code;
  };
  int buffer = 0;
  std::vector<Dim> dims;
  Exec redeclare;  ///< for buffers that no statement declares: run before each access
  int64_t element_bytes = 1;
  std::string name;

  uint8_t* at(Machine& m, int lane) const {
    if (redeclare) redeclare->run(m);
    const BufferState& b = m.buffers[static_cast<size_t>(buffer)];
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t i = dims[d].slot >= 0 ? m.slots[static_cast<size_t>(dims[d].slot)].i : dims[d].code->eval(m, lane);
      if (static_cast<uint64_t>(i) >= static_cast<uint64_t>(b.shape[d])) out_of_bounds(m, d, i);
      offset += i * b.strides[d];
    }
    uint8_t* p = b.base + offset * element_bytes;
    if (p < b.begin || p + element_bytes > b.end) out_of_memory(m);
    return p;
  }
  /// Before the element at `p` is read.
  void check_read(Machine& m, const uint8_t* p) const {
    const BufferState& b = m.buffers[static_cast<size_t>(buffer)];
    if (b.written && !b.written[p - b.begin]) unwritten(m);
    if (b.accesses && !m.strands->read(b.accesses[p - b.begin])) race(m);
  }
  /// Lets `put` write the element at `p`.
  template <class Put>
  void write(Machine& m, uint8_t* p, Put put) const {
    const BufferState& b = m.buffers[static_cast<size_t>(buffer)];
    if (b.accesses) {
      std::vector<uint8_t> before(p, p + element_bytes);
      put();
      const bool changes = std::memcmp(before.data(), p, before.size()) != 0;
      if (!m.strands->write(b.accesses[p - b.begin], changes)) race(m);
    } else {
      put();
    }
    if (b.written) std::fill_n(b.written + (p - b.begin), element_bytes, uint8_t{1});
  }
  [[noreturn]] void out_of_bounds(Machine& m, size_t dim, int64_t index) const;
  [[noreturn]] void out_of_memory(Machine& m) const;
  [[noreturn]] void unwritten(Machine& m) const;
  [[noreturn]] void race(Machine& m) const;
};

/// Turns a function into closures.
class Compiler {
 public:
  explicit Compiler(const PrimFunc& func) : func_(func) {}

  Value value(const Expr& e);
  Int integer(const Expr& e) { return std::move(value(e).i); }
  Exec stmt(const Stmt& s);
  /// Computes a buffer's place and shape from what is in scope.
  Exec declare(const Buffer& b);
  /// The same for a buffer that stays in scope: its accesses need not declare it again.
  Exec declare_once(const Buffer& b) {
    declared_.emplace(&b, true);
    return declare(b);
  }
  int slot(const Var& v);
  int buffer(const Buffer& b);
  Address address(const Buffer& b, const std::vector<Expr>& indices);
  size_t counter(const std::string& block);

  int slots = 0, vectors = 0, buffers = 0, allocations = 0;
  std::vector<std::string> counters{""};

 private:
  Value load(const BufferLoad& n);
  Value let(const Let& n);
  Value cast(const Cast& n);
  Value call(const Call& n);
  Value math(const Call& n);
  Value extern_call(const Call& n);
  Value fragment_call(const Call& n);
  Value tile_call(const Call& n);
  Value variable(const Var& v);
  Value shuffle(const Shuffle& n);
  Exec assign(const Var& v, Value value);

  Exec store(const BufferStore& n);
  Exec block(const Block& b, const BlockRealize* realize);
  Exec match_buffer(const MatchBuffer& m);
  Exec allocate(const VarRef& data, DType dtype, const std::vector<Expr>& extents, int allocation);
  Exec evaluate(const Expr& e);
  [[noreturn]] void unsupported(std::string what) const;

  const PrimFunc& func_;
  std::unordered_map<const Var*, int> slots_, vectors_;
  std::unordered_map<const Buffer*, int> buffers_;
  std::unordered_map<const Buffer*, bool> declared_;
};

/// The function of a mathematical builtin ("tir.exp"), or null.
double (*math_function(std::string_view op))(double);

/// One element of a dtype, read and written as an integer or a real.
int64_t read_int(const uint8_t* p, DType dtype);
double read_float(const uint8_t* p, DType dtype);
void write_int(uint8_t* p, int64_t v, DType dtype);
void write_float(uint8_t* p, double v, DType dtype);

/// Ends a function early: T.ret, with its value.
struct Returned {
  std::optional<Scalar> value = {};
};

}  // namespace sator::tir::interp
