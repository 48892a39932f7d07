// The kernels that a step of a model launches, read from its program: what the cost engine is fed with.
#pragma once

#include <set>

#include "dataflow/programs/from_tir.h"
#include "llm/program.h"
#include "relax/nodes.h"
#include "rules/grouped.h"

namespace sator::llm {

/// One launch of a kernel.
struct KernelCall {
  std::string function;                      ///< of the phase-3 module
  std::string layer;                         ///< "transformer.h.0.attn.c_attn"; empty: outside of layers
  std::map<std::string, int64_t> sizes;      ///< values of its symbolic sizes, by name
  std::vector<dataflow::ParamFacts> params;  ///< what its buffers are to the model, and their widths as stored
  tir::PrimFuncRef work;                     ///< the phase-3 function, or the affine function that states its work
  int64_t sequences = 1;  ///< that it does this for at once: of attention, which is launched for a batch
};

/// How many of `experts` experts some tokens take that choose `per_token` each, all alike and each for itself: a token leaves out
/// an expert with probability 1 - k/E, so E * (1 - (1 - k/E)^t) are expected; rounded.
int64_t expected_experts(int64_t experts, int64_t per_token, int64_t tokens);

/// How large a step is: the tokens that it appends, and the positions in the cache once they are there.
struct StepSize {
  int64_t tokens = 1, context = 1;
};

/// The launches of a program's steps, without running it. Where rows meet experts (rules/grouped.h), `work` is what one of them
/// does, and `sizes` say how many there are expected to be (dataflow/programs/row_groups.h).
class Workload {
 public:
  ///   phase3   the program after phase 3 (driver::to_phase3)
  ///   program  as it was built: what its parameters are, and its attention
  Workload(const ModuleRef& phase3, const Program& program);

  /// The launches of one call of `function` (prefill, decode, verify), in the order in which they run. What depends on
  /// parameters alone runs once, when they are loaded, and is not among them; reshapes are views and launch nothing.
  /// Errors: a size that does not follow from the step.
  std::vector<KernelCall> calls(const std::string& function, const StepSize& size) const;
  /// Those of the function that a session runs for such a step.
  std::vector<KernelCall> calls(const StepSize& size) const { return calls(Session::function_of(size.tokens), size); }

 private:
  class Walk;
  ModuleRef module_;                          ///< with lifted parameters
  std::vector<dataflow::ParamFacts> params_;  ///< of the lifted tuple
  std::vector<std::string> param_layer_;      ///< the layer that each belongs to; empty: none
  struct Attention {
    Program::CacheKernels names;
    tir::PrimFuncRef append, work;
  };
  std::vector<Attention> attention_;                       ///< what that of each layer launches
  bool has_extra_ = false;                                 ///< attention reads biases or sinks too
  std::map<std::string, rules::GroupedFunction> grouped_;  ///< the functions of experts, by name
  ModelLimits limits_;
};

/// Multiply-accumulates of one step by the arithmetic of the configuration alone: every linear layer on every token, of
/// experts those that a token takes, the head on the last, and both products of attention over each token's own and earlier positions.
int64_t macs_of_step(const ModelConfig& config, const StepSize& size);

}  // namespace sator::llm
