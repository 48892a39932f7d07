#pragma once

#include <cstdint>
#include <optional>

#include "dataflow/counts/counts.h"

namespace sator::dataflow {

/// C[i,j] += A[i,k] * B[k,j] on an array of PEs, mapped as the catalogue of dataflows does. Two iterators lie on the array, cut
/// into tiles of its size; the third streams through.
///   outputs   rows i, columns j, k streams     (A moves along rows, B along columns)
///   weights   rows k, columns j, i streams     (B stays)
///   inputs    rows k, columns i, j streams     (A stays)
struct GemmNest {
  enum class Stays : uint8_t { outputs, weights, inputs };
  int64_t i = 1, j = 1, k = 1;
  int64_t rows = 1, columns = 1;  // of the array
  Stays stays = Stays::outputs;
  bool skewed = true;             // an operand takes one stamp per PE that it passes; else it reaches all at once
  bool wired = true;              // a PE is supplied by the one before it in its row and its column; else by none
  int64_t lanes = 1;              // consecutive values of the streamed iterator that a PE takes at one stamp
  bool row_tiles_inside = false;  // of the loops over tiles
};

/// The counts of TensorCounts for one tensor.
struct GemmTensor {
  int64_t total = 0, assigned = 0, unique = 0, temporal_hits = 0, spatial_hits = 0, footprint = 0;
};

/// The counts of Counts.
struct GemmCounts {
  int64_t macs = 0, space = 0, time = 0, spacetime = 0, work_cycles = 0;
  GemmTensor a, b, c;
};

/// Exact counts by closed form: a few dozen integer operations, nothing allocated. Nothing where tiles of one PE pass on what
/// they hold (the general engine counts those), or macs pass 2^61.
/// Source: ours; tests compare it with the general engine and with enumeration.
std::optional<GemmCounts> gemm_counts(const GemmNest& nest);

/// The same nest as relations.
Problem problem_of(const GemmNest& nest);

}  // namespace sator::dataflow
