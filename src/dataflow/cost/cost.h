#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/cost/latency_interval.h"
#include "dataflow/counts/counts.h"
#include "dataflow/mapping/mapper.h"
#include "dataflow/mapping/precision.h"
#include "dataflow/programs/work.h"
#include "target/chip.h"

namespace sator::dataflow {

/// Bits that one access moves in and out of one memory.
struct Traffic {
  size_t memory = 0;  // of the chip
  std::string tensor;
  OperandKind kind = OperandKind::activation;
  int64_t read_bits = 0, write_bits = 0;
  /// Of these, what is exchanged with the memory further out that fills this one.
  size_t filled_from = 0;
  int64_t refill_in_bits = 0, refill_out_bits = 0;
  int64_t instances = 1;  // of the memory that share this: the cores at work, where each has its own
  int64_t parts = 1;      // in which the tensor comes or goes, one after the other
  double waits = 0;       // until its first part can go: share of the array's time

  void refill(size_t from, int64_t in_bits, int64_t out_bits) {
    filled_from = from;
    write_bits += in_bits, read_bits += out_bits;
    refill_in_bits += in_bits, refill_out_bits += out_bits;
  }
};

/// A product as TENET's files of the chip map it, and its delays by TENET's formula.
struct TenetUse {
  Problem problem;
  int64_t delay_in = 0, delay_out = 0, delay_compute = 0;
};

/// One tile of a product that runs in one pass with another: what the array does again and again.
struct TileUse {
  Problem problem;
  Counts counts;
};

/// One statement on the chip.
struct StatementCost {
  std::string name;
  Work work;                       // as counted: with the codes of what is made on the way
  std::optional<Product> product;  // where it runs on the array, under this placement
  std::optional<Placement> placement;
  std::optional<Precision> precision;  // that the array runs
  int64_t passes = 1;                  // of the array per product, where it lacks the width
  int accumulator_bits_needed = 0;     // for sums of integers that cannot overflow; 0: floats
  int64_t instances = 0;               // that run; of tiles that are partly masked all
  int64_t macs = 0;                    // of these, what the program asks for: without masked ones
  int64_t vector_ops = 0;
  VectorWork vector_work = VectorWork::elementwise;
  std::optional<TenetUse> tenet;   // on a chip with TENET's files
  std::optional<TileUse> tile;     // of a kernel that runs in one pass: then `counts` adds up tiles
  std::optional<Counts> counts;    // of a product: at the PEs, with skew
  int64_t stream_cycles = 0;       // stamps that do work
  int64_t fill_drain_cycles = 0;   // until the wave of operands has crossed the array
  int64_t load_cycles = 0;         // of stationary operands, as far as it is not hidden
  int64_t folds = 1;               // times that the array takes in another stationary tile
  int64_t folds_until_output = 1;  // until the first part of the output is complete
  std::vector<int64_t> parts;      // per access: tiles that folds need, or finish, one after the other
  int64_t vector_cycles = 0;
  int64_t vector_parts = 1;   // in which the vector unit can do its work, while others are at the parts beside
  double waits = 0;           // for its first part: share of the array's time
  int64_t register_bits = 0;  // read and written in PE registers
  int64_t hop_bits = 0;       // moved from PE to PE
  double pes_used = 0;        // on average over the stamps that work
  int64_t tiles = 1;          // steps in which the memories are refilled
  std::vector<Traffic> traffic;

  bool on_array() const { return product.has_value(); }
  int64_t array_cycles() const { return stream_cycles + fill_drain_cycles + load_cycles; }
  double until_output() const { return static_cast<double>(folds_until_output) / static_cast<double>(folds); }
};

/// Cycles of something that runs beside the others.
struct ResourceCost {
  std::string name;  // "array", "vector", or the memory's
  int64_t cycles = 0;
  int64_t slack_cycles = 0;  // by which it could take longer before it would bind
  /// Of the latency with respect to the resource's speed: -d ln latency / d ln speed, its share in the latency. With the
  /// launch's they add up to 1.
  double elasticity = 0;
};

struct CyclePart {
  std::string name;
  int64_t cycles = 0;
};

struct MemoryCost {
  std::string name;
  int64_t read_bytes = 0, write_bytes = 0;
  /// What no mapping avoids: each tensor in once, and out once. Of the outermost memory those that the kernel is given and
  /// gives back; of others also its own that stand there.
  int64_t compulsory_bytes = 0;
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
///
/// Latency: array, vector unit and memories work at the same time on different parts of the kernel, so the one that takes
/// longest binds, with what the others do while it cannot work yet, or not any more:
///   latency = serial + max over r of (T(r) + sum over the others of E + the longest L) + launch
/// Each r gives a lower bound: a quicker resource never makes a kernel slower.
/// T(array) is that of the core with the most work; of memories that each core has, all at work share the bits.
///   T(array)    stamps + fill and drain + stationary loads, of all products; at least what the power limit allows
///   T(vector)   operations / rate
///   T(memory)   bits / rate; reads and writes one after the other on a shared port; of memories that cores share at least
///               what one core exchanges with them / the rate of its port
///   E(array)    one fold, its work between two stationary tiles, after the last operand has come; where the vector unit
///               binds, the folds until the first part of the output is complete, less what it does for the array meanwhile
///   E(vector)   the work on one part: on the last tile of the output that the array finishes, or on the first that it
///               waits for
///   E(memory)   one part of each tensor on its way to or from the memory inside: what the first fold needs, what the last
///               one finishes. Elements on their way into the PEs take no
///               time beside the array's
///   L           of one of the others, the one with most: what is left of its work beyond E when r's time is over, for it
///               had to wait for outputs; what is left of several is done at the same time
///   serial      transfers into and out of memories without double buffering, which nothing overlaps; and a vector unit
///               that cannot work beside the array. They are not in T. Also the barrier of cores that share a reduction
/// So one tile takes the sum of all, many tiles the longest and two ends.
/// Assumes that each resource spreads its work evenly over its time.
struct KernelCost {
  std::string kernel, chip;
  std::vector<StatementCost> statements;
  std::vector<ResourceCost> resources;  // they overlap: the longest binds
  std::string bound;  // name of the binding resource; "launch" where that takes longer than all of them
  std::vector<CyclePart> latency_parts;  // the bound, and what nothing hides
  int64_t latency_cycles = 0;
  double latency_s = 0;
  double unrounded_cycles = 0;  // the latency before its parts are rounded up to whole cycles
  double launch_elasticity = 0;
  std::optional<LatencyInterval> latency_interval;  // where the chip is calibrated
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

/// What the chip's maker says that a memory, or all cores' together, can move.
inline double available_bytes_per_s(const Memory& memory, const Chip& chip) {
  const double ports = memory.read_bytes_per_cycle + (memory.shared_port ? 0 : memory.write_bytes_per_cycle);
  return ports / memory.efficiency * chip.clock_hz * (memory.per_core ? static_cast<double>(chip.cores) : 1.0);
}

/// Costs kernels on one chip; remembers counts and mappings by the structure of what it has seen. One per thread.
class CostEngine {
 public:
  ///   goal   what mappings that are not given are chosen for
  explicit CostEngine(Chip chip, const Goal& goal = {});
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

  /// The mappings of the kernel's first product that are estimated to be quickest, at most `most`, the best first.
  std::vector<Placement> mappings(const Kernel& kernel, size_t most);

 private:
  struct Memo;
  const KernelCost* in_one_pass(const Kernel& kernel, const std::string& key);
  const KernelCost* in_blocks_of_rows(const Kernel& kernel, const std::string& key);
  KernelCost mapped(const Kernel& kernel, const std::string& key);

  Chip chip_;
  Goal goal_;
  std::vector<Chip> by_class_;  // the chip with the dataflow of each class of products
  std::unique_ptr<Memo> memo_;
};

}  // namespace sator::dataflow
