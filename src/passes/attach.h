// Phase 0: what later passes need to know, put down as attributes.
#pragma once

#include <map>
#include <string>

#include "passes/pass.h"
#include "relax/nodes.h"

namespace sator::passes {

/// The upper bounds of symbolic sizes (`tir_var_upper_bound`) on every graph function.
ModuleRef attach_variable_bounds(const ModuleRef& module, const PassContext& ctx);
/// Those that a function's attribute notes, by the names of the sizes. Errors: a bound that is no integer.
std::map<std::string, int64_t> noted_bounds(const relax::Function& func);
/// Results of dynamic shape may be planned too (`relax.memory_plan_dynamic_func_output`).
ModuleRef attach_memory_plan_attr(const ModuleRef& module, const PassContext& ctx);
/// Adds the tensor programs of `ctx.additional` under their names, as `global_symbol`, for callers outside of the module.
/// Errors: the module has another function of that name.
ModuleRef attach_additional_prim_funcs(const ModuleRef& module, const PassContext& ctx);
/// Functions that came with a schedule: those of `ctx.scheduled`, those that a schedule's step rewrote and those with a loop that
/// is not serial are marked as scheduled too (`tir.is_scheduled`), and none of them is fused with others.
ModuleRef mark_scheduled_functions(const ModuleRef& module, const PassContext& ctx);
/// Functions of `ctx.scheduled` take the places of those from which they were made, with the attributes of these.
ModuleRef place_scheduled_functions(const ModuleRef& module, const PassContext& ctx);
/// Attributes that only the fusion passes need are taken off again.
ModuleRef clean_up_tir_attrs(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
