// What schedules speak of. A loop's handle is its variable, a block's its name object: both survive the rewriting of
// what they name, and there is no shadow tree.
#pragma once

#include "tir/nodes.h"

namespace sator::schedule {

using Loop = VarRef;
using BlockHandle = tir::BlockNameRef;
/// Split factors, outermost first; one may be left open and is inferred.
using Factors = std::vector<std::optional<Expr>>;

}  // namespace sator::schedule
