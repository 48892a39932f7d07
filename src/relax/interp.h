// The meaning of graphs: runs a function on tensors, one binding after the other. Ops run by their formula, as tensor
// programs in the interpreter of tir/. Whatever is faster is compared with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>

#include "relax/nodes.h"
#include "runtime/value.h"
#include "tir/interp.h"

namespace sator::relax {

/// What a graph calls outside of the module. R.call_dps_packed passes its outputs as the last arguments.
using HostFunction = std::function<runtime::Value(std::span<const runtime::Value>)>;

struct GraphOptions {
  std::map<std::string, HostFunction, std::less<>> functions;  ///< by name
  tir::RunOptions programs;                                    ///< for tensor programs
  std::function<void(const std::string&)> print;               ///< what R.print says; empty: nobody listens
  int max_depth = 500;                                         ///< of calls inside each other
};

/// A module ready to run. Tensor programs are compiled at their first call and kept, also those that the formulas of ops
/// give.
class GraphInterpreter {
 public:
  explicit GraphInterpreter(ModuleRef module, GraphOptions options = {});
  ~GraphInterpreter();

  /// Runs a graph of the module. Tensors are passed by reference; symbolic sizes take their values from the arguments.
  /// Every bound value is held against its struct info.
  /// Errors: no such function; arguments that do not fit; a failed R.match_cast or R.assert_op; an op that has no formula; a
  /// function that is not registered; whatever a tensor program runs into.
  runtime::Value call(const std::string& function, std::span<const runtime::Value> args);
  runtime::Value call(const std::string& function, std::initializer_list<runtime::Value> args) {
    return call(function, std::span(args.begin(), args.size()));
  }

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace sator::relax
