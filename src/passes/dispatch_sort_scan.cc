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

/// A line as `count` parts of `length` elements, and the `rest` behind them.
struct LineParts {
  int64_t count, length, rest;
};
constexpr int64_t kLongSearch = 8192;  // elements of a line that is searched in parts
constexpr int64_t kPartOfSearch = 1024;

/// One axis in parts of kPartOfSearch, several in rows of their last one. Nothing where a line is short, or its extents are symbolic.
std::optional<LineParts> parts_of(const std::vector<Expr>& extents) {
  constexpr int64_t kShortest = 64;
  const auto last = as_int(extents.back());
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < extents.size(); ++d) {
    const auto n = as_int(extents[d]);
    if (!n || *n > max_int(i32)) return {};
    rows = std::min(rows * *n, max_int(i32));
  }
  if (!last || *last > max_int(i32) || rows * *last > max_int(i32) || rows * *last < kLongSearch) return {};
  if (extents.size() == 1) return LineParts{*last / kPartOfSearch, kPartOfSearch, *last % kPartOfSearch};
  return *last >= kShortest && rows > 1 ? std::optional(LineParts{rows, *last, 0}) : std::nullopt;
}

/// Where the extreme of each line along some axes stands.
///   counted   the dtype of positions
struct ExtremeSearch {
  const te::Tensor& elements;
  std::vector<int64_t> gone;
  bool greatest;
  DType counted;

  std::vector<Expr> kept() const { return without(elements.shape(), gone); }
  std::vector<Expr> extents() const { return only(elements.shape(), gone); }

  /// The element of the line that has the indices `inside` along the axes that go.
  Expr element(const te::Indices& line, const te::Indices& inside) const {
    te::Indices at;
    size_t next = 0, next_inside = 0;
    for (int64_t d = 0; d < static_cast<int64_t>(elements.shape().size()); ++d)
      at.push_back(std::ranges::binary_search(gone, d) ? inside[next_inside++] : line[next++]);
    const Expr e = elements(at);
    return e->dtype.is_float() && e->dtype.bits < 32 ? cast_to(f32, e) : e;
  }
  Expr element(const te::Indices& line, const Expr& part, const Expr& k) const {
    if (gone.size() == 1) return element(line, {part * kPartOfSearch + k});
    std::vector<Expr> rows = extents();
    rows.pop_back();
    te::Indices inside = unravel(part, rows);
    inside.push_back(k);
    return element(line, inside);
  }

  te::Reduction extreme_of(const Expr& e, const std::vector<tir::IterVarRef>& k) const {
    return greatest ? te::reduce_max(e, k) : te::reduce_min(e, k);
  }
  Expr extreme_of(const Expr& a, const Expr& b) const { return greatest ? max(a, b) : min(a, b); }
  /// The least `position` whose element is the line's extreme: a NaN where there is one.
  te::Reduction first_of(const Expr& e, const Expr& extreme, const Expr& position,
                         const std::vector<tir::IterVarRef>& k) const {
    Expr found = eq(e, extreme);
    if (e->dtype.is_float()) found = logical_or(found, te::is_nan(e));
    return te::reduce_min(select(found, cast_to(counted, position), te::max_value(counted)), k);
  }
  Expr number(int64_t n) const { return int_imm(n, counted); }

  te::Tensor of_all() const {
    // Iterators of a reduction over the axes that go.
    auto over_line = [&](auto&& reduction) {
      std::vector<tir::IterVarRef> iterators;
      te::Indices inside;
      for (const Expr& extent : extents()) {
        iterators.push_back(te::reduce_axis(extent, text("k", iterators.size())));
        inside.push_back(iterators.back()->var);
      }
      return reduction(iterators, inside);
    };
    const te::Tensor extreme = te::reduce({.name = "T_extreme"}, kept(), [&](const te::Indices& i) {
      return over_line([&](const auto& k, const te::Indices& inside) { return extreme_of(element(i, inside), k); });
    });
    return te::reduce({.name = "T_first"}, kept(), [&](const te::Indices& i) {
      return over_line([&](const auto& k, const te::Indices& inside) {
        return first_of(element(i, inside), extreme(i), ravel(inside, extents()), k);
      });
    });
  }

  /// The extremes of parts of a line, and of what is left of it; then only the first part that holds the line's is searched.
  te::Tensor by_parts(const LineParts& parts) const {
    auto over = [](int64_t extent, auto&& reduction) {
      const tir::IterVarRef k = te::reduce_axis(int_imm(extent, i64), "k");
      return reduction(Expr(k->var), std::vector{k});
    };
    // LineParts stand where the first of the axes did, so that what they hold lies along the same axis.
    const auto at = static_cast<size_t>(gone.front());
    auto with_part = [&](te::Indices line, const Expr& p) {
      line.insert(line.begin() + gone.front(), p);
      return line;
    };
    const te::Tensor extremes =
        te::reduce({.name = "T_extremes"}, with_part(kept(), int_imm(parts.count, i64)), [&](te::Indices i) {
          const Expr p = i[at];
          i.erase(i.begin() + gone.front());
          return over(parts.length,
                      [&](const Expr& k, const auto& axes) { return extreme_of(element(i, p, k), axes); });
        });
    auto of_kept = [&](const char* name, int64_t extent, auto&& reduction) {
      return te::reduce({.name = name}, kept(), [&](const te::Indices& i) {
        return over(extent, [&](const Expr& k, const auto& axes) { return reduction(i, k, axes); });
      });
    };
    te::Tensor extreme = of_kept("T_extreme", parts.count, [&](const auto& i, const Expr& p, const auto& axes) {
      return extreme_of(extremes(with_part(i, p)), axes);
    });
    const int64_t whole = parts.count * parts.length;
    if (parts.rest > 0) {
      const te::Tensor of_rest =
          of_kept("T_extreme_of_rest", parts.rest, [&](const auto& i, const Expr& k, const auto& axes) {
            return extreme_of(element(i, {k + whole}), axes);
          });
      extreme = te::compute({.name = "T_extreme_of_both"}, kept(), [&, of_parts = extreme](const te::Indices& i) {
        return extreme_of(of_parts(i), of_rest(i));
      });
    }
    const te::Tensor part = of_kept("T_part", parts.count, [&](const auto& i, const Expr& p, const auto& axes) {
      return first_of(extremes(with_part(i, p)), extreme(i), p, axes);
    });
    const te::Tensor first = of_kept("T_first", parts.length, [&](const auto& i, const Expr& k, const auto& axes) {
      // Of a line whose extreme is in the rest, some part.
      const Expr in_range = max(min(part(i), number(parts.count - 1)), number(0));
      return first_of(element(i, cast_to(i64, in_range), k), extreme(i), k, axes);
    });
    te::Tensor in_rest = first;
    if (parts.rest > 0)
      in_rest = of_kept("T_first_of_rest", parts.rest, [&](const auto& i, const Expr& k, const auto& axes) {
        return first_of(element(i, {k + whole}), extreme(i), k + whole, axes);
      });
    return te::compute({.name = "T_first_of_all"}, kept(), [&](const te::Indices& i) {
      const Expr position = part(i) * number(parts.length) + first(i);
      return parts.rest > 0 ? select(lt(part(i), number(parts.count)), position, in_rest(i)) : position;
    });
  }
};

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
      const auto place = median_place(elements);
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
        at.push_back(place(at));
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
    int64_t count = 1;
    for (const Expr& e : only(*shape, gone)) {
      const auto n = as_int(e);
      count = n && *n <= max_int(i32) && count <= max_int(i32) ? count * *n : max_int(i64);
    }
    return builder().call_te(greatest ? "argmax" : "argmin", {call.args[0]}, [&](const TeInputs& in) {
      const ExtremeSearch search{in.tensor(0), gone, greatest, count <= max_int(i32) ? i32 : i64};
      const std::optional<LineParts> parts = parts_of(search.extents());
      const te::Tensor position = parts ? search.by_parts(*parts) : search.of_all();
      std::vector<Expr> results = search.elements.shape();
      for (int64_t d : gone) results[static_cast<size_t>(d)] = int_imm(1, i64);
      if (!keeps) results = search.kept();
      return std::vector<te::Tensor>{te::compute({.name = "T_position"}, results, [&](const te::Indices& i) {
        return cast_to(i64, position(keeps ? without(i, gone) : i));
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
