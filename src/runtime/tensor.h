#pragma once

#include <string>

#include "base/dtype.h"
#include "runtime/dims.h"
#include "runtime/storage.h"

namespace sator::runtime {

/// Where a tensor's bytes are. The codes are DLPack's.
struct Device {
  enum class Kind : int32_t { cpu = 1, cuda = 2 };
  Kind kind = Kind::cpu;
  int32_t index = 0;
  bool operator==(const Device&) const = default;
};
/// "cpu0"
void append_text(std::string& out, Device device);

/// A dense row-major array in some storage, laid out as DLPack does: data pointer, byte offset, shape, no
/// strides. Sub-byte integers and bool take one byte per element.
class Tensor final : public Object {
 public:
  /// A tensor in its own, uninitialised storage. Errors: a negative extent; memory is out.
  static Ref<Tensor> empty(const Dims& shape, DType dtype);
  /// The elements from `byte_offset` of `storage` on. Errors: they do not lie inside it; the offset breaks
  /// the alignment of the element.
  static Ref<Tensor> view(Ref<Storage> storage, int64_t byte_offset, const Dims& shape, DType dtype);
  /// The bytes that one element after the other would take; nothing if a tensor cannot be that large.
  static std::optional<int64_t> bytes_of(std::span<const int64_t> shape, DType dtype);
  /// A copy of `values` as a tensor of this shape, whose dtype has the size of T.
  template <class T>
  static Ref<Tensor> of(const std::vector<T>& values, const Dims& shape, DType dtype);

  /// The same elements under another shape. Errors: the number of elements differs.
  Ref<Tensor> reshaped(const Dims& shape) const;

  const Dims& shape() const { return shape_; }
  int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
  int64_t dim(size_t i) const { return shape_[i]; }
  DType dtype() const { return dtype_; }
  Device device() const { return {}; }
  int64_t num_elements() const { return num_elements_; }
  int64_t size_bytes() const { return num_elements_ * dtype_.bytes(); }
  const Ref<Storage>& storage() const { return storage_; }
  int64_t byte_offset() const { return byte_offset_; }
  /// The first element. Tensors are shared and mutable: a const tensor fixes shape and place, not content.
  void* data() const { return static_cast<char*>(storage_->data()) + byte_offset_; }
  template <class T>
  T* data_as() const {
    return static_cast<T*>(data());
  }

  /// Shows other bytes under another shape of the same dtype: for objects that keep a tensor and fill it anew
  /// at each step, so that a step allocates nothing. Errors: as of `view`.
  void show(Ref<Storage> storage, int64_t byte_offset, std::span<const int64_t> shape);

 private:
  Tensor() = default;
  Ref<Storage> storage_;
  int64_t byte_offset_ = 0;
  int64_t num_elements_ = 0;
  Dims shape_;
  DType dtype_;
};

/// "float32[1, 784]"
void append_text(std::string& out, const Tensor& tensor);

[[noreturn]] void fail_wrong_element_size(size_t given, DType dtype, int64_t count, const Dims& shape);

template <class T>
Ref<Tensor> Tensor::of(const std::vector<T>& values, const Dims& shape, DType dtype) {
  Ref<Tensor> tensor = empty(shape, dtype);
  if (static_cast<int64_t>(sizeof(T)) != dtype.bytes() || static_cast<int64_t>(values.size()) != tensor->num_elements())
    fail_wrong_element_size(sizeof(T), dtype, static_cast<int64_t>(values.size()), shape);
  std::copy(values.begin(), values.end(), tensor->template data_as<T>());
  return tensor;
}

}  // namespace sator::runtime
