// The time's part of a mapping: which loops over tiles run in which order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "dataflow/counts/few.h"
#include "dataflow/mapping/nest_time.h"

namespace sator::dataflow {

/// Which tiles a search for mappings tries.
///   nested           one per iterator, of which each memory holds as much as fits: fractions along the outer loops
///   of_each_memory   a second one within, so that memories near the array have tiles of their own
enum class Tiles : uint8_t { nested, of_each_memory };

/// Searches nests for the part of a product that one core does: sizes and orders of tiles of the longest iterator of each
/// class, coarsely for every plan of the array; from the best of them to better neighbours (other tiles, orders, parts
/// of the array) until there is none; then by branch and bound over all of them.
class NestSearch {
 public:
  struct Found {
    double cycles = 0;  // estimated
    double score = 0;   // by the goal: the less, the better
    Placement placement;
  };

  NestSearch(const CoreShare& share, const Beside& beside, Tiles tiles = Tiles::nested, const Goal& goal = {});

  /// Climbs from the best of each kind of coarsely spaced tiles, so that few branches are worthwhile. The latency of the best mapping so far, in cycles.
  double climb_from_coarse_tiles();
  /// Begins to branch and bound over the space of nests:
  ///   plans    those of the array that were tried: on all PEs, on as few as take no more turns, on halves and quarters
  ///   tiles    of the longest iterator of each class: none or, for every number of tiles, the smallest size that has it and
  ///            begins evenly; also doublings of what the array covers
  ///   orders   all of these tiles; sums that are added up later outside of the tiles or within; folds either way round
  /// A branch is cut where its bound is not better than what is known by kWorthwhile.
  ///   known   latency of the best mapping anywhere
  void begin_branches(double known);
  /// Looks into the branch with the least bound. False if none may be better than what is known.
  bool branch(double known);
  /// From the best of what was tried to second tiles within the first. The latency of the best mapping so far, in cycles.
  double search_tiles_of_each_memory();
  /// No latency of the space is less, in cycles; kDoesNotFit where nothing fits.
  double least_latency_of_space() const;
  /// The least bound of those branches that are left to look into.
  double least_open() const;
  /// Branches whose bounds were asked.
  size_t branches() const { return boxes_; }
  /// The best mappings for the goal, at most `most`, the best first.
  ///   known   latency of the best mapping anywhere
  std::vector<Found> best(size_t most, double known);
  /// Of what was tried so far, in cycles.
  double least_latency_seen() const { return least_seen_; }
  /// Nests estimated so far.
  size_t tried() const { return seen_.size() + boxes_; }

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
    const std::vector<Tried>& all() const { return tried_; }

   private:
    std::vector<Tried> tried_;
    std::vector<uint32_t> table_ = std::vector<uint32_t>(512);  // by hash: its number + 1; 0: free
  };
  struct Candidate {
    double cycles = 0;
    Choice choice;
  };
  /// Choices whose tiles lie between two sizes, numbers of sizes_of.
  struct Range {
    size_t iterator = 0, least = 0, most = 0;
  };
  struct Box {
    double least = 0;  // no latency of it is less
    Choice choice;     // of these loops
    Few<Range, 3> tiles;
    size_t choices() const {
      size_t all = 1;
      for (const Range& r : tiles) all *= r.most - r.least + 1;
      return all;
    }
  };
  class Branches;
  /// The iterators that still run in time under a plan, by what they do. Of batches `summed` are those whose products a later
  /// statement sums up (groups of a scale): outputs are complete only when all of them are through.
  struct Roles {
    std::vector<size_t> batch, summed, main, folds, stream;
  };

  SpacePlan on_countable_part(const SpacePlan& plan) const;
  Roles roles_of(const SpacePlan& plan) const;
  bool begins_evenly(size_t x, int64_t cover, int64_t size) const;
  Few<int64_t, 64> even_candidates(size_t x, int64_t cover, int64_t least, int64_t end, int64_t tiles) const;
  std::vector<int64_t> coarse_sizes(size_t x, int64_t cover) const;
  Few<int64_t, 2> ends_of_limits(size_t x, int64_t cover) const;
  Few<int64_t, 8> next_sizes(size_t x, int64_t cover, int64_t size) const;
  const std::vector<int64_t>& sizes_of(size_t plan, size_t x);
  Choice choice_of(const Box& box, int corner);
  double least_of(const Box& box);
  void add_boxes_of(size_t plan, Branches& branches);
  void search_coarsely(size_t plan);
  void search_parts_coarsely(size_t plan);
  std::vector<Candidate> starts_of_kinds() const;
  void keep_of_kind(const Candidate& candidate);
  void climb(const Candidate& from);
  void save_energy();
  std::vector<Candidate> best_by_goal(double known);
  double score_of(const Choice& choice, double cycles);
  void prefer_among_equals();
  double idle_share(const SpacePlan& plan) const;
  /// Estimates are those of nests of this plan from here on.
  void use(size_t plan);
  /// kDoesNotFit where the limits do not allow it.
  double estimate_of(const Choice& choice);
  bool keeps_to_limits(const Nest& nest) const;
  /// Whether the limits allow that a plan has no tiles of x, but what the array covers, or all.
  bool may_stay_whole(size_t x, int64_t cover) const { return limits_.allows_tile(x, std::min(cover, s_.extent[x])); }
  double try_choice(const Choice& choice);
  bool try_other_turns(Choice of);
  std::vector<Choice> neighbours(const Choice& of);
  bool divides_tile(const Choice& of, size_t x, int64_t size) const;
  void search_inner_tiles(const Choice& from);
  void add_inner_tiles(const Choice& of, std::vector<Choice>& all) const;
  std::optional<Choice> on_plan(const Choice& of, int64_t rows, int64_t columns);
  Nest nest_of(const Choice& choice) const;
  Placement build(const SpacePlan& plan, const Nest& found) const;

  static constexpr size_t kKept = 12;  // candidates

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
  size_t boxes_ = 0;  // whose bounds were asked
  const Goal goal_;
  const IteratorLimits limits_;
  std::shared_ptr<Branches> branches_;
  double least_seen_ = kDoesNotFit;                                  // latency of what was tried
  std::map<std::pair<size_t, size_t>, std::vector<int64_t>> sizes_;  // per plan and iterator
  bool coarse_ = false;                                              // while sizes are tried coarsely
  std::vector<Candidate> kinds_;                                     // the best of each kind then
  std::vector<Candidate> best_;                                      // the shortest first
};

/// placements() by the longer search, with tiles of each memory: some ten times as long.
std::vector<Placement> placements_with_own_tiles(const Work& work, const Product& product, const Chip& chip,
                                                 const Pace& pace, const Beside& beside, size_t most,
                                                 const Goal& goal = {});

}  // namespace sator::dataflow
