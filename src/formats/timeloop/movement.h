#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/timeloop/spec.h"

namespace sator::formats::timeloop {

/// Whose counts: they differ where a tile slides after a loop under which it stood still.
enum class Release : uint8_t {
  v3_0_3,  // the last release, whose outputs Timeloop's exercises store: a standstill is a stride of 0, and a change of
           // stride brings the whole tile anew
  master,  // from January 2025 on: a standstill does not count as a change of stride
};

/// Coordinates of a point of a data space, or a shift between two; ranks beyond the space's are 0.
using Point = std::array<int64_t, kMaxRanks>;

/// A temporal loop above a tile: how its first step shifts the tile, and how often it runs.
struct TileStep {
  Point shift{};
  int64_t bound = 2;
};

/// A tile of one data space, moved by loops, and the array of instances that it feeds.
struct TileMoves {
  int ranks = 0;
  Point extent{};                   // of the tile's bounding box
  bool resident = true;             // what an instance holds from its last tile need not come again
  std::span<const TileStep> time;   // the innermost first
  std::span<const TileStep> space;  // the innermost first; along X before along Y
  int64_t width = 1, height = 1;    // of the array: instance i stands at (i % width, i / width)
  bool multicast = true;            // one access serves all instances that want the same words
  bool neighbours = true;           // an instance may pass to the next what it got in the last step
};

/// Accesses that serve `multicast` instances each, in `scatter` groups.
struct Delivery {
  int64_t multicast = 1, scatter = 1;
  double accesses = 0;
};

/// What the tiles of one instance's children cost their parent over the whole run.
struct Traffic {
  std::vector<Delivery> deliveries;  // by multicast, then scatter
  double passed = 0;                 // words that children pass to each other instead
};

/// Counts the words that move, as Timeloop does: a tile's new words are its box without the box before it, where they
/// differ along one rank and the shift repeats the one before; else all of it. Steps beyond the first of each loop count
/// as the first does. Instances whose new words are equal share an access. If fewer accesses are left, instances whose
/// new words a neighbour got one step ago take them from there.
/// Source: NVlabs/timeloop at 4cf6d4c, its analysis of loop nests, as facts; counted here in closed form over the carries
/// of the loops instead of by running their first two iterations.
class TileMover {
 public:
  explicit TileMover(Release release) : release_(release) {}
  /// Errors: false if the places of the instances span more than 62 bits.
  bool count(const TileMoves& moves, Traffic& out);

 private:
  static constexpr int kNone = -1, kStill = -2;  // instead of a carry's number
  struct Words {                                 // the new words of a step: a box at `offset` into the tile
    Point offset{}, extent{};
    double size = 0;
  };
  struct State {  // what a step depends on: the last shift, the last new words
    int shift = kNone;
    int words = kNone;
    bool operator==(const State&) const = default;
  };
  struct Outcome {
    State after;
    int words = kNone;  // of words_; or none are new
    int sharing = 0;    // of sharings_
  };
  struct Visit {  // the loops below `depth`, entered in `state`
    State state;
    Outcome step;
    int before = -1, behind = -1;  // visits of the next inner loop
    State after;
    double weight = 0;
  };
  struct Sharing {  // how instances get their words if the tile's words moved by `shift` since the last step
    Point shift{};
    int64_t distinct = 0, unlinked = 0;
    std::vector<Delivery> groups;
    double size_sum = 0;
  };

  Release release_;
  const TileMoves* m_ = nullptr;
  std::vector<Point> carry_;     // shift of the tile where loop j steps and all inner ones start anew
  std::vector<int> same_carry_;  // the first loop with an equal carry, or kStill
  std::vector<Words> words_;     // 0: the whole tile; 1 + j: what is new after carry j
  std::vector<std::vector<Visit>> visits_;
  std::vector<Sharing> sharings_;  // 0: nobody passes words on
  size_t sharings_used_ = 0;
  int64_t instances_ = 1;
  Point low_{}, span_{}, weight_{};  // of the places: lowest coordinate, highest without lowest, its digit in a key
  std::vector<int64_t> places_;      // the key of each instance's shift; listed when first asked for
  std::vector<int64_t> sorted_;
  std::vector<char> linked_;

  void prepare_carries();
  bool prepare_places();
  void list_places();
  bool group_apart(Sharing& sharing) const;
  void group(Sharing& sharing);
  int64_t key(const Point& shift) const;
  int visit(size_t depth, State state);
  Outcome step(State state, size_t loop);
  int sharing(const Point& shift);
};

}  // namespace sator::formats::timeloop
