// Python's lock, as this package gives it up.
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

}  // namespace sator::bind
