#include "runtime/nonzero.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sator::runtime {

namespace {

/// Whether the bytes are those of a number that is not 0: of floats the sign of a zero does not count.
bool is_nonzero(const unsigned char* at, DType dtype) {
  const auto bytes = static_cast<size_t>(dtype.bytes());
  for (size_t b = 0; b < bytes; ++b) {
    const bool has_sign = dtype.is_float() && b + 1 == bytes;
    if (at[b] & (has_sign ? 0x7f : 0xff)) return true;
  }
  return false;
}

}  // namespace

Ref<Tensor> nonzero(const Tensor& x) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (rank == 0 || x.dtype().lanes != 1 || (!x.dtype().is_bool() && x.dtype().bits % 8 != 0))
    fail({.what = text("nonzero of a tensor of ", x.dtype(), " of rank ", rank),
          .needs = "numbers of whole bytes, and one axis at least",
          .hint = "reshape or cast it"});
  const auto* data = static_cast<const unsigned char*>(x.data());
  std::vector<int64_t> found;
  for (int64_t i = 0; i < x.num_elements(); ++i)
    if (is_nonzero(data + i * x.dtype().bytes(), x.dtype())) found.push_back(i);
  const auto count = static_cast<int64_t>(found.size());
  Ref<Tensor> out = Tensor::empty({rank, count}, i64);
  auto* indices = out->data_as<int64_t>();
  for (int64_t k = 0; k < count; ++k) {
    int64_t position = found[static_cast<size_t>(k)];
    for (int64_t d = rank; d-- > 0;) {
      indices[d * count + k] = position % x.dim(static_cast<size_t>(d));
      position /= x.dim(static_cast<size_t>(d));
    }
  }
  return out;
}

}  // namespace sator::runtime
