#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sator {

/// A number of a chip file that costs energy, with where it comes from.
struct EnergyFigure {
  double picojoules = 0;
  std::string source;
};

/// What an array keeps in its PEs while it works: outputs, the weight-like operand, the input-like operand; or nothing
/// by itself, and the program's schedule decides.
enum class Stationary : uint8_t { output, weight, input, schedule };

/// How operands travel between PEs: one PE per stamp, to a whole row or column at once, or not at all.
enum class Wires : uint8_t { systolic, multicast, none };

/// One way the MAC units can work.
struct Precision {
  int weight_bits = 8, activation_bits = 8, accumulator_bits = 32;
  bool is_float = false;
  double macs_per_pe_per_cycle = 1;  // below 1: several cycles for one
  EnergyFigure energy_per_mac;
};

/// A memory between the outside and the array. Operands pass the memories that hold their kind, outermost first.
struct Memory {
  std::string name;
  std::optional<int64_t> capacity_bytes;  // absent: as much as is needed
  double read_bytes_per_cycle = 0, write_bytes_per_cycle = 0;
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
  int64_t lanes = 1;
  double ops_per_lane_per_cycle = 1;
  std::vector<VectorWork> does;
  bool overlaps_array = true;  // it works on one tile while the array works on the next
  EnergyFigure energy_per_op;
};

/// An accelerator that is only described: everything that the cost engine knows of it.
struct Chip {
  std::string name, description, source;
  std::string file;  // path that it was read from
  int node_nm = 0;
  double clock_hz = 0;
  int64_t launch_cycles = 0;  // before a kernel's first work
  int64_t rows = 0, columns = 0;
  Stationary dataflow = Stationary::output;
  Wires wires = Wires::systolic;
  bool tiles_overlap = false;           // the next tile enters the array while the last one drains
  bool stationary_load_hidden = false;  // the next stationary tile loads while this one works
  std::vector<VectorWork> inline_work;  // done at the array's edge, at its speed
  std::vector<Precision> precisions;
  std::vector<Memory> memories;  // outermost (DRAM) first
  PeRegisters pe;
  VectorUnit vector;
  EnergyFigure energy_per_hop_bit;  // a bit from one PE to the next
  double static_watts = 0;
  std::string static_source;

  int64_t pes() const { return rows * columns; }
  const Memory* memory(std::string_view memory_name) const;
};

/// A chip from the text of its file. `file` is what messages call it.
/// Errors: not TOML; a key is missing, unknown (with the nearest known names), of the wrong type or outside of its
/// range; each names the file, the line, the key, its unit and what is allowed.
Chip parse_chip(std::string_view toml, const std::string& file);

/// A chip by the path of its file (contains a '/' or ends in .toml), else by the name of a shipped one.
/// Errors: those of parse_chip; no such file; no shipped chip of that name (with those there are).
Chip find_chip(const std::string& name_or_path);

/// Names of the shipped chips, sorted. They lie in the folder chips/ of the checkout or the installation, or in $SATOR_CHIPS.
std::vector<std::string> shipped_chips();

}  // namespace sator
