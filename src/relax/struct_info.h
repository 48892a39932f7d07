// Struct info: how much of it one value shares with another, what it loses when it leaves a scope, and what a call of a
// function gives.
#pragma once

#include "arith/analyzer.h"
#include "relax/nodes.h"

namespace sator::relax {

/// How far `derived` is known to be a `base`, from worst to best: no value can be both; nothing says that it is one; only
/// symbolic extents are not known to agree (a check at run time decides); it is.
enum class BaseCheck { disjoint, not_known, values_unknown, pass };
BaseCheck base_check(const StructInfo& base, const StructInfo& derived, arith::Analyzer& arith);
inline bool is_base_of(const StructInfo& base, const StructInfo& derived, arith::Analyzer& arith) {
  return base_check(base, derived, arith) == BaseCheck::pass;
}

/// The least struct info that holds for both.
StructInfo common_base(const StructInfo& a, const StructInfo& b, arith::Analyzer& arith);

/// The struct info over other variables: extents with a variable that `sizes` does not have are forgotten, shapes that
/// are a variable which `shapes` does not have too.
StructInfo erase_to_well_defined(const StructInfo& info, const VarMap& sizes,
                                 const std::unordered_map<RVarRef, RExpr>& shapes, arith::Analyzer& arith);

/// What a call with these arguments gives: the function's symbolic sizes are found from the arguments and put into its
/// result. Errors: the number of arguments, or an argument that cannot be what the parameter asks for.
StructInfo result_of_call(const FuncInfo& function, const std::vector<RExpr>& args, arith::Analyzer& arith);

/// Symbolic sizes that occur in `info`, each once, in order; only those that stand alone as an extent, which a parameter
/// of this struct info defines.
std::vector<VarRef> vars_of(const StructInfo& info);
std::vector<VarRef> definable_vars(const StructInfo& info);
/// Whether the extents of all tensors are known, if only as expressions.
bool has_shapes(const StructInfo& info);

/// "R.Tensor((n, 4), dtype=\"float32\")"
void append_text(std::string& out, const StructInfoNode& info);
inline void append_text(std::string& out, const StructInfo& info) {
  if (info)
    append_text(out, *info);
  else
    out += "unknown";
}

}  // namespace sator::relax
