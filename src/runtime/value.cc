#include "runtime/value.h"

namespace sator::runtime {

Ref<Tuple> Tuple::of(std::vector<Value> fields) {
  Ref<Tuple> tuple(new Tuple());
  tuple->fields = std::move(fields);
  return tuple;
}

Ref<Closure> Closure::of(int32_t function, std::vector<Value> captured) {
  return Ref<Closure>(new Closure(function, std::move(captured)));
}

std::string with_article(DType dtype) { return text(dtype.is_int() ? "an " : "a ", dtype); }

std::string Value::describe() const {
  if (is_null()) return "nothing";
  if (const int64_t* v = as_int()) return text("the integer ", *v);
  if (const double* v = as_float()) return text("the float ", *v);
  if (const DType* v = as_dtype()) return text("the dtype ", *v);
  if (const std::string* v = as_string()) return text("the string ", string_literal(*v));
  if (const Tensor* v = as<Tensor>()) return text(with_article(v->dtype()), v->shape(), " tensor");
  if (const Shape* v = as<Shape>()) return text("the shape ", v->dims);
  if (const Tuple* v = as<Tuple>()) return text("a tuple of ", v->fields.size(), " fields");
  if (as<Closure>()) return "a function";
  if (as<Storage>()) return "a storage";
  return "an object";
}

}  // namespace sator::runtime
