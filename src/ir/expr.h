// Index and scalar expressions: what both IRs compute with. The semantics are those of TensorIR (PrimExpr).
#pragma once

#include "ir/node.h"
#include "ir/visit.h"

namespace sator {

struct ExprNode : NodeBase {
  DType dtype;
};
using Expr = Ref<const ExprNode>;

/// Values of attribute dictionaries and annotations: scalars are IntImm, FloatImm, StringImm (bool: IntImm of dtype
/// bool), lists Array, dictionaries Dict; any other node may stand for itself.
using Attrs = std::map<std::string, NodeRef>;

/// A variable. A pointer has dtype handle, the dtype of what it points to (void: anything) and its storage scope; a
/// handle without a scope is opaque.
struct Var final : Node<Var, ExprNode> {
  static constexpr bool kHasIdentity = true;
  std::string name;
  DType pointee;         ///< void unless a typed pointer
  std::string scope;     ///< storage scope of a pointer: "global", "shared", "local", ...
  bool is_size = false;  ///< a size variable: never negative (the symbolic shapes)
  static constexpr auto fields() {
    return std::tuple{unseen("name", &Var::name),
                      field("dtype", &Var::dtype),
                      field("pointee", &Var::pointee),
                      field("scope", &Var::scope),
                      unseen("is_size", &Var::is_size)};
  }
};
using VarRef = Ref<const Var>;

struct IntImm final : Node<IntImm, ExprNode> {
  int64_t value = 0;
  static constexpr auto fields() { return std::tuple{field("dtype", &IntImm::dtype), field("value", &IntImm::value)}; }
};
/// A real constant: the value of dtype nearest to `value`, which is kept as it was written.
struct FloatImm final : Node<FloatImm, ExprNode> {
  double value = 0;
  static constexpr auto fields() {
    return std::tuple{field("dtype", &FloatImm::dtype), field("value", &FloatImm::value)};
  }
};
struct StringImm final : Node<StringImm, ExprNode> {
  std::string value;
  static constexpr auto fields() { return std::tuple{field("value", &StringImm::value)}; }
  void finish() { dtype = DType::Handle(); }
};

/// Two operands of one dtype, which is the result's.
template <class T>
struct BinaryNode : Node<T, ExprNode> {
  Expr a, b;
  static constexpr auto fields() { return std::tuple{field("a", &T::a), field("b", &T::b)}; }
  void finish() { this->dtype = a->dtype; }
};
struct Add final : BinaryNode<Add> {};
struct Sub final : BinaryNode<Sub> {};
struct Mul final : BinaryNode<Mul> {};
/// Division: of floats exact, of integers truncated toward zero (C).
struct Div final : BinaryNode<Div> {};
/// The remainder of truncated division: the sign is a's (C).
struct Mod final : BinaryNode<Mod> {};
/// The quotient rounded down: floordiv(-7, 2) is -4, floordiv(7, -2) is -4. A constant zero divisor does not verify.
struct FloorDiv final : BinaryNode<FloorDiv> {};
/// The remainder of floordiv: the sign is b's.
struct FloorMod final : BinaryNode<FloorMod> {};
struct Min final : BinaryNode<Min> {};
struct Max final : BinaryNode<Max> {};

/// Two operands of one dtype; the result is bool with their lanes.
template <class T>
struct CompareNode : Node<T, ExprNode> {
  Expr a, b;
  static constexpr auto fields() { return std::tuple{field("a", &T::a), field("b", &T::b)}; }
  void finish() { this->dtype = DType::Bool(a->dtype.all_lanes()); }
};
struct EQ final : CompareNode<EQ> {};
struct NE final : CompareNode<NE> {};
struct LT final : CompareNode<LT> {};
struct LE final : CompareNode<LE> {};
struct GT final : CompareNode<GT> {};
struct GE final : CompareNode<GE> {};
/// And, Or: both operands are bool; the second is evaluated only when it decides.
struct And final : CompareNode<And> {};
struct Or final : CompareNode<Or> {};
struct Not final : Node<Not, ExprNode> {
  Expr a;
  static constexpr auto fields() { return std::tuple{field("a", &Not::a)}; }
  void finish() { dtype = DType::Bool(a->dtype.all_lanes()); }
};

/// Both values are evaluated (unlike the call tir.if_then_else), then one is taken.
struct Select final : Node<Select, ExprNode> {
  Expr condition, true_value, false_value;
  static constexpr auto fields() {
    return std::tuple{field("condition", &Select::condition),
                      field("true_value", &Select::true_value),
                      field("false_value", &Select::false_value)};
  }
  void finish() { dtype = true_value->dtype; }
};

struct Cast final : Node<Cast, ExprNode> {
  Expr value;
  static constexpr auto fields() { return std::tuple{field("dtype", &Cast::dtype), field("value", &Cast::value)}; }
};

/// A multi-dimensional array in memory. `data` is the pointer; strides empty means row-major and compact. One that no
/// statement declares is another name for the memory behind its pointer: such buffers are equal if their fields are.
struct Buffer final : Node<Buffer> {
  static constexpr bool kHasIdentity = true;
  static constexpr bool kFreeByValue = true;
  VarRef data;
  DType dtype;
  std::vector<Expr> shape;
  std::vector<Expr> strides;
  Expr elem_offset;  ///< null means 0
  std::string name;
  int data_alignment = 64;  ///< bytes; 64 unless told
  int offset_factor = 1;    ///< elem_offset is a multiple of it
  std::vector<int> axis_separators;
  static constexpr auto fields() {
    return std::tuple{definition("data", &Buffer::data),
                      field("dtype", &Buffer::dtype),
                      field("shape", &Buffer::shape),
                      field("strides", &Buffer::strides),
                      field("elem_offset", &Buffer::elem_offset),
                      unseen("name", &Buffer::name),
                      field("data_alignment", &Buffer::data_alignment),
                      unseen("offset_factor", &Buffer::offset_factor),
                      field("axis_separators", &Buffer::axis_separators)};
  }
  const std::string& scope() const { return data->scope; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
};
using BufferRef = Ref<const Buffer>;

/// A buffer with a fresh data pointer. `shape` in elements.
BufferRef make_buffer(std::string name, std::vector<Expr> shape, DType dtype, std::string scope = "global");

struct BufferLoad final : Node<BufferLoad, ExprNode> {
  BufferRef buffer;
  std::vector<Expr> indices;
  static constexpr auto fields() {
    return std::tuple{field("buffer", &BufferLoad::buffer), field("indices", &BufferLoad::indices)};
  }
  /// The last index may be a vector: then the load is as wide.
  void finish() {
    dtype = buffer->dtype;
    if (!indices.empty() && indices.back()->dtype.lanes > 1)
      dtype = dtype.with_lanes(dtype.all_lanes() * indices.back()->dtype.all_lanes());
  }
};

/// A call of a builtin ("tir.exp", "tir.call_extern", ...; the table is ir/builtins.cc) or of a function of the module
/// (op is "global:" and its name). Its dtype cannot be told from the arguments alone.
struct Call final : Node<Call, ExprNode> {
  std::string op;
  std::vector<Expr> args;
  static constexpr auto fields() {
    return std::tuple{field("dtype", &Call::dtype), field("op", &Call::op), field("args", &Call::args)};
  }
};

struct Let final : Node<Let, ExprNode> {
  VarRef var;
  Expr value, body;
  static constexpr auto fields() {
    return std::tuple{field("value", &Let::value), definition("var", &Let::var), field("body", &Let::body)};
  }
  void finish() { dtype = body->dtype; }
};

/// base, base + stride, ...: as many values as `lanes` says.
struct Ramp final : Node<Ramp, ExprNode> {
  Expr base, stride;
  Lanes lanes;
  static constexpr auto fields() {
    return std::tuple{field("base", &Ramp::base), field("stride", &Ramp::stride), field("lanes", &Ramp::lanes)};
  }
  void finish() { dtype = base->dtype.with_lanes(base->dtype.all_lanes() * lanes); }
};
struct Broadcast final : Node<Broadcast, ExprNode> {
  Expr value;
  Lanes lanes;
  static constexpr auto fields() {
    return std::tuple{field("value", &Broadcast::value), field("lanes", &Broadcast::lanes)};
  }
  void finish() { dtype = value->dtype.with_lanes(value->dtype.all_lanes() * lanes); }
};
/// Lanes picked by constant indices from the vectors laid end to end.
struct Shuffle final : Node<Shuffle, ExprNode> {
  std::vector<Expr> vectors, indices;
  static constexpr auto fields() {
    return std::tuple{field("vectors", &Shuffle::vectors), field("indices", &Shuffle::indices)};
  }
  void finish() { dtype = vectors.front()->dtype.with_lanes(static_cast<int>(indices.size())); }
};

/// min, min + 1, ... : `extent` values.
struct Range final : Node<Range> {
  Expr min, extent;
  static constexpr auto fields() { return std::tuple{field("min", &Range::min), field("extent", &Range::extent)}; }
};
using RangeRef = Ref<const Range>;

/// A list as an attribute value.
struct Array final : Node<Array> {
  std::vector<NodeRef> items;
  static constexpr auto fields() { return std::tuple{field("items", &Array::items)}; }
};
/// A dictionary as an attribute value.
struct Dict final : Node<Dict> {
  Attrs items;
  static constexpr auto fields() { return std::tuple{field("items", &Dict::items)}; }
};

template <>
struct KindsOf<ExprNode> {
  using type = Kinds<Var, IntImm, FloatImm, StringImm, Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, EQ, NE,
                     LT, LE, GT, GE, And, Or, Not, Select, Cast, BufferLoad, Call, Let, Ramp, Broadcast, Shuffle>;
};

// Constants and variables.
Expr int_imm(int64_t value, DType dtype = i32);
Expr float_imm(double value, DType dtype = f32);
inline Expr bool_imm(bool value) { return int_imm(value, boolean); }
/// `value` in any numeric dtype (broadcast to its lanes).
Expr constant(double value, DType dtype);
inline Expr string_imm(std::string value) { return make<StringImm>(std::move(value)); }
VarRef make_var(std::string name, DType dtype = i32);
/// A symbolic size.
VarRef make_size_var(std::string name, DType dtype = i64);
/// A pointer variable.
VarRef make_pointer(std::string name, DType pointee, std::string scope = "global");

/// The value of an integer constant, if it is one.
std::optional<int64_t> as_int(const Expr& e);
bool is_int(const Expr& e, int64_t value);
inline bool is_zero(const Expr& e) { return is_int(e, 0); }
inline bool is_one(const Expr& e) { return is_int(e, 1); }

/// Brings both operands to one dtype as TVM does: lanes are broadcast, an integer meets a float as that float, a narrow
/// operand becomes as wide as the other. Errors: handles, different numbers of lanes; `what` names the operation.
void match_dtypes(Expr& a, Expr& b, const char* what);

// Arithmetic as the parser and the passes write it: operands are brought to one dtype as TVM does (an int32 constant
// takes the other side's integer dtype, an integer the other side's floating one), and constants are folded: 2 + 3,
// x + 0, x * 1, x * 0, x // 1, ... To build exactly `x + 0`, use make<Add>.
Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator-(const Expr& a);
/// Float division, or truncated integer division.
Expr div(Expr a, Expr b);
Expr truncmod(Expr a, Expr b);
Expr floordiv(Expr a, Expr b);
Expr floormod(Expr a, Expr b);
Expr ceildiv(const Expr& a, const Expr& b);
Expr min(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr lt(Expr a, Expr b);
Expr le(Expr a, Expr b);
Expr gt(Expr a, Expr b);
Expr ge(Expr a, Expr b);
Expr eq(Expr a, Expr b);
Expr ne(Expr a, Expr b);
Expr logical_and(Expr a, Expr b);
Expr logical_or(Expr a, Expr b);
Expr logical_not(Expr a);
Expr select(Expr condition, Expr true_value, Expr false_value);
/// The value in another dtype; constants are converted, the same dtype is the same node.
Expr cast_to(DType dtype, Expr value);
inline Expr operator+(const Expr& a, int64_t b) { return a + int_imm(b, a->dtype); }
inline Expr operator-(const Expr& a, int64_t b) { return a - int_imm(b, a->dtype); }
inline Expr operator*(const Expr& a, int64_t b) { return a * int_imm(b, a->dtype); }
inline Expr floordiv(const Expr& a, int64_t b) { return floordiv(a, int_imm(b, a->dtype)); }
inline Expr floormod(const Expr& a, int64_t b) { return floormod(a, int_imm(b, a->dtype)); }
Expr call(DType dtype, std::string op, std::vector<Expr> args);
inline Expr load(BufferRef buffer, std::vector<Expr> indices) {
  return make<BufferLoad>(std::move(buffer), std::move(indices));
}
RangeRef range_of(Expr extent);
/// The number of lanes as an expression: 4, or `T.vscale() * 4`.
Expr lane_count(Lanes lanes, DType dtype = i32);
/// The lanes that the expression counts, as lane_count() writes it or with the factors swapped; nothing for another one.
std::optional<Lanes> as_lanes(const Expr& count);

using VarMap = PooledMap<VarRef, Expr>;
using BufferMap = PooledMap<BufferRef, BufferRef>;

/// The replacements of substitute() as nodes. Every value has its variable's dtype: an expression that held two dtypes at
/// once would be wrong without a word wherever it is widened, compared or printed.
NodeMap substitutions(const VarMap& map);

/// The program with variables replaced by expressions of their dtype. Where a variable is bound, only another variable
/// can stand.
template <class T>
Ref<T> substitute(const Ref<T>& root, const VarMap& map) {
  if (map.empty() || !root) return root;
  return replaced(root, substitutions(map));
}

bool uses_var(const NodeRef& root, const Var& var);
/// Every variable that occurs in `root`, each once, in order of first sight.
std::vector<VarRef> vars_in(const NodeRef& root);

// The TVMScript of an expression, for messages; a buffer and a variable are their names.
void append_text(std::string& out, const ExprNode& e);
void append_text(std::string& out, const Buffer& buffer);
void append_text(std::string& out, const Range& range);
template <class T>
  requires(std::is_base_of_v<ExprNode, T> || std::is_same_v<T, Buffer> || std::is_same_v<T, Range>)
void append_text(std::string& out, const Ref<const T>& node) {
  append_text(out, *node);
}

inline int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
inline int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }

// What follows from fields() is compiled once, in expr.cc.
extern template class Node<Var, ExprNode>;
extern template class Node<IntImm, ExprNode>;
extern template class Node<FloatImm, ExprNode>;
extern template class Node<StringImm, ExprNode>;
extern template class Node<Not, ExprNode>;
extern template class Node<Select, ExprNode>;
extern template class Node<Cast, ExprNode>;
extern template class Node<Buffer>;
extern template class Node<BufferLoad, ExprNode>;
extern template class Node<Call, ExprNode>;
extern template class Node<Let, ExprNode>;
extern template class Node<Ramp, ExprNode>;
extern template class Node<Broadcast, ExprNode>;
extern template class Node<Shuffle, ExprNode>;
extern template class Node<Range>;
extern template class Node<Array>;
extern template class Node<Dict>;
extern template class Node<Add, ExprNode>;
extern template class Node<Sub, ExprNode>;
extern template class Node<Mul, ExprNode>;
extern template class Node<Div, ExprNode>;
extern template class Node<Mod, ExprNode>;
extern template class Node<FloorDiv, ExprNode>;
extern template class Node<FloorMod, ExprNode>;
extern template class Node<Min, ExprNode>;
extern template class Node<Max, ExprNode>;
extern template class Node<EQ, ExprNode>;
extern template class Node<NE, ExprNode>;
extern template class Node<LT, ExprNode>;
extern template class Node<LE, ExprNode>;
extern template class Node<GT, ExprNode>;
extern template class Node<GE, ExprNode>;
extern template class Node<And, ExprNode>;
extern template class Node<Or, ExprNode>;

}  // namespace sator
