// Tensors of the runtime as Python objects that share memory with NumPy and others through DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include "runtime/tensor.h"
#include "runtime/value.h"

namespace sator::bind {

namespace nb = nanobind;

/// A class of its own: Python's objects cannot be counted by Ref.
struct NDArray {
  Ref<runtime::Tensor> tensor;
};

/// A value of the virtual machine that Python holds and cannot read.
struct RuntimeObject {
  runtime::Value value;
};

/// A function that a program gave, with what it captured, and the machine (machine.cc) that runs it.
struct Closure {
  Ref<runtime::Closure> value;
  nb::object machine;

  int traverse(visitproc visit, void* arg) {
    Py_VISIT(machine.ptr());
    return 0;
  }
  void clear() { machine = nb::object(); }
};

nb::object tensor_to_python(const Ref<runtime::Tensor>& tensor);
/// An NDArray's tensor, or one that shares the memory of an array that speaks DLPack (NumPy's, torch's).
/// Errors: TypeError for anything else; an array that is not dense and row-major, or not in this machine's memory; a read-only one.
Ref<runtime::Tensor> tensor_of(nb::handle object);

/// Values of the virtual machine. `machine`: the one that gets or gave the value; without one there are no closures.
/// `copies_read_only`: arrays that may not be written are copied.
/// Errors: TypeError for what no register holds; a closure of another machine; a read-only array that is not copied.
runtime::Value value_of(nb::handle object, nb::handle machine = {}, bool copies_read_only = false);
nb::object value_to_python(const runtime::Value& value, nb::handle machine = {});

void add_tensors(nb::module_& m);

}  // namespace sator::bind
