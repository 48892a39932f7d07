#pragma once

#include <span>
#include <string_view>

#include "runtime/value.h"

namespace sator::runtime {

/// The arguments of one call, read in place. The typed readers fail with an Error that names callee,
/// position, what was expected and what came.
class Args {
 public:
  Args(std::string_view callee, std::span<const Value* const> values) : callee_(callee), values_(values) {}

  std::string_view callee() const { return callee_; }
  size_t size() const { return values_.size(); }
  const Value& operator[](size_t i) const { return *values_[i]; }
  Args from(size_t first) const { return {callee_, values_.subspan(first)}; }
  std::span<const Value* const> values() const { return values_; }

  int64_t integer(size_t i) const;
  /// A float, or an integer taken as one.
  double number(size_t i) const;
  DType dtype(size_t i) const;
  const std::string& string(size_t i) const;
  template <class T>
  T& object(size_t i, const char* expected) const {
    T* object = values_[i]->as<T>();
    if (object == nullptr) fail_expected(i, expected);
    return *object;
  }
  Tensor& tensor(size_t i) const { return object<Tensor>(i, "a tensor"); }
  Shape& shape(size_t i) const { return object<Shape>(i, "a shape"); }
  /// An int64 tensor of rank 1, as the heap of symbolic sizes is.
  Tensor& shape_heap(size_t i) const;
  Closure& closure(size_t i) const { return object<Closure>(i, "a function"); }

  [[noreturn]] void fail_expected(size_t i, std::string_view expected) const;

 private:
  std::string_view callee_;
  std::span<const Value* const> values_;
};

}  // namespace sator::runtime
