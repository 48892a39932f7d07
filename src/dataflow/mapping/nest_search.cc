#include "dataflow/mapping/nest_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "dataflow/counts/counts.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

constexpr int64_t kCoarseSizes = 3;  // tried per iterator beside the whole
constexpr size_t kStarts = 16;
constexpr double kWorthAClimb = 2;  // times the best
constexpr size_t kMostTried = 3000, kMostTriedOfEachMemory = 20000;
const int64_t kEnumerationLimit = CountOptions{}.enumerate_up_to;

}  // namespace

NestSearch::Seen::Tried& NestSearch::Seen::at(const Choice& choice) {
  size_t hash = choice.plan * 4 + choice.folds_reversed * 2 + choice.summed_inside;
  auto mix = [&](const Order& order) {
    hash = (hash ^ order.size()) * 0x9e3779b97f4a7c15u;
    for (const Tile& t : order)
      hash = (hash ^ (hash >> 29) ^ t.iterator ^ static_cast<size_t>(t.size) << 5) * 0x9e3779b97f4a7c15u;
  };
  mix(choice.order), mix(choice.inner);
  size_t at = (hash ^ hash >> 32) & (table_.size() - 1);
  for (; table_[at] != 0; at = (at + 1) & (table_.size() - 1))
    if (Tried& known = tried_[table_[at] - 1]; known.choice == choice) return known;
  tried_.push_back({.choice = choice});
  table_[at] = static_cast<uint32_t>(tried_.size());
  if (tried_.size() * 2 < table_.size()) return tried_.back();
  std::vector<Tried> all = std::move(tried_);
  table_.assign(table_.size() * 4, 0);
  tried_.clear();
  for (Tried& t : all) this->at(t.choice) = t;
  return tried_.back();
}

NestSearch::NestSearch(const CoreShare& share, const Beside& beside, Tiles tiles, const Goal& goal)
    : s_(share),
      tiles_(tiles),
      beside_(beside),
      time_(share, beside),
      grains_(share.rank()),
      goal_(goal),
      limits_(goal.limits, share.work.statement.domain.names) {
  for (SpacePlan& plan : space_plans(share)) plans_.push_back(std::move(plan));
  for (const Access& access : share.work.statement.accesses)
    for (const Map& reference : access.references)
      for (const QuasiAffine& e : reference)
        for (const Term& t : e.terms)
          for (size_t x = 0; t.division && x < share.rank(); ++x)
            if (mentions(t.division->inner, static_cast<int>(x))) grains_[x].insert(t.division->divisor);
  for (size_t p = 0; p < plans_.size(); ++p) {
    plans_[p] = on_countable_part(plans_[p]);
    roles_.push_back(roles_of(plans_[p]));
    const SpacePlan& plan = plans_[p];
    plan_of_.try_emplace({plan.stationary, plan.swapped, plan.most_rows, plan.most_columns}, p);
  }
}

/// The plan on so many rows and columns that their ends fall together with those of groups; statements small enough to be
/// counted one by one need not.
SpacePlan NestSearch::on_countable_part(const SpacePlan& plan) const {
  double instances = 1;
  for (int64_t extent : s_.work.statement.domain.extent) instances *= static_cast<double>(extent);
  if (instances <= static_cast<double>(kEnumerationLimit)) return plan;
  auto fitting = [&](const std::vector<rules::ArrayNest::Side>& sides, int64_t most) {
    for (const rules::ArrayNest::Side& side : sides)
      for (int64_t grain : grains_[side.loop])
        while (most > 1 && grain % (most * side.at_once) != 0 && (most * side.at_once) % grain != 0) --most;
    return most;
  };
  const int64_t rows = fitting(plan.rows, plan.most_rows), columns = fitting(plan.columns, plan.most_columns);
  return rows == plan.most_rows && columns == plan.most_columns ? plan : on_part(s_, plan, rows, columns);
}

double NestSearch::climb_from_coarse_tiles() {
  const size_t whole_array = plans_.size();
  coarse_ = true;
  for (size_t p = 0; p < whole_array; ++p) search_coarsely(p);
  for (size_t p = 0; p < whole_array; ++p) search_parts_coarsely(p);
  // What all PEs take at once may be more than a memory holds: then fewer, until something fits. Limits of tiles are for all PEs.
  const int64_t most_parts = goal_.limits.any() ? 0 : std::max(s_.chip.rows, s_.chip.columns);
  for (int64_t parts = 2; best_.front().cycles >= kDoesNotFit && parts < 2 * most_parts; parts *= 2)
    for (size_t p = 0; p < whole_array; ++p) {
      const int64_t rows = plans_[p].rows_used, columns = plans_[p].columns_used;
      for (const auto& [r, c] : {std::pair{ceil_div(rows, parts), columns},
                                 std::pair{rows, ceil_div(columns, parts)},
                                 std::pair{ceil_div(rows, parts), ceil_div(columns, parts)}})
        if (auto on = on_plan({.plan = p, .order = {}, .inner = {}}, r, c)) search_coarsely(on->plan);
    }
  coarse_ = false;
  for (const Candidate& start : starts_of_kinds()) climb(start);
  while (try_other_turns(best_.front().choice)) climb(Candidate(best_.front()));
  return least_seen_;
}

double NestSearch::search_tiles_of_each_memory() {
  const std::vector<Candidate> starts = best_;
  for (const Candidate& start : starts) search_inner_tiles(start.choice);
  climb(Candidate(best_.front()));
  return least_seen_;
}

std::vector<NestSearch::Found> NestSearch::best(size_t most, double known) {
  if (goal_.only_latency()) {
    save_energy();
    prefer_among_equals();
  } else {
    best_ = best_by_goal(known);
  }
  std::vector<Found> found;
  found.reserve(std::min(most, best_.size()));
  for (const Candidate& c : best_) {
    if (found.size() == most) break;
    Nest nest = nest_of(c.choice);
    use(c.choice.plan);
    Placement::Estimate estimate = time_.estimate_of_product(nest);
    const double score = goal_.only_latency() ? c.cycles : score_of(c.choice, estimate.cycles);
    found.push_back({goal_.only_latency() ? c.cycles : estimate.cycles, score, build(plans_[c.choice.plan], nest)});
    found.back().placement.estimate = std::move(estimate);
  }
  return found;
}

NestSearch::Roles NestSearch::roles_of(const SpacePlan& plan) const {
  Roles roles;
  const std::vector<int64_t>& extent = s_.extent;
  for (auto [first, second, output] : {std::tuple{true, false, true}, {false, true, true}, {true, true, false}}) {
    size_t best = s_.rank();
    for (size_t x = 0; x < s_.rank(); ++x) {
      const Product::Use& u = s_.product.uses[x];
      if (u.first != first || u.second != second || u.output != output || extent[x] <= plan.cover[x]) continue;
      if (best == s_.rank() || extent[x] > extent[best]) best = x;
    }
    if (best < s_.rank()) roles.main.push_back(best);
  }
  for (size_t x = 0; x < s_.rank(); ++x) {
    if (extent[x] <= plan.cover[x]) continue;
    const Product::Use& u = s_.product.uses[x];
    if (u.first && u.second && u.output)
      (is_summed_later(s_.product, beside_, x) ? roles.summed : roles.batch).push_back(x);
    else
      (s_.relevant(plan.stationary, x) ? roles.folds : roles.stream).push_back(x);
  }
  // Of the iterators that stream, the longest runs innermost: the array fills once per run.
  std::stable_sort(roles.stream.begin(), roles.stream.end(), [&](size_t a, size_t b) { return extent[a] < extent[b]; });
  return roles;
}

/// Whether tiles of so many values begin where the divisions in tensors' coordinates do (groups of scales). Where the
/// array's part does not either, doublings of it.
bool NestSearch::begins_evenly(size_t x, int64_t cover, int64_t size) const {
  for (int64_t g : grains_[x]) {
    if (cover % g != 0 && g % cover != 0) {
      if (size % cover != 0 || ((size / cover) & (size / cover - 1)) != 0) return false;
    } else if (size % g != 0 && g % size != 0) {
      return false;
    }
  }
  return s_.parts[x] == 1 || s_.extent[x] % size == 0;
}

/// Doublings of `cover` below the extent, at most kCoarseSizes of them, and the whole.
/// Where cores share the iterator, sizes that divide a core's part: its digits then stay apart.
std::vector<int64_t> NestSearch::coarse_sizes(size_t x, int64_t cover) const {
  const int64_t extent = s_.extent[x];
  std::vector<int64_t> sizes;
  if (s_.parts[x] > 1) {
    for (int64_t blocks = 1; extent % cover == 0 && cover * blocks < extent; ++blocks)
      if (extent % (cover * blocks) == 0) sizes.push_back(cover * blocks);
    while (sizes.size() > static_cast<size_t>(kCoarseSizes))
      sizes.erase(sizes.begin() + static_cast<long>(sizes.size()) / 2);
  } else {
    int64_t doublings = 0;
    while (doublings < 40 && cover << (doublings + 1) < extent) ++doublings;
    const int64_t step = doublings / kCoarseSizes + 1;
    for (int64_t d = 0; d <= doublings; d += step)
      if (cover << d < extent) sizes.push_back(cover << d);
  }
  std::erase_if(sizes, [&](int64_t size) { return !limits_.allows_tile(x, size); });
  for (int64_t size : ends_of_limits(x, cover))
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  if (sizes.empty() || may_stay_whole(x, cover)) sizes.push_back(0);
  return sizes;
}

/// The smallest and the largest tile that limits of x allow, where there are any.
Few<int64_t, 2> NestSearch::ends_of_limits(size_t x, int64_t cover) const {
  Few<int64_t, 2> sizes;
  const int64_t last = (s_.extent[x] - 1) / cover * cover;  // the largest below the extent
  if (limits_.least(x) > cover) sizes.push_back(ceil_div(std::min(limits_.least(x), s_.extent[x]), cover) * cover);
  if (limits_.most(x) < last) sizes.push_back(limits_.most(x) / cover * cover);
  for (size_t i = sizes.size(); i-- > 0;)
    if (sizes[i] < cover || sizes[i] > last || !limits_.allows_tile(x, sizes[i]) || !begins_evenly(x, cover, sizes[i]))
      sizes.erase(i);
  sizes.sort_unique();
  return sizes;
}

/// The best mappings so far, of different kinds: between those of one kind a climb finds its way, from another kind's it
/// seldom does.
std::vector<NestSearch::Candidate> NestSearch::starts_of_kinds() const {
  std::vector<Candidate> kinds = kinds_;
  std::stable_sort(
      kinds.begin(), kinds.end(), [](const Candidate& a, const Candidate& b) { return a.cycles < b.cycles; });
  // The same loops come of several kinds.
  const auto same = [](const Candidate& a, const Candidate& b) { return b.cycles - a.cycles < 1e-9 * a.cycles; };
  kinds.erase(std::unique(kinds.begin(), kinds.end(), same), kinds.end());
  while (kinds.size() > kStarts || kinds.back().cycles > kWorthAClimb * kinds.front().cycles) kinds.pop_back();
  return kinds;
}

/// Keeps the choice if it is the best of its kind: those that cut the same iterators in the same order.
void NestSearch::keep_of_kind(const Candidate& candidate) {
  auto same = [&](const Candidate& c) {
    return c.choice.plan == candidate.choice.plan && c.choice.summed_inside == candidate.choice.summed_inside &&
           std::equal(c.choice.order.begin(),
                      c.choice.order.end(),
                      candidate.choice.order.begin(),
                      candidate.choice.order.end(),
                      [](const Tile& a, const Tile& b) { return a.iterator == b.iterator; });
  };
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), same);
  if (known == kinds_.end())
    kinds_.push_back(candidate);
  else if (candidate.cycles < known->cycles)
    *known = candidate;
}

/// Where all of an axis lies on the array at once there are no folds along it, in which other units could work: also on a
/// half and a quarter of these PEs.
void NestSearch::search_parts_coarsely(size_t p) {
  const SpacePlan plan = plans_[p];
  auto part = [&](const std::vector<rules::ArrayNest::Side>& sides, int64_t used, int64_t parts) -> int64_t {
    const bool whole = sides.size() == 1 && sides[0].values * sides[0].at_once >= s_.extent[sides[0].loop];
    return whole && used >= parts ? ceil_div(used, parts) : 0;
  };
  for (int64_t parts : {2, 4})
    for (const auto& [rows, columns] : {std::pair{part(plan.rows, plan.rows_used, parts), plan.most_columns},
                                        std::pair{plan.most_rows, part(plan.columns, plan.columns_used, parts)}})
      if (auto on = on_plan({.plan = p, .order = {}, .inner = {}}, rows, columns)) search_coarsely(on->plan);
}

void NestSearch::search_coarsely(size_t plan) {
  const std::vector<size_t>& main = roles_[plan].main;
  std::vector<std::vector<int64_t>> sizes;
  for (size_t x : main) sizes.push_back(coarse_sizes(x, plans_[plan].cover[x]));
  std::vector<size_t> pick(main.size(), 0);
  while (true) {
    Choice choice{.plan = plan, .order = {}, .inner = {}};
    for (size_t i = 0; i < main.size(); ++i)
      if (sizes[i][pick[i]] > 0) choice.order.push_back({main[i], sizes[i][pick[i]]});
    std::sort(choice.order.begin(), choice.order.end());
    do {
      for (bool inside : {false, true}) {
        if (inside && roles_[plan].summed.empty()) break;
        choice.summed_inside = inside;
        choice.folds_reversed = false;
        try_choice(choice);
        choice.folds_reversed = true;
        if (roles_[plan].folds.size() > 1) try_choice(choice);
      }
    } while (std::next_permutation(choice.order.begin(), choice.order.end()));
    size_t i = 0;
    while (i < pick.size() && ++pick[i] == sizes[i].size()) pick[i++] = 0;
    if (i == pick.size()) return;
  }
}

void NestSearch::climb(const Candidate& from) {
  Candidate at = from;
  while (seen_.size() < (tiles_ == Tiles::nested ? kMostTried : kMostTriedOfEachMemory)) {
    // From where another climb went on, this one would do the same.
    if (std::exchange(seen_.at(at.choice).left_from, true)) return;
    std::optional<Choice> better;
    for (const Choice& next : neighbours(at.choice))
      if (const double cycles = try_choice(next); cycles < at.cycles) at.cycles = cycles, better = next;
    if (!better) return;
    at.choice = *better;
  }
}

/// The choice on parts of the array that take some turns more or less, which must pay clearly: ragged turns for little are
/// not worth it. Whether a new one is the best then.
bool NestSearch::try_other_turns(const Choice of) {
  const SpacePlan& plan = plans_[of.plan];
  auto parts = [&](const std::vector<rules::ArrayNest::Side>& sides, int64_t used, int64_t there) {
    constexpr int64_t kTurns = 4;
    Few<int64_t, 2 * kTurns> sizes;
    if (sides.size() != 1) return sizes;
    const int64_t values = ceil_div(s_.extent[sides[0].loop], sides[0].at_once), turns = ceil_div(values, used);
    for (int64_t t = std::max<int64_t>(1, turns - kTurns); t <= turns + kTurns; ++t)
      if (t != turns && ceil_div(values, t) <= there) sizes.push_back(ceil_div(values, t));
    sizes.sort_unique();
    return sizes;
  };
  auto try_on = [&](int64_t rows, int64_t columns) {
    if (auto next = on_plan(of, rows, columns); next && estimate_of(*next) < 0.995 * best_.front().cycles)
      try_choice(*next);
  };
  for (int64_t rows : parts(plan.rows, plan.rows_used, s_.chip.rows)) try_on(rows, plan.most_columns);
  for (int64_t columns : parts(plan.columns, plan.columns_used, s_.chip.columns)) try_on(plan.most_rows, columns);
  return !(best_.front().choice == of);
}

Nest NestSearch::nest_of(const Choice& choice) const {
  const SpacePlan& plan = plans_[choice.plan];
  const Roles& roles = roles_[choice.plan];
  Nest nest;
  auto add = [&](size_t x, int64_t block) { nest.add(x, block, s_.extent[x]); };
  for (size_t x : roles.batch) add(x, plan.cover[x]);
  if (!choice.summed_inside)
    for (size_t x : roles.summed) add(x, plan.cover[x]);
  for (const auto& [x, size] : choice.order) add(x, size);
  for (const auto& [x, size] : choice.inner) add(x, size);
  if (choice.summed_inside)
    for (size_t x : roles.summed) add(x, plan.cover[x]);
  for (size_t i = 0; i < roles.folds.size(); ++i) {
    const size_t x = roles.folds[choice.folds_reversed ? roles.folds.size() - 1 - i : i];
    add(x, plan.cover[x]);
  }
  for (size_t x : roles.stream) add(x, plan.cover[x]);
  return nest;
}

/// Of the array's PEs, those that the plan leaves without work: of mappings as quick, and of like traffic, the one with more
/// at work is taken.
double NestSearch::idle_share(const SpacePlan& plan) const {
  return 1 -
         static_cast<double>(plan.rows_used * plan.columns_used) / static_cast<double>(s_.chip.rows * s_.chip.columns);
}

void NestSearch::use(size_t plan) {
  if (in_use_ != plan) time_.use(plans_[plan]);
  in_use_ = plan;
}

bool NestSearch::keeps_to_limits(const Nest& nest) const {
  if (limits_.none()) return true;
  uint64_t met = 0;
  int last = -1;
  for (size_t i = 0; i < nest.depth; ++i) {
    const size_t x = nest.loops[i].iterator;
    if (met >> x & 1) continue;
    met |= uint64_t{1} << x;
    const int place = limits_.place(x);
    if (!limits_.allows_tile(x, nest.loops[i].block) || (place >= 0 && place < last)) return false;
    last = std::max(last, place);
  }
  for (size_t x = 0; x < s_.rank(); ++x)
    if (!(met >> x & 1) && !limits_.allows_tile(x, s_.extent[x])) return false;
  return true;
}

double NestSearch::estimate_of(const Choice& choice) {
  use(choice.plan);
  Nest nest = nest_of(choice);
  if (!keeps_to_limits(nest)) return kDoesNotFit;
  const double cycles = time_.estimate(nest) * (1 + idle_share(plans_[choice.plan]) / 4096);
  least_seen_ = std::min(least_seen_, time_.latency_of_last());
  return cycles;
}

/// Keeps the choice if it is among the best so far. Its cycles.
double NestSearch::try_choice(const Choice& choice) {
  if (!choice.nests()) return kDoesNotFit;
  Seen::Tried& tried = seen_.at(choice);
  if (tried.cycles >= 0) return tried.cycles;
  const Candidate candidate{tried.cycles = estimate_of(choice), choice};
  if (coarse_) keep_of_kind(candidate);
  if (best_.size() == kKept && candidate.cycles >= best_.back().cycles) return candidate.cycles;
  // The same loops come of several choices: the simplest is kept.
  for (Candidate& known : best_)
    if (known.choice.plan == choice.plan && std::abs(known.cycles - candidate.cycles) < 1e-9 * known.cycles) {
      if (choice.order.size() + choice.inner.size() >= known.choice.order.size() + known.choice.inner.size())
        return candidate.cycles;
      known = candidate;
      return candidate.cycles;
    }
  const auto after = std::upper_bound(
      best_.begin(), best_.end(), candidate.cycles, [](double c, const Candidate& b) { return c < b.cycles; });
  best_.insert(after, candidate);
  if (best_.size() > kKept) best_.pop_back();
  return candidate.cycles;
}

}  // namespace sator::dataflow
