// What the loop primitives share.
#pragma once

#include "schedule/analysis.h"

namespace sator::schedule {

/// Why a loop cannot be divided or joined: it is bound, annotated or does not start at 0; nothing if it can.
MaybeReason not_a_plain_loop(const Schedule& s, const Loop& loop, const std::string& verb);

/// `nest` with the bindings of all blocks in it rewritten as simplified quasi-affine maps of the loops around them
/// (those in `nest` and those above `outer_site`). With `preserve_unit_iters`, loops of extent 1 stay in the bindings.
tir::Stmt simplify_bindings(const Schedule& s, tir::Stmt nest, int outer_site, bool preserve_unit_iters);

/// The outermost blocks in `stmt` run only where `predicate` holds too.
tir::Stmt with_predicate(const tir::Stmt& stmt, const Expr& predicate);

/// What the predicate of a block says of `outer` and of what is around it: where it does not hold, no instance of the
/// block runs below `outer`.
std::vector<Expr> conditions_outside(const Sites& sites, int block_site, int outer);

/// Where the init of a reduction over these loops runs: where the predicate holds in their first iterations, and where one of
/// them has no iteration, for a reduction over nothing is its init.
///   loops  the outermost first
Expr in_first_iterations(const Expr& predicate, const std::vector<const tir::For*>& loops);

/// The conjuncts of the predicate that use none of the loops `dropped`; one that runs once counts by its only value.
Expr conjuncts_without(const Expr& predicate, const std::vector<const tir::For*>& dropped);

}  // namespace sator::schedule
