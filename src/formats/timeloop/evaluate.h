#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/error.h"
#include "formats/timeloop/movement.h"
#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

/// What one level does for one data space; counts are words of one instance, energies of all instances.
struct SpaceFigures {
  bool kept = false;
  int64_t tile_words = 0;
  int64_t instances = 0;  // that work
  int64_t reads = 0, fills = 0, updates = 0;
  double energy_pj = 0;
};

struct LevelFigures {
  int64_t cycles = 0;
  double energy_pj = 0;  // with leakage
  std::array<SpaceFigures, kMaxSpaces> spaces;
};

struct Figures {
  int64_t cycles = 0;
  int64_t operations = 0;
  int64_t working_units = 0;   // arithmetic units that work
  int64_t compute_cycles = 0;  // with memory that never waits
  double utilization = 0;      // of all arithmetic units over all cycles
  double compute_energy_pj = 0;
  double energy_pj = 0;              // 0 where a level has none
  std::vector<LevelFigures> levels;  // the innermost first
  bool clamped = false;  // a count of partial sums came out negative (Timeloop wraps it to 2^64) and reads 0
};

inline constexpr double kLargestCount = 4.6e18;  // about 2^62
Reason beyond_62_bits(std::string_view what);

/// Timeloop's model of one problem on one architecture, made once and asked for many mappings.
class Model {
 public:
  /// Keeps references to both. Errors: products of sizes beyond 62 bits.
  Model(const Workload& workload, const Architecture& architecture, Release release = Release::v3_0_3);

  /// Cycles, counts and energies of a mapping that `parse_mapping` or a mapper made for them. Nothing is allocated once
  /// `out` has its levels, unless tiles of a data space slide (a rank that sums dimensions).
  /// Errors, as a value: the mapping needs more words or instances than there are, or counts beyond 63 bits.
  /// Cost: well below a microsecond for a GEMM on three levels; see bench/dataflow/timeloop.cc.
  /// Source: Parashar et al., "Timeloop", ISPASS 2019, and NVlabs/timeloop at 4cf6d4c for what the paper leaves open.
  std::optional<Reason> evaluate(const Mapping& mapping, Figures& out);

 private:
  /// Of one data space at one level, before the tiles are split into reads, fills and updates.
  struct Flow {
    int64_t words = 0, partition = 0;
    double fan_out = 1;
    double served = 0;       // accesses to this level
    double weighted = 0;     // the same times the instances that each serves
    double passed = 0;       // by neighbours of the level below
    double from_parent = 0;  // words that come from outside, per instance
    double peer = 0;         // words from and to neighbours
    const Traffic* detail = nullptr;
  };

  /// A term of a rank, of whichever sign; `ends_rank` parts the ranks of one data space.
  struct BoxTerm {
    int dimension;
    bool ends_rank;
    int64_t step;
  };
  /// What follows from a level's description alone.
  struct LevelFacts {
    double room_words = 0;  // of one buffer; infinite without a size
    double least_words = 0;
    int block_shift = -1;  // of a block that is a power of 2
    bool limited = false;  // a bandwidth is given
    double clusters = 0;
    int gate = -1;  // the level that switches it off, with so many instances per gate
    double per_gate = 1;
  };

  const Workload& w_;
  const Architecture& a_;
  std::array<std::vector<BoxTerm>, kMaxSpaces> box_terms_;
  std::array<LevelFacts, kMaxLevels> facts_;
  int64_t latency_cycles_ = 0;
  size_t dimensions_ = 0;
  std::array<uint32_t, kMaxSpaces> relevant_{};  // dimensions that a space's ranks name
  std::array<bool, kMaxSpaces> slides_{};        // a rank sums dimensions
  size_t levels_, spaces_;
  bool has_energy_ = false;

  std::array<std::array<Flow, kMaxLevels>, kMaxSpaces> flow_;
  std::array<int64_t, kMaxLevels> instances_{};  // that work, per level
  std::array<int64_t, kMaxLevels> mesh_x_{}, mesh_y_{};
  TileMover mover_;
  std::array<std::array<Traffic, kMaxLevels>, kMaxSpaces> traffic_;
  std::vector<TileStep> time_, space_;
  std::array<std::array<int64_t, kMaxDimensions>, kMaxLevels> tile_extent_, array_extent_;

  int64_t box(size_t space, const std::array<int64_t, kMaxDimensions>& extent) const;
  std::optional<Reason> place(const Mapping& mapping, Figures& out);
  std::optional<Reason> count_slides(const Mapping& mapping, size_t space, size_t level);
  void count_boxes(const Mapping& mapping);
  void measure(const Mapping& mapping, size_t space);
  void bypass(const Mapping& mapping, size_t space);
  std::optional<Reason> check_fits(const Mapping& mapping, size_t level) const;
  std::optional<Reason> split(const Mapping& mapping, size_t space, Figures& out);
  void time_and_energy(Figures& out);
};

}  // namespace sator::formats::timeloop
