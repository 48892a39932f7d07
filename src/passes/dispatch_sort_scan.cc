// Sorts go to the runtime: as a tensor program each element is compared with each other one. The position of an extreme is looked
// for once the extreme is known: carried along with it, a position of 64 bits would take more work than the element.
#include "passes/dispatch_sort_scan.h"

#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/formula.h"
#include "relax/ops/table.h"
#include "relax/rewrite.h"

namespace sator::passes {

using namespace relax;

namespace {

/// The call of a builtin in the place of a sort; null where it stays.
RExpr dispatched(const RCall& call) {
  const Op* op = call.op.as<Op>();
  const bool sorts = op && (op->name == "sort" || op->name == "argsort"), selects = op && op->name == "topk";
  if (!sorts && !selects) return nullptr;
  const TensorInfo* x = call.args.at(0)->sinfo.as<TensorInfo>();
  if (!x || x->ndim < 0 || x->dtype.is_void() || x->dtype.is_bool()) return nullptr;
  const int64_t axis = int_attr(call.attrs, "axis").value_or(-1);
  const int64_t descending = int_attr(call.attrs, selects ? "largest" : "descending").value_or(selects);
  std::vector<StructInfo> results = {call.sinfo};
  if (const TupleInfo* both = call.sinfo.as<TupleInfo>()) results = both->items;
  for (const StructInfo& r : results)
    if (!r.as<TensorInfo>() || !shape_of(*r.as<TensorInfo>())) return nullptr;
  // One result of topk is the first elements of a sort.
  const bool values = op->name == "sort" || string_attr(call.attrs, "ret_type") == "values";
  const char* builtin = results.size() == 2 ? "vm.builtin.topk" : values ? "vm.builtin.sort" : "vm.builtin.argsort";
  const DType indices = results.back().as<TensorInfo>()->dtype;
  if ((results.size() == 2 || !values) && indices != i32 && indices != i64) return nullptr;
  const std::vector<RExpr> args = {call.args[0], prim_value(axis < 0 ? axis + x->ndim : axis), prim_value(descending)};
  return with_sinfo(
      relax::call(op_ref("call_dps_packed"), {extern_func(builtin), relax::tuple(args)}, {}, {call.sinfo}), call.sinfo);
}

/// argsort of the last axis of `rows`, by the runtime.
///   rows   [..., n]
///   →      [..., n] int64
RExpr argsorted(const RExpr& rows, int64_t rank, std::vector<Expr> shape) {
  return relax::call(op_ref("call_dps_packed"),
                     {extern_func("vm.builtin.argsort"), relax::tuple({rows, prim_value(rank - 1), prim_value(0)})},
                     {},
                     {tensor_info(std::move(shape), i64)});
}

class SortDispatcher final : public GraphRewriter {
 public:
  using GraphRewriter::GraphRewriter;

 private:
  RExpr value(const RVarRef&, const RExpr& value) override {
    const RCall* call = value.as<RCall>();
    if (!call) return value;
    if (is_op(value, "median")) return median(*call);
    if (is_op(value, "argmax") || is_op(value, "argmin")) return position_of_extreme(*call, is_op(value, "argmax"));
    const RExpr builtin = dispatched(*call);
    return builtin ? builtin : value;
  }

  /// Op `name` on `args`, bound to a variable.
  RExpr emit(const char* name, const std::vector<relax::Value>& args,
             const std::vector<std::pair<std::string, relax::Value>>& keywords = {}) {
    return builder().emit(make_call(name, args, keywords));
  }

  /// The element in the middle of the sorted ones: the axes that go are laid side by side, their order is taken by a sort.
  RExpr median(const RCall& call) {
    const TensorInfo* x = call.args[0]->sinfo.as<TensorInfo>();
    const auto shape = x ? explicit_shape(*x) : std::nullopt;
    if (!shape || shape->empty() || x->dtype.is_void()) return ref(call);
    const auto given = call.attrs.find("axis");
    std::vector<int64_t> gone, order;
    for (int64_t d = 0; d < x->ndim; ++d)
      if (given == call.attrs.end() || !given->second) gone.push_back(d);
    if (gone.empty())
      for (int64_t d : AttrType<Axes>::load(given->second)) gone.push_back(d < 0 ? d + x->ndim : d);
    std::vector<Expr> kept;
    Expr count = int_imm(1, i64);
    for (int64_t d = 0; d < x->ndim; ++d) {
      if (std::ranges::find(gone, d) != gone.end()) continue;
      order.push_back(d);
      kept.push_back((*shape)[static_cast<size_t>(d)]);
    }
    std::ranges::sort(gone);
    for (int64_t d : gone) {
      order.push_back(d);
      count = count * (*shape)[static_cast<size_t>(d)];
    }
    RExpr rows = call.args[0];
    if (!std::ranges::is_sorted(order)) rows = emit("permute_dims", {rows}, {{"axes", value_of(order)}});
    const auto rank = static_cast<int64_t>(kept.size()) + 1;
    std::vector<Expr> rows_shape = kept;
    rows_shape.push_back(count);
    if (gone.size() > 1) rows = emit("reshape", {rows, shape_expr(rows_shape)});
    const RExpr sorted = builder().emit(argsorted(rows, rank, rows_shape));
    // In one program the element and where it stands, of rows that what stays numbers; with all that went as 1, if asked.
    const TupleInfo* both = call.sinfo.as<TupleInfo>();
    const auto keepdims = call.attrs.find("keepdims");
    const bool keeps = keepdims != call.attrs.end() && !is_zero(cast<ExprNode>(keepdims->second));
    return builder().call_te("median", {rows, sorted}, [&](const TeInputs& in) {
      const te::Tensor &elements = in.tensor(0), &order_of = in.tensor(1);
      std::vector<Expr> out_shape;
      auto kept_extent = elements.shape().begin();
      for (int64_t d = 0; d < x->ndim; ++d) {
        const bool is_gone = std::ranges::binary_search(gone, d);
        if (!is_gone || keeps) out_shape.push_back(is_gone ? int_imm(1, i64) : *kept_extent++);
      }
      auto position = [&](const te::Indices& i) {
        te::Indices at;
        for (size_t d = 0; d < i.size(); ++d)
          if (!keeps || !std::ranges::binary_search(gone, static_cast<int64_t>(d))) at.push_back(i[d]);
        at.push_back(floordiv(elements.dim(-1) - 1, 2));
        return at;
      };
      std::vector<te::Tensor> out = {te::compute({.name = "T_median"}, out_shape, [&](const te::Indices& i) {
        te::Indices at = position(i);
        at.back() = order_of(position(i));
        return elements(at);
      })};
      if (both)
        out.push_back(te::compute(
            {.name = "T_median_index"}, out_shape, [&](const te::Indices& i) { return order_of(position(i)); }));
      return out;
    });
  }

  /// The extreme along the axis, or of all elements, a NaN where there is one; then the first position that holds it.
  RExpr position_of_extreme(const RCall& call, bool greatest) {
    const TensorInfo* x = call.args[0]->sinfo.as<TensorInfo>();
    const auto shape = x ? explicit_shape(*x) : std::nullopt;
    if (!shape || shape->empty() || !(x->dtype.is_integer() || x->dtype.is_ieee_float() || x->dtype.is_bfloat()) ||
        x->dtype.is_bool())
      return ref(call);
    const auto axis = int_attr(call.attrs, "axis");
    const bool keeps = int_attr(call.attrs, "keepdims").value_or(0) != 0;
    const std::vector<int64_t> gone = sorted_axes(axis ? std::optional(Axes{*axis}) : std::nullopt, x->ndim);
    return builder().call_te(greatest ? "argmax" : "argmin", {call.args[0]}, [&](const TeInputs& in) {
      const te::Tensor& elements = in.tensor(0);
      const std::vector<Expr> extents = only(elements.shape(), gone), kept = without(elements.shape(), gone);
      int64_t count = 1;
      for (const Expr& e : extents) {
        const auto n = as_int(e);
        count = n && *n <= max_int(i32) && count <= max_int(i32) ? count * *n : max_int(i64);
      }
      const DType counted = count <= max_int(i32) ? i32 : i64;
      // Elements along all axes, those that go by iterators of a reduction.
      struct Walk {
        std::vector<tir::IterVarRef> iterators;
        te::Indices inside;
      };
      auto walk_over = [&] {
        Walk w;
        for (size_t d = 0; d < extents.size(); ++d) {
          w.iterators.push_back(te::reduce_axis(extents[d], text("k", d)));
          w.inside.push_back(w.iterators.back()->var);
        }
        return w;
      };
      auto element = [&](const te::Indices& i, const Walk& w) {
        te::Indices at;
        size_t next = 0, next_inside = 0;
        for (int64_t d = 0; d < x->ndim; ++d)
          at.push_back(std::ranges::binary_search(gone, d) ? w.inside[next_inside++] : i[next++]);
        const Expr e = elements(at);
        return e->dtype.is_float() && e->dtype.bits < 32 ? cast_to(f32, e) : e;
      };
      const te::Tensor extreme = te::reduce({.name = "T_extreme"}, kept, [&](const te::Indices& i) {
        const Walk w = walk_over();
        const Expr e = element(i, w);
        if (!e->dtype.is_float()) return greatest ? te::reduce_max(e, w.iterators) : te::reduce_min(e, w.iterators);
        return te::Reduction{
            greatest ? te::max_or_nan_reducer(e->dtype) : te::min_or_nan_reducer(e->dtype), {e}, w.iterators};
      });
      const te::Tensor first = te::reduce({.name = "T_first"}, kept, [&](const te::Indices& i) {
        const Walk w = walk_over();
        const Expr e = element(i, w), wanted = extreme(i);
        Expr found = eq(e, wanted);
        if (e->dtype.is_float()) found = logical_or(found, logical_and(te::is_nan(e), te::is_nan(wanted)));
        const Expr position = cast_to(counted, ravel(w.inside, extents));
        return te::reduce_min(select(found, position, te::max_value(counted)), w.iterators);
      });
      std::vector<Expr> out_shape = elements.shape();
      for (int64_t d : gone) out_shape[static_cast<size_t>(d)] = int_imm(1, i64);
      if (!keeps) out_shape = kept;
      return std::vector<te::Tensor>{te::compute({.name = "T_position"}, out_shape, [&](const te::Indices& i) {
        return cast_to(i64, first(keeps ? without(i, gone) : i));
      })};
    });
  }

  static relax::Value value_of(const std::vector<int64_t>& numbers) {
    relax::Value::List items;
    for (int64_t n : numbers) items.emplace_back(n);
    return {std::move(items), false};
  }
};

}  // namespace

ModuleRef dispatch_sort_scan(const ModuleRef& module, const PassContext& ctx) {
  if (ctx.target && !ctx.target->is_cpu()) return module;
  return rewrite_functions(
      module, [](const FuncRef& f, BlockBuilder& builder) { return SortDispatcher(builder).function(*f); });
}

}  // namespace sator::passes
