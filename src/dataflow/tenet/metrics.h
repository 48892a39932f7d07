#pragma once

#include <optional>
#include <vector>

#include "dataflow/counts/counts.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::dataflow {

/// Bits of an item, and energy of an access in MACs, as in TENET, which took both energies from MAESTRO.
inline constexpr int64_t kTenetItemBits = 16;
inline constexpr double kTenetL1Access = 1.68, kTenetL2Access = 18.61;

/// TENET's figures of one tensor. Items have 16 bits, as in TENET.
struct TenetTensorMetrics {
  std::optional<double> reuse_factor;  // total / unique; absent if unique is 0
  double temporal_reuse = 0;           // per instance; counts reuse inside of a stamp too
  double spatial_reuse = 0;            // per instance
  double ibw_per_cycle = 0;            // items per cycle over the wires between PEs
  double sbw_per_cycle = 0;            // items per cycle from the scratchpad
  int64_t delay_cycles = 0;            // to move `unique` items
};

/// TENET's metrics as they are meant: 64-bit, on exact counts.
struct TenetMetrics {
  int64_t delay_in = 0, delay_out = 0;       // cycles to move the unique items of all read, all written tensors
  int64_t delay_compute_master = 0;          // macs / PEs that ever work
  int64_t delay_compute_micro_tutorial = 0;  // macs / average working PEs, the average rounded down first
  double delay_compute_unrounded = 0;        // macs * time / spacetime
  int64_t latency_master = 0, latency_micro_tutorial = 0;  // largest of the three: perfect overlap
  double avg_active_pe = 0;
  double utilization = 0;                   // spacetime / (time * pe_array)
  double energy_untruncated = 0;            // in MACs
  std::vector<TenetTensorMetrics> tensors;  // in the order of counts.tensors
};

/// Source: Lu et al., "TENET", ISCA 2021, and the program published with it (branches master and
/// micro_tutorial). All zero where nothing runs.
TenetMetrics tenet_metrics(const Counts& counts, const TenetHardware& hardware);

}  // namespace sator::dataflow
