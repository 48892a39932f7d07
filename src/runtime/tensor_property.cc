#include "runtime/tensor_property.h"

#include "base/error.h"

namespace sator::runtime {

/// DLPack's code of a dtype, and TVM's of those that DLPack did not have: 6 and 7.
static int64_t dlpack_code(DType dtype) {
  switch (dtype.code) {
    case DType::Code::int_: return 0;
    case DType::Code::float_: return 2;
    case DType::Code::bfloat: return 4;
    case DType::Code::e4m3: return 6;
    case DType::Code::e5m2: return 7;
    default: return 1;
  }
}

int64_t tensor_property(const Tensor& tensor, std::string_view what, int64_t axis) {
  const DType dtype = tensor.dtype();
  if (what == "dtype_code") return dlpack_code(dtype);
  if (what == "dtype_bits") return dtype.bits;
  if (what == "dtype_lanes") return dtype.lanes;
  if (what == "ndim") return tensor.rank();
  if (what == "byte_offset" || what == "elem_offset") return 0;
  if (axis < 0 || axis >= tensor.rank())
    fail({.what = text("the axis ", axis, " of a tensor of rank ", tensor.rank()),
          .needs = "0 <= axis < rank",
          .hint = "count axes from 0"});
  if (what == "shape_i") return tensor.shape()[static_cast<size_t>(axis)];
  int64_t stride = 1;
  for (size_t d = static_cast<size_t>(axis) + 1; d < tensor.shape().size(); ++d) stride *= tensor.shape()[d];
  return stride;
}

}  // namespace sator::runtime
