// Graphs on tensors: random arguments, the compiled program, and how far two results differ.
#pragma once

#include <optional>
#include <random>
#include <span>
#include <vector>

#include "relax/interp.h"
#include "relax/nodes.h"

namespace sator::test {

/// The graph of that name, or null.
const relax::Function* graph_of(const Module& module, const std::string& name = "main");

/// Random tensors for the parameters: real numbers from -1 to 1; integers from 0 to 2, so that they may be indices.
/// Symbolic sizes are `size(position)`. Nothing where a parameter is no tensor whose shape can be chosen.
std::optional<std::vector<runtime::Value>> arguments_for(const relax::Function& f, std::mt19937_64& random,
                                                         FunctionRef<int64_t(size_t)> size);
/// The same tensors in memory of their own: a function may write into its arguments.
std::vector<runtime::Value> copies(std::span<const runtime::Value> args);

/// A module after phases 0 to 5, its kernels as machine code of this CPU's best level, ready to be called.
class CompiledGraph {
 public:
  /// Errors: those of the compilation.
  explicit CompiledGraph(const ModuleRef& module);
  ~CompiledGraph();
  runtime::Value call(const std::string& function, std::span<const runtime::Value> args);

 private:
  struct Machine;
  std::unique_ptr<Machine> machine_;
};

/// Where two results differ by more than `tolerance` x (1 + |value|); nothing if they do not. NaN equals NaN; integers are
/// equal or not. Half precision is held to at least its own rounding.
std::optional<std::string> difference(const runtime::Value& expected, const runtime::Value& got,
                                      double tolerance = 1e-5);

/// "float32[2, 3] = 1 2 3 4 5 6"; a tuple is a line per item.
std::string as_lines(const runtime::Value& value);

}  // namespace sator::test
