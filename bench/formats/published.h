// Estimates for chips whose makers published what they measured: Eyeriss, layer by layer, and the first TPU, by application.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "dataflow/calibrate/rows.h"
#include "dataflow/cost/cost.h"

namespace sator::dataflow {

/// A text of a row; empty where it has none of that name.
inline std::string word(const Row& row, const char* key) {
  const auto at = row.fields.find(key);
  return at != row.fields.end() && at->is_string() ? at->get<std::string>() : "";
}

/// How Eyeriss cuts a layer into processing passes.
///   images, strip          of one pass: images one after the other, rows of outputs side by side
///   filters, channels      in one PE's scratchpads
///   more_channels, more_filters   sets of PEs that hold other ones at the same time
/// Source: Chen et al., "Eyeriss", JSSC 52(1), 2017, mapping parameters of AlexNet.
struct EyerissPasses {
  std::string_view layer;
  int64_t images, strip, filters, channels, more_channels, more_filters;
};
constexpr EyerissPasses kEyerissPasses[] = {{"CONV1", 1, 7, 16, 1, 1, 2},
                                            {"CONV2", 1, 27, 16, 2, 1, 1},
                                            {"CONV3", 4, 13, 16, 4, 1, 4},
                                            {"CONV4", 4, 13, 16, 3, 2, 2},
                                            {"CONV5", 4, 13, 16, 3, 2, 2}};

struct ConvolutionShape {
  int64_t images, filters, out, channels, window, stride;  // of one group
};

/// One MAC per PE and cycle of all processing passes, and for each pass what has to be there before the first MAC or leaves
/// after the last, over its bus: filters and sums four words per cycle, the first windows of inputs one word.
inline double eyeriss_cycles(const ConvolutionShape& s, const EyerissPasses& p) {
  const int64_t filters = p.filters * p.more_filters, channels = p.channels * p.more_channels;
  const double passes = static_cast<double>(ceil_div(s.filters, filters) * ceil_div(s.channels, channels) *
                                            ceil_div(s.out, p.strip) * ceil_div(s.images, p.images));
  const double macs = static_cast<double>(p.filters * p.channels * s.window * s.out * p.images);
  const double weights = static_cast<double>(filters * channels * s.window * s.window);
  const double inputs = static_cast<double>(((p.strip - 1) * s.stride + s.window) * channels * s.window);
  const double sums = static_cast<double>(filters * p.strip);
  return passes * (macs + weights / 4 + inputs + 2 * sums / 4);
}

/// A figure of a chip, and what its makers measured.
struct PublishedFigure {
  std::string name;
  double estimated = 0, measured = 0;
};

/// Cycles of AlexNet's five convolutions, four images, on Eyeriss at its core clock. Nothing is fitted.
///   rows   of chips_published.jsonl
/// Errors: the shipped chip is missing.
inline std::vector<PublishedFigure> eyeriss_alexnet(const std::vector<Row>& rows) {
  const Chip chip = find_chip("eyeriss_v1");
  std::vector<PublishedFigure> layers;
  for (const Row& row : rows) {
    const auto shape = row.fields.find("shape");
    if (word(row, "chip") != "Eyeriss-v1" || word(row, "network") != "AlexNet" || shape == row.fields.end()) continue;
    auto of = [&](const char* key) { return static_cast<int64_t>(number(*shape, key)); };
    const int64_t stride = std::max<int64_t>(1, of("stride")), groups = std::max<int64_t>(1, of("groups"));
    const ConvolutionShape s{.images = static_cast<int64_t>(number(row.fields, "batch")),
                             .filters = of("K_total") / groups,
                             .out = (of("H") - of("R")) / stride + 1,
                             .channels = of("C_per_group"),
                             .window = of("R"),
                             .stride = stride};
    for (const EyerissPasses& p : kEyerissPasses) {
      if (p.layer != word(row, "layer") || s.images < 1 || s.out < 1) continue;
      layers.push_back({word(row, "layer"),
                        static_cast<double>(groups) * eyeriss_cycles(s, p),
                        number(row.fields, "processing_latency_ms") * 1e-3 * chip.clock_hz});
    }
  }
  return layers;
}

/// The share of cycles in which TPUv1's array works, by application. A tile of 64 KiB of weights takes 1349 cycles from
/// DRAM and one cycle per row of inputs in the array, both at the same time. Cycles beside matrices: the mean share of the
/// other applications. One model for all: the published rows do not say which layers have how many weights (CNN1's are
/// almost all in four of its layers) nor which activations have 16 bits (the LSTMs', which then take two cycles per row).
/// Source: Jouppi et al., ISCA 2017, tables 1 and 3.
inline std::vector<PublishedFigure> tpu_apps(const std::vector<Row>& rows) {
  const Chip chip = find_chip("tpuv1");
  const double load = static_cast<double>(chip.rows * chip.columns) / chip.memories[0].read_bytes_per_cycle;
  std::vector<const Row*> apps;
  double beside = 0;  // percent, of all applications
  for (const Row& row : rows)
    if (word(row, "chip") == "TPUv1") apps.push_back(&row), beside += number(row.fields, "non_matrix_pct");
  std::vector<PublishedFigure> out;
  for (const Row* row : apps) {
    const double array = number(row->fields, "ops_per_weight_byte");
    const double others = (beside - number(row->fields, "non_matrix_pct")) / static_cast<double>(apps.size() - 1) / 100;
    out.push_back({word(*row, "app"),
                   array / std::max(array, load) * (1 - others),
                   number(row->fields, "array_active_pct") / 100});
  }
  return out;
}

}  // namespace sator::dataflow
