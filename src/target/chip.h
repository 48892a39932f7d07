#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/chip_pattern.h"

namespace sator {

/// A number of a chip file that costs energy, with where it comes from.
struct EnergyFigure {
  double picojoules = 0;
  std::string source;
};

/// What an array keeps in its PEs while it works: outputs, the weight-like operand, the input-like operand; or nothing
/// by itself, and the program's schedule decides.
/// `row` keeps rows of filters (Eyeriss): PEs of a column sum up one row of outputs.
enum class Stationary : uint8_t { output, weight, input, schedule, row };
/// In the order of the enum: "os", "ws", "is", "schedule", "rs".
inline constexpr std::string_view kDataflowNames[] = {"os", "ws", "is", "schedule", "rs"};
inline std::string_view to_string(Stationary s) { return kDataflowNames[static_cast<size_t>(s)]; }

/// Classes of products, which a chip may map in ways of their own: many rows of outputs, fewer than 8 of them, and products
/// of two activations under a common batch (attention).
enum class ProductClass : uint8_t { gemm, gemv, batched };
inline constexpr ProductClass kProductClasses[] = {ProductClass::gemm, ProductClass::gemv, ProductClass::batched};

/// Along which iterator the lanes of the vector unit lie.
enum class LanesAlong : uint8_t { last, longest };

/// How operands travel between PEs: one PE per stamp, to a whole row or column at once, or not at all.
enum class Wires : uint8_t { systolic, multicast, none };

/// One way the MAC units can work.
struct Precision {
  int weight_bits = 8, activation_bits = 8, accumulator_bits = 32;
  bool is_float = false;
  double macs_per_pe_per_cycle = 1;  // below 1: several cycles for one
  EnergyFigure energy_per_mac;
  /// The clock as which all PEs together keep the rate up in long products, where it is not PowerLimit's: lanes may spend
  /// more on a MAC than the array does, or their instruction slots on other work.
  std::optional<double> sustained_clock_hz;
};

/// A memory between the outside and the array. Operands pass the memories that hold their kind, outermost first.
struct Memory {
  std::string name;
  std::optional<int64_t> capacity_bytes;  // absent: as much as is needed
  double read_bytes_per_cycle = 0, write_bytes_per_cycle = 0;
  double efficiency = 1;         // the share of the stated bandwidth that both rates are: what long transfers reach
  int64_t latency_cycles = 0;    // from a request to its first bytes
  bool per_core = false;         // one for each core: capacity and bandwidth are those of one
  int64_t burst_bytes = 1;       // the least that one access moves
  bool shared_port = true;       // reads and writes share the bandwidth, which both fields then state
  bool double_buffered = false;  // half of it is filled while the other half is used
  bool holds_weights = true, holds_activations = true, holds_outputs = true;
  EnergyFigure read_energy_per_bit, write_energy_per_bit;
};

/// Registers of each PE.
struct PeRegisters {
  int64_t capacity_bytes = 0;
  EnergyFigure energy_per_bit;
};

/// Work that is no multiply-accumulate of the array.
enum class VectorWork : uint8_t { elementwise, reduce, dequantize, rescale, quantize };
inline constexpr VectorWork kVectorWork[] = {
    VectorWork::elementwise, VectorWork::reduce, VectorWork::dequantize, VectorWork::rescale, VectorWork::quantize};
std::string_view name_of(VectorWork work);

struct VectorUnit {
  int64_t lanes = 1;  // of all cores together; 0: there is no vector unit
  double ops_per_lane_per_cycle = 1;
  std::vector<VectorWork> does;
  bool overlaps_array = true;  // it works on one tile while the array works on the next
  EnergyFigure energy_per_op;
};

/// A way to other chips of the same kind.
struct ChipLink {
  std::string name, source;
  double bytes_per_second = 0;  // out of one chip, in one direction
  double latency_s = 0;         // of one message
  int64_t chips = 1;            // at most, linked like this
  EnergyFigure energy_per_bit;
};

/// Where a chip keeps what lies between two products of one kernel, tile by tile, while the kernel runs in one pass:
/// scores of attention and what softmax makes of them.
struct OnePassRule {
  std::string memory;  // of the chip: of one core, where each core has its own
  std::string source;
};

/// The power that the whole board may draw, and what its clock falls to when all PEs work at that limit, in the precisions
/// that state no clock of their own.
struct PowerLimit {
  double watts = 0;
  double clock_hz = 0;
  std::string source;
};

/// What measurements of a real chip say of the model of it (`sator calibrate`).
struct ChipCalibration {
  std::string file, source;
  int64_t rows = 0;                                         // measurements
  double array_time = 1, memory_time = 1, vector_time = 1;  // times what the description says
  double cache_time = 1;                                    // likewise, of all memories but the outermost
  double overhead_s = 0;                                    // per kernel, beside launch_cycles
  /// Further factors by the class of a kernel's products; of the vector unit's time also in kernels without any, last.
  std::array<double, std::size(kProductClasses)> array_time_of = {1, 1, 1};
  std::array<double, std::size(kProductClasses) + 1> vector_time_of = {1, 1, 1, 1};
  double level = 0.9;        // share of measurements within low .. high
  double low = 1, high = 1;  // measured / estimated
  /// Of kernels by the class of their products, of those without any last; 0: low and high.
  std::array<double, std::size(kProductClasses) + 1> low_of = {}, high_of = {};
};

/// The machine that a description was measured on (`sator calibrate --host`).
struct HostCpu {
  std::string cpu;  // as it calls itself
  int64_t threads = 1;
};

/// TENET's files of an array and of the mapping of a product S[i,j,k], or S[b,i,j,k] with a batch first, and what messages
/// call them. A chip that has them runs its products so, and is timed by TENET's formula (dataflow/cost/tenet_array.h).
struct TenetFiles {
  std::string pe_array, mapping;
  std::string pe_array_file, mapping_file;
};

/// An accelerator that is only described: everything that the cost engine knows of it.
struct Chip {
  std::string name, description, source;
  std::vector<std::string> aliases;
  std::string file;       // path that it was read from
  std::string variation;  // what was changed of it for this run, "16x16 ws"; empty: nothing
  int node_nm = 0;
  int energy_node_nm = 0;     // of the energy figures
  double clock_hz = 0;        // the highest; cycles are counted in it
  int64_t launch_cycles = 0;  // before a kernel's first work
  int64_t cores = 1;          // arrays of rows x columns that work side by side
  /// What one core exchanges with memories that all share; absent: as much as they give.
  std::optional<double> core_bytes_per_cycle;
  /// Of outputs that the operand which stays chooses, cores take whole multiples of so many: an instruction's share.
  int64_t least_columns = 1;
  /// Until every core has what the others wrote to memories that all share; absent: cores share no reduction.
  std::optional<int64_t> barrier_cycles;
  int64_t rows = 0, columns = 0;
  Stationary dataflow = Stationary::output;
  std::optional<Stationary> dataflow_of[std::size(kProductClasses)];  // where it differs, per class
  LanesAlong lanes_along = LanesAlong::last;
  Wires wires = Wires::systolic;
  std::optional<double> fill_bytes_per_cycle;  // of the stationary operand into the PEs; absent: a row of PEs per cycle
  bool tiles_overlap = false;                  // the next tile enters the array while the last one drains
  bool stationary_load_hidden = false;         // the next stationary tile loads while this one works
  std::vector<VectorWork> inline_work;         // done at the array's edge, at its speed
  std::vector<Precision> precisions;
  std::vector<Memory> memories;  // outermost (DRAM) first
  PeRegisters pe;
  VectorUnit vector;
  EnergyFigure energy_per_hop_bit;  // a bit from one PE to the next
  std::optional<PowerLimit> power_limit;
  std::optional<OnePassRule> one_pass;  // absent: what lies between two products passes the memories that hold it
  double static_watts = 0;
  std::string static_source;
  std::optional<double> area_mm2;
  std::string area_source;
  std::optional<ChipLink> link;
  std::optional<ChipCalibration> calibration;
  std::string calibration_file;  // beside the chip's file, named in it; empty: none
  std::optional<HostCpu> host;
  std::optional<TenetFiles> tenet;
  std::vector<ChipPattern> patterns;  // parts of a graph that it takes whole; none: those of any chip that multiplies
  /// The memory in which the results of one matched part wait for the next, of a chip that runs neighbouring parts in one
  /// launch (MergeCompositeFunctions); empty: they pass the outermost memory.
  std::string keeps_between;
  std::optional<std::array<int64_t, 3>>
      tile;  // of products with one i, j, k, in all memories on the chip; 0: the whole

  int64_t pes() const { return cores * rows * columns; }
  Stationary dataflow_for(ProductClass c) const { return dataflow_of[static_cast<size_t>(c)].value_or(dataflow); }
  const Memory* memory(std::string_view memory_name) const;
};

/// A chip from the text of its file. `file` is what messages call it.
/// Errors: not TOML; a key is missing, unknown (with the nearest known names), of the wrong type or outside of its
/// range; each names the file, the line, the key, its unit and what is allowed.
Chip parse_chip(std::string_view toml, const std::string& file);

/// A chip by the path of its file (contains a '/' or ends in .toml), else by the name or an alias of a shipped one. With
/// "@FILE" behind it, calibrated by that file (target/calibration.h), else by the one that the chip's file names, if any.
/// Errors: those of parse_chip and read_calibration; no such file; no shipped chip of that name (with those there are).
Chip find_chip(const std::string& name_or_path);

/// Everything that makes two chips differ, as text: the chip's files and what was changed of it.
/// Errors: a file that cannot be read any more.
std::string identity_of(const Chip& chip);

/// Names of the shipped chips, sorted. They lie in the folder chips/ of the checkout or the installation, or in $SATOR_CHIPS.
std::vector<std::string> shipped_chips();

}  // namespace sator
