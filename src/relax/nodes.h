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
    return std::tuple{field("shape", &TensorInfo::shape), field("dtype", &TensorInfo::dtype),
                      field("ndim", &TensorInfo::ndim), field("vdevice", &TensorInfo::vdevice)};
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
    return std::tuple{definition("params", &FuncInfo::params), field("ret", &FuncInfo::ret),
                      field("pure", &FuncInfo::pure)};
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
  static constexpr auto fields() {
    return std::tuple{unseen("name", &RVar::name), field("is_dataflow", &RVar::is_dataflow),
                      field("sinfo", &RVar::sinfo)};
  }
};
using RVarRef = Ref<const RVar>;

/// A function of the module, by name.
struct GlobalVar final : Node<GlobalVar, RelaxExprNode> {
  std::string name;
  static constexpr auto fields() { return std::tuple{field("name", &GlobalVar::name), unseen("sinfo", &GlobalVar::sinfo)}; }
};
/// A tensor known at compile time.
struct Constant final : Node<Constant, RelaxExprNode> {
  Ref<runtime::Tensor> data;
  static constexpr auto fields() {
    return std::tuple{field("data", &Constant::data), field("sinfo", &Constant::sinfo)};
  }
};
struct Tuple final : Node<Tuple, RelaxExprNode> {
  std::vector<RExpr> items;
  static constexpr auto fields() { return std::tuple{field("items", &Tuple::items), unseen("sinfo", &Tuple::sinfo)}; }
};
struct TupleGetItem final : Node<TupleGetItem, RelaxExprNode> {
  RExpr tuple;
  int index = 0;
  static constexpr auto fields() {
    return std::tuple{field("tuple", &TupleGetItem::tuple), field("index", &TupleGetItem::index),
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
  static constexpr auto fields() { return std::tuple{field("value", &RString::value), unseen("sinfo", &RString::sinfo)}; }
};
struct DTypeImm final : Node<DTypeImm, RelaxExprNode> {
  DType value;
  static constexpr auto fields() { return std::tuple{field("value", &DTypeImm::value), unseen("sinfo", &DTypeImm::sinfo)}; }
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
    return std::tuple{field("op", &RCall::op), field("args", &RCall::args), field("attrs", &RCall::attrs),
                      field("sinfo_args", &RCall::sinfo_args), unseen("sinfo", &RCall::sinfo)};
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
    return std::tuple{field("value", &MatchCast::value), definition("sinfo", &MatchCast::sinfo),
                      definition("var", &MatchCast::var)};
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
    return std::tuple{field("blocks", &SeqExpr::blocks), field("body", &SeqExpr::body), unseen("sinfo", &SeqExpr::sinfo)};
  }
};
using SeqExprRef = Ref<const SeqExpr>;
/// Both branches are SeqExprs.
struct If final : Node<If, RelaxExprNode> {
  RExpr condition, true_branch, false_branch;
  static constexpr auto fields() {
    return std::tuple{field("condition", &If::condition), field("true_branch", &If::true_branch),
                      field("false_branch", &If::false_branch), unseen("sinfo", &If::sinfo)};
  }
};

/// A graph function; `body` is a SeqExpr. As a value inside another function it is a closure (LocalFunction).
struct Function final : Node<Function, FuncNode> {
  std::vector<RVarRef> params;
  RExpr body;
  StructInfo ret;
  bool is_pure = true;
  static constexpr auto fields() {
    return std::tuple{definition("params", &Function::params), field("body", &Function::body),
                      field("ret", &Function::ret), field("is_pure", &Function::is_pure),
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
  static constexpr auto fields() { return std::tuple{field("name", &ExternDecl::name), field("attrs", &ExternDecl::attrs)}; }
};

}  // namespace sator::relax
