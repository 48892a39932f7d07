#include "runtime/tensor.h"

#include "base/error.h"

namespace sator::runtime {

std::optional<int64_t> count_elements(std::span<const int64_t> dims) {
  // A zero extent makes the product zero, but not a nonsense neighbour legal: each partial product is bounded
  // too.
  int64_t product = 1, bound = 1;
  for (int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(bound, dim > 0 ? dim : 1, &bound) || bound > (int64_t{1} << 62)) return {};
    product *= dim;
  }
  return product;
}

void append_text(std::string& out, const Dims& dims) {
  out += '[';
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ", ";
    sator::append_text(out, dims[i]);
  }
  out += ']';
}

void append_text(std::string& out, Device device) {
  out += device.kind == Device::Kind::cpu ? "cpu" : "cuda";
  sator::append_text(out, device.index);
}

void append_text(std::string& out, const Tensor& tensor) {
  append_text(out, tensor.dtype());
  append_text(out, tensor.shape());
}

std::optional<int64_t> Tensor::bytes_of(std::span<const int64_t> shape, DType dtype) {
  std::optional<int64_t> count = count_elements(shape);
  int64_t bytes;
  if (!count || __builtin_mul_overflow(*count, dtype.bytes(), &bytes)) return {};
  return bytes;
}

namespace {

int64_t require_bytes(const Dims& shape, DType dtype) {
  if (dtype.is_void()) fail({.what = "a tensor without dtype cannot be made", .needs = "a dtype such as float32"});
  std::optional<int64_t> bytes = Tensor::bytes_of(shape, dtype);
  if (!bytes)
    fail(
        {.what = text("a tensor cannot have the shape ", shape), .needs = "extents >= 0 and fewer than 2^62 elements"});
  return *bytes;
}

void require_inside(const Storage& storage, int64_t byte_offset, int64_t size_bytes, int64_t alignment) {
  if (byte_offset < 0 || byte_offset > storage.size_bytes() || size_bytes > storage.size_bytes() - byte_offset)
    fail({.what = text("a tensor of ",
                       size_bytes,
                       " bytes at offset ",
                       byte_offset,
                       " does not fit a storage of ",
                       storage.size_bytes(),
                       " bytes"),
          .needs = "offset + size <= size of the storage",
          .hint = "a size above the upper bound that the program was built with (--bounds) asks for more memory than "
                  "is planned"});
  if (size_bytes > 0 && (reinterpret_cast<uintptr_t>(storage.data()) + static_cast<uintptr_t>(byte_offset)) %
                                static_cast<uintptr_t>(alignment) !=
                            0)
    fail({.what = text("offset ", byte_offset, " is not aligned for elements of ", alignment, " bytes"),
          .needs = "an address that is a multiple of the element's size"});
}

}  // namespace

Ref<Tensor> Tensor::empty(const Dims& shape, DType dtype) {
  return view(Storage::allocate(require_bytes(shape, dtype)), 0, shape, dtype);
}

Ref<Tensor> Tensor::view(Ref<Storage> storage, int64_t byte_offset, const Dims& shape, DType dtype) {
  require_inside(*storage, byte_offset, require_bytes(shape, dtype), dtype.element_bytes());
  Ref<Tensor> tensor(new Tensor());
  tensor->storage_ = std::move(storage);
  tensor->byte_offset_ = byte_offset;
  tensor->num_elements_ = *count_elements(shape);
  tensor->shape_ = shape;
  tensor->dtype_ = dtype;
  return tensor;
}

Ref<Tensor> Tensor::reshaped(const Dims& shape) const {
  if (count_elements(shape) != num_elements_)
    fail({.what = text("a ", *this, " tensor cannot be reshaped to ", shape),
          .needs = "the same number of elements before and after"});
  return view(storage_, byte_offset_, shape, dtype_);
}

void Tensor::show(Ref<Storage> storage, int64_t byte_offset, std::span<const int64_t> shape) {
  std::optional<int64_t> bytes = bytes_of(shape, dtype_);
  if (!bytes) internal_error("Tensor::show: impossible shape");
  require_inside(*storage, byte_offset, *bytes, dtype_.element_bytes());
  storage_ = std::move(storage);
  byte_offset_ = byte_offset;
  shape_.assign(shape);
  num_elements_ = *count_elements(shape);
}

void fail_wrong_element_size(size_t given, DType dtype, int64_t count, const Dims& shape) {
  fail({.what = text(count, " values of ", given, " bytes do not make a ", dtype, shape, " tensor"),
        .needs = "as many values as elements, of the dtype's size"});
}

}  // namespace sator::runtime
