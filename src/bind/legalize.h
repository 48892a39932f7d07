// Functions of Python's that say what takes the place of an op's call.
#pragma once

#include "bind/node.h"
#include "relax/ops/op.h"

namespace sator::bind {

/// A function (builder, call) -> expression as an op's row has it; none for None. Its own exceptions pass through.
///   needs_extents   it is asked only where all extents of the arguments and of the result are known
relax::LegalizeFn legalization_of(nb::object function, bool needs_extents);

}  // namespace sator::bind
