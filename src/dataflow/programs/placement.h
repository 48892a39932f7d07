#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/counts/relation.h"
#include "rules/chip.h"

namespace sator::dataflow {

/// Where and when a statement's instances run on a chip, and what each memory holds meanwhile.
struct Placement {
  /// What the mapper expects, in cycles.
  struct Estimate {
    double cycles = 0;        // of the kernel, without its launch and its other products
    double least_cycles = 0;  // no mapping of the space that was searched is estimated to take less; 0: not known
    double array_cycles = 0, fold_cycles = 0;
    std::vector<double> memory_cycles;  // per memory: for what moves for the product
    /// By how much the best mapping of that space may be quicker, at most: 0.004 is 0.4 %. Nothing where that is not known.
    std::optional<double> gap() const {
      if (least_cycles <= 0) return {};
      return cycles > least_cycles ? cycles / least_cycles - 1 : 0;
    }
  };
  Mapping mapping;  // without skew: operands that take a stamp per PE are delayed by the wires, not by the map
  /// Per memory of the chip: the number of outer time coordinates that choose what it holds. 0: the whole tensor.
  std::vector<size_t> held_since;
  /// The same for single accesses whose tiles differ from the memory's others: held_by_access[access][memory]. Empty: none.
  std::vector<std::vector<size_t>> held_by_access;
  /// The factor that lies where weights are held; absent: the one that is a weight, else the second.
  std::optional<size_t> weight;
  /// Which of the chip's cores runs an instance; absent: one core does.
  std::optional<QuasiAffine> core;
  int64_t cores_used = 1;
  bool shares_reduction = false;  // cores have parts of the same sums, which meet in a memory that all share
  /// Tensors made and used inside of the kernel for which the chip has no room: they stand in the outermost memory.
  std::vector<std::string> stored_outside;
  bool tiled = false;  // by tiles that were asked for
  std::string words;   // the loops, outermost first, for people
  Estimate estimate;   // where a search has chosen the mapping
  /// The same as loops of the program that the statement comes from, where the mapping was made for them; without weight.
  std::optional<rules::ArrayNest> nest;
};

}  // namespace sator::dataflow
