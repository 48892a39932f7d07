// Ops about memory: storages, tensors in them, views; the forms of the graph level (builtin.*, memory.*) and those that
// the virtual machine executes (vm.*).
#include "relax/ops/families.h"
#include "relax/ops/infer.h"

namespace sator::relax {

namespace {

/// A tensor of the shape and dtype that these arguments name.
StructInfo allocated(const CallInfo& in, size_t shape, size_t dtype) {
  in.info(dtype);
  const DTypeImm* d = in.arg(dtype).as<DTypeImm>();
  DType element = d ? d->value : DType::Void();
  if (in.arg(shape).as<ShapeExpr>()) return tensor_info(in.arg(shape), element);
  const ShapeInfo& s = in.shape(shape);
  return s.values ? tensor_info(*s.values, element) : tensor_info(element, s.ndim);
}
StructInfo infer_builtin_alloc(const CallInfo& in) { return allocated(in, 0, 1); }
StructInfo infer_alloc_tensor(const CallInfo& in) { return allocated(in, 2, 3); }

/// Strings that Python leaves out: the storage scope is "global".
template <size_t kScope>
RExpr build_with_scope(const OpDef& op, BoundArgs args) {
  if (args.inputs[kScope].is_none()) args.inputs[kScope] = Value("global");
  return build_call(op, std::move(args));
}

// ---- memory.view: the bytes of a tensor under another shape, dtype or offset ----

/// Bytes of a tensor of this shape; null where they are not known.
Expr bytes_of(const std::optional<std::vector<Expr>>& shape, DType dtype) {
  if (!shape || dtype.is_void()) return nullptr;
  Expr bytes = int_imm(dtype.bytes(), i64);
  for (const Expr& e : *shape) bytes = bytes * e;
  return bytes;
}

bool is_void_value(const StructInfo& s) {
  const TupleInfo* t = s.as<TupleInfo>();
  return t && t->items.empty();
}

StructInfo infer_view(const CallInfo& in) {
  const TensorInfo& x = in.tensor(0);
  const StructInfo &shape = in.info(1), &dtype = in.info(2), &offset = in.info(3);
  bool new_shape = !is_void_value(shape), new_dtype = !is_void_value(dtype), has_offset = !is_void_value(offset);
  if (new_shape && !shape.as<ShapeInfo>() && !shape.as<ObjectInfo>())
    in.fail({.what = text("shape is ", shape->info().name), .needs = "a shape", .hint = "write R.shape([...])"});
  const DTypeImm* named = in.arg(2).as<DTypeImm>();
  if (new_dtype && !named && !dtype.as<ObjectInfo>())
    in.fail({.what = text("dtype is ", dtype->info().name), .needs = "a dtype", .hint = "write R.dtype(\"float32\")"});
  const PrimInfo* bytes = offset.as<PrimInfo>();
  if (has_offset && !offset.as<ObjectInfo>() && (!bytes || bytes->dtype != i64))
    in.fail({.what = "relative_byte_offset is no int64 scalar", .needs = "int64", .hint = "write R.prim_value(...)"});
  DType element = !new_dtype ? x.dtype : named ? named->value : DType::Void();
  std::optional<std::vector<Expr>> from = shape_of(x), to = from;
  int ndim = x.ndim;
  if (new_shape) {
    const ShapeInfo* s = shape.as<ShapeInfo>();
    to = s ? s->values : std::nullopt;
    ndim = s ? s->ndim : -1;
  } else if (new_dtype && (x.dtype.is_void() || element.is_void() || x.dtype.bytes() != element.bytes())) {
    if (!x.dtype.is_void() && !element.is_void())
      in.fail({.what = text("elements of ", x.dtype, " viewed as ", element, " under the same shape"),
               .needs = "elements of one size, or a new shape",
               .hint = "give the new shape"});
  }
  // Of one unknown dtype the elements are counted instead.
  bool is_counted = !new_dtype && x.dtype.is_void();
  Expr have = bytes_of(from, is_counted ? u8 : x.dtype), want = bytes_of(to, is_counted ? u8 : element);
  Expr start = has_offset && bytes ? bytes->value : int_imm(0, i64);
  if (start && in.arith().prove(lt(start, int_imm(0, i64))))
    in.fail({.what = "relative_byte_offset is negative", .needs = "offset >= 0", .hint = "start inside the tensor"});
  if (have && want && start && in.exceeds(start + want, have))
    in.fail({.what = "the view reaches beyond the tensor",
             .needs = "offset + bytes of the view <= bytes of the tensor",
             .hint = "choose a smaller shape or offset"});
  if (new_shape && shape.as<ShapeInfo>() && !to) return tensor_info(in.arg(1), element, x.vdevice);
  return tensor_of(to, ndim, element, x.vdevice);
}

/// Parts that are left out are the empty tuple.
RExpr build_view(const OpDef& op, BoundArgs args) {
  for (Value& v : args.inputs) {
    if (v.is_none()) v = Value(tuple({}));
  }
  return build_call(op, std::move(args));
}

}  // namespace

std::vector<OpDef> memory_ops() {
  InputDef shape{"shape", InputKind::shape}, dtype{"dtype", InputKind::dtype},
      scope{"storage_scope", InputKind::any, true};
  InputDef device{"runtime_device_index", InputKind::scalar}, offset{"offset", InputKind::scalar};
  InputDef storage{"storage", InputKind::any};
  auto kill = [](const char* name, const char* what) {
    return OpDef{.name = name, .inputs = {{what, InputKind::any}}, .infer = infer_void, .pure = false};
  };
  return {
      {.name = "builtin.alloc_tensor",
       .inputs = {shape, dtype, device, scope},
       .infer = infer_builtin_alloc,
       .build = build_with_scope<3>},
      {.name = "builtin.stop_lift_params", .inputs = {{"x"}}, .infer = infer_same},
      {.name = "memory.alloc_storage",
       .inputs = {{"size", InputKind::shape}, {"virtual_device_index", InputKind::scalar}, scope, dtype},
       .infer = infer_object,
       .build = build_with_scope<2>},
      {.name = "memory.alloc_tensor", .inputs = {storage, offset, shape, dtype}, .infer = infer_alloc_tensor},
      kill("memory.kill_storage", "storage"),
      kill("memory.kill_tensor", "tensor"),
      {.name = "memory.view",
       .inputs = {{"data"},
                  {"shape", InputKind::shape, true},
                  {"dtype", InputKind::dtype, true},
                  {"relative_byte_offset", InputKind::scalar, true}},
       .infer = infer_view,
       .build = build_view},
      {.name = "vm.alloc_storage",
       .inputs = {shape, device, dtype, scope},
       .infer = infer_object,
       .build = build_with_scope<3>},
      {.name = "vm.alloc_tensor", .inputs = {storage, offset, shape, dtype}, .infer = infer_alloc_tensor},
      kill("vm.kill_object", "obj"),
      {.name = "vm.call_tir_dyn",
       .inputs = {{"func", InputKind::any}, {"args", InputKind::any}},
       .infer = infer_void,
       .pure = false},
  };
}

}  // namespace sator::relax
