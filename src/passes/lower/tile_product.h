#pragma once

#include <cstddef>
#include <cstdint>

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

/// Of its right operand.
inline constexpr int64_t kPanelColumns = 32;

}  // namespace sator::passes
