// Steps that choose: what they chose is their last argument in the trace, so that a trace replays without chance.
#include <algorithm>

#include "arith/numbers.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

using Decision = std::optional<std::vector<int64_t>>;

/// The least prime factor of n >= 2.
int64_t least_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

/// Factors of `extent`: each of its primes goes to one of n tiles, all alike likely, but to the last only while that stays within
/// `most`.
std::vector<int64_t> random_tiles(Schedule& s, int64_t extent, int64_t n, int64_t most) {
  std::vector<int64_t> tiles(static_cast<size_t>(n), 1);
  for (int64_t rest = extent; rest > 1;) {
    const int64_t prime = least_factor(rest);
    rest /= prime;
    const bool fits = n == 1 || most < 0 || tiles.back() * prime <= most;
    tiles[static_cast<size_t>(s.random_below(fits ? n : n - 1))] *= prime;
  }
  return tiles;
}

/// Chosen tiles for a loop whose extent may be another by now: a tile that does not divide what is left takes all of it, and the
/// first one takes the rest.
std::vector<int64_t> fitted(std::vector<int64_t> tiles, int64_t extent) {
  for (size_t t = tiles.size() - 1; t > 0; --t) {
    if (tiles[t] < 1 || extent % tiles[t] != 0) tiles[t] = extent;
    extent /= tiles[t];
  }
  tiles[0] = extent;
  return tiles;
}

/// The extent of a loop that is known; else it cannot be tiled perfectly.
std::optional<int64_t> extent_of(const Schedule& s, const Loop& loop) { return as_int(s.get(loop).extent); }

void require_tiles(const Schedule& s, int64_t n, const Decision& decision) {
  if (n >= 1 && (!decision || std::ssize(*decision) == n)) return;
  s.fail({.what = n < 1 ? text(n, " tiles are asked for") : text("a decision of ", decision->size(), " tiles for ", n),
          .needs = n < 1 ? "n >= 1" : "a factor for each tile",
          .hint = "leave the decision out to choose one"});
}

/// States the decision in the trace, and gives the tiles as values of the schedule.
Factors chosen(Schedule& s, size_t decision_index, const std::vector<int64_t>& tiles) {
  List decision;
  Factors out;
  for (int64_t t : tiles) {
    decision.emplace_back(t);
    out.push_back(t < 0 ? std::nullopt : std::optional(s.sampled(t)));
  }
  s.state_input(decision_index, std::move(decision));
  return out;
}

/// Of a loop whose extent is not known: the first tile is left open, as split takes it.
std::vector<int64_t> one_open(int64_t n) {
  std::vector<int64_t> tiles(static_cast<size_t>(n), 1);
  tiles[0] = -1;
  return tiles;
}

/// One of the candidates, by their probabilities; the decision is its index.
Expr do_sample_categorical(Schedule& s, std::vector<int64_t> candidates, std::vector<double> probs,
                           std::optional<int64_t> decision) {
  double sum = 0;
  for (double p : probs) sum += p;
  if (candidates.empty() || candidates.size() != probs.size() || !(sum > 0) ||
      std::ranges::any_of(probs, [](double p) { return !(p >= 0); }))
    s.fail({.what = text(candidates.size(), " candidates with ", probs.size(), " probabilities of sum ", sum),
            .needs = "a probability >= 0 for each candidate, not all of them 0",
            .hint = "give as many of the one as of the other"});
  if (decision && (*decision < 0 || *decision >= std::ssize(candidates)))
    s.fail({.what = text("the decision ", *decision, " among ", candidates.size(), " candidates"),
            .needs = text("an index from 0 to ", candidates.size() - 1),
            .hint = "leave it out to choose one"});
  if (!decision) {
    double at = s.random_unit() * sum;
    int64_t index = 0;
    while (index + 1 < std::ssize(candidates) && at >= probs[static_cast<size_t>(index)])
      at -= probs[static_cast<size_t>(index++)];
    while (index > 0 && probs[static_cast<size_t>(index)] == 0) --index;  // rounding ran past the last possible one
    decision = index;
  }
  s.state_input(2, *decision);
  return s.sampled(candidates[static_cast<size_t>(*decision)]);
}

/// Factors of a loop's extent, whose product is it; the last is at most max_innermost_factor (-1: any). A loop of unknown extent
/// gives an open factor and ones.
Factors do_sample_perfect_tile(Schedule& s, Loop loop, int64_t n, int64_t max_innermost_factor, Decision decision) {
  require_tiles(s, n, decision);
  if (max_innermost_factor == 0 || max_innermost_factor < -1)
    s.fail({.what = text("max_innermost_factor = ", max_innermost_factor),
            .needs = "a factor of at least 1, or -1 for any",
            .hint = "leave it out for 16"});
  const std::optional<int64_t> extent = extent_of(s, loop);
  if (!extent) return chosen(s, 3, one_open(n));
  return chosen(s, 3, decision ? fitted(*decision, *extent) : random_tiles(s, *extent, n, max_innermost_factor));
}

/// The same, where the product of the tiles from number partition_pos on is a multiple of innerpart_factor. A loop whose extent
/// that does not divide gives an open factor and ones.
Factors do_sample_partitioned_tile(Schedule& s, Loop loop, int64_t n, int64_t partition_pos, int64_t innerpart_factor,
                                   Decision decision) {
  require_tiles(s, n, decision);
  if (partition_pos < 0 || partition_pos >= n || innerpart_factor < 1)
    s.fail({.what =
                text("partition_pos = ", partition_pos, ", innerpart_factor = ", innerpart_factor, " of ", n, " tiles"),
            .needs = "0 <= partition_pos < n, innerpart_factor >= 1",
            .hint = "partition_pos = 0, innerpart_factor = 1 ask for nothing"});
  const std::optional<int64_t> extent = extent_of(s, loop);
  if (!extent || *extent % innerpart_factor != 0) return chosen(s, 4, one_open(n));
  const auto first = static_cast<size_t>(partition_pos);
  if (decision) {
    int64_t inner = 1;
    for (size_t t = first; t < decision->size(); ++t)  // modulo the factor: the product may be beyond 64 bits
      inner = inner * ((*decision)[t] % innerpart_factor) % innerpart_factor;
    if (inner % innerpart_factor == 0) return chosen(s, 4, fitted(*decision, *extent));
    std::vector<int64_t> tiles(static_cast<size_t>(n), 1);
    tiles[first] = innerpart_factor;
    tiles[0] *= *extent / innerpart_factor;
    return chosen(s, 4, tiles);
  }
  // The factor itself is tiled among the inner ones, what is left of the extent among all.
  std::vector<int64_t> tiles = random_tiles(s, *extent / innerpart_factor, n, -1);
  const std::vector<int64_t> inner = random_tiles(s, innerpart_factor, n - partition_pos, -1);
  for (size_t t = 0; t < inner.size(); ++t) tiles[first + t] *= inner[t];
  return chosen(s, 4, tiles);
}

/// A loop of the block's first consumer at which compute_at may put it, or that it stays where it is, or that it is inlined
/// (root_mark, inline_mark). The decision is the loop's number from outside, -1, or -2; one that is no candidate any more becomes
/// the next one further out.
Loop do_sample_compute_location(Schedule& s, BlockHandle block, std::optional<int64_t> decision) {
  std::vector<std::pair<int64_t, Loop>> candidates;
  if (!cannot_compute_inline(s, block)) candidates.emplace_back(-2, inline_mark());
  candidates.emplace_back(-1, root_mark());
  const std::vector<BlockHandle> consumers = get_consumers(s, block);
  if (!consumers.empty()) {
    const std::vector<Loop> loops = get_loops(s, consumers.front());
    for (size_t l = 0; l < loops.size(); ++l)
      if (!cannot_compute_at(s, block, loops[l])) candidates.emplace_back(static_cast<int64_t>(l), loops[l]);
  }
  size_t at = 0;
  if (decision) {
    while (at + 1 < candidates.size() && candidates[at + 1].first <= *decision) ++at;
    if (candidates[at].first > *decision)
      at =
          static_cast<size_t>(std::ranges::find(candidates, -1, &std::pair<int64_t, Loop>::first) - candidates.begin());
  } else {
    at = static_cast<size_t>(s.random_below(std::ssize(candidates)));
  }
  s.state_input(1, candidates[at].first);
  return candidates[at].second;
}

/// What follows are postprocessors: Trace::simplified can leave them out.
void do_enter_postproc(Schedule&) {}

}  // namespace

const Loop& root_mark() {
  static const Loop mark = make_var("root");
  return mark;
}
const Loop& inline_mark() {
  static const Loop mark = make_var("inline");
  return mark;
}

const Primitive<Expr(std::vector<int64_t>, std::vector<double>, std::optional<int64_t>)> sample_categorical{
    "sample_categorical",
    do_sample_categorical,
    {"candidates", "probs", {"decision", Value()}},
    "chooses one of several numbers",
    Effect::reads};
const Primitive<Factors(Loop, int64_t, int64_t, std::optional<std::vector<int64_t>>)> sample_perfect_tile{
    "sample_perfect_tile",
    do_sample_perfect_tile,
    {"loop", "n", {"max_innermost_factor", Value(16)}, {"decision", Value()}},
    "chooses factors of a loop's extent",
    Effect::reads};
const Primitive<Factors(Loop, int64_t, int64_t, int64_t, std::optional<std::vector<int64_t>>)> sample_partitioned_tile{
    "sample_partitioned_tile",
    do_sample_partitioned_tile,
    {"loop", "n", {"partition_pos", Value(0)}, {"innerpart_factor", Value(1)}, {"decision", Value()}},
    "chooses factors of a loop's extent of which the inner ones hold a given factor",
    Effect::reads};
const Primitive<Loop(BlockHandle, std::optional<int64_t>)> sample_compute_location{
    "sample_compute_location",
    do_sample_compute_location,
    {"block", {"decision", Value()}},
    "chooses a loop at which a producer may be computed",
    Effect::reads};
const Primitive<void()> enter_postproc{
    "enter_postproc", do_enter_postproc, {}, "marks that what follows are postprocessors"};

}  // namespace sator::schedule
