#pragma once

#include <cstddef>

namespace sator::passes {

/// The places of T.tile_product's arguments, which src/ir/builtins.cc explains.
enum TileProductArgument : size_t {
  kAcc,
  kAccStride,
  kA,
  kAStride,
  kB,
  kBStride,
  kRows,
  kColumns,
  kDepth,
  kAhead,
  kFromZero,
  kCount,
  kAccStep,
  kAStep,
  kBStep,
  kLines
};

}  // namespace sator::passes
