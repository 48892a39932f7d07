// Execution traces of MLCommons Chakra, for simulators of networks of chips (ASTRA-sim).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sator::dataflow {

/// One operation of a chip; it waits for the one before.
struct TraceNode {
  enum class Kind : uint8_t { compute, all_reduce };
  std::string name;
  Kind kind = Kind::compute;
  double seconds = 0;
  int64_t operations = 0;  // compute: a multiply-accumulate is two
  int64_t bytes = 0;       // compute: moved outside; all_reduce: summed up
};

/// The trace in protobuf's JSON form, as Chakra's jsonizer writes it: a GlobalMetadata, then a Node each, one message a line.
/// Nodes have ids from 1, `dataDeps` on the node before, `startTimeMicros` and `durationMicros` rounded so that the durations
/// add up to the whole, and as attributes `is_cpu_op`, `num_ops` and `tensor_size`, or `comm_type` (0: ALL_REDUCE) and `comm_size`; `duration_ns` is
/// the duration before rounding.
/// Source: schema/protobuf/et_def.proto of mlcommons/chakra; attributes as its feeder reads them.
std::string chakra_trace(const std::vector<TraceNode>& nodes, const std::string& version,
                         const std::vector<std::pair<std::string, std::string>>& facts);

}  // namespace sator::dataflow
