#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/work.h"
#include "rules/chip.h"

namespace sator::dataflow {

/// Where and when a statement's instances run on a chip, and what each memory holds meanwhile.
struct Placement {
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
  std::string words;  // the loops, outermost first, for people
  /// The same as loops of the program that the statement comes from, where the mapping was made for them; without weight.
  std::optional<rules::ArrayNest> nest;
};

/// How the chip's PEs run the statement's precision, and what comes after them.
struct Pace {
  int64_t macs_per_stamp = 1;  // along a reduction iterator, in one PE
  int64_t cycles_per_stamp = 1;
  int sum_bits = 32;         // of a partial sum
  double vector_cycles = 0;  // that the vector unit works on the product's output
  /// Per access: cycles of the vector unit for one element that it makes on the way. Empty: none.
  std::vector<double> making_cycles;
};

/// A mapping for the chip's dataflow: two space axes chosen from the product's access relations (outputs stay: one output
/// axis of each factor; weights stay: a reduction and an output axis of the weight), tiles for the array and for every
/// memory, and the order of the loops with the smallest estimated latency (KernelCost in cost.h), then the least outside
/// traffic.
/// Where the chip has several cores, output axes are cut into as many blocks of consecutive values, one per core.
/// Source: the traffic formula of nests of loops is Timeloop's (Parashar et al., ISPASS 2019).
/// Cost: about a thousand candidates by closed form, under a millisecond.
Placement place(const Work& work, const Product& product, const Chip& chip, const Pace& pace);

}  // namespace sator::dataflow
