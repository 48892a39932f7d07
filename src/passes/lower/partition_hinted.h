#pragma once

#include "passes/lower/lower.h"

namespace sator::passes {

/// Loops of constant range are cut where their conditions change: those annotated "pragma_loop_partition_hint" where any
/// comparison in them does, others where one under T.likely does.
///   for i in 0..160, annotated: (if i < 10: S else: R)   =>   for i in 0..10: S; for i in 0..150: R(i + 10)
/// With `unroll` (the option tir.LoopPartition.unroll_loop_with_partition_hint_no_interval) an annotated loop that keeps a
/// condition of its own is unrolled.
tir::Stmt partition_hinted(const tir::Stmt& stmt, bool unroll);

}  // namespace sator::passes
