// Functions with some of their variables known: parameters bound to values, symbolic sizes to numbers, calls to the bodies of
// what they call.
#pragma once

#include "relax/builder.h"
#include "relax/nodes.h"

namespace sator::relax {

/// The symbolic sizes that the function's parameters and match_casts define, each once, in order.
std::vector<VarRef> defined_sizes(const Function& f);

/// Those of them that the parameters define.
std::vector<VarRef> sizes_defined_by(const std::vector<RVarRef>& params);

/// Variables that a local function uses and does not bind.
std::vector<RVarRef> captured_variables(const Function& f);

/// What values are known as where only the `defined` sizes and those that the values themselves define are known: an extent
/// that is computed from other sizes is a size of its own, the same one for equal extents.
std::vector<StructInfo> with_defined_sizes(std::vector<StructInfo> infos, std::vector<VarRef> defined);

/// The symbolic sizes that occur in a graph, each once, in order of first sight. Functions that it calls or holds have sizes of
/// their own, which do not count.
std::vector<VarRef> sizes_in(const NodeRef& root);

/// The program with graph variables and symbolic sizes replaced; size expressions that change are simplified. Struct info is
/// replaced, not inferred again.
RExpr with_values(const RExpr& e, const NodeMap& values, const VarMap& sizes);
FuncRef with_values(const FuncRef& f, const NodeMap& values, const VarMap& sizes);

/// The function with the struct info of each value inferred again.
FuncRef reinferred(const FuncRef& f, BlockBuilder& builder);

/// The function with graph variables and symbolic sizes of its own; what it captures stays.
FuncRef fresh_copy(const FuncRef& f);

/// The sizes that arguments of this struct info give a function's parameters. Sizes without a value are left out.
VarMap sizes_of_arguments(const std::vector<RVarRef>& params, const std::vector<RExpr>& args);
/// The same with a value for each of the `wanted` sizes: what the arguments do not tell, a match_cast of them does, whose
/// binding is left to `cast`.
VarMap sizes_of_arguments(const std::vector<RVarRef>& params, const std::vector<RExpr>& args,
                          const std::vector<VarRef>& wanted,
                          FunctionRef<void(const RExpr& value, const StructInfo& sinfo)> cast);

/// A parameter or symbolic size: by name (StringImm), or itself (RVar, Var); and what it shall be.
using NamedValues = std::vector<std::pair<NodeRef, NodeRef>>;

/// The function with parameters bound to expressions: they are parameters no more.
/// Errors: no such parameter, or two of the name; one is bound twice; a value that cannot be what the parameter is.
FuncRef bind_params(const FuncRef& f, const NamedValues& values, BlockBuilder& builder);

/// The function with symbolic sizes bound to expressions.
/// Errors: the function defines no such size, or two of the name; one is bound twice; a size of the result has no definition.
FuncRef bind_sizes(const FuncRef& f, const NamedValues& values, BlockBuilder& builder);

/// The function with calls of these functions, by their names in the module, replaced by their bodies, again and again.
/// Errors: a function that calls itself, directly or through others.
FuncRef inline_calls(const FuncRef& f, const std::map<std::string, FuncRef>& callees, BlockBuilder& builder);

}  // namespace sator::relax
