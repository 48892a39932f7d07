// A lower bound of the latency of all nests between two, by the formula that estimates each of them.
#include <algorithm>
#include <bit>

#include "dataflow/mapping/nest_steps.h"

namespace sator::dataflow {

namespace {

/// The least share of the folds until the first part of the output is complete. With P(d) folds within the first d loops that
/// share is the sum of 1/P(d) - 1/P(d+1) over the loops that complete nothing, and 1/P(all): over a run of such loops what is
/// between its ends cancels. Ragged ends make the share longer.
///   most, fewest   the nests with the smallest and the largest tiles
template <class Completes>
double least_until_output(const Nest& most, const Nest& fewest, size_t outer, Completes&& completes) {
  double share = 1 / most.turns(0, outer);
  for (size_t d = 0; d < outer;) {
    size_t end = d;
    while (end < outer && !completes(fewest.loops[end].iterator)) ++end;
    if (end > d) share += std::max(0.0, 1 / most.turns(0, d) - 1 / fewest.turns(0, end));
    d = std::max(end, d + 1);
  }
  return std::min(share, 1.0);
}

}  // namespace

/// Why each nest between the two takes as long: let b be its tiles, with smallest <= b <= largest.
/// - Turns of an iterator's loops down to one of them are ceil(extent / b), or ceil(extent / cover) for the array's own: fewest
///   for the largest tiles. What a memory takes in, and what the array does, are products of such turns, so they are least
///   there, for the same tile held.
/// - What is held grows with b, and what a memory takes in shrinks with the number of loops within the tile that it holds: for
///   the smallest tiles that is the most.
/// - The shares of first and last parts and of folds are 1 / a product of turns: least for the smallest tiles.
/// - Which of the kernel's own tensors stand outside is one of the choices that are all tried.
/// So every time and movement is at most that of b, and least_latency of overlap.h bounds the latency by these.
double NestTime::least_latency(const Nest& largest, const Nest& smallest) {
  const Steps most = steps_of(smallest);
  Steps steps = steps_of(largest);
  find_fetched(smallest, most);
  const auto parts = parts_;
  find_fetched(largest, steps);
  parts_ = parts;
  steps.most_folds = most.folds;
  if (!s_.shares_reduction)
    steps.until_output = least_until_output(smallest, largest, steps.outer, [&](size_t x) { return completes(x); });
  find_held(smallest);
  find_standing(smallest);
  of_a_range_ = true;
  const double least = least_wherever_tensors_stand(largest, steps);
  of_a_range_ = false;
  return least;
}

/// What no nest of the plan avoids, whatever its loops and their order:
/// - the array works for as many stamps as there are turns of what it covers;
/// - each memory takes in or hands on all of a tensor once, and nothing of the kernel's own tensors goes outside;
/// - there are at most as many folds as stamps, and at most as many parts of a tensor as turns along the iterators that
///   number its parts; the first output waits for no fold.
/// Each is at most that of any nest of the plan, so least_latency of overlap.h bounds the latency by these.
double NestTime::least_of_plan() {
  double stamps = 1;
  for (size_t x = 0; x < s_.rank(); ++x) stamps *= turns_of_cover(x);
  const Nest all_at_once;
  const Steps steps{.most_folds = stamps, .until_output = s_.shares_reduction ? 1.0 : 0.0};
  find_fetched(all_at_once, steps);
  for (size_t a = 0; a < s_.accesses(); ++a)
    for (size_t x = 0; x < s_.rank(); ++x)
      if (s_.relevant(a, x) && (in_parts_[a] >> x & 1)) parts_[a] *= turns_of_cover(x);
  move_product(all_at_once, steps);
  move_beside();
  times_.array = std::max(stamps * static_cast<double>(s_.pace.cycles_per_stamp), sustained_) * factors_.array;
  times_.fold = times_.array / steps.most_folds;
  times_.until_output = times_.array * steps.until_output;
  const double serial = serial_cycles();
  return dataflow::least_latency(times_, bits_, s_.chip, factors_, serial);
}

double NestTime::turns_of_cover(size_t x) const { return static_cast<double>(ceil_div(s_.extent[x], plan_->cover[x])); }

double NestTime::least_wherever_tensors_stand(Nest nest, const Steps& steps) {
  constexpr int kMostChoices = 3;
  nest.outside = 0;
  const bool fits = hold_beside(nest);
  uint32_t movable = 0;
  for (size_t m = 1; m < s_.chip.memories.size(); ++m) movable |= stands_at_[m];
  for (uint32_t left = movable; left != 0; left &= left - 1)
    if (const auto n = static_cast<size_t>(std::countr_zero(left)); beside_.standing[n].running)
      movable &= ~(uint32_t{1} << n);
  if (movable == 0) return fits ? least_as_held(nest, steps) : kDoesNotFit;
  // Where nothing gets more room, nothing goes outside.
  Nest all_outside = nest;
  all_outside.outside = movable;
  if (!hold_beside(all_outside)) return kDoesNotFit;
  if (fits && all_outside.held_since == nest.held_since) return least_as_held(nest, steps);
  if (std::popcount(movable) > kMostChoices) {
    all_outside.outside = 0;  // their room is not needed, and neither are they moved
    return least_as_held(all_outside, steps);
  }
  double least = fits ? least_as_held(nest, steps) : kDoesNotFit;
  for (uint32_t outside = movable; outside != 0; outside = (outside - 1) & movable) {
    nest.outside = outside;
    if (hold_beside(nest)) least = std::min(least, least_as_held(nest, steps));
  }
  return least;
}

double NestTime::least_as_held(const Nest& nest, const Steps& steps) {
  move_product(nest, steps);
  move_standing(nest);
  move_beside();
  time_array(nest, steps);
  const double serial = serial_cycles();
  return dataflow::least_latency(times_, bits_, s_.chip, factors_, serial);
}

}  // namespace sator::dataflow
