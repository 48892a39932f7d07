// What an op of the graph language is: one row of the table (ops/table.h).
#pragma once

#include "arith/analyzer.h"
#include "relax/ops/attrs.h"
#include "tir/te.h"

namespace sator::relax {

class BlockBuilder;
struct OpDef;

/// What an input of an op may be; it tells how a Python value becomes one.
enum class InputKind { tensor, tensors, shape, scalar, scalars, dtype, any };
struct InputDef {
  std::string name;
  InputKind kind = InputKind::tensor;
  bool optional = false;
};

/// Two sizes that a call needs to be equal and of which nothing says so before the program runs.
struct SizePair {
  Expr a, b;
};

/// A call whose struct info is being inferred: the inputs, the facts about symbolic sizes, and how to refuse.
class CallInfo {
 public:
  ///   assumed   where it is given, sizes that are not known to differ count as equal, and are noted here
  CallInfo(const OpDef& op, const RCall& call, arith::Analyzer& arith, std::vector<SizePair>* assumed = nullptr)
      : op_(op), call_(call), arith_(arith), assumed_(assumed) {}

  const OpDef& op() const { return op_; }
  const RCall& call() const { return call_; }
  arith::Analyzer& arith() const { return arith_; }
  size_t size() const { return call_.args.size(); }
  const RExpr& arg(size_t i) const { return call_.args[i]; }

  /// The struct info of input i. Errors: there is none, or it is of another kind.
  const StructInfo& info(size_t i) const;
  const TensorInfo& tensor(size_t i) const;
  const ShapeInfo& shape(size_t i) const;
  /// A tuple's items as tensors.
  std::vector<Ref<const TensorInfo>> tensors(size_t i) const;

  /// The mistake, with the op's name before it.
  [[noreturn]] void fail(Reason reason) const;

  // Checks that many ops share.
  /// The axis counted from the front. Errors: outside [-rank, rank).
  int axis(int64_t axis, int rank) const;
  std::vector<int> axes(const Axes& axes, int rank) const;  ///< errors also if one occurs twice
  void need_rank(size_t i, int rank) const;
  void need_float(size_t i) const;
  /// The dtype of all given inputs (void ones do not count). Errors: they differ.
  DType common_dtype(std::initializer_list<size_t> inputs) const;
  /// The shape after numpy's broadcasting; nothing if it cannot be told. Errors: extents that cannot be broadcast.
  std::optional<std::vector<Expr>> broadcast(const std::vector<Expr>& a, const std::vector<Expr>& b) const;
  /// Whether two sizes that have to be equal are known to differ; whether one is known to exceed what it has to fit into.
  bool differ(const Expr& a, const Expr& b) const;
  bool exceeds(const Expr& size, const Expr& room) const;
  /// Whether two sizes are known to be equal.
  bool same(const Expr& a, const Expr& b) const;
  bool same(const std::vector<Expr>& a, const std::vector<Expr>& b) const;

 private:
  const OpDef& op_;
  const RCall& call_;
  arith::Analyzer& arith_;
  std::vector<SizePair>* assumed_;
};

/// An input of an op's formula: a tensor, a scalar, a shape (or list of scalars), a list of tensors, or absent.
using TeInput = std::variant<std::monostate, te::Tensor, Expr, std::vector<Expr>, std::vector<te::Tensor>>;
struct TeInputs {
  std::vector<TeInput> values;
  StructInfo out;  ///< the call's own struct info, over the formula's variables

  bool has(size_t i) const { return i < values.size() && values[i].index() != 0; }
  const te::Tensor& tensor(size_t i) const { return std::get<te::Tensor>(values[i]); }
  bool is_tensor(size_t i) const { return std::holds_alternative<te::Tensor>(values[i]); }
  const Expr& scalar(size_t i) const { return std::get<Expr>(values[i]); }
  const std::vector<Expr>& shape(size_t i) const { return std::get<std::vector<Expr>>(values[i]); }
  const std::vector<te::Tensor>& tensors(size_t i) const { return std::get<std::vector<te::Tensor>>(values[i]); }
  std::vector<Expr> out_shape() const;
  DType out_dtype() const;
};

using InferFn = std::function<StructInfo(const CallInfo&)>;
using ComputeFn = std::function<std::vector<te::Tensor>(const Attrs&, const TeInputs&)>;
/// What replaces a call on the way to tensor programs; null keeps the call.
using LegalizeFn = std::function<RExpr(const RCallRef&, BlockBuilder&)>;

/// The arguments of a call in their places: one value per input (None where it is absent), attributes as nodes.
struct BoundArgs {
  std::vector<Value> inputs;
  Attrs attrs;
};
/// Makes the call where that is more than to put each argument in its place.
using BuildFn = RExpr (*)(const OpDef&, BoundArgs);

/// The call itself, each argument in its place, without struct info.
RExpr build_call(const OpDef& op, BoundArgs args);

struct OpDef {
  std::string name;  ///< without "relax."
  std::vector<InputDef> inputs = {};
  std::vector<AttrDef> attrs = {};
  InferFn infer = {};
  ComputeFn compute = {};     ///< the meaning: null for ops that are no formula over tensors
  LegalizeFn normalize = {};  ///< the call's normal form: the same call where it is in it; empty: every call is
  LegalizeFn legalize = {};   ///< where LegalizeOps does something else than to build `compute`
  /// Why LegalizeOps leaves a call whose shapes are known; empty where it takes it.
  std::string (*unsupported)(const Attrs&, const RCall&) = nullptr;
  /// `legalize` calls a library that a program brings along: the table does not say what the op computes.
  bool calls_library = false;
  BuildFn build = nullptr;
  std::string func = {};  ///< name of the PrimFunc; empty is the op's own
  /// Python's order of all arguments, where it is another one than inputs, then attributes.
  std::vector<std::string> positions = {};
  bool pure = true;
  bool variadic = false;          ///< takes any number of arguments; scripts write it in a form of its own
  bool scalar_constants = false;  ///< scalar constants go into the PrimFunc instead of being read from a tensor

  bool has_formula() const { return compute || (legalize && !calls_library); }
};

// A row's functions, with the attributes already read:
//   StructInfo infer_softmax(const SoftmaxAttrs&, const CallInfo&);
//   te::Tensor compute_softmax(const SoftmaxAttrs&, const TeInputs&);
template <class A>
InferFn with(StructInfo (*f)(const A&, const CallInfo&)) {
  return [f](const CallInfo& in) { return f(read_attrs<A>(in.call().attrs), in); };
}
template <class A>
ComputeFn with(te::Tensor (*f)(const A&, const TeInputs&)) {
  return [f](const Attrs& attrs, const TeInputs& in) { return std::vector{f(read_attrs<A>(attrs), in)}; };
}
template <class A>
ComputeFn with(std::vector<te::Tensor> (*f)(const A&, const TeInputs&)) {
  return [f](const Attrs& attrs, const TeInputs& in) { return f(read_attrs<A>(attrs), in); };
}
inline InferFn with(StructInfo (*f)(const CallInfo&)) { return f; }
inline ComputeFn with(te::Tensor (*f)(const TeInputs&)) {
  return [f](const Attrs&, const TeInputs& in) { return std::vector{f(in)}; };
}

}  // namespace sator::relax
