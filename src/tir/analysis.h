// What can be told of a whole tensor function.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "tir/nodes.h"

namespace sator::tir {

/// Why calls of the function do more than give its result: it stores in memory that it did not allocate, or calls what has an
/// effect. Nothing if it is pure.
std::optional<Reason> not_pure(const PrimFunc& func);

/// Whether each variable is bound once. A let expression may occur again where its value is equal.
bool is_ssa(const PrimFunc& func);
/// Why a module's programs are not separate: two of them bind one variable. Nothing if they are.
std::optional<Reason> not_separate(const Module& module);
/// Every access that surely leaves its buffer for some iteration, with the bounds of its index.
std::vector<Reason> out_of_bounds(const PrimFunc& func);
/// The variables that a statement or an expression uses and does not bind, in the order of their first use; the pointers of
/// buffers are among them.
std::vector<VarRef> undefined_vars(const NodeRef& node);

/// The most bytes that allocations take at one time, each rounded up to a multiple of `alignment`; those of a size that is not
/// constant count nothing.
int64_t workspace_bytes(const PrimFunc& func, int64_t alignment);
/// Of each storage scope, the most bytes that its allocations take at one time.
std::map<std::string, int64_t> allocated_bytes(const PrimFunc& func);
/// As workspace_bytes, of constants.
int64_t constant_bytes(const PrimFunc& func, int64_t alignment);

/// Arithmetic operations of what a module's functions store: of branches the costlier, of loops without a bound one
/// iteration; a function's attribute "estimated_flops" stands for its own count. Indices and comparisons count nothing.
double estimate_flops(const Module& module);

}  // namespace sator::tir
