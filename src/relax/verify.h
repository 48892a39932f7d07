// Whether graphs are well formed. The verifier runs after parsing and between passes.
#pragma once

#include "base/error.h"
#include "relax/nodes.h"

namespace sator::relax {

/// Every mistake of the module's graphs, each with the nodes to blame and the function around them:
///   - a part without struct info; a function without the struct info of its result
///   - a function whose attribute global_symbol is another name; a call of a function that the module does not have
///   - a variable, dataflow variable or symbolic size that is used where it is not defined, or defined twice
///   - a variable or symbolic size that two functions share
///   - what is not in A-normal form: nested calls, a branch or a body that is no SeqExpr, a SeqExpr anywhere else
///   - a dataflow variable outside of its dataflow block; a branch or an impure call inside of one
///   - an impure call in a function that is declared pure (relax.force_pure silences it), force_pure on one that is not
///   - extents that are no integers
///   - a variable or a result whose struct info contradicts its value's; a call_tir whose tensors have another dtype, number
///     of dimensions or extent than the function's buffers
std::vector<Reason> verify(const Module& module);
/// One function; calls of other functions are taken to be right.
std::vector<Reason> verify(const Function& func);

/// Throws the first mistake, and says how many there are.
void require_well_formed(const Module& module);
void require_well_formed(const Function& func);

}  // namespace sator::relax
