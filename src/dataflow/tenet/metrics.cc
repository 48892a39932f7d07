#include "dataflow/tenet/metrics.h"

#include <algorithm>

#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

namespace {

/// Whole words over the bus, then the latency of the last one.
int64_t transfer_cycles(Wide items, const TenetHardware& hardware) {
  Wide cycles = items * kTenetItemBits / hardware.bandwidth_bits_per_cycle + hardware.latency_cycles - 1;
  return narrow(cycles).value_or(INT64_MAX);
}

}  // namespace

TenetMetrics tenet_metrics(const Counts& counts, const TenetHardware& hardware) {
  TenetMetrics m;
  m.tensors.resize(counts.tensors.size());
  if (counts.macs == 0) return m;
  const double macs = static_cast<double>(counts.macs);
  const double spacetime = static_cast<double>(counts.spacetime), time = static_cast<double>(counts.time);
  m.delay_compute_master = counts.macs / counts.space;
  m.delay_compute_micro_tutorial = counts.macs / (counts.spacetime / counts.time);
  m.delay_compute_unrounded = macs * time / spacetime;
  m.avg_active_pe = spacetime / time;
  m.utilization = spacetime / (time * static_cast<double>(counts.pe_array));
  m.energy_untruncated = macs;
  Wide in = 0, out = 0;
  for (size_t i = 0; i < counts.tensors.size(); ++i) {
    const TensorCounts& t = counts.tensors[i];
    TenetTensorMetrics& own = m.tensors[i];
    (t.role == Role::read ? in : out) += t.unique;
    if (t.unique != 0) own.reuse_factor = static_cast<double>(t.total) / static_cast<double>(t.unique);
    own.temporal_reuse = static_cast<double>(t.total - t.assigned + t.temporal_hits) / macs;
    own.spatial_reuse = static_cast<double>(t.spatial_hits) / macs;
    own.ibw_per_cycle = own.spatial_reuse * static_cast<double>(counts.space);
    own.sbw_per_cycle = static_cast<double>(t.unique) / static_cast<double>(m.delay_compute_master);
    own.delay_cycles = transfer_cycles(t.unique, hardware);
    m.energy_untruncated +=
        2 * kTenetL1Access * static_cast<double>(t.total) + 2 * kTenetL2Access * static_cast<double>(t.unique);
  }
  m.delay_in = transfer_cycles(in, hardware);
  m.delay_out = transfer_cycles(out, hardware);
  m.latency_master = std::max({m.delay_in, m.delay_out, m.delay_compute_master});
  m.latency_micro_tutorial = std::max({m.delay_in, m.delay_out, m.delay_compute_micro_tutorial});
  return m;
}

}  // namespace sator::dataflow
