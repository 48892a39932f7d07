// How far from the best a mapping can be: a lower bound of the space, and what it says at the sizes of language models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/composer.h"
#include "dataflow/cost/cost.h"
#include "dataflow/counts/count_memo.h"
#include "dataflow/mapping/nest_search.h"
#include "dataflow/programs/matmul.h"
#include "dataflow/random_choice.h"
#include "shipped_chips.h"

namespace sator::dataflow {
namespace {

Chip uncalibrated(const std::string& name) {
  Chip chip = shipped(name);
  chip.calibration = {};
  return chip;
}

/// The products of a language model's layers, under every kind of scheme.
Matmul of_language_model(Random& random) {
  static constexpr int64_t kTokens[] = {1, 8, 64, 128, 512, 1024, 2048};
  static constexpr int64_t kWidths[] = {4096, 11008, 14336, 50257};
  static constexpr ScalePer kScales[] = {
      ScalePer::none, ScalePer::tensor, ScalePer::channel, ScalePer::input, ScalePer::group};
  Matmul m{.i = one_of(random, kTokens), .j = 4096, .k = 4096};
  (random() % 2 ? m.j : m.k) = one_of(random, kWidths);
  m.scale = one_of(random, kScales);
  if (m.scale == ScalePer::none) return m;
  if (m.k == 50257) m.k = 14336, m.j = 4096;  // groups end with the rows
  m.group = random() % 2 ? 32 : 128;
  m.weight_bits = random() % 2 ? 8 : 4;
  if (random() % 2) m.activation_bits = 8;
  return m;
}

std::string words_of(const Matmul& m) {
  return text(m.i,
              " x ",
              m.j,
              " x ",
              m.k,
              " scale ",
              static_cast<int>(m.scale),
              " group ",
              m.group,
              " ",
              m.weight_bits,
              " bits, activations ",
              m.activation_bits);
}

const StatementCost& product_of(const KernelCost& cost) {
  return *std::find_if(cost.statements.begin(), cost.statements.end(), [](const auto& s) { return s.on_array(); });
}

/// A small product of any kind on a chip, as the search takes it: with what the kernel does beside it.
struct Searched {
  Searched(const std::string& name, const Matmul& m)
      : chip(shipped(name)), kernel(matmul_kernel(m)), by_class(std::size(kProductClasses), chip) {
    for (ProductClass c : kProductClasses) by_class[static_cast<size_t>(c)].dataflow = chip.dataflow_for(c);
    composer.emplace(kernel, chip, by_class, counts, nullptr);
    of.emplace(composer->problem(0, {}));
  }
  CoreShare share() const {
    return CoreShare(of->work, of->product, of->chip, of->pace, of->work.statement.domain.extent);
  }
  Chip chip;
  Kernel kernel;
  std::vector<Chip> by_class;
  CountMemo counts;
  std::optional<Composer> composer;
  std::optional<MappingProblem> of;
};

Matmul small(Random& random) {
  static constexpr int64_t kSizes[] = {1, 8, 24, 33, 64, 100, 128, 192, 500, 768};
  static constexpr ScalePer kScales[] = {
      ScalePer::none, ScalePer::tensor, ScalePer::channel, ScalePer::input, ScalePer::group};
  Matmul m{.i = one_of(random, kSizes), .j = one_of(random, kSizes), .k = one_of(random, kSizes)};
  m.scale = one_of(random, kScales);
  m.group = 32;
  if (m.scale == ScalePer::none) return m;
  m.weight_bits = random() % 2 ? 8 : 4;
  if (random() % 2) m.activation_bits = 8;
  return m;
}

/// Loops over tiles in an order, then over what the array covers; iterators without tiles too.
Nest nest_of(const CoreShare& share, const SpacePlan& plan, const std::vector<std::pair<size_t, int64_t>>& tiles) {
  Nest nest;
  for (const auto& [x, size] : tiles) nest.add(x, size, share.extent[x]);
  for (size_t x = 0; x < share.rank(); ++x) nest.add(x, plan.cover[x], share.extent[x]);
  return nest;
}

// Random loops, of which the tiles lie in ranges: no nest of these ranges takes less than the bound.
TEST(Bound, NoNestOfARangeIsQuickerThanItsBound) {
  const std::vector<std::string> names = all_chips();
  int compared = 0, tight = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const std::string& name = names[random() % names.size()];
    const Matmul m = small(random);
    Searched problem(name, m);
    for (size_t memory = 1; memory < problem.chip.memories.size(); ++memory)  // so that small products do not fit
      if (auto& bytes = problem.chip.memories[memory].capacity_bytes)
        *bytes = std::max<int64_t>(2048, *bytes >> random() % 8);
    for (Chip& chip : problem.by_class) chip.memories = problem.chip.memories;
    const CoreShare share = problem.share();
    NestTime time(share, problem.of->beside);
    for (const SpacePlan& plan : space_plans(share)) {
      time.use(plan);
      std::vector<size_t> order;
      for (size_t x = 0; x < share.rank(); ++x)
        if (share.extent[x] > 2 * plan.cover[x] && random() % 4 > 0) order.push_back(x);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<std::array<int64_t, 2>> ranges;
      for (size_t x : order) {  // in blocks, from two to one less than all
        const int64_t most = (share.extent[x] - 1) / plan.cover[x];
        std::array<int64_t, 2> range;
        for (int64_t& blocks : range)
          blocks = std::min<int64_t>(most, 2 + static_cast<int64_t>(random() % static_cast<uint64_t>(most)));
        if (range[0] > range[1]) std::swap(range[0], range[1]);
        ranges.push_back(range);
      }
      auto nest = [&](auto&& blocks_of) {
        std::vector<std::pair<size_t, int64_t>> tiles;
        for (size_t i = 0; i < order.size(); ++i)
          tiles.emplace_back(order[i], blocks_of(ranges[i]) * plan.cover[order[i]]);
        return nest_of(share, plan, tiles);
      };
      const double least =
          time.least_latency(nest([](const auto& r) { return r[1]; }), nest([](const auto& r) { return r[0]; }));
      EXPECT_GE(least * (1 + 1e-9), std::min(least, time.least_of_plan()));
      for (int n = 0; n < 6; ++n) {
        Nest one = nest([&](const auto& r) {
          if (n == 0) return r[0];
          if (n == 1) return r[1];
          return r[0] + static_cast<int64_t>(random() % static_cast<uint64_t>(r[1] - r[0] + 1));
        });
        time.estimate(one);
        const double latency = time.latency_of_last();
        ++compared;
        tight += latency < least * 1.05;
        EXPECT_LE(least, latency * (1 + 1e-9)) << "seed " << seed << " " << name << " " << words_of(m);
        EXPECT_LE(time.least_of_plan(), latency * (1 + 1e-9)) << "seed " << seed << " " << name;
      }
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(compared, 5000);
  EXPECT_GT(tight, compared / 10);
}

// Where compulsory traffic or the array's work is what the quickest mapping takes, the bound of each plan says so, and no
// range of tiles is looked into.
TEST(Bound, OfAWholePlanLeavesOutItsTiles) {
  for (const auto& [chip, m] : {std::pair{"edge_npu32", Matmul{.i = 1, .j = 4096, .k = 4096}},
                                std::pair{"edge_npu32", Matmul{.i = 512, .j = 4096, .k = 4096}}}) {
    Searched problem(chip, m);
    const CoreShare share = problem.share();
    NestSearch search(share, problem.of->beside);
    const double known = search.climb_from_coarse_tiles();
    search.begin_branches(known);
    EXPECT_EQ(search.branches(), 0) << words_of(m);
    EXPECT_GE(search.least_latency_of_space(), 0.999 * known) << words_of(m);
    EXPECT_FALSE(search.branch(known)) << words_of(m);
  }
}

// All tiles of small products in all orders, one by one: the bound of the space is none of them, and what was found is within
// the gap that is said.
TEST(Bound, CoversTheGapToTheBestOfAllTiles) {
  int spaces = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    static constexpr const char* kChips[] = {"gemmini16", "edge_npu32", "nvdla_small", "scalesim_default", "tpuv1"};
    const char* name = one_of(random, kChips);
    const Matmul m = small(random);
    if (m.scale == ScalePer::group || m.scale == ScalePer::input) continue;  // tiles have to begin with groups
    Searched problem(name, m);
    const CoreShare share = problem.share();
    NestSearch search(share, problem.of->beside);
    double known = search.climb_from_coarse_tiles();
    search.begin_branches(known);
    while (search.branches() < 6000 && search.branch(known)) known = std::min(known, search.least_latency_seen());
    const double least = search.least_latency_of_space(), found = search.least_latency_seen();
    NestTime time(share, problem.of->beside);
    double best = kDoesNotFit;
    for (const SpacePlan& plan : space_plans(share)) {
      time.use(plan);
      std::vector<std::pair<size_t, int64_t>> tiles;
      std::vector<size_t> loops;
      for (size_t x = 0; x < share.rank(); ++x)
        if (share.extent[x] > plan.cover[x]) loops.push_back(x);
      auto grow = [&](auto& self) -> void {
        Nest nest;
        for (const auto& [x, size] : tiles) nest.add(x, size, share.extent[x]);
        // Below the tiles what stays changes, and then the rest streams.
        for (bool streams : {false, true})
          for (size_t x : loops)
            if (share.relevant(plan.stationary, x) != streams) nest.add(x, plan.cover[x], share.extent[x]);
        time.estimate(nest);
        best = std::min(best, time.latency_of_last());
        for (size_t x : loops) {
          if (std::any_of(tiles.begin(), tiles.end(), [&](const auto& t) { return t.first == x; })) continue;
          for (int64_t size = plan.cover[x]; size < share.extent[x]; size += plan.cover[x]) {
            tiles.emplace_back(x, size);
            self(self);
            tiles.pop_back();
          }
        }
      };
      grow(grow);
    }
    ++spaces;
    EXPECT_LE(least, best * (1 + 1e-9)) << "seed " << seed << " " << name << " " << words_of(m);
    EXPECT_LE(found, best * 1.001) << "seed " << seed << " " << name << " " << words_of(m);
  }
  EXPECT_GT(spaces, 20);
}

/// Random limits of the tiles and of the order of loops of a product.
LoopLimits limits_of(Random& random, const std::vector<std::string>& names, const std::vector<int64_t>& extent) {
  LoopLimits limits;
  for (size_t x = 0; x < names.size(); ++x) switch (random() % 4) {
      case 0: limits.tiles.push_back({names[x], 1, 1 + static_cast<int64_t>(random() % extent[x])}); break;
      case 1: limits.tiles.push_back({names[x], 1 + static_cast<int64_t>(random() % extent[x])}); break;
      default: break;
    }
  std::vector<std::string> order = names;
  std::shuffle(order.begin(), order.end(), random);
  order.resize(random() % (order.size() + 1));
  limits.order = order;
  return limits;
}

/// Whether loops, the outermost first, keep to limits: read from the loops as they are printed.
using Loops = std::vector<std::pair<size_t, int64_t>>;  // iterator and block
bool keeps_to(const LoopLimits& limits, const CoreShare& share, const Loops& loops) {
  std::vector<std::string> outermost;  // by the first loop of each iterator
  std::map<std::string, int64_t> tile;
  for (size_t x = 0; x < share.rank(); ++x) tile[share.name(x)] = share.extent[x];
  for (const auto& [x, block] : loops) {
    if (std::find(outermost.begin(), outermost.end(), share.name(x)) != outermost.end()) continue;
    outermost.push_back(share.name(x));
    tile[share.name(x)] = block;
  }
  for (const LoopLimits::TileBounds& b : limits.tiles)
    if (tile.at(b.iterator) < b.least || tile.at(b.iterator) > b.most) return false;
  std::erase_if(outermost, [&](const std::string& name) {
    return std::find(limits.order.begin(), limits.order.end(), name) == limits.order.end();
  });
  return std::is_sorted(outermost.begin(), outermost.end(), [&](const std::string& a, const std::string& b) {
    return std::find(limits.order.begin(), limits.order.end(), a) <
           std::find(limits.order.begin(), limits.order.end(), b);
  });
}

// All tiles of small products that keep to random limits, in all orders that do, one by one, as above.
TEST(Bound, CoversTheGapToTheBestWithinLimits) {
  int spaces = 0, empty = 0, slower = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed + 5000);
    static constexpr const char* kChips[] = {"gemmini16", "edge_npu32", "nvdla_small", "scalesim_default", "tpuv1"};
    const char* name = one_of(random, kChips);
    const Matmul m = small(random);
    if (m.scale == ScalePer::group || m.scale == ScalePer::input) continue;
    Searched problem(name, m);
    const CoreShare share = problem.share();
    const Goal goal{.limits = limits_of(random, share.work.statement.domain.names, share.extent)};
    const std::string words = text("seed ", seed, " ", name, " ", words_of(m), ", ", goal.limits.words());
    NestSearch search(share, problem.of->beside, Tiles::nested, goal);
    double known = search.climb_from_coarse_tiles();
    search.begin_branches(known);
    while (search.branches() < 6000 && search.branch(known)) known = std::min(known, search.least_latency_seen());
    const double least = search.least_latency_of_space(), found = search.least_latency_seen();
    NestTime time(share, problem.of->beside);
    double best = kDoesNotFit, without = kDoesNotFit;
    for (const SpacePlan& plan : space_plans(share)) {
      time.use(plan);
      std::vector<std::pair<size_t, int64_t>> tiles;
      std::vector<size_t> loops;
      for (size_t x = 0; x < share.rank(); ++x)
        if (share.extent[x] > plan.cover[x]) loops.push_back(x);
      auto grow = [&](auto& self) -> void {
        Nest nest;
        for (const auto& [x, size] : tiles) nest.add(x, size, share.extent[x]);
        for (bool streams : {false, true})
          for (size_t x : loops)
            if (share.relevant(plan.stationary, x) != streams) nest.add(x, plan.cover[x], share.extent[x]);
        time.estimate(nest);
        without = std::min(without, time.latency_of_last());
        Loops as_printed;
        for (size_t i = 0; i < nest.depth; ++i) as_printed.emplace_back(nest.loops[i].iterator, nest.loops[i].block);
        if (keeps_to(goal.limits, share, as_printed)) best = std::min(best, time.latency_of_last());
        for (size_t x : loops) {
          if (std::any_of(tiles.begin(), tiles.end(), [&](const auto& t) { return t.first == x; })) continue;
          for (int64_t size = plan.cover[x]; size < share.extent[x]; size += plan.cover[x]) {
            tiles.emplace_back(x, size);
            self(self);
            tiles.pop_back();
          }
        }
      };
      grow(grow);
    }
    ++spaces;
    empty += best >= kDoesNotFit;
    slower += best < kDoesNotFit && best > 1.01 * without;
    EXPECT_LE(least, best * (1 + 1e-9)) << words;
    EXPECT_LE(found, best * 1.001) << words;
    // What was found keeps to the limits: it may use a part of the array, whose tiles the list above lacks.
    for (const NestSearch::Found& f : search.best(1, known)) {
      if (f.cycles >= kDoesNotFit) continue;
      Loops as_printed;
      for (const rules::ArrayNest::Turn& t : f.placement.nest->time) as_printed.emplace_back(t.loop, t.block);
      EXPECT_TRUE(keeps_to(goal.limits, share, as_printed)) << words << ": " << f.placement.words;
    }
  }
  EXPECT_GT(spaces, 20);
  EXPECT_GT(empty, 2);
  EXPECT_LT(empty, spaces / 2);
  EXPECT_GT(slower, 2) << spaces << " " << empty;
}

// The median gap is at most 1 %, and 99 of 100 gaps are at most 5 %.
TEST(Bound, LanguageModelsGetMappingsCloseToTheBound) {
  const std::vector<std::string> names = all_chips();
  std::vector<std::pair<double, std::string>> gaps;
  const char* rounds = std::getenv("SATOR_BOUND_ROUNDS");
  for (uint64_t seed = 1; seed <= (rounds ? std::strtoull(rounds, nullptr, 10) : 100); ++seed) {
    Random random(seed);
    const std::string& name = names[random() % names.size()];
    const Matmul m = of_language_model(random);
    const KernelCost cost = CostEngine(uncalibrated(name)).cost(matmul_kernel(m));
    const Placement& placement = *product_of(cost).placement;
    ASSERT_TRUE(placement.estimate.gap()) << name << " " << words_of(m);
    gaps.emplace_back(*placement.estimate.gap(), text(seed, ": ", name, " ", words_of(m), ": ", placement.words));
  }
  std::sort(gaps.begin(), gaps.end());
  for (size_t i = gaps.size() - std::min<size_t>(gaps.size(), 30); rounds && i < gaps.size(); ++i)
    printf("%.4f %s\n", gaps[i].first, gaps[i].second.c_str());
  EXPECT_LE(gaps[gaps.size() / 2].first, 0.01);
  EXPECT_LE(gaps[gaps.size() * 98 / 100].first, 0.05) << gaps[gaps.size() * 98 / 100].second;
}

// 20 GB/s took three times as long as 10, and a tile that a user names was three times as quick.
TEST(Bound, ASlowerMemoryHasNoBetterMapping) {
  const Kernel kernel =
      matmul_kernel({.i = 2048, .j = 4096, .k = 4096, .scale = ScalePer::group, .weight_bits = 4, .group = 128});
  for (double bandwidth : {10.0, 20.0, 40.0}) {
    Chip chip = shipped("nvdla_large");
    chip.memories[0].read_bytes_per_cycle = chip.memories[0].write_bytes_per_cycle = bandwidth;
    // 2048 x 4096 x 4096 multiply-accumulates of 4 passes on 2048 PEs: the array binds.
    EXPECT_LE(CostEngine(chip).cost(kernel).latency_cycles, 67'108'864 * 1.001) << bandwidth;
  }
}

// Codes with one scale take as long as codes with one per channel: both are 8 bits.
TEST(Bound, SchemesOfOneWidthTakeAsLong) {
  Matmul m{.i = 2048, .j = 11008, .k = 4096, .scale = ScalePer::channel, .weight_bits = 8};
  CostEngine engine(shipped("nvdla_large"));
  const double channel = engine.cost(matmul_kernel(m)).unrounded_cycles;
  m.scale = ScalePer::tensor;
  EXPECT_NEAR(engine.cost(matmul_kernel(m)).unrounded_cycles / channel, 1, 0.001);
}

// Chips with more of a resource, at the sizes of language models.
TEST(Bound, MoreIsNoSlowerForLanguageModels) {
  const std::vector<std::string> names = all_chips();
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed + 1000);
    const std::string& name = names[random() % names.size()];
    const Matmul m = of_language_model(random);
    const Chip chip = uncalibrated(name);
    Chip more = chip;
    const size_t kind = random() % 3;
    if (kind == 0) more.vector.lanes *= 2;
    for (Memory& memory : more.memories) {
      if (kind == 1) memory.read_bytes_per_cycle *= 2, memory.write_bytes_per_cycle *= 2;
      if (kind == 2 && memory.capacity_bytes) *memory.capacity_bytes *= 2;
    }
    const double before = CostEngine(chip).cost(matmul_kernel(m)).unrounded_cycles,
                 after = CostEngine(more).cost(matmul_kernel(m)).unrounded_cycles;
    EXPECT_LE(after, before * 1.001 + 1) << "seed " << seed << " " << name << " " << words_of(m) << ", more of "
                                         << kind;
  }
}

// 500 tiles that a user may name: none is more than 1 % quicker than the choice.
TEST(Bound, NoTileIsBetterForLanguageModels) {
  const std::vector<std::string> names = all_chips();
  int compared = 0;
  for (uint64_t seed = 1; compared < 500 && seed <= 100; ++seed) {
    Random random(seed + 2000);
    const std::string& name = names[random() % names.size()];
    const Matmul m = of_language_model(random);
    Chip chip = uncalibrated(name);
    const Kernel kernel = matmul_kernel(m);
    const double found = CostEngine(chip).cost(kernel).unrounded_cycles;
    for (int t = 0; t < 16; ++t) {
      const int64_t extent[] = {m.i, m.j, m.k};
      chip.tile = std::array<int64_t, 3>{};
      for (size_t x = 0; x < 3; ++x)
        if (random() % 5 > 0) (*chip.tile)[x] = std::min<int64_t>(extent[x], int64_t{16} << random() % 7);
      try {
        const double tiled = CostEngine(chip).cost(kernel).unrounded_cycles;
        ++compared;
        EXPECT_LE(found, tiled * 1.01 + 5)
            << "seed " << seed << " " << name << " " << words_of(m) << ", tile " << join(*chip.tile, ",");
      } catch (const Error&) {
        continue;  // does not fit, or is too ragged to be counted
      }
    }
  }
  EXPECT_GE(compared, 500);
}

/// Tiles, the outermost first, that differ from these in one: its size, its place, or that it is there at all.
std::vector<std::vector<std::pair<size_t, int64_t>>> neighbours_of(const std::vector<std::pair<size_t, int64_t>>& tiles,
                                                                   const CoreShare& share, const SpacePlan& plan) {
  std::vector<std::vector<std::pair<size_t, int64_t>>> all = {tiles};
  for (size_t t = 0; t < tiles.size(); ++t) {
    const auto [x, size] = tiles[t];
    const int64_t cover = plan.cover[x], half = size / 2 / cover * cover;
    for (const int64_t other : {half, size - cover, size + cover, 2 * size}) {
      all.push_back(tiles);
      all.back()[t].second = other;
      if (other < cover || other >= share.extent[x]) all.pop_back();
    }
    all.push_back(tiles);
    all.back().erase(all.back().begin() + static_cast<std::ptrdiff_t>(t));
    if (t == 0) continue;
    all.push_back(tiles);
    std::swap(all.back()[t - 1], all.back()[t]);
  }
  for (size_t x = 0; x < share.rank(); ++x) {
    if (std::any_of(tiles.begin(), tiles.end(), [&](const auto& t) { return t.first == x; })) continue;
    for (int64_t size = plan.cover[x]; size < share.extent[x]; size *= 2)
      for (size_t at = 0; at <= tiles.size(); ++at) {
        all.push_back(tiles);
        all.back().insert(all.back().begin() + static_cast<std::ptrdiff_t>(at), {x, size});
      }
  }
  return all;
}

// All neighbours of the choice, on every plan of the array: none is more than 1 % quicker.
TEST(Bound, NoNeighbourIsBetterForLanguageModels) {
  const std::vector<std::string> names = all_chips();
  int compared = 0, near = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed + 3000);
    const std::string& name = names[random() % names.size()];
    const Matmul m = of_language_model(random);
    if (m.scale == ScalePer::group || m.scale == ScalePer::input) continue;  // tiles have to begin with groups
    Searched problem(name, m);
    const CoreShare share = problem.share();
    NestSearch search(share, problem.of->beside);
    double known = search.climb_from_coarse_tiles();
    search.begin_branches(known);
    while (search.branches() < 6000 && search.branch(known)) known = std::min(known, search.least_latency_seen());
    const std::vector<NestSearch::Found> found = search.best(1, known);
    ASSERT_FALSE(found.empty());
    NestTime time(share, problem.of->beside);
    for (const SpacePlan& plan : space_plans(share)) {
      time.use(plan);
      std::vector<std::pair<size_t, int64_t>> tiles;
      for (const rules::ArrayNest::Turn& t : found[0].placement.nest->time)
        if (t.block > plan.cover[t.loop] && t.block < share.extent[t.loop] &&
            std::none_of(tiles.begin(), tiles.end(), [&](const auto& known) { return known.first == t.loop; }))
          tiles.emplace_back(t.loop, t.block / plan.cover[t.loop] * plan.cover[t.loop]);
      for (const auto& neighbour : neighbours_of(tiles, share, plan))
        for (bool streams : {false, true}) {
          Nest nest;
          for (const auto& [x, size] : neighbour) nest.add(x, size, share.extent[x]);
          for (bool later : {false, true})
            for (size_t x = 0; x < share.rank(); ++x)
              if (share.relevant(plan.stationary, x) != (streams != later)) nest.add(x, plan.cover[x], share.extent[x]);
          time.estimate(nest);
          ++compared;
          near += time.latency_of_last() < search.least_latency_seen() * 1.01;
          EXPECT_LE(search.least_latency_seen(), time.latency_of_last() * 1.01 + 5)
              << "seed " << seed << " " << name << " " << words_of(m) << ": " << found[0].placement.words;
        }
    }
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(near, 60) << "they are as the search has them";
}

// 2 % more time halves the energy: fewer rows of inputs at a time read weights again and again.
TEST(Goal, EnergyWithinTwoPercentOfTheLatency) {
  const Kernel kernel =
      matmul_kernel({.i = 512, .j = 512, .k = 512, .scale = ScalePer::channel, .weight_bits = 8, .activation_bits = 8});
  const Chip chip = shipped("gemmini16");
  const KernelCost quickest = CostEngine(chip).cost(kernel),
                   within = CostEngine(chip, {.energy_within = 0.02}).cost(kernel),
                   least = CostEngine(chip, {.objective = Objective::energy}).cost(kernel),
                   product = CostEngine(chip, {.objective = Objective::edp}).cost(kernel);
  EXPECT_LE(within.unrounded_cycles, quickest.unrounded_cycles * 1.021);
  EXPECT_LE(within.energy_j, 0.75e-3);
  EXPECT_LE(least.energy_j, within.energy_j * 1.001);
  EXPECT_LE(product.energy_j * product.unrounded_cycles, within.energy_j * within.unrounded_cycles * 1.001);
}

}  // namespace
}  // namespace sator::dataflow
