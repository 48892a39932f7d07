#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>

#include "runtime/tensor.h"

namespace sator::runtime {

/// A string as a value.
class String final : public Object {
 public:
  explicit String(std::string text) : text(std::move(text)) {}
  const std::string text;
};

/// What a register of the virtual machine holds: nothing, an integer, a float, a dtype, or a counted object
/// (String, Tensor, Shape, Tuple, Storage, Closure, a cache).
class Value {
 public:
  Value() = default;
  Value(std::integral auto v) : held_(static_cast<int64_t>(v)) {}
  Value(double v) : held_(v) {}
  Value(DType v) : held_(v) {}
  Value(std::string v) : Value(Ref<String>(new String(std::move(v)))) {}
  Value(const char* v) : Value(std::string(v)) {}
  template <class T>
  Value(Ref<T> object) {
    if (object) held_ = Ref<Object>(std::move(object));
  }

  bool is_null() const { return held_.index() == 0; }
  const int64_t* as_int() const { return std::get_if<int64_t>(&held_); }
  const double* as_float() const { return std::get_if<double>(&held_); }
  const DType* as_dtype() const { return std::get_if<DType>(&held_); }
  const std::string* as_string() const {
    const String* string = as<String>();
    return string ? &string->text : nullptr;
  }
  Object* as_object() const {
    const Ref<Object>* object = std::get_if<Ref<Object>>(&held_);
    return object ? object->get() : nullptr;
  }
  /// The object as a T, a final class; null if it is anything else.
  template <class T>
  T* as() const {
    static_assert(std::is_final_v<T>);
    Object* object = as_object();
    return object != nullptr && typeid(*object) == typeid(T) ? static_cast<T*>(object) : nullptr;
  }
  /// The same as a counted pointer.
  template <class T>
  Ref<T> ref() const {
    T* object = as<T>();
    return object ? Ref<T>(object) : Ref<T>();
  }

  /// In words, for messages: "a float32[2, 3] tensor", "the integer 5", "nothing".
  std::string describe() const;

 private:
  std::variant<std::monostate, int64_t, double, DType, Ref<Object>> held_;
};

/// "a float32", "an int8".
std::string with_article(DType dtype);

/// A run-time shape, as Relax's `R.Shape` values are.
class Shape final : public Object {
 public:
  static Ref<Shape> of(const Dims& dims) { return Ref<Shape>(new Shape(dims)); }
  const Dims dims;

 private:
  explicit Shape(const Dims& dims) : dims(dims) {}
};

/// Parameters that come one by one, to whoever takes them (vm.builtin.take_param).
class ParamSource final : public Object {
 public:
  using Take = std::function<Value(int64_t index)>;
  static Ref<ParamSource> of(Take take) { return Ref<ParamSource>(new ParamSource(std::move(take))); }
  /// Parameter `index`, which the source does not hold any more.
  const Take take;

 private:
  explicit ParamSource(Take take) : take(std::move(take)) {}
};

class Tuple final : public Object {
 public:
  static Ref<Tuple> of(std::vector<Value> fields);
  std::vector<Value> fields;

 private:
  Tuple() = default;
};

/// A function of an executable, by its index there, with the values that it captured.
class Closure final : public Object {
 public:
  static Ref<Closure> of(int32_t function, std::vector<Value> captured = {});
  const int32_t function;
  const std::vector<Value> captured;

 private:
  Closure(int32_t function, std::vector<Value> captured) : function(function), captured(std::move(captured)) {}
};

}  // namespace sator::runtime
