#include "relax/ops/formula.h"

#include <algorithm>
#include <limits>

#include "arith/analyzer.h"

namespace sator::relax {

using te::Indices;
using te::Naming;
using te::Tensor;

Expr math(const char* name, const Expr& x) { return call_builtin(text("tir.", name), {x}); }
Expr math(const char* name, const Expr& x, const Expr& y) { return call_builtin(text("tir.", name), {x, y}); }

Tensor map(const Naming& naming, const Tensor& x, FunctionRef<Expr(const Expr&)> f) {
  return te::compute(naming, x.shape(), [&](const Indices& i) { return f(x(i)); });
}

// ---- Broadcasting ----

std::vector<Expr> broadcast_shape(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  arith::Analyzer arith;
  std::vector<Expr> out = a.size() >= b.size() ? a : b;
  for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const Expr &x = a[a.size() - i], &y = b[b.size() - i];
    Expr& result = out[out.size() - i];
    if (arith.prove_equal(x, y) || is_one(y))
      result = x;
    else if (is_one(x))
      result = y;
    else if (as_int(x) || as_int(y))
      result = as_int(x) ? x : y;
    else
      result = sator::max(x, y);
  }
  return out;
}

Indices broadcast_index(const Indices& i, const Tensor& x, const std::vector<Expr>& out_shape) {
  Indices out;
  size_t skipped = i.size() - static_cast<size_t>(x.rank());
  for (size_t d = skipped; d < i.size(); ++d) {
    bool stretched = is_one(x.shape()[d - skipped]) && !is_one(out_shape[d]);
    out.push_back(stretched ? int_imm(0, i[d]->dtype) : i[d]);
  }
  return out;
}

Tensor zip(const std::string& name, const TensorOrScalar& a, const TensorOrScalar& b,
           FunctionRef<Expr(const Expr&, const Expr&)> f) {
  if (a.scalar) return map({.name = name}, b.tensor, [&](const Expr& y) { return f(a.scalar, y); });
  if (b.scalar) return map({.name = name}, a.tensor, [&](const Expr& x) { return f(x, b.scalar); });
  std::vector<Expr> shape = broadcast_shape(a.tensor.shape(), b.tensor.shape());
  return te::compute({.name = name}, shape, [&](const Indices& i) {
    return f(a.tensor(broadcast_index(i, a.tensor, shape)), b.tensor(broadcast_index(i, b.tensor, shape)));
  });
}

Tensor broadcast_to(const Tensor& x, const std::vector<Expr>& shape) {
  return te::compute(
      {.name = "T_broadcast_to"}, shape, [&](const Indices& i) { return x(broadcast_index(i, x, shape)); });
}

Tensor add(const TensorOrScalar& a, const TensorOrScalar& b) {
  return zip("T_add", a, b, [](const Expr& x, const Expr& y) { return x + y; });
}
Tensor subtract(const TensorOrScalar& a, const TensorOrScalar& b) {
  return zip("T_subtract", a, b, [](const Expr& x, const Expr& y) { return x - y; });
}
Tensor multiply(const TensorOrScalar& a, const TensorOrScalar& b) {
  return zip("T_multiply", a, b, [](const Expr& x, const Expr& y) { return x * y; });
}
Tensor divide(const TensorOrScalar& a, const TensorOrScalar& b) {
  return zip("T_divide", a, b, [](const Expr& x, const Expr& y) { return div(x, y); });
}
Expr average(const Expr& total, const Expr& count) {
  const DType dtype = total->dtype;
  if (!dtype.is_float()) return cast_to(dtype, div(cast_to(i64, total), cast_to(i64, count)));
  const auto known = as_int(count);
  return div(total, known ? constant(static_cast<double>(*known), dtype) : cast_to(dtype, count));
}
Tensor exp(const Tensor& x) {
  return map(python_naming(), x, [](const Expr& v) { return math("exp", v); });
}
Tensor sqrt(const Tensor& x) {
  return map(python_naming(), x, [](const Expr& v) { return math("sqrt", v); });
}
Tensor cast(const Tensor& x, DType dtype, const Naming& naming) {
  return map(naming, x, [&](const Expr& v) { return cast_to(dtype, v); });
}
Tensor sigmoid(const Tensor& x) {
  return map(python_naming(), x, [](const Expr& v) { return math("sigmoid", v); });
}
Tensor full(std::vector<Expr> shape, const Expr& value) {
  return te::compute({.name = "T_full"}, std::move(shape), [&](const Indices&) { return value; });
}

// ---- Positions ----

Expr ravel(const Indices& i, const std::vector<Expr>& shape) {
  if (i.empty()) return dim(0);
  Expr position = i[0];
  for (size_t d = 1; d < i.size(); ++d) position = position * shape[d] + i[d];
  return position;
}

Indices unravel(Expr position, const std::vector<Expr>& shape) {
  Indices out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    out[d] = floormod(position, shape[d]);
    position = floordiv(position, shape[d]);
  }
  return out;
}

Tensor gather(const Naming& naming, const Tensor& x, std::vector<Expr> shape,
              FunctionRef<Indices(const Indices&)> index) {
  return te::compute(naming, std::move(shape), [&](const Indices& i) { return x(index(i)); });
}

Tensor reshape(const Tensor& x, const std::vector<Expr>& shape, std::string name) {
  auto empty = [](const std::vector<Expr>& s) { return std::ranges::any_of(s, is_zero); };
  bool nothing = empty(shape) || empty(x.shape());
  return te::compute({.name = std::move(name)}, shape, [&](const Indices& i) {
    return nothing ? constant(0, x.dtype()) : x(unravel(ravel(i, shape), x.shape()));
  });
}

Tensor transpose(const Tensor& x, std::vector<int64_t> axes) {
  if (axes.empty()) {
    for (int64_t d = x.rank(); d-- > 0;) axes.push_back(d);
  }
  std::vector<Expr> shape;
  for (int64_t& a : axes) {
    if (a < 0) a += x.rank();
    shape.push_back(x.dim(a));
  }
  return te::compute({.name = "T_transpose"}, shape, [&](const Indices& i) {
    Indices at(i.size());
    for (size_t d = 0; d < axes.size(); ++d) at[static_cast<size_t>(axes[d])] = i[d];
    return x(at);
  });
}

// ---- Reductions ----

Indices at_axis(Indices i, size_t axis, Expr at) {
  i[axis] = std::move(at);
  return i;
}

Indices without(const Indices& i, const std::vector<int64_t>& gone) {
  Indices out;
  for (size_t d = 0; d < i.size(); ++d) {
    if (std::ranges::find(gone, static_cast<int64_t>(d)) == gone.end()) out.push_back(i[d]);
  }
  return out;
}
Indices only(const Indices& i, const std::vector<int64_t>& kept) {
  Indices out;
  for (int64_t d : kept) out.push_back(i[static_cast<size_t>(d)]);
  return out;
}

std::vector<int64_t> sorted_axes(const std::optional<std::vector<int64_t>>& axes, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d) {
    bool named = !axes || std::ranges::any_of(*axes, [&](int64_t a) { return a == d || a + rank == d; });
    if (named) out.push_back(d);
  }
  return out;
}

Tensor reduce(const Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims, ReduceFn f) {
  std::vector<int64_t> reduced = sorted_axes(axes, x.rank());
  auto is_reduced = [&](int64_t d) { return std::ranges::find(reduced, d) != reduced.end(); };
  std::vector<Expr> shape;
  std::vector<tir::IterVarRef> iterators;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (is_reduced(d)) iterators.push_back(te::reduce_axis(x.dim(d), text("k", d)));
    if (!is_reduced(d) || keepdims) shape.push_back(is_reduced(d) ? dim(1) : x.dim(d));
  }
  return te::reduce({.name = x.stage()->name + "_red"}, shape, [&](const Indices& i) {
    Indices at;
    size_t spatial = 0, reduction = 0;
    for (int64_t d = 0; d < x.rank(); ++d) {
      if (is_reduced(d)) {
        at.push_back(iterators[reduction++]->var);
        spatial += keepdims;
      } else {
        at.push_back(i[spatial++]);
      }
    }
    return f(x(at), iterators);
  });
}

void need_numbers(DType dtype, const char* what) {
  if (dtype.is_bool())
    fail({.what = text("the ", what, " of truth values would be a truth value"),
          .needs = "numbers",
          .hint = "convert them before, by R.astype(x, \"int32\"), or use R.logical_or and R.logical_and"});
}

Tensor sum(const Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims) {
  need_numbers(x.dtype(), "sum");
  return reduce(x, axes, keepdims, te::reduce_sum);
}
Tensor max(const Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims) {
  return reduce(x, axes, keepdims, te::reduce_max);
}
Tensor mean(const Tensor& x, const std::optional<std::vector<int64_t>>& axes, bool keepdims) {
  Expr count = dim(1);
  for (int64_t d : sorted_axes(axes, x.rank())) count = count * x.dim(d);
  if (is_zero(count) && x.dtype().is_float()) {  // the mean of nothing is no number
    Expr nan = float_imm(std::numeric_limits<double>::quiet_NaN(), x.dtype());
    return map({.name = "T_divide"}, sum(x, axes, keepdims), [&](const Expr&) { return nan; });
  }
  if (x.dtype().is_float())
    return zip(
        "T_divide", sum(x, axes, keepdims), count, [](const Expr& total, const Expr& n) { return average(total, n); });
  // Of integers the whole sum counts, and what is behind the point is cut off; the mean of nothing is 0.
  return cast(divide(sum(cast(x, i64), axes, keepdims), sator::max(cast_to(i64, count), int_imm(1, i64))), x.dtype());
}

std::function<Expr(const Indices&)> median_place(const Tensor& rows) {
  const Expr count = rows.dim(-1), middle = floordiv(count - 1, 2);
  if (!rows.dtype().is_float()) return [=](const Indices&) { return middle; };
  std::vector<Expr> shape = rows.shape();
  shape.pop_back();
  const Tensor nans = te::reduce({.name = "T_nans"}, shape, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(count, "k");
    Indices at = i;
    at.push_back(k->var);
    return te::reduce_sum(cast_to(i64, te::is_nan(rows(at))), {k});
  });
  const Tensor place = te::compute({.name = "T_place"}, shape, [&](const Indices& i) {
    return select(gt(nans(i), dim(0)), count - nans(i), middle);
  });
  return [=](const Indices& row) { return place(row); };
}

// The row's greatest element is subtracted first, so that exp cannot overflow.
// Source: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018.
Tensor softmax(const Tensor& x, int64_t axis) {
  std::vector<int64_t> along{axis < 0 ? axis + x.rank() : axis};
  std::vector<Expr> rows = without(x.shape(), along);
  auto element = [&](const Tensor& t, const Indices& i, const tir::IterVarRef& k) {
    Indices at = i;
    at.insert(at.begin() + along[0], k->var);
    return t(at);
  };
  Tensor greatest = te::reduce(python_naming("T_softmax_maxelem"), rows, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(x.dim(along[0]), "k");
    return te::reduce_max(element(x, i, k), {k});
  });
  Tensor e = te::compute(python_naming("T_softmax_exp"), x.shape(), [&](const Indices& i) {
    return math("exp", x(i) - greatest(without(i, along)));
  });
  Tensor total = te::reduce(python_naming("T_softmax_expsum"), rows, [&](const Indices& i) {
    tir::IterVarRef k = te::reduce_axis(x.dim(along[0]), "k");
    return te::reduce_sum(element(e, i, k), {k});
  });
  Naming naming = python_naming("T_softmax_norm");
  naming.annotations = {{"axis", int_imm(along[0])}};
  return te::compute(naming, x.shape(), [&](const Indices& i) { return div(e(i), total(without(i, along))); });
}

}  // namespace sator::relax
