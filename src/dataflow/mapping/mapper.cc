#include "dataflow/mapping/mapper.h"

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/counts/counts.h"
#include "dataflow/mapping/at_pes.h"
#include "dataflow/mapping/nest_search.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

/// Which core runs an instance: the number of its block.
void choose_cores(const CoreShare& share, Placement& placement) {
  placement.cores_used = share.cores;
  placement.shares_reduction = share.shares_reduction;
  QuasiAffine core = number(0);
  int64_t stride = 1;
  std::vector<std::string> parts;
  for (size_t x = 0; x < share.rank(); ++x) {
    if (share.parts[x] == 1) continue;
    core = core +
           floor_div(variable(static_cast<int>(x)) - share.work.statement.domain.lower[x], share.extent[x]) * stride;
    stride *= share.parts[x];
    placement.nest->cores.push_back({.loop = x, .block = share.extent[x], .parts = share.parts[x]});
    parts.push_back(text(share.name(x), " in ", share.parts[x]));
  }
  placement.core = core;
  placement.words += text("; cores ", parts.empty() ? "one" : join(parts, ", "));
}

void check_limits(const Work& work, const Chip& chip) {
  if (work.statement.accesses.size() <= kMostAccesses && chip.memories.size() <= kMostMemories &&
      work.statement.domain.extent.size() + 3 <= kMostLoops)
    return;
  fail({.what = text("statement ", work.statement.name, " has too many iterators or accesses for the default mapping"),
        .needs =
            text("at most ", kMostLoops - 3, " iterators, ", kMostAccesses, " accesses, ", kMostMemories, " memories"),
        .hint = "give a mapping"});
}

[[noreturn]] void fail_too_small(const Work& work, const Chip& chip, const LoopLimits& limits) {
  if (limits.any())
    fail({.what = text("no mapping of ", work.statement.name, " on ", chip.name, " has ", limits.words()),
          .needs = "tiles that are whole multiples of what the array covers at once, and that the memories can hold",
          .hint = "without limits the chosen loops are printed: begin with these"});
  std::vector<std::string> rooms;
  for (size_t m = 1; m < chip.memories.size(); ++m)
    if (auto bytes = chip.memories[m].capacity_bytes)
      rooms.push_back(text(chip.memories[m].name, " of ", *bytes, " bytes"));
  fail({.what = text("no tile of ", work.statement.name, " fits the memories of ", chip.name, ": ", join(rooms, ", ")),
        .needs = "in each memory room for what one step of the array takes from it and leaves there",
        .hint = "larger memories, or a smaller array"});
}

}  // namespace

std::string name_of(const Goal& goal) {
  if (goal.energy_within) return text("energy within ", *goal.energy_within * 100, " % of the best latency");
  switch (goal.objective) {
    case Objective::energy: return "energy";
    case Objective::edp: return "edp";
    case Objective::latency: break;
  }
  return "latency";
}

void check_goal(const Chip& chip, const Goal& goal) {
  if ((goal.only_latency() && !goal.limits.any()) || !(chip.tenet || chip.tile)) return;
  fail({.what = text("a mapping is to be chosen ",
                     goal.only_latency() ? "within limits of its loops" : "for its energy",
                     ", but that of ",
                     chip.name,
                     " is given"),
        .needs = "a mapping that is searched",
        .hint = chip.tile ? "leave --tile out" : "take a chip whose mapping is not fixed by files"});
}

bool is_summed_later(const Product& product, const Beside& beside, size_t x) {
  const Product::Use& use = product.uses[x];
  return use.first && use.second && use.output && !beside.in_parts.empty() && !beside.in_parts[product.output][x];
}

bool has_countable_stamps(const Work& work, const Placement& placement, const Chip& chip) {
  Statement bare = work.statement;
  bare.accesses.clear();
  double instances = 1;
  for (int64_t extent : work.statement.domain.extent) instances *= static_cast<double>(extent);
  if (instances <= static_cast<double>(CountOptions{}.enumerate_up_to)) return true;
  return std::holds_alternative<Counts>(count_by_boxes(problem_at_pes(bare, placement.mapping, chip, placement.core)));
}

namespace {

constexpr size_t kMostBranches = 6000;  // of all searches together

/// Branches and bounds in all searches at once, where the bound is least. A lower bound of the latency of their spaces.
double branch_and_bound(std::deque<NestSearch>& searches, double& known) {
  size_t branches = 0;
  for (NestSearch& s : searches) {
    s.begin_branches(known);
    branches += s.branches();
  }
  // What there is to begin with may be most of it: then each is looked into about as often.
  for (const size_t most = std::max(kMostBranches, 2 * branches); branches < most; branches += 2) {
    NestSearch& next = *std::min_element(
        searches.begin(), searches.end(), [](const auto& a, const auto& b) { return a.least_open() < b.least_open(); });
    if (!next.branch(known)) break;
    known = std::min(known, next.least_latency_seen());
  }
  double least = kDoesNotFit;
  for (const NestSearch& s : searches) least = std::min(least, s.least_latency_of_space());
  return least;
}

/// Of all ways to share the product among cores.
std::vector<Placement> searched(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                                const Beside& beside, size_t most, Tiles tiles, const Goal& goal) {
  check_limits(work, chip);
  std::vector<NestSearch::Found> found;
  auto search = [&](const std::vector<std::vector<int64_t>>& blocks) {
    std::deque<CoreShare> shares;
    std::deque<NestSearch> searches;
    double known = kDoesNotFit, least = 0;
    for (const std::vector<int64_t>& block : blocks) {
      const CoreShare& share = shares.emplace_back(work, product, chip, pace, block);
      known = std::min(known, searches.emplace_back(share, beside, tiles, goal).climb_from_coarse_tiles());
    }
    least = branch_and_bound(searches, known);
    if (tiles == Tiles::of_each_memory) {
      for (NestSearch& s : searches) known = std::min(known, s.search_tiles_of_each_memory());
      least = 0;  // of that larger space nothing is known
    }
    for (size_t way = 0; way < shares.size(); ++way)
      for (NestSearch::Found& f : searches[way].best(most, known)) {
        if (chip.cores > 1) choose_cores(shares[way], f.placement);
        f.placement.estimate.least_cycles = least;
        found.push_back(std::move(f));
      }
  };
  search(ways_to_share(work, product, chip, beside));
  std::erase_if(found, [](const NestSearch::Found& f) { return f.cycles >= kDoesNotFit; });
  if (found.empty()) fail_too_small(work, chip, goal.limits);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  // The best whose stamps can be counted: a way to share may cut an axis where its tiles do not end.
  // Of tiles within tiles what tensors need must be countable too.
  auto countable = [&](const Placement& p) {
    if (tiles == Tiles::nested) return has_countable_stamps(work, p, chip);
    return std::holds_alternative<Counts>(count(problem_at_pes(work.statement, p.mapping, chip, p.core)));
  };
  std::vector<Placement> best;
  auto keep = [&](bool all) {
    for (NestSearch::Found& f : found)
      if (best.size() < most && (all || countable(f.placement))) best.push_back(std::move(f.placement));
  };
  keep(chip.cores == 1 && tiles == Tiles::nested);
  if (!best.empty()) return best;
  if (tiles != Tiles::nested) return searched(work, product, chip, pace, beside, most, Tiles::nested, goal);
  found.clear();
  search({work.statement.domain.extent});
  keep(true);
  return best;
}

}  // namespace

std::vector<Placement> placements(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                                  const Beside& beside, size_t most, const Goal& goal) {
  return searched(work, product, chip, pace, beside, most, Tiles::nested, goal);
}

std::vector<Placement> placements_with_own_tiles(const Work& work, const Product& product, const Chip& chip,
                                                 const Pace& pace, const Beside& beside, size_t most,
                                                 const Goal& goal) {
  return searched(work, product, chip, pace, beside, most, Tiles::of_each_memory, goal);
}

}  // namespace sator::dataflow
