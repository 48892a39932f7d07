#pragma once

#include <vector>

#include "formats/maestro/levels.h"

namespace sator::formats::maestro {

/// Where the loop over one map's tiles stands: its first tile, one in the middle, or the one cut short at the edge.
struct LoopState {
  enum class At : uint8_t { first, middle, edge };
  At at = At::first;
  int64_t times = 1;         // how many tiles are like this
  bool all_at_once = false;  // the first tile is the only one
  bool first_is_short = false;
  bool last_unit_short = false;  // spatial: the last working unit has less than a full tile
  bool short_tile() const { return at == At::edge || first_is_short; }
};

/// A state for every map of a level.
using LoopCase = std::vector<LoopState>;

/// The states that each map of a level goes through where its dimensions have these sizes.
std::vector<std::vector<LoopState>> loop_states(const Level& level, const PerDim<int64_t>& size);

/// Which unit of a level a volume is of.
struct Unit {
  bool first = true;        // the first one of the row; the others share what overlaps with their neighbour
  bool short_tile = false;  // the one at the edge
};

/// How many words move or are computed in one case of a level's loops, by MAESTRO's rules of reuse: between two steps of
/// the loops only the innermost loop that moved brings new data, and only tensors that it indexes; neighbours share what
/// overlaps.
/// Errors: counts beyond 64 bits.
class Volumes {
 public:
  Volumes(const Level& level, const LoopCase& loops) : level_(level), loops_(loops) {}

  /// Words of an input that come from the level above, for all units together.
  int64_t ingress(const std::vector<Dim>& tensor) const;
  /// Words of the output that go to the level above.
  int64_t egress(const std::vector<Dim>& output) const;
  /// Products that one unit computes, the one that takes longest; and that all units compute.
  int64_t products_of_a_unit(const std::vector<Dim>& output) const;
  int64_t products(const std::vector<Dim>& output) const;
  /// The sizes that a unit hands to the level below.
  PerDim<int64_t> inner_size(bool short_unit) const;
  /// Units that work.
  int64_t active_units() const;

 private:
  struct Spread {
    const LoopState* state = nullptr;  // of the spatial map that splits the tensor
    bool short_tile = false;
  };
  Spread spread_of(const std::vector<Dim>& tensor, bool any_spatial) const;
  int64_t mapped(const std::vector<Dim>& tensor, Unit unit) const;
  int64_t fresh(const std::vector<Dim>& tensor, Unit unit) const;
  int64_t output_words(const std::vector<Dim>& output, bool products, Unit unit, bool overlap_at_first) const;
  int64_t share(const LoopState& state, const Extent& extent, const Extent& edge_extent, Unit unit,
                bool fresh_at_first) const;

  const Level& level_;
  const LoopCase& loops_;
};

/// a * b and a + b. Errors: the result takes more than 64 bits.
int64_t times(int64_t a, int64_t b);
int64_t plus(int64_t a, int64_t b);

}  // namespace sator::formats::maestro
