#pragma once

#include <optional>

#include "dataflow/calibrate/rows.h"

namespace sator::dataflow {

/// Of each of a row's sizes.
inline constexpr double kMostExtent = 1e12;

/// A measured GEMM: C[M, N] = A[M, K] B[K, N], `batch` of them.
struct GemmRow {
  std::string device, group;
  double m = 0, n = 0, k = 0, batch = 1;
  double bits = 16, bits_out = 16;
  bool is_float = true;
  bool weights_shared = true;  // all of the batch have the same B
  double seconds = 0;
};

/// Reads device, M, N, K, B, dtype or dt, latency_ms or us; nothing if the row is no GEMM: sizes are whole numbers from 1 to 1e12,
/// durations positive, number formats known.
std::optional<GemmRow> gemm_row(const Row& row);

}  // namespace sator::dataflow
