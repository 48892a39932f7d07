// The latency of a mapping that is a nest of loops over tiles, estimated without counting.
#pragma once

#include <array>

#include "dataflow/mapping/overlap.h"
#include "dataflow/mapping/space_plan.h"

namespace sator::dataflow {

inline constexpr size_t kMostLoops = 32, kMostAccesses = 16, kMostStanding = 32;

/// A loop over blocks of consecutive values of an iterator.
struct BlockLoop {
  size_t iterator = 0;
  int64_t block = 1;
  double count = 1;  // of turns, on average over those of the loops around it
  double most = 1;   // of turns, where no loop around it has come to a ragged end
};

/// Loops around what the array does at one stamp, outermost first, and what memories hold.
struct Nest {
  size_t depth = 0;
  std::array<BlockLoop, kMostLoops> loops;
  std::array<size_t, kMostMemories> held_since{};
  uint32_t outside = 0;  // of Beside::standing, a bit each: what has no room on the chip

  /// Adds a loop over blocks of iterator x, if it has two or more turns.
  ///   extent   of x as a whole
  void add(size_t x, int64_t block, int64_t extent);
  double turns(size_t from, size_t to) const;
};

constexpr double kDoesNotFit = 1e300;

/// Times nests under one plan of the array.
class NestTime {
 public:
  NestTime(const CoreShare& share, const Beside& beside);

  /// Takes up a plan: which memories its tensors pass depends on what stays.
  void use(const SpacePlan& plan);

  /// Chooses what each memory holds, the most that fits, and which of the kernel's own tensors stand outside for want of
  /// room or because larger tiles are worth more; and estimates the latency in cycles by the formula of KernelCost.
  /// Of near equals the one that moves and makes less is shorter: traffic outside adds 1/2048 of its time, and so does
  /// making; traffic inside 1/16384. kDoesNotFit where what one step of the array takes is more than a memory holds.
  double estimate(Nest& nest);
  /// Of the nest estimated last, without what it moves and makes beside others as quick.
  double latency_of_last() const { return latency_; }
  /// A lower bound of the latency of all nests of the plan: work and compulsory traffic of the product.
  double least_of_plan();
  /// A lower bound of the latency of nests that lie between two of the same loops, tile by tile. kDoesNotFit where none fits.
  ///   largest    with the largest tiles: each loop has the fewest turns
  ///   smallest   with the smallest tiles: what memories hold is least
  /// Tiles are whole multiples of what the array covers, and no loop has one turn.
  double least_latency(const Nest& largest, const Nest& smallest);
  /// The latency as estimated, with what the product alone takes of each resource.
  Placement::Estimate estimate_of_product(Nest& nest);

  /// What a nest moves for the product, by closed form.
  struct Moves {
    double picojoules = 0;  // in all memories
    double outside_bits = 0;
  };
  Moves moves_of_product(Nest& nest);

 private:
  struct Steps;  // what the loops around the stationary tile cut the work into
  struct Moved;

  void find_held(const Nest& nest);
  void find_standing(const Nest& nest);
  bool hold_most(Nest& nest, bool all_inside) const;
  bool hold_most_in(size_t m, Nest& nest) const;
  bool has_room(size_t m, const Nest& nest, uint32_t inside, size_t since) const;
  bool hold_beside(Nest& nest) const;
  double cycles_of(const Nest& nest);
  double turns_of_cover(size_t x) const;  // of all loops over x together
  double least_wherever_tensors_stand(Nest nest, const Steps& steps);
  double least_as_held(const Nest& nest, const Steps& steps);
  bool starts_inside(const Nest& nest, size_t a) const;
  bool completes(size_t x) const;
  Steps steps_of(const Nest& nest) const;
  double array_cycles(const Nest& nest, const Steps& steps) const;
  void find_fetched(const Nest& nest, const Steps& steps);
  double times_fetched(const Nest& nest, size_t a, size_t since) const;
  double fetched_by_pes(const Nest& nest, size_t a) const;
  double burst_share(const Nest& nest, size_t a, size_t outer, size_t since) const;
  void move_product(const Nest& nest, const Steps& steps);
  void move_standing(const Nest& nest);
  void move_beside();
  void refill(size_t outer, size_t inner, double in, double out, double parts, bool after);
  void time_array(const Nest& nest, const Steps& steps);
  double serial_cycles();
  double latency(const Nest& nest, const Steps& steps);
  double preference() const;

  const CoreShare& s_;
  const Beside& beside_;
  TimeFactors factors_;
  double sustained_ = 0;  // the least that the array takes, in cycles
  const SpacePlan* plan_ = nullptr;
  /// Per access: PEs that fetch the same element, where no wire brings it.
  std::array<double, kMostAccesses> fetching_{};
  size_t weight_ = SIZE_MAX;  // under the plan
  /// A memory that an access passes, or the array at the end, and how many times the part of one core moves there.
  struct Stop {
    size_t memory;
    double all;     // for all cores: each has its own, or they share it
    double here;    // of that, in this memory
    double inside;  // and in the next one
    double source;  // what this memory hands to the next one
  };
  std::vector<std::vector<Stop>> paths_;             // per access, outermost first, as if none were internal
  std::array<uint32_t, kMostMemories> passed_by_{};  // per memory: a bit per access
  std::vector<uint64_t> in_parts_;                   // per access, a bit per iterator: Beside::in_parts
  std::vector<int64_t> block_;
  template <class T>
  using PerLoop = std::array<std::array<T, kMostLoops + 1>, kMostAccesses>;  // [access][number of outer loops]
  PerLoop<double> held_{};       // bits of an access within the first d loops
  PerLoop<double> repeated_{};   // its elements, again for every turn of those of the first d loops that do not move it
  PerLoop<uint8_t> moved_to_{};  // of the first d loops: how many there are to the last one that moves it
  std::array<double, kMostAccesses> parts_{};
  std::array<size_t, kMostAccesses> standing_of_{};  // per access: its number in Beside::standing; kMostStanding: none
  std::array<uint32_t, kMostMemories> stands_at_{};  // per memory: a bit per number in Beside::standing
  struct Stands {
    double bits;    // at once, in one instance of the memory
    bool in_parts;  // another part is made meanwhile
  };
  std::array<Stands, kMostStanding> stands_{};
  double latency_ = 0;
  bool of_a_range_ = false;  // a bound for several nests is asked
  double waits_ = 0;         // for the first part of the output: share of the array's time
  double making_ = 0;        // cycles of the vector unit for what it makes on the way into the array
  Movement bits_;
  ResourceTimes<double> times_;
};

}  // namespace sator::dataflow
