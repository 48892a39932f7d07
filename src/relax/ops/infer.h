// Struct info rules that several families of ops share.
#pragma once

#include "relax/ops/op.h"

namespace sator::relax {

/// An object of any kind.
StructInfo infer_object(const CallInfo&);
/// Nothing: the empty tuple.
StructInfo infer_void(const CallInfo&);
/// The input's struct info.
StructInfo infer_same(const CallInfo& in);
/// The input's struct info; its dtype is floating.
StructInfo infer_same_float(const CallInfo& in);
/// The input's shape with another dtype (void: the input's own).
StructInfo with_dtype(const TensorInfo& x, DType dtype);
/// A tensor of this shape where it is known, else of this rank.
StructInfo tensor_of(const std::optional<std::vector<Expr>>& shape, int ndim, DType dtype, std::string vdevice = "");

/// The dtype of a Python float beside a tensor: float64 where that is, else float32.
DType dtype_beside(const Value& tensor);

}  // namespace sator::relax
