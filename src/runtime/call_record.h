#pragma once

#include <string>
#include <vector>

#include "base/dtype.h"
#include "runtime/dims.h"

namespace sator::runtime {

/// One call of a kernel, or of a builtin with a tensor argument, as it ran.
struct CallRecord {
  struct NamedValue {
    std::string name;
    int64_t value;
  };
  struct Argument {
    DType dtype;
    Dims shape;
  };

  std::string function;
  bool is_kernel = true;
  std::string caller;               ///< the VM function that made the call
  std::string annotation;           ///< where in the model it is ("layers.3.mlp"), as the compiler noted; may be empty
  std::vector<NamedValue> values;   ///< symbolic sizes by name; attention adds what its tensors hold (kv_cache.h)
  std::vector<Argument> arguments;  ///< the tensor arguments, in order
  double duration_us = 0;           ///< without the calls it made that have records of their own
  std::string device = "cpu0";
};

}  // namespace sator::runtime
