// Python's lock, as this package gives it up and takes it.
#pragma once

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include "base/object.h"

namespace sator::bind {

/// Calls `take`, which waits for Python's lock. While Python ends, it ends the threads that ask for the lock, daemons, by unwinding them
/// (up to Python 3.13): through C++ that is the end of the process, so such a thread sleeps until the process is gone.
template <class Take>
auto or_sleep_at_exit(Take take) {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

/// While one lives, this thread has Python's lock.
class WithGil {
 public:
  WithGil() : state_(or_sleep_at_exit(PyGILState_Ensure)) {}
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

/// While one lives, this thread does not have Python's lock: other threads may run Python, and meet the objects that this one works on.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    or_sleep_at_exit([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  SharedObjects shared_;
  PyThreadState* state_;
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
    WithGil gil;
    object = nanobind::object();
  }
  nanobind::object object;
};

}  // namespace sator::bind
