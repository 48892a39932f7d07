// Communication between workers.
#include <algorithm>

#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

struct AllReduceAttrs {
  std::string op_type = "sum";  ///< sum | prod | min | max | avg
  static constexpr auto fields() { return std::tuple{attr("op_type", &AllReduceAttrs::op_type)}; }
};
StructInfo infer_allreduce(const AllReduceAttrs& a, const CallInfo& in) {
  if (a.op_type != "sum" && a.op_type != "prod" && a.op_type != "min" && a.op_type != "max" && a.op_type != "avg")
    in.fail({.what = text("op_type ", string_literal(a.op_type)),
             .needs = "sum, prod, min, max or avg",
             .hint = "choose one of these"});
  // The workers of a mesh of devices.
  if (in.info(0).as<DTensorInfo>()) return in.info(0);
  return infer_same(in);
}

StructInfo infer_allgather(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const PrimInfo* workers = in.info(1).as<PrimInfo>();
  auto shape = shape_of(x);
  if (!shape || shape->empty() || !workers || !workers->value) return ref(x);
  (*shape)[0] = (*shape)[0] * workers->value;
  return tensor_info(*shape, x.dtype, x.vdevice);
}

struct ScatterAttrs {
  int num_workers = 1;
  int axis = 0;
  static constexpr auto fields() {
    return std::tuple{required("num_workers", &ScatterAttrs::num_workers), attr("axis", &ScatterAttrs::axis)};
  }
};
StructInfo infer_scatter(const ScatterAttrs& a, const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto shape = shape_of(x);
  if (!shape || a.num_workers < 1)
    in.fail({.what = "x has no known shape, or there are no workers",
             .needs = "a known shape and num_workers >= 1",
             .hint = "match_cast x first"});
  Expr& extent = (*shape)[static_cast<size_t>(in.axis(a.axis, x.ndim))];
  if (in.differ(floormod(extent, a.num_workers), int_imm(0, i64)))
    in.fail({.what = text("axis ", a.axis, " cannot be divided among ", a.num_workers, " workers"),
             .needs = "an extent that num_workers divides",
             .hint = "pad the axis"});
  extent = div(extent, int_imm(a.num_workers, i64));
  return tensor_info(*shape, x.dtype, x.vdevice);
}

/// A call of the communication library of TVM's runtime, which a program of several workers has.
RExpr library_call(const RCallRef& call, const char* name, std::vector<RExpr> args) {
  return relax::call(op_ref("call_dps_packed"),
                     {extern_func(text("runtime.disco.", name)), relax::tuple(std::move(args))},
                     {},
                     {call->sinfo});
}
RExpr legalize_allreduce(const RCallRef& call, BlockBuilder&) {
  static const std::vector<std::string> kKinds = {"sum", "prod", "min", "max", "avg"};
  const auto a = read_attrs<AllReduceAttrs>(call->attrs);
  const auto kind = std::ranges::find(kKinds, a.op_type) - kKinds.begin();
  return library_call(call, "allreduce", {call->args[0], shape_expr({int_imm(kind, i64)})});
}
RExpr legalize_allgather(const RCallRef& call, BlockBuilder&) {
  return library_call(call, "allgather", {call->args[0]});
}
RExpr legalize_broadcast(const RCallRef& call, BlockBuilder&) {
  return library_call(call, "broadcast_from_worker0", {call->args[0]});
}
/// The parts for the workers one after the other: x with `axis` cut in num_workers, which becomes the first axis.
RExpr legalize_scatter(const RCallRef& call, BlockBuilder& b) {
  const auto a = read_attrs<ScatterAttrs>(call->attrs);
  const TensorInfo& x = *call->args[0]->sinfo.as<TensorInfo>();
  auto shape = explicit_shape(x);
  if (!shape || x.dtype.is_void()) return nullptr;
  const int64_t axis = a.axis < 0 ? a.axis + x.ndim : a.axis;
  RExpr parts = b.emit(b.call_te("reshape", {call->args[0]}, [&](const TeInputs& in) {
    std::vector<Expr> cut = in.tensor(0).shape();
    const auto at = static_cast<size_t>(axis);
    cut[at] = div(cut[at], dim(a.num_workers));
    cut.insert(cut.begin() + axis, dim(a.num_workers));
    return std::vector{reshape(in.tensor(0), cut)};
  }));
  if (axis != 0)
    parts = b.emit(b.call_te("transpose", {parts}, [&](const TeInputs& in) {
      std::vector<int64_t> order{axis};
      for (int64_t d = 0; d < in.tensor(0).rank(); ++d)
        if (d != axis) order.push_back(d);
      return std::vector{transpose(in.tensor(0), order)};
    }));
  std::vector<Expr> part = *shape_of(*parts->sinfo.as<TensorInfo>());
  part.erase(part.begin());
  return relax::call(op_ref("call_dps_packed"),
                     {extern_func("runtime.disco.scatter_from_worker0"), relax::tuple({parts})},
                     {},
                     {tensor_info(part, x.dtype, x.vdevice)});
}

}  // namespace

std::vector<OpDef> collective_ops() {
  return {
      {.name = "ccl.allreduce",
       .inputs = {{"x"}},
       .attrs = attrs_of<AllReduceAttrs>(),
       .infer = with(infer_allreduce),
       .legalize = legalize_allreduce,
       .calls_library = true},
      {.name = "ccl.allgather",
       .inputs = {{"x"}, {"num_workers", InputKind::scalar}},
       .infer = infer_allgather,
       .legalize = legalize_allgather,
       .calls_library = true},
      {.name = "ccl.broadcast_from_worker0",
       .inputs = {{"x"}},
       .infer = infer_same,
       .legalize = legalize_broadcast,
       .calls_library = true},
      {.name = "ccl.scatter_from_worker0",
       .inputs = {{"x"}},
       .attrs = attrs_of<ScatterAttrs>(),
       .infer = with(infer_scatter),
       .legalize = legalize_scatter,
       .calls_library = true},
  };
}

}  // namespace sator::relax
