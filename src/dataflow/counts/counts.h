#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "dataflow/counts/relation.h"

namespace sator::dataflow {

/// What one tensor's references do in one role. A triple is (PE, time stamp, element) that occurs.
struct TensorCounts {
  std::string tensor;
  Role role = Role::read;
  int64_t total = 0;          // sum over instances of the distinct elements each touches
  int64_t assigned = 0;       // triples
  int64_t unique = 0;         // triples whose element is at hand neither in a wired PE now or one stamp ago, nor in
                              // the same PE one stamp ago
  int64_t temporal_hits = 0;  // triples that the same PE had one stamp ago
  int64_t spatial_hits = 0;   // triples that a wired PE has now or had one stamp ago
  int64_t footprint = 0;      // distinct elements
};

/// "One stamp ago" is the lexicographic predecessor among the stamps that occur anywhere in the array.
struct Counts {
  int64_t macs = 0;       // instances
  int64_t pe_array = 0;   // declared PEs
  int64_t space = 0;      // PEs that ever work
  int64_t time = 0;       // stamps
  int64_t spacetime = 0;  // (PE, stamp) pairs that occur
  /// Sum over stamps of the most instances that one PE runs there: cycles at one instance per PE and cycle.
  /// Absent where several tilings overlap on a stamp: list_work_cycles (enumerate.h) finds it there.
  std::optional<int64_t> work_cycles;
  /// Some work falls on PEs that the array does not have. As in TENET it counts, but keeps nothing for itself in `unique`.
  bool outside_array = false;
  bool enumerated = false;            // found point by point, not by boxes
  std::vector<TensorCounts> tensors;  // in the order of the statement's accesses
};

struct CountOptions {
  /// Instances that may be listed one by one where boxes do not reach; 0: refuse instead.
  int64_t enumerate_up_to = 1 << 20;
};

/// Exact counts of a problem, 64-bit. Sizes do not matter: a GEMM takes microseconds at any extent.
/// Errors (as a value): what makes the relations leave the class that boxes count exactly, and too many
/// instances to list; counts beyond 64 bits; ranks that disagree. Never a wrong number. Source: definitions
/// from Lu et al., "TENET", ISCA 2021; the method is ours: mixed-radix digits make every set a few boxes and
/// every way of reuse a constant shift, so that what is reused is the volume of a union of boxes.
std::variant<Counts, Reason> count(const Problem& problem, const CountOptions& options = {});

/// The same by boxes alone.
std::variant<Counts, Reason> count_by_boxes(const Problem& problem);

/// Why the parts of a problem do not fit each other; nothing if they do.
std::optional<Reason> mismatch(const Problem& problem);

}  // namespace sator::dataflow
