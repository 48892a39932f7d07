// The tensor-expression builder: tensors defined by a formula per element, turned into a PrimFunc of blocks.
//
//   te::Tensor a = te::placeholder({n, m}, f32, "A");
//   te::Tensor b = te::compute({.name = "B"}, {n, m}, [&](const te::Indices& i) { return a(i) + 1; });
//   PrimFuncRef f = te::create_prim_func({a, b});
//
// The form of the result is that of TVM's te.create_prim_func: one block per stage, named as its tensor, its iterators
// v_<axis>, its loops <axis>; a reduction has an init; stages that are not arguments are allocated in the root block.
#pragma once

#include <functional>
#include <variant>

#include "tir/nodes.h"

namespace sator::te {

using Indices = std::vector<Expr>;

class Tensor;

/// The partial results of a reduction are combined by `combine`, which is associative and commutative with `identity`
/// as its neutral element. Several values are reduced together where there is more than one (argmax: index and value).
struct Reducer {
  std::vector<Expr> identity;
  std::function<std::vector<Expr>(const std::vector<Expr>& lhs, const std::vector<Expr>& rhs)> combine;
};
/// The reduction of `sources` over `axes`.
struct Reduction {
  Reducer reducer;
  std::vector<Expr> sources;
  std::vector<tir::IterVarRef> axes;
};

/// What makes tensors: a formula per element, a reduction, or a statement; a placeholder has none of them.
class Stage final : public Object {
 public:
  struct Output {
    std::vector<Expr> shape;
    DType dtype;
    std::string name;
  };
  Stage();
  ~Stage() override;

  std::string name;
  std::vector<Output> outputs;
  std::vector<tir::IterVarRef> axes;
  std::vector<Expr> bodies;  ///< the formula of each output
  std::optional<Reduction> reduction;
  std::function<tir::Stmt(const std::vector<BufferRef>&)> statement;
  bool is_scan = false;  ///< the statement is that of scan()
  Attrs annotations;
  std::string tag;             ///< what a user calls this kind of formula; it is not part of the program
  std::vector<Tensor> inputs;  ///< in the order in which the bodies name them

  bool is_placeholder() const { return bodies.empty() && !reduction && !statement; }
};

/// One result of a stage: a placeholder, or what compute() and its kin return.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Ref<const Stage> stage, int output) : stage_(std::move(stage)), output_(output) {}

  const std::vector<Expr>& shape() const;
  const Expr& dim(int64_t i) const { return shape()[static_cast<size_t>(i < 0 ? i + rank() : i)]; }
  DType dtype() const;
  const std::string& name() const;
  int64_t rank() const { return static_cast<int64_t>(shape().size()); }
  const Ref<const Stage>& stage() const { return stage_; }
  int output() const { return output_; }
  bool defined() const { return static_cast<bool>(stage_); }

  /// The element at `indices`, one per dimension. Errors: their number is not the rank.
  Expr operator()(Indices indices) const;

  bool operator==(const Tensor& o) const = default;

 private:
  Ref<const Stage> stage_;
  int output_ = 0;
};

/// An element of a tensor inside the body of a stage; create_prim_func turns it into a BufferLoad.
struct TensorLoad final : Node<TensorLoad, ExprNode> {
  Ref<const Stage> stage;
  int output = 0;
  Indices indices;
  static constexpr auto fields() {
    return std::tuple{field("stage", &TensorLoad::stage),
                      field("output", &TensorLoad::output),
                      field("indices", &TensorLoad::indices)};
  }
  void finish();
};

/// A reduction iterator over [0, extent) or [min, min + extent).
tir::IterVarRef reduce_axis(Expr extent, std::string name = "k");
tir::IterVarRef reduce_axis(Expr min, Expr extent, std::string name);

Reduction reduce_sum(Expr source, std::vector<tir::IterVarRef> axes);
Reduction reduce_prod(Expr source, std::vector<tir::IterVarRef> axes);
Reduction reduce_max(Expr source, std::vector<tir::IterVarRef> axes);
Reduction reduce_min(Expr source, std::vector<tir::IterVarRef> axes);

/// The position of the greatest (or least) value as (position, value) pairs: of equal ones the first. A NaN counts as the
/// greatest (and the least), as in NumPy. What is reduced over nothing has the greatest position there is.
Reducer argmax_reducer(DType position, DType value);
Reducer argmin_reducer(DType position, DType value);

/// Whether a float is no number; half precision is looked at as float32, as T.isnan does.
Expr is_nan(const Expr& x);

/// The least and the greatest finite value of a dtype as constants.
Expr min_value(DType dtype);
Expr max_value(DType dtype);
/// What max (min) combines with any value to that value, and the result for no values: -inf (inf) for floats, the least
/// (greatest) value for integers.
Expr max_identity(DType dtype);
Expr min_identity(DType dtype);

/// Names of a stage: the tensor's and its block's `name`; axes are `axes`, or <axis>0, <axis>1, ...
struct Naming {
  std::string name = "compute";
  std::string axis = "ax";
  std::vector<std::string> axes = {};
  Attrs annotations = {};  ///< of the block
  std::string tag = {};
};

Tensor placeholder(std::vector<Expr> shape, DType dtype, std::string name);
/// The tensor whose element at i is body(i).
Tensor compute(const Naming& naming, std::vector<Expr> shape, FunctionRef<Expr(const Indices&)> body);
/// As compute, of several expressions: one tensor each, called <name>.v0, <name>.v1, ...; one block each in the same loops.
std::vector<Tensor> compute_together(const Naming& naming, std::vector<Expr> shape,
                                     FunctionRef<std::vector<Expr>(const Indices&)> body);
/// The tensor whose element at i is the reduction body(i).
Tensor reduce(const Naming& naming, std::vector<Expr> shape, FunctionRef<Reduction(const Indices&)> body);
/// As reduce, for a reducer of several values: one tensor each, called <name>.v0, <name>.v1, ...
std::vector<Tensor> reduce_together(const Naming& naming, std::vector<Expr> shape,
                                    FunctionRef<Reduction(const Indices&)> body);
/// The same formula with another tag.
Tensor tagged(const Tensor& t, std::string tag);
/// Tensors that a statement computes: `body` gets the buffers of the inputs, then those of the outputs.
struct ExternOutput {
  std::vector<Expr> shape;
  DType dtype;
  std::string name;
};
std::vector<Tensor> extern_stage(std::string name, std::vector<Tensor> inputs, std::vector<ExternOutput> outputs,
                                 std::function<tir::Stmt(const std::vector<BufferRef>&)> body);

/// Recurrences over the first dimension: result k begins with the rows of init k, and each row t after them is update k at t.
///   states   placeholders of the results' shapes: what updates read results by, in rows before their own
/// Errors: other numbers of tensors; a state of another rank or dtype than its update; an update, or what it reads states by,
/// that is no formula of elements.
std::vector<Tensor> scan(const std::string& name, const std::vector<Tensor>& init, const std::vector<Tensor>& update,
                         const std::vector<Tensor>& states);

/// An argument of the function: a tensor (placeholder or result) or a scalar parameter.
using Arg = std::variant<Tensor, VarRef>;
/// The function that computes those of `args` that are not placeholders from those that are, with the attributes
/// global_symbol "main" and tir.noalias. Each call makes its own buffers and loop variables.
///   index   the dtype of indices where no extent tells it: of the value of the one iterator, over int32's [0, 1), that
///           a block has whose tensor is of rank 0
/// Errors: a stage needs a placeholder that is not among `args`.
tir::PrimFuncRef create_prim_func(const std::vector<Arg>& args, DType index = i64);

}  // namespace sator::te
