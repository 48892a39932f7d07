#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sator::formats::timeloop {

/// coefficient * dimension, a part of one coordinate of a data space.
struct ProjectionTerm {
  int dimension = 0;
  int64_t coefficient = 1;
  bool operator==(const ProjectionTerm&) const = default;
};

/// A tensor of the problem: each rank (coordinate) is a sum of terms.
struct DataSpace {
  std::string name;
  bool read_write = false;  // a result: updated, and read back where its sums are partial
  std::vector<std::vector<ProjectionTerm>> ranks;
};

/// Timeloop's `problem`: loops of given bounds around one statement that touches one point of every data space.
struct Workload {
  std::string name;
  std::vector<std::string> dimensions;
  std::vector<int64_t> bounds;  // per dimension
  std::vector<DataSpace> spaces;
};

/// Energies of one level in pJ, as an ERT states them: of a vector access of `block_size` words, and of a cycle at rest.
struct LevelEnergy {
  double read = 0, fill = 0, update = 0, leak = 0;
};

/// A level of memory. Counts of words; bandwidths in words per cycle and instance.
struct StorageLevel {
  std::string name;
  int64_t instances = 1, mesh_x = 1, mesh_y = 1;
  int64_t word_bits = 16;
  int64_t block_size = 1;    // words of one vector access
  int64_t cluster_size = 1;  // instances that one access serves
  std::optional<int64_t> size_words;
  double multiple_buffering = 1, min_utilization = 0;
  std::optional<double> read_bandwidth, write_bandwidth, shared_bandwidth;
  std::vector<double> bandwidth_scale;  // per data space
  int64_t fill_latency_cycles = 0, drain_latency_cycles = 0;
  std::string power_gated_at;  // empty: its own instances are switched off where unused
  double address_energy_pj = 0;
  std::optional<LevelEnergy> energy;
  bool energy_from_architecture = false;  // `vector_access_energy`, which an ERT does not replace
  std::string no_energy;                  // why `energy` is not there, for messages
  std::vector<std::string> bypassed;      // by constraints inside of the architecture (v0.4)
};

/// The arithmetic units below the innermost level.
struct ComputeLevel {
  std::string name;
  int64_t instances = 1, mesh_x = 1, mesh_y = 1;
  std::optional<double> energy_pj;  // of one operation
};

/// Timeloop's `architecture`, a chain of levels.
struct Architecture {
  ComputeLevel compute;
  std::vector<StorageLevel> levels;  // the innermost first
  std::string wire_energy;           // where the files give wires energy, which is not modelled; else empty
};

struct Loop {
  int dimension = 0;
  int64_t bound = 1;
  bool on_y = false;  // of a spatial loop: along the Y axis of the array
  int64_t last = 0;   // bound of the last pass, where that is smaller; written, and refused when read
  bool operator==(const Loop&) const = default;
};

/// A set of data spaces, one bit each.
using SpaceSet = uint32_t;

/// What a mapping says of one level. Loops of bound 1 are left out.
struct LevelMapping {
  std::vector<Loop> temporal;  // the innermost first
  std::vector<Loop> spatial;   // over the instances of the next inner level, inside of `temporal`; the innermost first
  SpaceSet keep = ~SpaceSet{0};
  SpaceSet no_temporal_reuse = 0, no_multicast = 0, no_link_transfer = 0, rmw_first_update = 0;
  bool operator==(const LevelMapping&) const = default;
};

/// One entry per level of the architecture, the innermost first.
struct Mapping {
  std::vector<LevelMapping> levels;
  bool operator==(const Mapping&) const = default;
};

/// Sizes up to which evaluation needs no memory of its own.
inline constexpr int kMaxDimensions = 24, kMaxSpaces = 16, kMaxRanks = 8, kMaxLevels = 24;

/// The texts of Timeloop's files, YAML of v0.3 or v0.4, and what messages call them. `mapping` may also be what Timeloop
/// prints as *.map.txt. An empty `energy` gives no energies.
struct Texts {
  std::string_view architecture, problem, mapping, energy;
  std::string architecture_name = "architecture", problem_name = "problem", mapping_name = "mapping",
              energy_name = "ert";
};

/// What a set of files says together.
struct Input {
  Workload workload;
  Architecture architecture;
  Mapping mapping;
  std::string no_energy;  // why there are no energies; empty if there are
};

/// Reads a whole input. Errors: each names file, line, column, the rule, and a way on; what this model cannot express
/// (sparse optimizations, user-defined networks, flattened or imperfectly factorized loops, skews) is named.
Input parse(const Texts& texts);

Workload parse_problem(std::string_view text, const std::string& file = "problem");
Architecture parse_architecture(std::string_view text, const Workload& workload,
                                const std::string& file = "architecture");
Mapping parse_mapping(std::string_view text, const Workload& workload, const Architecture& architecture,
                      const std::string& file = "mapping");
/// Puts the energies of an ERT into the levels of `architecture`; entries of other components are ignored.
void parse_energy(std::string_view text, Architecture& architecture, const std::string& file = "ert");

/// The mapping as YAML that Timeloop reads: all factors and orders of every level, what is kept and what is bypassed.
/// Parsing it gives an equal mapping.
std::string mapping_text(const Mapping& mapping, const Workload& workload, const Architecture& architecture);
/// The others alike; of levels their names, instances and word sizes.
std::string problem_text(const Workload& workload);
std::string architecture_text(const Architecture& architecture);

}  // namespace sator::formats::timeloop
