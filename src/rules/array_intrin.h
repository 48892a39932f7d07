// The array of a described chip as a tensor intrinsic: what its PEs do at one stamp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace sator::rules {

/// One stamp of an array that multiplies and accumulates: which iterators lie along its rows, its columns and in one PE,
/// and how the three tiles lie in their tensors.
struct ArrayStamp {
  /// An iterator of the product inside of the stamp. Iterators are in the order of the product's block.
  struct Iter {
    bool reduces = false;
    int64_t on_axis = 1;  // PEs along the axis
    int64_t at_once = 1;  // values that one PE takes
    char axis = 0;        // 'r' rows, 'c' columns, 0: on none
  };
  /// A tile: the innermost dimensions of its tensor from the first one that an iterator runs along; each has the number of
  /// its iterator, or -1 where the tile is one element thick.
  struct Tile {
    DType dtype;
    std::vector<int> dims;
  };
  std::vector<Iter> iters;
  Tile first, second, output;  // output += first * second, both widened to the output's dtype
};

/// Registers the stamp (schedule/tensor_intrin.h) and gives its name, "CHIP.32x32x1.float32[k]*float32[j,k]+float32[j]".
///   desc   loops over rows, columns and what one PE takes, around one multiply-accumulate
///   impl   the same with the loops bound to pe.x and pe.y
/// Both are TensorIR, so that the interpreter runs them and the cost engine reads the mapping from the implementation.
std::string register_array_intrin(const std::string& chip, const ArrayStamp& stamp);

}  // namespace sator::rules
