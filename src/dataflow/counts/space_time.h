#pragma once

#include <string>
#include <vector>

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// Where a PE has an element from.
enum class Supply : uint8_t {
  kept,       // it had it one stamp ago
  neighbour,  // a wired PE has it now, or had it one stamp ago
  memory      // neither: it counts in `unique`
};

/// What one PE touches of one tensor at one stamp: elements by where it has them from.
struct SpaceTimeCell {
  size_t pe = 0, stamp = 0;  // numbers in SpaceTime's lists
  int64_t kept = 0, neighbour = 0, memory = 0;

  /// The dearest way that occurs.
  Supply supply() const { return memory > 0 ? Supply::memory : neighbour > 0 ? Supply::neighbour : Supply::kept; }
};

struct SpaceTimeTensor {
  std::string tensor;
  Role role = Role::read;
  std::vector<SpaceTimeCell> cells;  // by PE, then by stamp
};

/// The first stamps of a problem at PEs of one corner of the array.
struct SpaceTime {
  std::vector<std::vector<int64_t>> pes, stamps;  // coordinates, in lexicographic order
  std::vector<SpaceTimeTensor> tensors;           // in the order of the statement's accesses
};

struct SpaceTimeLimits {
  size_t stamps = 60, pes = 64;
  int64_t boxes = 20'000'000;  // of the domain that may be looked at
};

/// Finds for every element of the first stamps where it comes from, by the definitions of Counts. The domain's size does not
/// matter: instances of a PE and a stamp are found by cutting the domain in halves and leaving out those whose bounds miss.
/// Errors: maps that would take more boxes than the limit; wires with free variables on more than 4096 PEs; those of
/// `mismatch` and `overflow`.
SpaceTime space_time(const Problem& problem, const SpaceTimeLimits& limits = {});

}  // namespace sator::dataflow
