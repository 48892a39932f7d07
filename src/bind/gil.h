// Python's lock, as this package gives it up and takes it.
#pragma once

#include <nanobind/nanobind.h>

#include "base/object.h"

namespace sator::bind {

/// While one lives, this thread does not have Python's lock: other threads may run Python, and meet the objects that this one works on.
class WithoutGil {
  SharedObjects shared_;
  nanobind::gil_scoped_release released_;
};

/// Whether Python has other threads than this one, which may want its lock. To be asked with the lock.
inline bool has_other_threads() {
  PyThreadState* const first = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
  return first && PyThreadState_Next(first);
}

/// A function of Python's that C++ keeps, and may let go on any thread.
struct PythonFunction {
  explicit PythonFunction(nanobind::object object) : object(std::move(object)) {}
  PythonFunction(const PythonFunction&) = delete;
  ~PythonFunction() {
    if (!Py_IsInitialized()) {  // tables of C++ end after Python
      object.release();
      return;
    }
    nanobind::gil_scoped_acquire gil;
    object = nanobind::object();
  }
  nanobind::object object;
};

}  // namespace sator::bind
