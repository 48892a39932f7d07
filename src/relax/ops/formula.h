// Formulas that the meanings of many ops are built from. Names of stages and axes are those that TVM's operator library
// gives, so that legalised programs read the same.
#pragma once

#include <functional>

#include "ir/builtins.h"
#include "tir/te.h"

namespace sator::relax {

/// Axes i0, i1, ... (formulas that TVM writes in Python); the standard naming ax0, ax1, ... is that of its C++ ones.
inline te::Naming python_naming(std::string name = "compute") { return {.name = std::move(name), .axis = "i"}; }

inline Expr dim(int64_t n) { return int_imm(n, i64); }
/// A call of a math builtin that keeps its argument's dtype: "exp" is T.exp.
Expr math(const char* name, const Expr& x);
Expr math(const char* name, const Expr& x, const Expr& y);

/// f of every element.
te::Tensor map(const te::Naming& naming, const te::Tensor& x, FunctionRef<Expr(const Expr&)> f);
/// f of the elements that numpy's broadcasting pairs; either side may be a scalar.
struct TensorOrScalar {
  te::Tensor tensor;
  Expr scalar;
  TensorOrScalar(te::Tensor t) : tensor(std::move(t)) {}
  TensorOrScalar(Expr e) : scalar(std::move(e)) {}
  DType dtype() const { return scalar ? scalar->dtype : tensor.dtype(); }
};
te::Tensor zip(const std::string& name, const TensorOrScalar& a, const TensorOrScalar& b,
               FunctionRef<Expr(const Expr&, const Expr&)> f);
te::Tensor add(const TensorOrScalar& a, const TensorOrScalar& b);
te::Tensor subtract(const TensorOrScalar& a, const TensorOrScalar& b);
te::Tensor multiply(const TensorOrScalar& a, const TensorOrScalar& b);
te::Tensor divide(const TensorOrScalar& a, const TensorOrScalar& b);
/// A sum of so many numbers over how many they are, in the sum's dtype; integers are cut off behind the point. A constant count of half
/// precision is rounded where it is used, for its sum may be float32 there (passes/wide_sums.h).
Expr average(const Expr& total, const Expr& count);
te::Tensor exp(const te::Tensor& x);
te::Tensor sqrt(const te::Tensor& x);
te::Tensor cast(const te::Tensor& x, DType dtype, const te::Naming& naming = python_naming());
te::Tensor sigmoid(const te::Tensor& x);
te::Tensor softmax(const te::Tensor& x, int64_t axis);
te::Tensor full(std::vector<Expr> shape, const Expr& value);

/// The shape that numpy's broadcasting gives (extents that cannot be compared count as equal).
std::vector<Expr> broadcast_shape(const std::vector<Expr>& a, const std::vector<Expr>& b);
/// The index of an element of `x` that output index `i` reads.
te::Indices broadcast_index(const te::Indices& i, const te::Tensor& x, const std::vector<Expr>& out_shape);
te::Tensor broadcast_to(const te::Tensor& x, const std::vector<Expr>& shape);

/// The position of an element counted row by row, and back.
Expr ravel(const te::Indices& i, const std::vector<Expr>& shape);
te::Indices unravel(Expr position, const std::vector<Expr>& shape);
te::Tensor reshape(const te::Tensor& x, const std::vector<Expr>& shape, std::string name = "T_reshape");
te::Tensor transpose(const te::Tensor& x, std::vector<int64_t> axes = {});

/// Elements below the k-th diagonal (upper), or above it (not upper), become 0.
te::Tensor triangle(const te::Tensor& x, const Expr& k, bool upper);
/// x inside a frame of `value`, `before` and `after` elements wide along each axis.
te::Tensor pad(const te::Tensor& x, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
               const Expr& value, std::string name = "PadInput");
/// Element i is x at index(i).
te::Tensor gather(const te::Naming& naming, const te::Tensor& x, std::vector<Expr> shape,
                  FunctionRef<te::Indices(const te::Indices&)> index);

/// An axis counted from the front, where one below 0 counts from the end; an index with another position along that axis.
inline size_t from_front(int64_t axis, int64_t rank) { return static_cast<size_t>(axis < 0 ? axis + rank : axis); }
te::Indices at_axis(te::Indices i, size_t axis, Expr at);

/// i without the axes of `gone`; only those of them.
te::Indices without(const te::Indices& i, const std::vector<int64_t>& gone);
te::Indices only(const te::Indices& i, const std::vector<int64_t>& kept);

/// A reduction over `axes` (nothing: all); reduced extents become 1 or go away.
/// Errors: the elements are truth values, whose `what` ("sum") would be a truth value again.
void need_numbers(DType dtype, const char* what);
using ReduceFn = te::Reduction (*)(Expr, std::vector<tir::IterVarRef>);
te::Tensor reduce(const te::Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims, ReduceFn f);
te::Tensor sum(const te::Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims);
te::Tensor max(const te::Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims);
te::Tensor mean(const te::Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims);
/// Where the median of the last axis stands among its n elements in ascending order, NaNs last: at (n - 1) / 2, or at the first NaN
/// where there is one.
std::function<Expr(const te::Indices& row)> median_place(const te::Tensor& rows);
/// Axes counted from the front, sorted, each once; all where none are given.
std::vector<int64_t> sorted_axes(const std::optional<std::vector<int64_t>>& axes, int64_t rank);

}  // namespace sator::relax
