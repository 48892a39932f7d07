#pragma once

#include "runtime/value.h"

namespace sator::runtime {

/// The bytes of x, in its memory, as what the op memory.view asks for; where an argument is the empty tuple, x's own.
///   shape    a Shape
///   dtype    of the elements; bytes are not converted
///   offset   an integer >= 0: bytes behind the first of x
/// Errors: the view reaches beyond x; its first element is not aligned.
Ref<Tensor> view_of(const Tensor& x, const Value& shape, const Value& dtype, const Value& offset);

}  // namespace sator::runtime
