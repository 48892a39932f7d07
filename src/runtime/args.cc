#include "runtime/args.h"

#include "base/error.h"

namespace sator::runtime {

void Args::fail_expected(size_t i, std::string_view expected) const {
  fail({.what = text("argument ", i, " of ", callee_, " is ", values_[i]->describe()),
        .needs = text(expected, " there")});
}

int64_t Args::integer(size_t i) const {
  const int64_t* v = values_[i]->as_int();
  if (v == nullptr) fail_expected(i, "an integer");
  return *v;
}

double Args::number(size_t i) const {
  if (const double* v = values_[i]->as_float()) return *v;
  if (const int64_t* v = values_[i]->as_int()) return static_cast<double>(*v);
  fail_expected(i, "a number");
}

DType Args::dtype(size_t i) const {
  const DType* v = values_[i]->as_dtype();
  if (v == nullptr) fail_expected(i, "a dtype");
  return *v;
}

const std::string& Args::string(size_t i) const {
  const std::string* v = values_[i]->as_string();
  if (v == nullptr) fail_expected(i, "a string");
  return *v;
}

Tensor& Args::shape_heap(size_t i) const {
  // A function without symbolic sizes has no heap; one of no slots stands for it.
  static const Ref<Tensor> kNone = Tensor::empty({0}, i64);
  if (i < size() && (*this)[i].is_null()) return *kNone;
  Tensor& heap = tensor(i);
  if (heap.dtype() != i64 || heap.rank() != 1)
    fail_expected(i, "the heap of symbolic sizes, an int64 tensor of rank 1");
  return heap;
}

}  // namespace sator::runtime
