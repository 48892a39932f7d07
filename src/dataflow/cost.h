#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/counts.h"
#include "dataflow/mapper.h"
#include "dataflow/precision.h"
#include "dataflow/work.h"
#include "target/chip.h"

namespace sator::dataflow {

/// Bits that one access moves in and out of one memory.
struct Traffic {
  size_t memory = 0;  // of the chip
  std::string tensor;
  OperandKind kind = OperandKind::activation;
  int64_t read_bits = 0, write_bits = 0;
};

/// One statement on the chip.
struct StatementCost {
  std::string name;
  bool on_array = false;
  std::optional<Placement> placement;  // on the array
  std::optional<Precision> precision;  // that the array runs
  int64_t passes = 1;                  // of the array per product, where it lacks the width
  int64_t instances = 0;
  int64_t macs = 0;
  int64_t vector_ops = 0;
  VectorWork vector_work = VectorWork::elementwise;
  std::optional<Counts> counts;   // at the PEs, with skew
  int64_t stream_cycles = 0;      // stamps that do work
  int64_t fill_drain_cycles = 0;  // until the wave of operands has crossed the array
  int64_t load_cycles = 0;        // of stationary operands, as far as it is not hidden
  int64_t vector_cycles = 0;
  int64_t register_bits = 0;  // read and written in PE registers
  int64_t hop_bits = 0;       // moved from PE to PE
  double pes_used = 0;        // on average over the stamps that work
  int64_t tiles = 1;          // steps in which the memories are refilled
  std::vector<Traffic> traffic;
};

/// Cycles of something that runs beside the others; slack: how much longer it could take for nothing.
struct ResourceCost {
  std::string name;  // "array", "vector", or the memory's
  int64_t cycles = 0, slack_cycles = 0;
};

struct CyclePart {
  std::string name;
  int64_t cycles = 0;
};

struct MemoryCost {
  std::string name;
  int64_t read_bytes = 0, write_bytes = 0;
  double required_bytes_per_s = 0;  // to hold up nothing else
  double achieved_bytes_per_s = 0;
  double available_bytes_per_s = 0;
};

struct EnergyPart {
  std::string name;  // "mac", "vector", "registers", "wires", "static", or the memory's
  double joules = 0;
  std::string source;
};

/// What a kernel costs on a described chip. Every total is the sum of its named parts.
struct KernelCost {
  std::string kernel, chip;
  std::vector<StatementCost> statements;
  std::vector<ResourceCost> resources;   // they overlap: the longest binds
  std::string bound;                     // name of the binding resource
  std::vector<CyclePart> latency_parts;  // the bound, and what nothing hides
  int64_t latency_cycles = 0;
  double latency_s = 0;
  int64_t macs = 0;
  double mac_units_used = 0;  // PEs at work, on average while the array works
  double utilization = 0;     // MACs per MAC that the array could have done during the latency
  std::vector<MemoryCost> memories;
  std::vector<Traffic> outside;  // traffic of the outermost memory, per tensor
  std::vector<EnergyPart> energy_parts;
  double energy_j = 0;
  int energy_node_nm = 0;
  std::vector<std::string> notes;  // precision that the chip lacks, work without a unit, counts by enumeration
};

/// Costs kernels on one chip; remembers counts and mappings by the structure of what it has seen. One per thread.
class CostEngine {
 public:
  explicit CostEngine(Chip chip);
  ~CostEngine();
  const Chip& chip() const { return chip_; }

  /// The kernel under the default mapping of the chip's dataflow.
  /// Statements that are no product of two tensors run on the vector unit. Elements that a dequantize statement makes for
  /// a product are made on their way into the array, as often as the array takes them in; of what a smaller statement
  /// reads (rows taken of a table) only that is made.
  /// Errors: a count that the engine refuses; operands that do not match the accesses.
  KernelCost cost(const Kernel& kernel);

  /// The same with mappings given for products, in the order of the kernel's products; absent ones are chosen.
  KernelCost cost(const Kernel& kernel, const std::vector<std::optional<Placement>>& placements);

 private:
  struct Memo;
  Chip chip_;
  std::unique_ptr<Memo> memo_;
};

}  // namespace sator::dataflow
