// What the search for a mapping asks of a product, over and over: the part of it that one core does.
#pragma once

#include <string>
#include <vector>

#include "dataflow/mapping/mapper.h"

namespace sator::dataflow {

/// The part of a product that one core does, with the facts that do not depend on how it is tiled.
class CoreShare {
 public:
  ///   block   per iterator: consecutive values that one core takes
  CoreShare(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
            const std::vector<int64_t>& block);

  const Work& work;
  const Product& product;
  const Chip& chip;
  const Pace& pace;
  std::vector<int64_t> extent, parts;  // per iterator: of one core; and how many of these there are
  int64_t cores = 1;                   // at work
  bool shares_reduction = false;       // among cores
  std::vector<double> footprint;       // elements, per access, of one core
  std::vector<double> spread;          // per access: how many of these all cores need

  /// Whether iterator x has part in where access a points.
  bool relevant(size_t a, size_t x) const { return indexes_[a] >> x & 1; }
  size_t rank() const { return extent.size(); }
  size_t accesses() const { return footprint.size(); }
  std::string name(size_t x) const { return work.statement.domain.names[x]; }
  /// Iterator x counted from the start of its core's block.
  QuasiAffine from_zero(size_t x) const;
  /// Elements of an access when each iterator runs over `block` consecutive values from an aligned start.
  double elements(size_t access, const std::vector<int64_t>& block) const;
  /// Of an element as the memories hold it: sums at the accumulator's width.
  double bits_of(size_t access) const;
  bool is_running_sum(size_t access) const;
  /// Cores that share the bits of memory m evenly, each with a memory of its own.
  double sharers(size_t m) const { return chip.memories[m].per_core ? static_cast<double>(cores) : 1; }
  /// How many times the part of access a in memory m that one core needs, for all cores: each has its own, or they share
  /// it. The number of memories stands for the array.
  double copies(size_t a, size_t m) const;

 private:
  std::vector<uint64_t> indexes_;           // per access: a bit per iterator
  std::vector<std::vector<size_t>> plain_;  // per access, its iterators where each coordinate is one of them
  std::vector<bool> is_plain_;
};

}  // namespace sator::dataflow
