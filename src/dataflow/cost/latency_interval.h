#pragma once

namespace sator::dataflow {

/// Within which the calibration expects a share of measurements (its `level`) to lie, in seconds.
struct LatencyInterval {
  double low_s = 0, high_s = 0;
  bool operator==(const LatencyInterval&) const = default;
};

}  // namespace sator::dataflow
