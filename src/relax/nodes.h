// Graphs (Relax): expressions in A-normal form with struct info. Semantics: docs/relax.md.
#pragma once

#include "ir/expr.h"
#include "ir/module.h"
#include "runtime/tensor.h"

namespace sator::relax {

// ---- Struct info: what is known of a value at compile time ----

struct StructInfoNode : NodeBase {};
using StructInfo = Ref<const StructInfoNode>;

struct ObjectInfo final : Node<ObjectInfo, StructInfoNode> {
  static constexpr auto fields() { return std::tuple{}; }
};
/// A scalar; `value` null where it is unknown.
struct PrimInfo final : Node<PrimInfo, StructInfoNode> {
  DType dtype;
  Expr value;
  static constexpr auto fields() {
    return std::tuple{field("dtype", &PrimInfo::dtype), field("value", &PrimInfo::value)};
  }
};
/// A shape; `values` nothing where only the rank is known, rank -1 where not even that.
struct ShapeInfo final : Node<ShapeInfo, StructInfoNode> {
  std::optional<std::vector<Expr>> values;
  int ndim = -1;
  static constexpr auto fields() {
    return std::tuple{field("values", &ShapeInfo::values), field("ndim", &ShapeInfo::ndim)};
  }
};
struct RelaxExprNode;
/// A tensor. `shape` is a ShapeExpr or a Var with ShapeInfo, null where unknown; dtype void and ndim -1 are unknown.
struct TensorInfo final : Node<TensorInfo, StructInfoNode> {
  Ref<const RelaxExprNode> shape;
  DType dtype;
  int ndim = -1;
  std::string vdevice;  ///< name of a virtual device, empty for any
  static constexpr auto fields() {
    return std::tuple{field("shape", &TensorInfo::shape),
                      field("dtype", &TensorInfo::dtype),
                      field("ndim", &TensorInfo::ndim),
                      field("vdevice", &TensorInfo::vdevice)};
  }
};
/// Devices as a grid: `ids` are their numbers, row-major.
struct DeviceMesh final : Node<DeviceMesh> {
  std::vector<int64_t> shape;
  std::vector<int64_t> ids;
  static constexpr auto fields() {
    return std::tuple{field("shape", &DeviceMesh::shape), field("device_ids", &DeviceMesh::ids)};
  }
};
/// A tensor that lies on the devices of a mesh. Scripts read and print it and the verifier checks it; programs of
/// several devices are neither interpreted nor built.
struct DTensorInfo final : Node<DTensorInfo, StructInfoNode> {
  Ref<const TensorInfo> tensor;  ///< as a whole
  Ref<const DeviceMesh> mesh;
  std::vector<int> placement;  ///< per axis of the mesh the axis of the tensor that it cuts, -1: each has a copy
  static constexpr auto fields() {
    return std::tuple{field("tensor_sinfo", &DTensorInfo::tensor),
                      field("device_mesh", &DTensorInfo::mesh),
                      field("placement", &DTensorInfo::placement)};
  }
};
struct TupleInfo final : Node<TupleInfo, StructInfoNode> {
  std::vector<StructInfo> items;
  static constexpr auto fields() { return std::tuple{field("fields", &TupleInfo::items)}; }
};
/// A function; `params` nothing where they are opaque.
struct FuncInfo final : Node<FuncInfo, StructInfoNode> {
  std::optional<std::vector<StructInfo>> params;
  StructInfo ret;
  bool pure = true;
  static constexpr auto fields() {
    return std::tuple{
        definition("params", &FuncInfo::params), field("ret", &FuncInfo::ret), field("pure", &FuncInfo::pure)};
  }
};

// ---- Expressions ----

/// `sinfo` is derived (by the ops' rules) or, for variables and opaque calls, given. It takes no part in equality where
/// it is derived.
struct RelaxExprNode : NodeBase {
  StructInfo sinfo;
};
using RExpr = Ref<const RelaxExprNode>;

struct RVar final : Node<RVar, RelaxExprNode> {
  static constexpr bool kHasIdentity = true;
  std::string name;
  bool is_dataflow = false;  ///< visible in its dataflow block only
  std::string layer;  ///< the model's layer whose result it is ("model.layers.0.mlp.down_proj"): what costs are told by
  static constexpr auto fields() {
    return std::tuple{unseen("name", &RVar::name),
                      field("is_dataflow", &RVar::is_dataflow),
                      field("sinfo", &RVar::sinfo),
                      unseen("layer", &RVar::layer)};
  }
};
using RVarRef = Ref<const RVar>;

/// A function of the module, by name.
struct GlobalVar final : Node<GlobalVar, RelaxExprNode> {
  std::string name;
  static constexpr auto fields() {
    return std::tuple{field("name", &GlobalVar::name), unseen("sinfo", &GlobalVar::sinfo)};
  }
};
/// A tensor as a value: equal and hashed by shape, dtype and elements.
struct TensorValue {
  Ref<runtime::Tensor> tensor;
  TensorValue() = default;
  TensorValue(Ref<runtime::Tensor> t) : tensor(std::move(t)) {}
  runtime::Tensor* operator->() const { return tensor.get(); }
  runtime::Tensor& operator*() const { return *tensor; }
  operator const Ref<runtime::Tensor>&() const { return tensor; }
  friend bool operator==(const TensorValue& a, const TensorValue& b);
};
/// A tensor known at compile time.
struct Constant final : Node<Constant, RelaxExprNode> {
  TensorValue data;
  static constexpr auto fields() {
    return std::tuple{field("data", &Constant::data), field("sinfo", &Constant::sinfo)};
  }
};
using ConstantRef = Ref<const Constant>;
struct Tuple final : Node<Tuple, RelaxExprNode> {
  std::vector<RExpr> items;
  static constexpr auto fields() { return std::tuple{field("items", &Tuple::items), unseen("sinfo", &Tuple::sinfo)}; }
};
struct TupleGetItem final : Node<TupleGetItem, RelaxExprNode> {
  RExpr tuple;
  int index = 0;
  static constexpr auto fields() {
    return std::tuple{field("tuple", &TupleGetItem::tuple),
                      field("index", &TupleGetItem::index),
                      unseen("sinfo", &TupleGetItem::sinfo)};
  }
};
struct ShapeExpr final : Node<ShapeExpr, RelaxExprNode> {
  std::vector<Expr> values;
  static constexpr auto fields() {
    return std::tuple{field("values", &ShapeExpr::values), unseen("sinfo", &ShapeExpr::sinfo)};
  }
};
/// A scalar (index expression) as a value of the graph.
struct PrimValue final : Node<PrimValue, RelaxExprNode> {
  Expr value;
  static constexpr auto fields() {
    return std::tuple{field("value", &PrimValue::value), unseen("sinfo", &PrimValue::sinfo)};
  }
};
struct RString final : Node<RString, RelaxExprNode> {
  std::string value;
  static constexpr auto fields() {
    return std::tuple{field("value", &RString::value), unseen("sinfo", &RString::sinfo)};
  }
};
struct DTypeImm final : Node<DTypeImm, RelaxExprNode> {
  DType value;
  static constexpr auto fields() {
    return std::tuple{field("value", &DTypeImm::value), unseen("sinfo", &DTypeImm::sinfo)};
  }
};
/// An operator of the graph language, by name without "relax.": "add", "nn.softmax", "call_tir", ... (relax/ops/table.cc).
struct Op final : Node<Op, RelaxExprNode> {
  std::string name;
  static constexpr auto fields() { return std::tuple{field("name", &Op::name), unseen("sinfo", &Op::sinfo)}; }
};
/// A function outside of the module: a runtime builtin or a registered one.
struct ExternFunc final : Node<ExternFunc, RelaxExprNode> {
  std::string name;
  static constexpr auto fields() {
    return std::tuple{field("name", &ExternFunc::name), unseen("sinfo", &ExternFunc::sinfo)};
  }
};
/// A call of an Op, GlobalVar, ExternFunc, local function or variable. `attrs` are the op's own (axis, ...);
/// `sinfo_args` tell the result of opaque calls and of call_tir.
struct RCall final : Node<RCall, RelaxExprNode> {
  RExpr op;
  std::vector<RExpr> args;
  Attrs attrs;
  std::vector<StructInfo> sinfo_args;
  static constexpr auto fields() {
    return std::tuple{field("op", &RCall::op),
                      field("args", &RCall::args),
                      field("attrs", &RCall::attrs),
                      field("sinfo_args", &RCall::sinfo_args),
                      unseen("sinfo", &RCall::sinfo)};
  }
};
using RCallRef = Ref<const RCall>;

// ---- Bindings ----

struct BindingNode : NodeBase {};
using Binding = Ref<const BindingNode>;

/// var = value
struct VarBinding final : Node<VarBinding, BindingNode> {
  RVarRef var;
  RExpr value;
  static constexpr auto fields() {
    return std::tuple{field("value", &VarBinding::value), definition("var", &VarBinding::var)};
  }
};
/// var = match_cast(value, sinfo): checks at run time and binds the symbolic sizes that occur first in sinfo.
struct MatchCast final : Node<MatchCast, BindingNode> {
  RVarRef var;
  RExpr value;
  StructInfo sinfo;
  static constexpr auto fields() {
    return std::tuple{
        field("value", &MatchCast::value), definition("sinfo", &MatchCast::sinfo), definition("var", &MatchCast::var)};
  }
};
/// Bindings in order. In a dataflow block nothing has side effects.
struct BindingBlock final : Node<BindingBlock> {
  std::vector<Binding> bindings;
  bool is_dataflow = false;
  static constexpr auto fields() {
    return std::tuple{field("bindings", &BindingBlock::bindings), field("is_dataflow", &BindingBlock::is_dataflow)};
  }
};
using BindingBlockRef = Ref<const BindingBlock>;
struct SeqExpr final : Node<SeqExpr, RelaxExprNode> {
  std::vector<BindingBlockRef> blocks;
  RExpr body;
  static constexpr auto fields() {
    return std::tuple{
        field("blocks", &SeqExpr::blocks), field("body", &SeqExpr::body), unseen("sinfo", &SeqExpr::sinfo)};
  }
};
using SeqExprRef = Ref<const SeqExpr>;
/// Both branches are SeqExprs.
struct If final : Node<If, RelaxExprNode> {
  RExpr condition, true_branch, false_branch;
  static constexpr auto fields() {
    return std::tuple{field("condition", &If::condition),
                      field("true_branch", &If::true_branch),
                      field("false_branch", &If::false_branch),
                      unseen("sinfo", &If::sinfo)};
  }
};

/// A graph function; `body` is a SeqExpr. As a value inside another function it is a closure (LocalFunction).
struct Function final : Node<Function, FuncNode> {
  std::vector<RVarRef> params;
  RExpr body;
  StructInfo ret;
  bool is_pure = true;
  static constexpr auto fields() {
    return std::tuple{definition("params", &Function::params),
                      field("body", &Function::body),
                      field("ret", &Function::ret),
                      field("is_pure", &Function::is_pure),
                      field("attrs", &Function::attrs)};
  }
};
using FuncRef = Ref<const Function>;
/// A Function as an expression.
struct LocalFunction final : Node<LocalFunction, RelaxExprNode> {
  Ref<const Function> function;
  static constexpr auto fields() {
    return std::tuple{field("function", &LocalFunction::function), unseen("sinfo", &LocalFunction::sinfo)};
  }
};
/// An ExternFunc as a member of a module.
struct ExternDecl final : Node<ExternDecl, FuncNode> {
  std::string name;
  static constexpr auto fields() {
    return std::tuple{field("name", &ExternDecl::name), field("attrs", &ExternDecl::attrs)};
  }
};

// ---- Small builders: they fill in the struct info that follows from the parts ----

StructInfo object_info();
StructInfo prim_info(DType dtype);
StructInfo prim_info(Expr value);
StructInfo shape_info(int ndim = -1);
StructInfo shape_info(std::vector<Expr> values);
/// A tensor of unknown shape; ndim -1 and dtype void are unknown.
StructInfo tensor_info(DType dtype, int ndim = -1, std::string vdevice = "");
StructInfo tensor_info(std::vector<Expr> shape, DType dtype, std::string vdevice = "");
/// The shape is a ShapeExpr or a variable with ShapeInfo (or null: unknown, of rank -1).
StructInfo tensor_info(RExpr shape, DType dtype, std::string vdevice = "");
StructInfo tuple_info(std::vector<StructInfo> items);
/// "S[0], R": axis 0 of the tensor is cut along the first axis of the mesh, along the second each device has a copy.
std::string placement_text(const std::vector<int>& placement);
/// What placement_text() writes; nothing of another text.
std::optional<std::vector<int>> placement_from_text(std::string_view written);
/// Errors: not one entry of `placement` per axis of the mesh, or one that is no axis of the tensor.
StructInfo dtensor_info(Ref<const TensorInfo> tensor, Ref<const DeviceMesh> mesh, std::vector<int> placement);
StructInfo func_info(std::vector<StructInfo> params, StructInfo ret, bool pure = true);
/// A function of unknown parameters.
StructInfo opaque_func_info(StructInfo ret, bool pure);
/// The struct info of a function as a value: a PrimFunc is opaque, an extern function too.
StructInfo info_of(const FuncNode& func);

RVarRef make_rvar(std::string name, StructInfo sinfo);
RVarRef make_dataflow_var(std::string name, StructInfo sinfo);
RExpr constant(Ref<runtime::Tensor> data);
/// A tensor of rank 0.
RExpr scalar_constant(double value, DType dtype);
RExpr tuple(std::vector<RExpr> items);
RExpr tuple_get(RExpr tuple, int index);
/// Integer constants become int64. Errors: a value that is not int64.
RExpr shape_expr(std::vector<Expr> values);
RExpr prim_value(Expr value);
inline RExpr prim_value(int64_t value) { return prim_value(int_imm(value, i64)); }
RExpr string_value(std::string value);
RExpr dtype_value(DType value);
RExpr op_ref(std::string name);
RExpr global_var(std::string name, StructInfo sinfo);
RExpr extern_func(std::string name);
/// A call without struct info: normalize() of relax/builder.h infers it.
RExpr call(RExpr op, std::vector<RExpr> args, Attrs attrs = {}, std::vector<StructInfo> sinfo_args = {});
/// var = value; var = match_cast(value, sinfo).
Binding bind_value(RVarRef var, RExpr value);
Binding bind_match_cast(RVarRef var, RExpr value, StructInfo sinfo);
/// The expression with another struct info.
RExpr with_sinfo(const RExpr& e, StructInfo sinfo);

/// The values of a shape: of a ShapeExpr, or of a variable's known ShapeInfo; nothing if they are not known.
std::optional<std::vector<Expr>> shape_values(const RExpr& shape);
/// The extents of a tensor, where all are known as expressions.
std::optional<std::vector<Expr>> shape_of(const TensorInfo& info);
/// As shape_of, but only where the shape is written out (not behind a variable).
std::optional<std::vector<Expr>> explicit_shape(const TensorInfo& info);
/// The name of the op that `e` calls, empty if it is no call of an op.
const std::string& op_name(const RExpr& e);
inline bool is_op(const RExpr& e, std::string_view name) { return op_name(e) == name; }

}  // namespace sator::relax

namespace sator {

/// Equality of a binding: a local function may call itself, so its variable is matched before its body.
template <>
constexpr NodeInfo detail::node_info<relax::VarBinding, relax::BindingNode>();

// What follows from fields() is compiled once, in nodes.cc.
extern template class Node<relax::ObjectInfo, relax::StructInfoNode>;
extern template class Node<relax::PrimInfo, relax::StructInfoNode>;
extern template class Node<relax::ShapeInfo, relax::StructInfoNode>;
extern template class Node<relax::TensorInfo, relax::StructInfoNode>;
extern template class Node<relax::DeviceMesh>;
extern template class Node<relax::DTensorInfo, relax::StructInfoNode>;
extern template class Node<relax::TupleInfo, relax::StructInfoNode>;
extern template class Node<relax::FuncInfo, relax::StructInfoNode>;
extern template class Node<relax::RVar, relax::RelaxExprNode>;
extern template class Node<relax::GlobalVar, relax::RelaxExprNode>;
extern template class Node<relax::Constant, relax::RelaxExprNode>;
extern template class Node<relax::Tuple, relax::RelaxExprNode>;
extern template class Node<relax::TupleGetItem, relax::RelaxExprNode>;
extern template class Node<relax::ShapeExpr, relax::RelaxExprNode>;
extern template class Node<relax::PrimValue, relax::RelaxExprNode>;
extern template class Node<relax::RString, relax::RelaxExprNode>;
extern template class Node<relax::DTypeImm, relax::RelaxExprNode>;
extern template class Node<relax::Op, relax::RelaxExprNode>;
extern template class Node<relax::ExternFunc, relax::RelaxExprNode>;
extern template class Node<relax::RCall, relax::RelaxExprNode>;
extern template class Node<relax::VarBinding, relax::BindingNode>;
extern template class Node<relax::MatchCast, relax::BindingNode>;
extern template class Node<relax::BindingBlock>;
extern template class Node<relax::SeqExpr, relax::RelaxExprNode>;
extern template class Node<relax::If, relax::RelaxExprNode>;
extern template class Node<relax::Function, FuncNode>;
extern template class Node<relax::LocalFunction, relax::RelaxExprNode>;
extern template class Node<relax::ExternDecl, FuncNode>;

}  // namespace sator

template <>
struct std::hash<sator::relax::TensorValue> {
  size_t operator()(const sator::relax::TensorValue& v) const;
};
template <>
struct sator::KindsOf<sator::relax::StructInfoNode> {
  using type = Kinds<relax::ObjectInfo, relax::PrimInfo, relax::ShapeInfo, relax::TensorInfo, relax::DTensorInfo,
                     relax::TupleInfo, relax::FuncInfo>;
};
template <>
struct sator::KindsOf<sator::relax::RelaxExprNode> {
  using type = Kinds<relax::RVar, relax::GlobalVar, relax::Constant, relax::Tuple, relax::TupleGetItem,
                     relax::ShapeExpr, relax::PrimValue, relax::RString, relax::DTypeImm, relax::Op, relax::ExternFunc,
                     relax::RCall, relax::SeqExpr, relax::If, relax::LocalFunction>;
};
template <>
struct sator::KindsOf<sator::relax::BindingNode> {
  using type = Kinds<relax::VarBinding, relax::MatchCast>;
};
