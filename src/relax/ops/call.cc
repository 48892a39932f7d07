// Ops that call functions: tensor programs, runtime functions, closures; and what a graph says to the runtime.
#include <algorithm>
#include <set>

#include "relax/ops/families.h"
#include "relax/ops/infer.h"
#include "relax/struct_info.h"

namespace sator::relax {

namespace {

/// What sinfo_args say: nothing is `otherwise`, several are a tuple.
StructInfo from_sinfo_args(const CallInfo& in, StructInfo otherwise) {
  const std::vector<StructInfo>& given = in.call().sinfo_args;
  return given.empty() ? otherwise : given.size() == 1 ? given[0] : tuple_info(given);
}
StructInfo infer_given(const CallInfo& in) { return from_sinfo_args(in, object_info()); }
StructInfo infer_given_or_void(const CallInfo& in) { return from_sinfo_args(in, tuple_info({})); }

void need_tuple(const CallInfo& in, size_t i) {
  if (!in.info(i).as<TupleInfo>())
    in.fail({.what = text("argument ", i, " is ", in.info(i)->info().name),
             .needs = "a tuple of arguments",
             .hint = "write the arguments as (a, b)"});
}

StructInfo infer_call_tir(const CallInfo& in) {
  if (in.call().sinfo_args.size() != 1)
    in.fail({.what = "the result is not declared", .needs = "out_sinfo", .hint = "pass out_sinfo=R.Tensor(...)"});
  if (in.size() < 2 || in.size() > 3)
    in.fail({.what = text("called with ", in.size(), " arguments"),
             .needs = "function, arguments and optional tir_vars",
             .hint = "put the arguments into one tuple"});
  if (!in.arg(0).as<GlobalVar>())
    in.fail({.what = "the callee is no function of the module",
             .needs = "a PrimFunc of the module, cls.name",
             .hint = "use call_dps_packed for a runtime function"});
  need_tuple(in, 1);
  return in.call().sinfo_args[0];
}

struct InplaceAttrs {
  Axes inplace_indices;  ///< per output the argument whose memory it takes, -1 for fresh memory
  static constexpr auto fields() { return std::tuple{required("inplace_indices", &InplaceAttrs::inplace_indices)}; }
};

void check_inplace(const CallInfo& in, const Axes& indices, size_t args) {
  std::set<int64_t> seen;
  for (int64_t i : indices) {
    if (i < -1 || i >= static_cast<int64_t>(args))
      in.fail({.what = text("in-place index ", i, " of ", args, " arguments"),
               .needs = "-1 <= index < the number of arguments",
               .hint = "count the arguments from 0"});
    if (i >= 0 && !seen.insert(i).second)
      in.fail({.what = text("in-place index ", i, " is given twice"),
               .needs = "each argument at most once",
               .hint = "give the other output fresh memory with -1"});
  }
  if (seen.empty())
    in.fail({.what = "no output is in place",
             .needs = "at least one index that is not -1",
             .hint = "use the call without inplace"});
}

std::vector<StructInfo> outputs_of(const StructInfo& out) {
  const TupleInfo* tuple = out.as<TupleInfo>();
  return tuple ? tuple->items : std::vector{out};
}

StructInfo infer_call_tir_inplace(const InplaceAttrs& a, const CallInfo& in) {
  StructInfo out = infer_call_tir(in);
  const std::vector<StructInfo>& args = in.info(1).as<TupleInfo>()->items;
  check_inplace(in, a.inplace_indices, args.size());
  std::vector<StructInfo> outputs = outputs_of(out);
  if (a.inplace_indices.size() != outputs.size())
    in.fail({.what = text(a.inplace_indices.size(), " in-place indices for ", outputs.size(), " outputs"),
             .needs = "one index per output",
             .hint = "give -1 for fresh memory"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (a.inplace_indices[i] < 0) continue;
    const TensorInfo* arg = args[static_cast<size_t>(a.inplace_indices[i])].as<TensorInfo>();
    const TensorInfo* result = outputs[i].as<TensorInfo>();
    auto s = arg ? shape_of(*arg) : std::nullopt, t = result ? shape_of(*result) : std::nullopt;
    if (!arg || !result || arg->dtype != result->dtype || !s || !t || s->size() != t->size() || !in.same(*s, *t))
      in.fail({.what = text("output ", i, " and the argument whose memory it takes differ"),
               .needs = "equal shapes and dtypes",
               .hint = "give the output fresh memory with -1"});
  }
  return out;
}

struct GradAttrs {
  std::string te_grad_name;
  NodeRef te_grad_kwargs;
  static constexpr auto fields() {
    return std::tuple{required("te_grad_name", &GradAttrs::te_grad_name),
                      attr("te_grad_kwargs", &GradAttrs::te_grad_kwargs)};
  }
};
StructInfo infer_call_tir_with_grad(const GradAttrs&, const CallInfo& in) { return infer_call_tir(in); }

StructInfo infer_call_dps_packed(const CallInfo& in) {
  if (in.call().sinfo_args.size() != 1)
    in.fail({.what = "the result is not declared", .needs = "out_sinfo", .hint = "pass out_sinfo=R.Tensor(...)"});
  need_tuple(in, 1);
  return in.call().sinfo_args[0];
}

StructInfo infer_packed(const CallInfo& in) {
  if (in.size() < 1) in.fail({.what = "there is no callee", .needs = "a function", .hint = "name it first"});
  const FuncInfo* f = in.info(0).as<FuncInfo>();
  if (!f || f->params)
    in.fail({.what = "the callee has a known signature, or is no function",
             .needs = "a runtime function",
             .hint = "call functions of the module directly"});
  return in.arg(0).as<ExternFunc>() ? from_sinfo_args(in, object_info()) : f->ret;
}

StructInfo infer_call_inplace_packed(const InplaceAttrs& a, const CallInfo& in) {
  StructInfo out = infer_packed(in);
  check_inplace(in, a.inplace_indices, in.size() - 1);
  std::vector<StructInfo> outputs = a.inplace_indices.size() == 1 ? std::vector{out} : outputs_of(out);
  if (outputs.size() != a.inplace_indices.size())
    in.fail({.what = text(a.inplace_indices.size(), " in-place indices for ", outputs.size(), " results"),
             .needs = "one index per result",
             .hint = "declare the results with sinfo_args"});
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (a.inplace_indices[i] < 0) continue;
    if (base_check(outputs[i], in.info(static_cast<size_t>(a.inplace_indices[i]) + 1), in.arith()) != BaseCheck::pass)
      in.fail({.what = text("result ", i, " does not have the struct info of argument ", a.inplace_indices[i]),
               .needs = "the declared result holds for the argument",
               .hint = "correct sinfo_args"});
  }
  return out;
}

// ---- Shapes and tensors ----

StructInfo infer_shape_of(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  auto shape = explicit_shape(x);
  return shape ? shape_info(*shape) : shape_info(x.ndim);
}
StructInfo infer_tensor_to_shape(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  if (x.ndim >= 0 && x.ndim != 1)
    in.fail({.what = text("a tensor of rank ", x.ndim), .needs = "rank 1", .hint = "reshape it"});
  auto shape = explicit_shape(x);
  auto extent = shape ? as_int((*shape)[0]) : std::nullopt;
  return shape_info(extent ? static_cast<int>(*extent) : -1);
}
StructInfo infer_shape_to_tensor(const CallInfo& in) {
  const ShapeInfo& s = in.shape(0);
  return s.ndim < 0 ? tensor_info(i64, 1) : tensor_info({int_imm(s.ndim, i64)}, i64);
}

// ---- Checks, closures, devices ----

/// A bool scalar, or something of which that is not yet known.
StructInfo infer_assert(const CallInfo& in) {
  const StructInfo& condition = in.info(0);
  const PrimInfo* p = condition.as<PrimInfo>();
  const TensorInfo* t = condition.as<TensorInfo>();
  bool fits =
      (p && p->dtype.is_bool()) || (t && (t->dtype.is_void() || t->dtype.is_bool()) && (t->ndim < 0 || t->ndim == 0));
  if (!fits) in.fail({.what = "the condition is no bool scalar", .needs = "bool of rank 0", .hint = "compare first"});
  return tuple_info({});
}

struct DeviceAttrs {
  NodeRef dst_vdevice;
  static constexpr auto fields() { return std::tuple{required("dst_vdevice", &DeviceAttrs::dst_vdevice)}; }
};
StructInfo infer_to_vdevice(const DeviceAttrs& a, const CallInfo& in) {
  const StringImm* name = a.dst_vdevice.as<StringImm>();
  return with(in.tensor(0), &TensorInfo::vdevice, name ? name->value : std::string());
}
StructInfo infer_hint_on_device(const DeviceAttrs&, const CallInfo& in) { return ref(in.tensor(0)); }

}  // namespace

std::vector<OpDef> call_ops() {
  InputDef func{"func", InputKind::any}, args{"args", InputKind::any}, vars{"tir_vars", InputKind::shape, true};
  auto call = [](std::string name, std::vector<InputDef> inputs, InferFn infer, std::vector<AttrDef> attrs = {}) {
    return OpDef{.name = std::move(name),
                 .inputs = std::move(inputs),
                 .attrs = std::move(attrs),
                 .infer = std::move(infer),
                 .variadic = true};
  };
  auto impure = [](OpDef op) {
    op.pure = false;
    return op;
  };
  std::vector<AttrDef> inplace = attrs_of<InplaceAttrs>(), device = attrs_of<DeviceAttrs>();
  return {
      call("call_tir", {func, args, vars}, infer_call_tir),
      call("call_tir_inplace", {func, args, vars}, with(infer_call_tir_inplace), inplace),
      call("call_tir_with_grad", {func, args, vars}, with(infer_call_tir_with_grad), attrs_of<GradAttrs>()),
      call("call_dps_packed", {func, args}, infer_call_dps_packed),
      call("call_pure_packed", {func}, infer_packed),
      call("call_inplace_packed", {func}, with(infer_call_inplace_packed), inplace),
      impure(call("call_builtin_with_ctx", {func, args}, infer_given_or_void)),
      call("make_closure", {func, args}, infer_object),
      impure(call("invoke_closure", {func, args}, infer_given)),
      call("invoke_pure_closure", {func, args}, infer_given),
      impure(call("print", {{"format", InputKind::any}}, infer_void)),
      impure(call("assert_op", {{"condition", InputKind::any}}, infer_assert)),
      {.name = "null_value", .infer = infer_object},
      {.name = "shape_of", .inputs = {{"expr"}}, .infer = infer_shape_of},
      {.name = "tensor_to_shape", .inputs = {{"expr"}}, .infer = infer_tensor_to_shape},
      {.name = "shape_to_tensor", .inputs = {{"expr", InputKind::shape}}, .infer = infer_shape_to_tensor},
      {.name = "to_vdevice", .inputs = {{"data"}}, .attrs = device, .infer = with(infer_to_vdevice)},
      {.name = "hint_on_device", .inputs = {{"data"}}, .attrs = device, .infer = with(infer_hint_on_device)},
  };
}

}  // namespace sator::relax
