// Programs of two machines: what a host runs, and what it launches on a device. Module passes, one per file.
#pragma once

#include "ir/module.h"
#include "passes/pass.h"
#include "tir/nodes.h"

namespace sator::passes {

/// The target of functions that have none: with its host for those that others link to, without it for private ones. A
/// function for the host alone (tir.is_host_func) has the host as target.
///   config  "BindTarget.target"; without it ctx.target is noted as it is
ModuleRef bind_target(const ModuleRef& module, const PassContext& ctx);

/// Around what runs on a device (thread launches, device scopes): the attribute "target" with the device's part of the
/// function's target. Errors: a function without target.
ModuleRef annotate_device_regions(const ModuleRef& module, const PassContext&);

/// Each region with the attribute "target" becomes a function NAME_kernel of that target, and a call of it. Its parameters are
/// what the region uses: pointers first, then values, each by name.
ModuleRef split_host_device(const ModuleRef& module, const PassContext&);

/// Calls of functions of another target: on the same device call_extern, on another one a launch (call_packed with the
/// extents of the thread axes and the size of dynamic shared memory after the arguments); the functions are marked so.
/// Errors: a function that is both launched and called; a kernel that returns a value; two allocations of dynamic shared memory.
ModuleRef lower_device_kernel_launch(const ModuleRef& module, const PassContext&);

/// Functions that others link to, for C: a pointer in place of each buffer, a status as result, the host as target.
/// Errors: such a function without target; a call that gives no array for a buffer.
ModuleRef make_unpacked_api(const ModuleRef& module, const PassContext&);

/// Functions for a GPU that have no schedule: the data-parallel loops of each block become one, over blocks and threads. All
/// functions are marked as scheduled. Errors: no target, neither of the function nor of the context.
ModuleRef default_gpu_schedule(const ModuleRef& module, const PassContext& ctx);

/// The loads and stores of a program for a GPU, one per tensor among its parameters, that no thread does: such a loop would run on
/// the host, which cannot. None of programs for other targets, and of kernels that are split from the host's code.
/// Errors: no target.
std::vector<NodeRef> touched_by_host(const tir::PrimFunc& func);

/// Changes nothing. Errors: a program that touches its tensors so; one without target.
ModuleRef verify_memory(const ModuleRef& module, const PassContext&);

/// No variable is defined by two functions.
ModuleRef convert_ssa(const ModuleRef& module, const PassContext&);

}  // namespace sator::passes
