// Bindings that become a function of their own: what fusion and pattern passes do once they know which.
#pragma once

#include "ir/module.h"
#include "relax/nodes.h"
#include "tir/nodes.h"

namespace sator::relax {

/// Some bindings of one dataflow block (indices, ascending), to become the private function `name` with these attributes.
struct Group {
  std::vector<size_t> bindings;
  std::string name;
  Attrs attrs;
  bool keeps_constants = false;  ///< inside of the function; else they are arguments of the call
  /// Bindings that read a result before the group's last binding move behind it. No value may leave the group and what is
  /// made from it come back.
  bool moves_readers = false;
};

/// Outlines groups, block by block, and collects the new functions in the module.
class Outliner {
 public:
  explicit Outliner(ModuleRef module) : module_(std::move(module)) {}

  /// The block with each group replaced by a call at the place of its last binding. `live_out`: variables that are used
  /// after the block. A group of whose values none is read goes. A group whose result is needed before its last binding stays as it is, unless it moves readers.
  BindingBlockRef outline(const BindingBlockRef& block, const std::vector<Group>& groups,
                          const std::vector<RVarRef>& live_out);
  const ModuleRef& module() const { return module_; }
  void set_module(ModuleRef module) { module_ = std::move(module); }

 private:
  Binding outlined(const BindingBlockRef& block, const Group& group, const std::vector<RVarRef>& outputs,
                   std::vector<Binding>& after);
  ModuleRef module_;
};

/// Applies `rewrite(block, live_out)` to each dataflow block of each graph function that is not itself a fused one.
ModuleRef rewrite_dataflow_blocks(
    const ModuleRef& module,
    const std::function<BindingBlockRef(const BindingBlockRef&, const std::vector<RVarRef>&)>& rewrite,
    Outliner* outliner = nullptr);

/// The graph variables that occur in `e`, each once, in order of first sight; those bound inside are left out.
std::vector<RVarRef> rvars_in(const NodeRef& e);
/// Whether the expression makes a call that may have effects; what functions inside of it would call does not count.
/// Calls of the function `own_name` do not count either: what it does is what is asked.
bool contains_impure_call(const RExpr& e, const std::string& own_name = "");
/// The call of call_tir in `binding`: its callee's name, or nothing.
std::optional<std::string> called_prim_func(const Binding& binding);
/// Which buffer of a function is its i-th tensor parameter; null if it has fewer.
BufferRef tensor_parameter(const tir::PrimFunc& func, size_t i);
/// The tensors handed to a call_tir.
std::vector<RExpr> call_tir_inputs(const RCall& call);
/// Per result of a call_tir or call_tir_inplace: the input that it overwrites, or -1.
std::vector<int64_t> overwritten_inputs(const RCall& call, size_t results);
RVarRef bound_var(const Binding& binding);
RExpr bound_value(const Binding& binding);

}  // namespace sator::relax
