// The time's part of a mapping: which loops over tiles run in which order.
#pragma once

#include <deque>
#include <map>
#include <set>

#include "dataflow/counts/few.h"
#include "dataflow/mapping/nest_time.h"

namespace sator::dataflow {

/// Which tiles a search for mappings tries.
///   nested           one per iterator, of which each memory holds as much as fits: fractions along the outer loops
///   of_each_memory   a second one within, so that memories near the array have tiles of their own
enum class Tiles : uint8_t { nested, of_each_memory };

/// Searches nests for the part of a product that one core does: sizes and orders of tiles of the longest iterator of each
/// class, coarsely for every plan of the array; then from the best of them to better neighbours (other tiles, orders, parts
/// of the array) until there is none.
class NestSearch {
 public:
  struct Found {
    double cycles = 0;  // estimated
    Placement placement;
  };

  NestSearch(const CoreShare& share, const Beside& beside, Tiles tiles = Tiles::nested);

  /// The best mappings, at most `most`, the shortest first.
  std::vector<Found> run(size_t most);
  /// Nests estimated so far.
  size_t tried() const { return seen_.size(); }

 private:
  struct Tile {
    size_t iterator = 0;
    int64_t size = 1;
    auto operator<=>(const Tile&) const = default;
  };
  /// Tiles of the longest iterator of each class, outermost first.
  using Order = Few<Tile, 3>;
  /// What the search chooses; the nest follows from it.
  struct Choice {
    size_t plan = 0;
    bool folds_reversed = false;
    bool summed_inside = false;  // loops over what is summed up later: within the tiles, not around them
    Order order;
    Order inner;  // tiles within tiles
    bool operator==(const Choice&) const = default;
    /// Whether each tile within a tile fits it without a rest.
    bool nests() const {
      for (const auto& [x, size] : inner)
        if (const int64_t whole = tile(x); whole > 0 && (size >= whole || whole % size != 0)) return false;
      return true;
    }
    /// Of iterator x; 0: not tiled.
    int64_t tile(size_t x) const {
      for (const Tile& t : order)
        if (t.iterator == x) return t.size;
      return 0;
    }
  };
  /// The choices that were tried, and what came of them.
  class Seen {
   public:
    struct Tried {
      Choice choice;
      double cycles = -1;      // not known yet
      bool left_from = false;  // its neighbours were tried
    };
    Tried& at(const Choice& choice);
    size_t size() const { return tried_.size(); }

   private:
    std::vector<Tried> tried_;
    std::vector<uint32_t> table_ = std::vector<uint32_t>(512);  // by hash: its number + 1; 0: free
  };
  struct Candidate {
    double cycles = 0;
    Choice choice;
  };
  /// The iterators that still run in time under a plan, by what they do. Of batches `summed` are those whose products a later
  /// statement sums up (groups of a scale): outputs are complete only when all of them are through.
  struct Roles {
    std::vector<size_t> batch, summed, main, folds, stream;
  };

  SpacePlan on_countable_part(const SpacePlan& plan) const;
  Roles roles_of(const SpacePlan& plan) const;
  bool begins_evenly(size_t x, int64_t cover, int64_t size) const;
  std::vector<int64_t> coarse_sizes(size_t x, int64_t cover) const;
  Few<int64_t, 8> next_sizes(size_t x, int64_t cover, int64_t size) const;
  void search_coarsely(size_t plan);
  void search_parts_coarsely(size_t plan);
  std::vector<Candidate> starts_of_kinds() const;
  void keep_of_kind(const Candidate& candidate);
  void climb(const Candidate& from);
  void save_energy();
  void prefer_among_equals();
  double idle_share(const SpacePlan& plan) const;
  double estimate_of(const Choice& choice);
  double try_choice(const Choice& choice);
  bool try_other_turns(Choice of);
  void climb_on_half_arrays();
  std::vector<Choice> neighbours(const Choice& of);
  bool divides_tile(const Choice& of, size_t x, int64_t size) const;
  void search_inner_tiles(const Choice& from);
  void add_inner_tiles(const Choice& of, std::vector<Choice>& all) const;
  std::optional<Choice> on_plan(const Choice& of, int64_t rows, int64_t columns);
  Nest nest_of(const Choice& choice) const;
  Placement build(const SpacePlan& plan, const Nest& found) const;

  const CoreShare& s_;
  const Tiles tiles_;
  const Beside& beside_;
  NestTime time_;
  std::deque<SpacePlan> plans_;
  std::deque<Roles> roles_;                                               // per plan
  std::map<std::tuple<size_t, bool, int64_t, int64_t>, size_t> plan_of_;  // by what stays, PEs allowed
  size_t in_use_ = SIZE_MAX;                                              // plan that time_ has taken up
  std::vector<std::set<int64_t>> grains_;  // per iterator: divisors in coordinates of tensors
  Seen seen_;
  std::vector<Candidate> best_;   // the shortest first
  bool coarse_ = false;           // while sizes are tried coarsely
  std::vector<Candidate> kinds_;  // the best of each kind then
};

/// placements() by the longer search, with tiles of each memory: some ten times as long.
std::vector<Placement> placements_with_own_tiles(const Work& work, const Product& product, const Chip& chip,
                                                 const Pace& pace, const Beside& beside, size_t most);

}  // namespace sator::dataflow
