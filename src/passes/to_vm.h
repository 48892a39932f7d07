// From a graph to what the virtual machine does: the passes of phase 5, in their order.
#pragma once

#include "passes/pass.h"

namespace sator::tir {
struct PrimFunc;
}

namespace sator::passes {

/// Whether the function copies its one input to its one output in the same order of elements. Asked before schedules
/// split its loops.
bool is_reshape(const tir::PrimFunc& f);
/// Which input the function copies like that, of those it has; nothing if it computes or reorders.
std::optional<size_t> reshaped_parameter(const tir::PrimFunc& f);

/// R.call_tir of a tensor function that only renames indices (a reshape) becomes R.reshape: a view at run time.
ModuleRef rewrite_dataflow_reshape(const ModuleRef& module, const PassContext& ctx);
/// Dataflow blocks become plain ones; from here on bindings may have effects.
ModuleRef to_non_dataflow(const ModuleRef& module, const PassContext& ctx);
/// Functions are taken for pure (`relax.force_pure`), and R.call_pure_packed becomes the plain call.
ModuleRef remove_purity_checking(const ModuleRef& module, const PassContext& ctx);
/// gv = R.call_tir(f, (x,), out)   =>   alloc = R.builtin.alloc_tensor(..); _ = f(x, alloc); gv = alloc
ModuleRef call_tir_rewrite(const ModuleRef& module, const PassContext& ctx);
/// Allocations of known or bounded size share storages: R.memory.alloc_storage, R.memory.alloc_tensor.
///   config  "StaticPlanBlockMemory.same_dtype": 1 for storages that tensors of one dtype share (0), as TVM has it
ModuleRef static_plan_block_memory(const ModuleRef& module, const PassContext& ctx);
/// What is left of R.builtin.alloc_tensor gets a storage of its own.
ModuleRef lower_alloc_tensor(const ModuleRef& module, const PassContext& ctx);
/// R.memory.kill_tensor, R.memory.kill_storage, R.vm.kill_object after the last use; `y = x` is inlined.
ModuleRef kill_after_last_use(const ModuleRef& module, const PassContext& ctx);
/// The remaining ops become calls of vm.builtin functions.
ModuleRef vm_builtin_lower(const ModuleRef& module, const PassContext& ctx);
/// Symbolic sizes live in a heap of int64: checks of the arguments, stores, loads, a function for derived sizes.
///   config  "VMShapeLower.emit_err_ctx": 0 for checks that do not name their place (1)
///           "VMShapeLower.trust_weights": 1 to check of the parameters behind the attribute num_input only those that
///           tell a symbolic size (0), as TVM has it
ModuleRef vm_shape_lower(const ModuleRef& module, const PassContext& ctx);
/// Every function gets its name as `global_symbol`.
ModuleRef attach_global_symbol(const ModuleRef& module, const PassContext& ctx);
/// The tensor function that callers begin with (`tir.is_entry_func`), where only one can be.
ModuleRef annotate_entry_func(const ModuleRef& module, const PassContext& ctx);

/// What static_plan_block_memory found for one graph function, kept as its attributes.
struct MemoryPlan {
  int64_t unplanned_bytes = 0;  ///< every temporary tensor in memory of its own, at the upper bounds
  int64_t planned_bytes = 0;    ///< with shared storages
  int64_t unbounded = 0;        ///< tensors whose size has no upper bound: they are allocated as they come
};
std::optional<MemoryPlan> memory_plan(const FuncNode& func);

}  // namespace sator::passes
