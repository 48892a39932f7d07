// Ways to run a kernel in one pass, and which of them look quickest.
#pragma once

#include <optional>
#include <vector>

#include "dataflow/cost/pass_tiles.h"

namespace sator::dataflow {

inline constexpr int64_t kPartBits = 32;      // of sums that stay, and of those that cores share
inline constexpr int64_t kNumbersPerRow = 2;  // beside these: the largest score and the total of a part
inline constexpr double kRescale = 1;         // operations for each sum of the tiles before

/// A way to run the pass.
struct Way {
  int64_t rows = 0, columns = 0, parts = 1;  // of a block, of a tile; cores that a block is cut for
};

/// Blocks of one length: how many, with how many tiles each.
struct Blocks {
  int64_t count = 0, rows = 0, tiles = 0;
};

/// What a way comes to, over all batches.
struct Amounts {
  std::vector<Blocks> blocks;  // parts of blocks are blocks of their own
  int64_t all_blocks = 0, all_tiles = 0;
  int64_t scores = 0;           // computed, masked ones within tiles too
  int64_t loaded_columns = 0;   // for all blocks
  int64_t touched_columns = 0;  // of all batches, once
  int64_t loaded_rows = 0;      // for all blocks
  int64_t sums = 0;             // of results, per tile: what a running reduction rescales
};

/// When the last core is done.
struct PassSchedule {
  double cycles = 0, all_cycles = 0;
  int64_t cores = 0, tiles = 0, blocks = 0;  // that work; of the last core
};

Amounts amounts_of(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks);

/// The ways of one chip.
class PassWays {
 public:
  PassWays(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts);

  /// Those that look quickest, the best first.
  std::vector<Way> quickest_ways(const PassForm& form);

  /// The longest blocks first, each on the core that is free first.
  PassSchedule schedule(const PassForm& form, const Way& way, const Amounts& a);

  /// Columns of keys and values that come from further out than the memory which cores share: once where that memory has room
  /// for what blocks of one wave need, else once for each wave, whose blocks go through them together.
  int64_t columns_from_outside(const PassForm& form, const Amounts& a) const;

  PassTiles& tiles() { return tiles_; }
  /// The innermost memory that all cores share.
  size_t shared() const { return shared_; }
  /// Whether the array's edge does it.
  bool is_inline(const Work& work) const;
  /// Operations of the vector unit per cycle.
  double lanes() const { return static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle; }

 private:
  bool fits(const PassForm& form, const Way& way) const;
  std::optional<double> array_cycles(const PassForm& form, const Way& way, const Blocks& b);
  double between_ops(const PassForm& form) const;
  double beside_cycles(const PassForm& form, const Way& way, const Amounts& a, double active);
  std::optional<double> estimate(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks);

  const Chip& chip_;
  PassTiles tiles_;
  std::optional<size_t> kept_in_;
  size_t shared_ = 0;
};

}  // namespace sator::dataflow
