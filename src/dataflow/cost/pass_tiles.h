// What one tile of a kernel that runs in one pass costs on one core.
#pragma once

#include <array>
#include <map>
#include <tuple>

#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/pass_form.h"

namespace sator::dataflow {

/// A product over the tiles of a block: of the first tile, and what each further one adds.
struct ProductTiles {
  struct Bits {
    int64_t read = 0, write = 0;
  };
  /// What the PEs exchange with the memory beside them for one access (input, weight, output); none of what is handed on.
  struct Beside {
    std::optional<size_t> memory;
    Bits first, next;
  };
  StatementCost first, two;  // one tile, and two
  std::array<Beside, 3> beside;

  /// Of so many blocks with `tiles` tiles in all.
  int64_t over(int64_t blocks, int64_t tiles, int64_t of_first, int64_t of_two) const {
    return blocks * of_first + (tiles - blocks) * (of_two - of_first);
  }
  double array_cycles(int64_t blocks, int64_t tiles) const {
    return static_cast<double>(over(blocks, tiles, first.array_cycles(), two.array_cycles()));
  }
};

/// Tiles of both products, remembered: contexts of any length have the same.
class PassTiles {
 public:
  PassTiles(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts);

  /// Of a tile of `rows` x `columns`. Null where it does not fit the chip's memories, or cannot be counted.
  const std::array<ProductTiles, 2>* of(const PassForm& form, int64_t rows, int64_t columns);

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t, int64_t, int, std::array<int, 4>, std::array<bool, 4>>;
  ProductTiles tiles_of(const PassForm& form, bool second, int64_t rows, int64_t columns) const;

  std::vector<Chip> one_core_;  // per class of products
  CountMemo& counts_;
  std::map<Key, std::optional<std::array<ProductTiles, 2>>> known_;
};

}  // namespace sator::dataflow
