// Tensors in another order of their elements, by a map of indices.
#include <algorithm>

#include "arith/index_map.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

using arith::IndexMap;
using te::Indices;
using te::Tensor;

/// layout_transform(x): the element of x at i stands at index_map(i).
///   x      any dtype
///   →      the smallest shape from 0 on that holds all of them, same dtype
/// What the map sends nothing to is padding: pad_value, or undefined without one (0 here).
/// `axis_separators` and `input_axis_separators` say before which axes the memory of the result and of x begins another
/// dimension; they do not change a value.
/// Errors: the map takes another number of indices than x has axes; pad_value does not fit the dtype; the image does not
/// begin at 0. Two elements at one place are refused where the op becomes a program.
struct LayoutTransformAttrs {
  NodeRef index_map;
  NodeRef pad_value;
  Axes axis_separators;
  Axes input_axis_separators;
  static constexpr auto fields() {
    return std::tuple{required("index_map", &LayoutTransformAttrs::index_map),
                      attr("pad_value", &LayoutTransformAttrs::pad_value),
                      attr("axis_separators", &LayoutTransformAttrs::axis_separators),
                      attr("input_axis_separators", &LayoutTransformAttrs::input_axis_separators)};
  }
};

/// The number behind a pad_value; null if it is none.
Expr number_in(const NodeRef& pad) {
  if (const PrimValue* p = pad.as<PrimValue>()) return p->value;
  if (pad.as<IntImm>() || pad.as<FloatImm>()) return Expr(pad.as<ExprNode>());
  return nullptr;
}

void need_separators(const CallInfo& in, const Axes& separators, int64_t rank) {
  if (std::ranges::is_sorted(separators) &&
      std::ranges::all_of(separators, [&](int64_t s) { return s >= 0 && s <= rank; }))
    return;
  in.fail({.what = "axis separators that are not in order, or outside of the axes",
           .needs = text("numbers from 0 to ", rank, " in ascending order"),
           .hint = "name the axes before which memory begins another dimension"});
}

StructInfo infer_layout_transform(const LayoutTransformAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const IndexMap* map = a.index_map.as<IndexMap>();
  if (!map)
    in.fail({.what = "index_map is no map of indices",
             .needs = "a lambda, or T.index_map(lambda ...)",
             .hint = "lambda i: (i // 16, i % 16)"});
  if (x.ndim >= 0 && static_cast<int>(map->initial_indices.size()) != x.ndim)
    in.fail({.what = text("a map of ", map->initial_indices.size(), " indices for a tensor of rank ", x.ndim),
             .needs = "one index per axis",
             .hint = "name every axis in the map"});
  if (a.pad_value) {
    const Expr pad = number_in(a.pad_value);
    if (!pad || (pad->dtype.is_float() && !x.dtype.is_void() && !x.dtype.is_float()))
      in.fail({.what = text("pad_value ", pad ? text("of ", pad->dtype) : "is no number", " in a tensor of ", x.dtype),
               .needs = "a number of the tensor's dtype",
               .hint = "write an integer, or cast the tensor"});
  }
  const int rank = static_cast<int>(map->final_indices.size());
  need_separators(in, a.axis_separators, rank);
  need_separators(in, a.input_axis_separators, static_cast<int64_t>(map->initial_indices.size()));
  auto shape = shape_of(x);
  if (!shape) return tensor_info(x.dtype, rank, x.vdevice);
  return tensor_info(arith::map_shape(*map, *shape, in.arith()), x.dtype, x.vdevice);
}

Tensor compute_layout_transform(const LayoutTransformAttrs& a, const TeInputs& in) {
  const Tensor& x = in.tensor(0);
  const IndexMap& map = *a.index_map.as<IndexMap>();
  arith::Analyzer arith;
  arith::Region box;
  for (const Expr& extent : x.shape()) box.push_back(make<Range>(int_imm(0, extent->dtype), extent));
  const arith::InverseMap back = arith::non_surjective_inverse(map, box, arith);
  if (!back.ok())
    fail({.what = "layout_transform: the map has no inverse: " + back.error,
          .needs = "a map that sends every element to a place of its own",
          .hint = "write it with +, *, // and % so that no two indices meet"});
  const bool pads = !is_zero(back.padding_predicate);
  Expr pad = a.pad_value ? number_in(a.pad_value) : int_imm(0, i64);
  pad = cast_to(x.dtype(), pad);
  return te::compute({.name = pads ? "te_layout_transform_with_pad" : "te_layout_transform", .axis = "axis"},
                     in.out_shape(),
                     [&](const Indices& i) {
                       Expr value = x(arith::map_indices(*back.map, i, arith));
                       if (!pads) return value;
                       VarMap at;
                       for (size_t d = 0; d < i.size(); ++d) at.emplace(back.map->initial_indices[d], i[d]);
                       return if_then_else(arith::substitute_promoting(back.padding_predicate, at), pad, value);
                     });
}

}  // namespace

std::vector<OpDef> layout_transform_ops() {
  return {{.name = "layout_transform",
           .inputs = {{"x"}},
           .attrs = attrs_of<LayoutTransformAttrs>(),
           .infer = with(infer_layout_transform),
           .compute = with(compute_layout_transform),
           .func = "te_layout_transform"}};
}

}  // namespace sator::relax
