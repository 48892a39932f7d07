#include "runtime/tensor_property.h"

#include "base/error.h"

namespace sator::runtime {

int64_t tensor_property(const Tensor& tensor, std::string_view what, int64_t axis) {
  const DType dtype = tensor.dtype();
  if (what == "dtype_code") return dtype.is_int() ? 0 : dtype.is_bfloat() ? 4 : dtype.is_float() ? 2 : 1;
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
