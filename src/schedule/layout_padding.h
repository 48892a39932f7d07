// What a change of layout does about the elements that only the new layout has.
#pragma once

#include "schedule/index_maps.h"

namespace sator::schedule {

struct Padding {
  BufferRef old, fresh;
  IndexMapRef inverse;  ///< indices of `fresh` -> those of `old`
  Expr predicate;       ///< over the inputs of `inverse`: the element is padding
  IndexMapRef value;    ///< indices of `fresh` -> what stands in the padding
};

/// The function's body with the padding filled; accesses of `old` that are left are still to be mapped to `fresh`.
/// - Loops over the whole buffer that do nothing but store to it become loops over the new one, which store the value
///   where it is padding:  for i: B[i] = f(i)   =>   for i0, i1: B[i0, i1] = if_then_else(padding, value, f(i0 * 4 + i1))
/// - Where that is not possible, a block behind the last store fills the padding.
/// - A parameter that is only read is assumed to hold the value there: a block says so by T.assume.
tir::Stmt with_padding(const tir::Stmt& body, const Padding& padding);

}  // namespace sator::schedule
