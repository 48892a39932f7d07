#pragma once

#include <span>
#include <string_view>

#include "runtime/args.h"

namespace sator::runtime {

class VirtualMachine;

/// A function that bytecode calls by name and that is part of the runtime. Rows of table.cc.
struct Builtin {
  std::string_view name;
  int min_args;
  int max_args;  ///< -1: any number
  Value (*run)(VirtualMachine& vm, const Args& args);
  std::string_view does;
  bool computes = false;  ///< it works on elements of tensors, as a kernel does
};

/// All builtins of the runtime.
std::span<const Builtin> builtins();

}  // namespace sator::runtime
