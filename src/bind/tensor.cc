#include "bind/tensor.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/error.h"
#include "bind/gil.h"
#include "bind/node.h"

namespace sator::bind {

using runtime::Dims;
using runtime::Storage;
using runtime::Tensor;

namespace {

/// Keeps a foreign array alive as long as a storage lies in its memory. The last reference may go on any thread.
template <class A>
class ForeignArray final : public Object {
 public:
  explicit ForeignArray(A array) : array_(std::move(array)) {}
  ~ForeignArray() override {
    WithGil gil;
    array_ = A();
  }

 private:
  A array_;
};

/// DLPack's dtypes. Errors: TypeError for those that no tensor has.
DType dtype_of(nb::dlpack::dtype d) {
  using Code = nb::dlpack::dtype_code;
  const auto lanes = d.lanes;
  switch (static_cast<Code>(d.code)) {
    case Code::Int: return DType::Int(d.bits, lanes);
    case Code::UInt: return DType::UInt(d.bits, lanes);
    case Code::Float: return DType::Float(d.bits, lanes);
    case Code::Bfloat: return DType::BFloat(lanes);
    case Code::Bool: return DType::Bool(lanes);
    case Code::Float8_E4M3FN: return *DType::parse("float8_e4m3fn");
    case Code::Float8_E5M2: return *DType::parse("float8_e5m2");
    default: throw nb::type_error("an array of complex numbers or of another dtype that no tensor has");
  }
}

nb::dlpack::dtype dlpack_of(DType d) {
  using Code = nb::dlpack::dtype_code;
  const Code code = d.is_int()                    ? Code::Int
                    : d.is_uint()                 ? Code::UInt
                    : d.is_bfloat()               ? Code::Bfloat
                    : d.is_bool()                 ? Code::Bool
                    : d.code == DType::Code::e4m3 ? Code::Float8_E4M3FN
                    : d.is_float8()               ? Code::Float8_E5M2
                                                  : Code::Float;
  // Sub-byte integers and bool take one byte per element.
  const auto bits = static_cast<uint8_t>(d.element_bytes() * 8);
  return {static_cast<uint8_t>(code), bits, d.lanes};
}

/// What makes a dense copy of an array.
const char* dense_copy_of(nb::handle object) {
  if (nb::hasattr(object, "contiguous")) return "array.contiguous() is a copy that is";
  if (nb::hasattr(object, "__array__"))
    return "numpy.ascontiguousarray(array) is a copy that is, as is sator.nd.array(array)";
  return "copy it in the library that it is of";
}

/// A tensor in the memory of `object`, which is `array`. `A`: nb::ndarray<>, or one that is only read.
/// `as`: what its elements are, where the array's own dtype only has their size.
template <class A>
Ref<Tensor> shared_with(nb::handle object, const A& array, std::optional<DType> as = {}) {
  const DType dtype = as ? *as : dtype_of(array.dtype());
  if (array.device_type() != nb::device::cpu::value)
    throw nb::type_error("the array is on another device\n  needs: an array in this machine's memory");
  Dims shape, strides;
  shape.resize(array.ndim());
  strides.resize(array.ndim());
  int64_t stride = 1;
  bool is_dense = true;
  for (size_t i = array.ndim(); i-- > 0;) {
    shape[i] = static_cast<int64_t>(array.shape(i));
    strides[i] = array.stride(i);
    if (shape[i] > 1 && strides[i] != stride) is_dense = false;
    stride *= shape[i];
  }
  if (!is_dense && array.size() > 0)  // the strides of an empty one say nothing
    throw nb::value_error(text("the array ",
                               shape,
                               " is not dense and row-major: its strides are ",
                               strides,
                               "\n  needs: a contiguous array, whose memory a tensor can share\n  hint:  ",
                               dense_copy_of(object))
                              .c_str());
  const auto bytes = static_cast<int64_t>(array.nbytes());
  Ref<ForeignArray<A>> owner(new ForeignArray<A>(array));
  return Tensor::view(
      Storage::borrow(const_cast<void*>(static_cast<const void*>(array.data())), bytes, owner), 0, shape, dtype);
}

/// NumPy's arrays of the dtypes of ml_dtypes, which DLPack does not know: "bfloat16", "float8_e4m3fn". Empty for all others.
std::string extended_dtype(nb::handle object) {
  if (!nb::hasattr(object, "dtype") || !nb::hasattr(object, "view")) return "";
  nb::object dtype = object.attr("dtype");
  const auto name = nb::cast<std::string>(nb::str(dtype));
  return name == "bfloat16" || name.starts_with("float8") || name.starts_with("float4") ? name : "";
}

/// The dtype of ml_dtypes of that name. Errors: TypeError for those that no tensor has.
DType extended(const std::string& name) {
  if (auto dtype = name.starts_with("float4") ? std::nullopt : DType::parse(name)) return *dtype;
  throw nb::type_error(
      text("an array of ",
           name,
           ", a dtype that no tensor has\n  needs: float8_e4m3fn or float8_e5m2 of ml_dtypes, or the bits as "
           "integers\n  hint:  array.view(\"uint8\")")
          .c_str());
}

/// Such an array's bits.
nb::object bits_of(nb::handle object, DType dtype) { return object.attr("view")(dtype.bits == 8 ? "uint8" : "uint16"); }

/// The tensor's memory as an array of another library; the tensor lives as long as that.
nb::ndarray<> array_of(const NDArray& a) {
  std::vector<size_t> shape(a.tensor->shape().begin(), a.tensor->shape().end());
  auto* kept = new Ref<Tensor>(a.tensor);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Ref<Tensor>*>(p); });
  return nb::ndarray<>(a.tensor->data(), shape.size(), shape.data(), owner, nullptr, dlpack_of(a.tensor->dtype()));
}

/// The same for NumPy, which has bfloat16 and the floats of 8 bits from ml_dtypes alone.
nb::object numpy_of(const NDArray& a) {
  nb::ndarray<> array = array_of(a);
  const DType dtype = a.tensor->dtype();
  if (!dtype.is_bfloat() && !dtype.is_float8()) return nb::ndarray<nb::numpy>(array).cast();
  const char* name = dtype.is_bfloat() ? "bfloat16" : dtype.code == DType::Code::e4m3 ? "float8_e4m3fn" : "float8_e5m2";
  auto* kept = new Ref<Tensor>(a.tensor);
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Ref<Tensor>*>(p); });
  std::vector<size_t> shape(a.tensor->shape().begin(), a.tensor->shape().end());
  nb::object bits =
      nb::ndarray<nb::numpy>(
          a.tensor->data(), shape.size(), shape.data(), owner, nullptr, dlpack_of(DType::UInt(dtype.bits)))
          .cast();
  try {
    return bits.attr("view")(nb::module_::import_("ml_dtypes").attr(name));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_ImportError)) throw;
    throw nb::import_error(
        text("NumPy has no ", name, " of its own\n  needs: the package ml_dtypes\n  hint:  pip install ml_dtypes")
            .c_str());
  }
}

/// An array's elements in memory of their own.
Ref<Tensor> copy_of(nb::handle array) {
  nb::ndarray<nb::ro> readable;
  const bool is_ours = nb::isinstance<NDArray>(array);
  const std::string name = is_ours ? "" : extended_dtype(array);
  const auto dtype = name.empty() ? std::optional<DType>() : extended(name);
  nb::object plain = dtype ? bits_of(array, *dtype) : nb::borrow(array);
  const Ref<Tensor> from =
      !is_ours && nb::try_cast(plain, readable) ? shared_with(array, readable, dtype) : tensor_of(array);
  const Ref<Tensor> out = Tensor::empty(from->shape(), from->dtype());
  std::copy_n(from->data_as<char>(), from->size_bytes(), out->data_as<char>());
  return out;
}

/// The tensor of an array that may be written, in its memory; null for another object.
Ref<Tensor> shared_tensor(nb::handle object) {
  if (nb::isinstance<NDArray>(object)) return nb::cast<const NDArray&>(object).tensor;
  nb::ndarray<> array;
  if (const std::string name = extended_dtype(object); !name.empty()) {
    const DType dtype = extended(name);
    if (nb::try_cast(bits_of(object, dtype), array)) return shared_with(object, array, dtype);
  } else if (nb::try_cast(object, array)) {
    return shared_with(object, array);
  }
  return nullptr;
}

bool is_readable(nb::handle object) {
  const std::string name = extended_dtype(object);
  nb::ndarray<nb::ro> readable;
  return nb::try_cast(name.empty() ? nb::borrow(object) : bits_of(object, extended(name)), readable);
}

}  // namespace

nb::object tensor_to_python(const Ref<Tensor>& tensor) {
  if (!tensor) return nb::none();
  return nb::cast(NDArray{tensor});
}

Ref<Tensor> tensor_of(nb::handle object) {
  if (Ref<Tensor> shared = shared_tensor(object)) return shared;
  if (is_readable(object))
    wrong_type(object, "an array that may be written: this one is read-only\n  hint:  sator.nd.array(...) copies it");
  wrong_type(object, "an array: sator.nd.array(...), NumPy's, or one that speaks DLPack");
}

runtime::Value value_of(nb::handle o, nb::handle machine, bool copies_read_only) {
  if (o.is_none()) return {};
  if (nb::isinstance<NDArray>(o)) return nb::cast<const NDArray&>(o).tensor;
  if (PyBool_Check(o.ptr())) return runtime::Value(int64_t{o.ptr() == Py_True});
  if (PyLong_Check(o.ptr())) return runtime::Value(nb::cast<int64_t>(o));
  if (PyFloat_Check(o.ptr())) return runtime::Value(nb::cast<double>(o));
  if (PyUnicode_Check(o.ptr())) return runtime::Value(nb::cast<std::string>(o));
  if (nb::hasattr(o, "_shape_tuple")) {
    const auto extents = nb::cast<std::vector<int64_t>>(o.attr("_shape_tuple"));
    return runtime::Shape::of(Dims(std::span<const int64_t>(extents)));
  }
  if (PyList_Check(o.ptr()) || PyTuple_Check(o.ptr())) {
    const NestedList nested;
    std::vector<runtime::Value> fields;
    for (nb::handle item : nb::iter(o)) fields.push_back(value_of(item, machine, copies_read_only));
    return runtime::Tuple::of(std::move(fields));
  }
  if (nb::isinstance<RuntimeObject>(o)) return nb::cast<const RuntimeObject&>(o).value;
  if (nb::isinstance<Closure>(o)) {
    const auto& closure = nb::cast<const Closure&>(o);
    if (!closure.machine.is(machine))
      fail({.what = "a function that another VirtualMachine made is given to this one",
            .needs = "a function that this one returned",
            .hint = "call it as it is, f(...), on the machine that made it"});
    return closure.value;
  }
  if (is_numpy_scalar(o)) return value_of(o.attr("item")(), machine);
  if (nb::hasattr(o, "_closure")) return value_of(o.attr("_closure")(), machine);
  if (!copies_read_only) return tensor_of(o);
  if (Ref<Tensor> shared = shared_tensor(o)) return shared;
  return is_readable(o) ? copy_of(o) : tensor_of(o);
}

nb::object value_to_python(const runtime::Value& v, nb::handle machine) {
  if (v.is_null()) return nb::none();
  if (const int64_t* i = v.as_int()) return nb::int_(*i);
  if (const double* d = v.as_float()) return nb::float_(*d);
  if (const DType* d = v.as_dtype()) return nb::str(d->name().c_str());
  if (const std::string* s = v.as_string()) return nb::str(s->c_str());
  if (Ref<Tensor> t = v.ref<Tensor>()) return tensor_to_python(t);
  if (const auto* shape = v.as<runtime::Shape>()) {
    nb::list out;
    for (int64_t d : shape->dims) out.append(d);
    return nb::tuple(out);
  }
  if (const auto* tuple = v.as<runtime::Tuple>()) {
    nb::list out;
    for (const runtime::Value& field : tuple->fields) out.append(value_to_python(field, machine));
    return out;
  }
  if (auto closure = v.ref<runtime::Closure>(); closure && machine)
    return nb::cast(Closure{closure, nb::borrow(machine)});
  return nb::cast(RuntimeObject{v});
}

void add_tensors(nb::module_& m) {
  nb::class_<NDArray> c(m, "NDArray", "A dense, row-major tensor in this machine's memory; shares it through DLPack.");
  not_called(c, "sator.nd.array(values), or sator.nd.empty(shape, dtype)");
  c.def_prop_ro("shape",
                [](const NDArray& a) {
                  nb::list out;
                  for (int64_t d : a.tensor->shape()) out.append(d);
                  return nb::tuple(out);
                })
      .def_prop_ro("dtype", [](const NDArray& a) { return a.tensor->dtype().name(); })
      .def(
          "is_contiguous",
          [](const NDArray&) { return true; },
          "Whether it is dense and row-major, as every tensor here is.")
      .def_prop_ro("ndim", [](const NDArray& a) { return a.tensor->rank(); })
      .def_prop_ro(
          "data_ptr",
          [](const NDArray& a) { return reinterpret_cast<uintptr_t>(a.tensor->data()); },
          "The address of the first element.")
      .def("__dlpack__",
           [](nb::handle self, nb::kwargs kwargs) {
             // NumPy's face of the memory answers the protocol's questions, but does not give away the dtypes of ml_dtypes.
             const auto& a = nb::cast<const NDArray&>(self);
             const DType dtype = a.tensor->dtype();
             nb::object face = dtype.is_bfloat() || dtype.is_float8() ? nb::ndarray<nb::array_api>(array_of(a)).cast()
                                                                      : self.attr("_numpy")();
             return nb::object(face.attr("__dlpack__")(**kwargs));
           })
      .def("__dlpack_device__", [](const NDArray&) { return nb::make_tuple(1, 0); })
      .def("_view",
           [](const NDArray& a, const std::vector<int64_t>& shape, const std::string& dtype, int64_t byte_offset) {
             const DType d = dtype_named(dtype);
             const std::optional<int64_t> bytes = Tensor::bytes_of(shape, d);
             const int64_t all = a.tensor->size_bytes();
             if (byte_offset < 0 || byte_offset > all || !bytes || *bytes > all - byte_offset)
               fail({.what = text("a view of ",
                                  bytes ? text(*bytes, " bytes") : text("the extents (", join(shape, ", "), ")"),
                                  " from byte ",
                                  byte_offset,
                                  " on, of a tensor of ",
                                  all,
                                  " bytes"),
                     .needs = "a view inside of the tensor"});
             return NDArray{Tensor::view(
                 a.tensor->storage(), a.tensor->byte_offset() + byte_offset, Dims(std::span<const int64_t>(shape)), d)};
           })
      .def("_numpy", &numpy_of);
  nb::class_<RuntimeObject> object(
      m,
      "RuntimeObject",
      "What a program holds and Python cannot read: a cache, a storage. It goes into later calls as it is.");
  not_called(object, "a function of a program that returns it");
  object.def("__repr__", [](const RuntimeObject& o) { return o.value.describe(); });
  m.def("empty", [](const std::vector<int64_t>& shape, const std::string& dtype) {
    const DType d = dtype_named(dtype);
    return NDArray{Tensor::empty(Dims(std::span<const int64_t>(shape)), d)};
  });
  m.def(
      "share",
      [](nb::object array) { return NDArray{tensor_of(array)}; },
      "A tensor in the memory of an array that speaks DLPack.");
  m.def("copy_of", [](nb::object array) { return NDArray{copy_of(array)}; });
}

}  // namespace sator::bind
