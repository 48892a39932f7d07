#include "runtime/nonzero.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace sator::runtime {

namespace {

/// The bits of a number of an unsigned type that tell whether it is 0: of floats the sign does not count.
template <class T>
T telling_bits(DType dtype) {
  const T all = static_cast<T>(~T{0});
  return dtype.is_float() || dtype.is_bfloat() ? static_cast<T>(all >> 1) : all;
}

template <class T>
Ref<Tensor> nonzero_of(const Tensor& x) {
  const T* elements = x.data_as<T>();
  const T telling = telling_bits<T>(x.dtype());
  int64_t count = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) count += (elements[i] & telling) != 0;
  const int64_t rank = x.rank(), columns = x.dim(static_cast<size_t>(rank - 1));
  Ref<Tensor> out = Tensor::empty({rank, count}, i64);
  if (count == 0) return out;
  auto* indices = out->data_as<int64_t>();
  // A row's columns are noted without a branch: each is written, and stays where its element is not 0.
  std::vector<int64_t> noted(static_cast<size_t>(columns) + 1), row(static_cast<size_t>(rank));
  for (int64_t written = 0; written < count;) {
    int64_t found = 0;
    for (int64_t c = 0; c < columns; ++c) {
      noted[static_cast<size_t>(found)] = c;
      found += (elements[c] & telling) != 0;
    }
    elements += columns;
    std::copy_n(noted.begin(), found, indices + (rank - 1) * count + written);
    for (int64_t d = 0; d + 1 < rank; ++d)
      std::fill_n(indices + d * count + written, found, row[static_cast<size_t>(d)]);
    written += found;
    for (int64_t d = rank - 2; d >= 0 && ++row[static_cast<size_t>(d)] == x.dim(static_cast<size_t>(d)); --d)
      row[static_cast<size_t>(d)] = 0;
  }
  return out;
}

}  // namespace

Ref<Tensor> nonzero(const Tensor& x) {
  const auto rank = static_cast<int64_t>(x.shape().size());
  if (rank == 0 || x.dtype().lanes != 1 || (!x.dtype().is_bool() && x.dtype().bits % 8 != 0))
    fail({.what = text("nonzero of a tensor of ", x.dtype(), " of rank ", rank),
          .needs = "numbers of whole bytes, and one axis at least",
          .hint = "reshape or cast it"});
  switch (x.dtype().bytes()) {
    case 1: return nonzero_of<uint8_t>(x);
    case 2: return nonzero_of<uint16_t>(x);
    case 4: return nonzero_of<uint32_t>(x);
    default: return nonzero_of<uint64_t>(x);
  }
}

}  // namespace sator::runtime
