// Estimates for chips whose makers published what they measured: Eyeriss, layer by layer, and the first TPU, by application.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/calibrate/rows.h"

namespace sator::dataflow {

/// A layer on Eyeriss at its core clock, and what the chip did.
struct PublishedLayer {
  std::string name;
  int64_t active_pes = 0, measured_active_pes = 0;
  double cycles = 0, measured_cycles = 0;
};

/// AlexNet's five convolutions, four images. PEs at work: the cost engine's row-stationary mapping (chips/eyeriss_v1.toml).
/// Cycles: one MAC per PE and cycle of all processing passes, and for each pass what has to be there before the first MAC or
/// leaves after the last, over its bus: filters and sums four words per cycle, the first windows of inputs one word.
///   rows   of chips_published.jsonl
/// Errors: the shipped chip is missing.
/// Source: Chen et al., "Eyeriss", JSSC 52(1), 2017: mapping parameters, buses, scratchpads. Nothing is fitted.
std::vector<PublishedLayer> eyeriss_alexnet(const std::vector<Row>& rows);

struct PublishedApp {
  std::string name;
  double active_share = 0, measured_active_share = 0;  // of all cycles
};

/// The share of cycles in which TPUv1's array works. A tile of 64 KiB of weights takes 1349 cycles from DRAM and one cycle
/// per row of inputs (two where activations have 16 bits) in the array; both at the same time, but for CNN1, whose weights
/// lie in its four fully connected layers and its MACs in the others. Cycles beside matrices: the mean share of the other
/// applications.
/// Source: Jouppi et al., ISCA 2017, tables 1 and 3.
std::vector<PublishedApp> tpu_apps(const std::vector<Row>& rows);

}  // namespace sator::dataflow
