#pragma once

#include <cstdint>

#include "formats/scalesim/config.h"
#include "formats/scalesim/topology.h"

namespace sator::formats {

/// What a systolic array lays where, for a product C[M,N] += A[M,K] B[K,N]: one dimension along the rows, one along the
/// columns, the third streams.
struct SystolicShape {
  int64_t rows = 0, cols = 0;              // of the array
  int64_t along_rows = 0, along_cols = 0;  // extents laid out: os M x N, ws K x N, is K x M
  int64_t streamed = 0;                    // os K, ws M, is N
  bool preload = false;                    // ws, is: the stationary operand moves in before each fold
  int64_t row_folds() const { return (along_rows + rows - 1) / rows; }
  int64_t col_folds() const { return (along_cols + cols - 1) / cols; }
  /// Cycles of one fold: fill, stream and drain, with no overlap between folds.
  int64_t fold_cycles() const { return streamed + (preload ? 2 : 1) * rows + cols - 2; }
};

SystolicShape systolic_shape(const ScalesimConfig& config, const ScalesimLayer& layer);

/// What the array does, without a memory behind its SRAMs.
struct ScalesimCompute {
  int64_t folds = 0;
  int64_t cycles = 0;  // index of the last cycle: folds * cycles of a fold - 1
  int64_t macs = 0;
  int64_t ifmap_sram_reads = 0, filter_sram_reads = 0;  // words
  int64_t ofmap_sram_writes = 0;                        // words that leave the array
  /// The same as SCALE-Sim's report has it: under os it adds rows + columns of the array for every fold.
  int64_t ofmap_sram_writes_reported = 0;
  double mapping_efficiency = 0;  // mean share of the PEs that a fold uses
  /// Mean share of the MAC slots used, as reported: a preloaded fold counts with streamed + 2 rows + 2 columns - 3 cycles.
  double compute_utilization = 0;
};

/// Closed forms, constant time.
/// Errors: counts beyond 64 bits.
/// Source: Samajdar et al., "A systematic methodology for characterizing scalability of DNN accelerators using SCALE-Sim",
/// ISPASS 2020; the quirks are SCALE-Sim v3's.
ScalesimCompute scalesim_compute(const ScalesimConfig& config, const ScalesimLayer& layer);

}  // namespace sator::formats
