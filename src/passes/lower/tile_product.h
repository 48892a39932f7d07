#pragma once

#include <cstddef>
#include <cstdint>

#include "tir/nodes.h"

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

/// The place in a buffer behind an argument; null where it is something else than T.address_of, which no code is made for.
inline const BufferLoad* place_of(const Call& product, TileProductArgument which) {
  const Call* address = product.args[which].as<Call>();
  return address && address->op == "tir.address_of" ? address->args[0].as<BufferLoad>() : nullptr;
}

}  // namespace sator::passes
