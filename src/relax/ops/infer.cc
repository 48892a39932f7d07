#include "relax/ops/infer.h"

namespace sator::relax {

StructInfo infer_object(const CallInfo&) { return object_info(); }
StructInfo infer_void(const CallInfo&) { return tuple_info({}); }
StructInfo infer_same(const CallInfo& in) { return ref(in.tensor(0)); }
StructInfo infer_same_float(const CallInfo& in) {
  in.need_float(0);
  return ref(in.tensor(0));
}
StructInfo with_dtype(const TensorInfo& x, DType dtype) {
  return dtype.is_void() || dtype == x.dtype ? StructInfo(&x) : StructInfo(with(x, &TensorInfo::dtype, dtype));
}
StructInfo tensor_of(const std::optional<std::vector<Expr>>& shape, int ndim, DType dtype, std::string vdevice) {
  return shape ? tensor_info(*shape, dtype, std::move(vdevice)) : tensor_info(dtype, ndim, std::move(vdevice));
}

DType dtype_beside(const Value& tensor) {
  const RExpr x = to_rexpr(tensor);
  const TensorInfo* info = x ? x->sinfo.as<TensorInfo>() : nullptr;
  return info && info->dtype == f64 ? f64 : f32;
}

}  // namespace sator::relax
