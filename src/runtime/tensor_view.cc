#include "runtime/tensor_view.h"

#include "base/error.h"

namespace sator::runtime {

Ref<Tensor> view_of(const Tensor& x, const Value& shape, const Value& dtype, const Value& offset) {
  const auto stays = [](const Value& v) {
    const Tuple* tuple = v.as<Tuple>();
    return tuple && tuple->fields.empty();
  };
  const auto must_be = [](const auto* found, const Value& v, const char* needs) {
    if (!found) fail({.what = text("a view of a tensor as ", v.describe()), .needs = needs});
    return *found;
  };
  const Dims dims = stays(shape) ? x.shape() : must_be(shape.as<Shape>(), shape, "a shape").dims;
  const DType element = stays(dtype) ? x.dtype() : must_be(dtype.as_dtype(), dtype, "a dtype");
  const int64_t first = stays(offset) ? 0 : must_be(offset.as_int(), offset, "an offset in bytes");
  const std::optional<int64_t> bytes = Tensor::bytes_of(dims, element);
  if (!bytes || first < 0 || first > x.size_bytes() || *bytes > x.size_bytes() - first)
    fail({.what = text("a view of ", element, dims, " from byte ", first, " of a ", x, " tensor"),
          .needs = text("a view inside of the tensor's ", x.size_bytes(), " bytes"),
          .hint = "choose a smaller shape or offset"});
  return Tensor::view(x.storage(), x.byte_offset() + first, dims, element);
}

}  // namespace sator::runtime
