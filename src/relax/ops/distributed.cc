// Where tensors lie on several devices. The rows give struct info: programs of several devices are not built.
#include "relax/builder.h"
#include "relax/ops/families.h"
#include "relax/ops/formula.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

struct DistributionAttrs {
  NodeRef device_mesh;
  std::string placement;
  static constexpr auto fields() {
    return std::tuple{required("device_mesh", &DistributionAttrs::device_mesh),
                      required("placement", &DistributionAttrs::placement)};
  }
};

const DTensorInfo& distributed(const CallInfo& in) {
  const DTensorInfo* d = in.info(0).as<DTensorInfo>();
  if (!d)
    in.fail({.what = text("the argument is ", in.info(0)),
             .needs = "R.DTensor, a tensor on several devices",
             .hint = "R.dist.annotate_sharding says where a tensor of one device is to lie"});
  return *d;
}

StructInfo infer_annotate_sharding(const DistributionAttrs&, const CallInfo& in) { return in.info(0); }
StructInfo infer_redistribute(const DistributionAttrs& a, const CallInfo& in) {
  return dtensor_info(distributed(in).tensor, cast<DeviceMesh>(a.device_mesh), *placement_from_text(a.placement));
}

StructInfo infer_call_tir_local_view(const CallInfo& in) {
  if (in.call().sinfo_args.size() != 1 || in.size() < 2 || !in.arg(0).as<GlobalVar>() || !in.info(1).as<TupleInfo>())
    in.fail({.what = "the call does not name a tensor program, its arguments and its result",
             .needs = "a PrimFunc of the module, a tuple, out_sinfo",
             .hint = "R.dist.call_tir_local_view(cls.f, (x,), out_sinfo=R.DTensor(...))"});
  return in.call().sinfo_args[0];
}

struct CutAttrs {
  int num_workers = 1;
  int axis = 0;
  static constexpr auto fields() {
    return std::tuple{required("num_workers", &CutAttrs::num_workers), required("axis", &CutAttrs::axis)};
  }
};
/// Each worker keeps its part of what all have. Of a tensor of one device that is the part's struct info; of a
/// distributed one the tensor as a whole, which is cut now.
StructInfo infer_replica_to_shard(const CutAttrs& a, const CallInfo& in) {
  const DTensorInfo* d = in.info(0).as<DTensorInfo>();
  const TensorInfo& x = d ? *d->tensor : in.tensor(0);
  auto shape = shape_of(x);
  if (!shape || a.num_workers < 1)
    in.fail({.what = "x has no known shape, or there are no workers",
             .needs = "a known shape and num_workers >= 1",
             .hint = "match_cast x first"});
  const int axis = in.axis(a.axis, x.ndim);
  Expr& extent = (*shape)[static_cast<size_t>(axis)];
  if (!in.arith().prove(make<EQ>(floormod(extent, a.num_workers), int_imm(0, i64))))
    in.fail({.what = text("axis ", axis, " of extent ", extent, " among ", a.num_workers, " workers"),
             .needs = "an extent that num_workers divides",
             .hint = "pad the axis"});
  if (!d) {
    extent = div(extent, int_imm(a.num_workers, i64));
    return tensor_info(*shape, x.dtype, x.vdevice);
  }
  if (d->placement != std::vector<int>{-1})
    in.fail({.what = text("a tensor placed as ", placement_text(d->placement)),
             .needs = "a copy on each device of a mesh of one axis",
             .hint = "R.dist.redistribute moves other parts"});
  return dtensor_info(d->tensor, d->mesh, {axis});
}

[[noreturn]] RExpr refuse_distribution(const RCallRef& call, BlockBuilder&) {
  fail({.what = text("R.", op_name(call), " is about tensors on several devices"),
        .needs = "tensors of one device: programs of several are read and checked, not built",
        .hint = "leave out the ops of R.dist, and declare R.Tensor"});
}

/// The worker's own part of x, by its number, which TVM's runtime knows.
RExpr legalize_replica_to_shard(const RCallRef& call, BlockBuilder& b) {
  const auto a = read_attrs<CutAttrs>(call->attrs);
  const TensorInfo* x = call->args[0]->sinfo.as<TensorInfo>();
  if (!x) return refuse_distribution(call, b);
  const size_t axis = static_cast<size_t>(a.axis < 0 ? a.axis + x->ndim : a.axis);
  const VarRef worker = make_var("worker_id", i64);
  const RExpr known =
      b.emit(relax::call(op_ref("call_pure_packed"), {extern_func("runtime.disco.worker_id")}, {}, {shape_info()}));
  b.emit_match_cast(known, shape_info({worker}));
  return b.call_te("strided_slice", {call->args[0], prim_value(Expr(worker))}, [&](const TeInputs& in) {
    std::vector<Expr> part = in.tensor(0).shape();
    part[axis] = div(part[axis], dim(a.num_workers));
    return std::vector{te::compute(python_naming("redistribute_replica_to_shard"), part, [&](const te::Indices& i) {
      te::Indices from = i;
      from[axis] = in.scalar(1) * part[axis] + i[axis];
      return in.tensor(0)(from);
    })};
  });
}

}  // namespace

std::vector<OpDef> distributed_ops() {
  const std::vector<InputDef> input{{"input"}};
  const std::vector<AttrDef> distribution = attrs_of<DistributionAttrs>();
  return {
      {.name = "dist.annotate_sharding",
       .inputs = input,
       .attrs = distribution,
       .infer = with(infer_annotate_sharding),
       .legalize = refuse_distribution,
       .calls_library = true},
      {.name = "dist.redistribute",
       .inputs = input,
       .attrs = distribution,
       .infer = with(infer_redistribute),
       .legalize = refuse_distribution,
       .calls_library = true},
      {.name = "dist.call_tir_local_view",
       .inputs = {{"func", InputKind::any}, {"args", InputKind::any}, {"tir_vars", InputKind::shape, true}},
       .infer = infer_call_tir_local_view,
       .legalize = refuse_distribution,
       .calls_library = true,
       .variadic = true},
      {.name = "dist.redistribute_replica_to_shard",
       .inputs = input,
       .attrs = attrs_of<CutAttrs>(),
       .infer = with(infer_replica_to_shard),
       .legalize = legalize_replica_to_shard,
       .calls_library = true},
  };
}

}  // namespace sator::relax
