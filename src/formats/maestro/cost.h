#pragma once

#include "formats/maestro/network.h"

namespace sator::formats::maestro {

/// Accesses to the buffers of one tensor: L2 is shared, L1 are the PEs'.
struct TensorTraffic {
  int64_t l1_reads = 0, l1_writes = 0, l2_reads = 0, l2_writes = 0;
  double reuse_factor() const { return static_cast<double>(l1_reads) / static_cast<double>(l1_writes); }
};

/// What MAESTRO reports of a layer.
struct LayerCost {
  int64_t cycles = 0, macs = 0;
  TensorTraffic input, filter, output;
  int64_t peak_words_per_cycle = 0;  // between L2 and the clusters
  double average_words_per_cycle = 0;
  double average_pes = 0;  // that work
  /// The activity count of MAESTRO's CSV: L2 accesses (the output's reads apart) at 18.61 and L1 accesses at 1.68 times a
  /// MAC's 0.00023 nJ. MAESTRO adds the L1 accesses of the layer before where a layer has clusters in clusters; so does
  /// this, from the second layer on.
  double energy_nj = 0;
};

/// MAESTRO's cost of every layer of a network.
/// Errors, with the line: what levels_of refuses, what MAESTRO stops at (no computation in a case), counts beyond 64 bits.
/// Cost: a few microseconds a layer.
/// Source: Kwon et al., "Understanding reuse, performance, and hardware cost of DNN dataflows", MICRO 2019, and the
/// arithmetic of the program published with it.
std::vector<LayerCost> cost_of(const Network& network, const Hardware& hardware);

}  // namespace sator::formats::maestro
