// Attention in one pass: what counts is exactly what the mask leaves, what runs are the tiles that it touches, and what lies
// between the two products passes no memory on a chip that keeps it.
#include "dataflow/cost/one_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/attention_kernel.h"
#include "dataflow/cost/pass_tiles.h"
#include "dataflow/mapping/tiles.h"
#include "dataflow/programs/masks.h"
#include "target/chip.h"

namespace sator::dataflow {
namespace {

TEST(OnePass, MacsAreThoseOfTheMaskOnEveryChip) {
  for (const char* name : {"h200", "a100", "edge_npu32", "gemmini16", "cpu_avx512_vnni"}) {
    CostEngine engine(find_chip(name));
    for (const Shape& s : kShapes) {
      SCOPED_TRACE(text(name, ": ", words(s)));
      const KernelCost cost = engine.cost(attention(s));
      EXPECT_EQ(cost.macs, 2 * s.depth * causal_scores(s));
      for (const StatementCost& c : cost.statements)
        if (c.on_array()) EXPECT_GE(c.instances, c.macs);
    }
  }
}

TEST(Masks, CountsAreThoseOfTheList) {
  std::mt19937 random(20);
  auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int round = 0; round < 400; ++round) {
    Work w;
    w.statement.domain = Domain::box({"a", "b", "c"}, {draw(1, 7), draw(1, 9), draw(1, 8)});
    for (int64_t& lower : w.statement.domain.lower) lower = draw(-3, 3);
    auto guard = [&] {
      return variable(0) * draw(-2, 2) + variable(1) * draw(-3, 3) + variable(2) * draw(-2, 2) + draw(-6, 9);
    };
    for (int64_t n = draw(0, 3); n > 0; --n) w.only_where.push_back(guard());
    if (draw(0, 2) == 0) w.statement.domain.guards.push_back(guard());
    int64_t listed = 0;
    const Domain& domain = w.statement.domain;
    std::vector<int64_t> at = domain.lower;
    for (at[0] = domain.lower[0]; at[0] < domain.lower[0] + domain.extent[0]; ++at[0])
      for (at[1] = domain.lower[1]; at[1] < domain.lower[1] + domain.extent[1]; ++at[1])
        for (at[2] = domain.lower[2]; at[2] < domain.lower[2] + domain.extent[2]; ++at[2]) {
          bool in = true;
          for (const auto* list : {&std::as_const(w.only_where), &domain.guards})
            for (const QuasiAffine& e : *list) in &= evaluate(e, at) >= 0;
          listed += in;
        }
    EXPECT_EQ(unmasked_instances(w), listed);
  }
}

/// The numbers in the words of a mapping in one pass: rows of a block, columns of a tile.
std::pair<int64_t, int64_t> tile_of(const KernelCost& cost) {
  for (const StatementCost& s : cost.statements)
    if (s.on_array()) {
      long rows = 0, columns = 0;
      std::sscanf(s.placement->words.c_str(), "in one pass: blocks of %ld rows, tiles of %ld columns", &rows, &columns);
      return {rows, columns};
    }
  return {};
}

// A tile runs where one of its scores counts: found here by looking at each of them.
TEST(OnePass, RunsTheTilesThatTheMaskTouches) {
  CostEngine engine(find_chip("h200"));
  for (const Shape& s : kShapes) {
    if (s.group > 1) continue;  // blocks of rows lie in one head
    SCOPED_TRACE(words(s));
    const KernelCost cost = engine.cost(attention(s));
    const auto [rows, columns] = tile_of(cost);
    ASSERT_GT(rows * columns, 0);
    int64_t run = 0;
    for (int64_t r = 0; r < s.tokens; r += rows)
      for (int64_t c = 0; c < s.positions; c += columns) {
        bool touched = false;
        const int64_t end = std::min(r + rows, s.tokens);
        for (int64_t t = r; t < end; ++t) {
          const int64_t last = s.positions - s.tokens + t, first = last - seen(s, t) + 1;
          touched |= first < c + columns && last >= c;
        }
        if (touched) run += (end - r) * columns;
      }
    for (const StatementCost& c : cost.statements)
      if (c.on_array()) EXPECT_EQ(c.instances, run * s.depth * s.heads);
  }
}

TEST(OnePass, WhatLiesBetweenPassesNoMemory) {
  CostEngine h200(find_chip("h200"));
  Chip stores = find_chip("h200");
  stores.one_pass.reset();
  CostEngine storing(stores);
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(words(s));
    const KernelCost kept = h200.cost(attention(s)), stored = storing.cost(attention(s));
    std::set<std::string> outside;
    for (const StatementCost& c : kept.statements)
      for (const Traffic& t : c.traffic) {
        EXPECT_FALSE((std::set<std::string>{"S", "P", "m", "l"}.contains(t.tensor))) << t.tensor;
        if (t.memory == 0) outside.insert(t.tensor);
      }
    EXPECT_EQ(outside, (std::set<std::string>{"Q", "K", "V", "O"}));
    // Each of them once, and of keys and values whole tiles that the mask touches, at most all.
    const int64_t rows = s.heads * s.group * s.tokens * s.depth;
    const int64_t columns_seen = s.window > 0 ? std::min(s.positions, s.window + s.tokens - 1) : s.positions;
    const int64_t read = kept.memories[0].read_bytes, least = 2 * (rows + 2 * s.heads * columns_seen * s.depth);
    EXPECT_GE(read, least);
    EXPECT_LE(read, 2 * (rows + 2 * s.heads * s.positions * s.depth));
    if (s.window == 0) EXPECT_EQ(read, least);
    EXPECT_EQ(kept.memories[0].write_bytes, 2 * rows);
    EXPECT_EQ(kept.macs, stored.macs);
  }
}

TEST(OnePass, LongPromptsAreQuickerThanWithStoredScores) {
  Chip stores = find_chip("h200");
  stores.one_pass.reset();
  CostEngine h200(find_chip("h200")), storing(stores);
  for (int64_t tokens : {512, 2048, 8192}) {
    const Kernel prompt = attention({.heads = 32, .tokens = tokens, .positions = tokens, .depth = 128});
    EXPECT_LT(h200.cost(prompt).latency_s, 0.65 * storing.cost(prompt).latency_s) << tokens;  // of the same triangle
  }
}

// Further tiles are alike: five of them, counted together, are one and four times what the second adds.
TEST(OnePass, TilesOfABlockAreAlike) {
  for (const char* name : {"h200", "v100", "mi210"}) {
    Chip chip = find_chip(name);
    std::vector<Chip> by_class(std::size(kProductClasses), chip);
    for (ProductClass c : kProductClasses) by_class[static_cast<size_t>(c)].dataflow = chip.dataflow_for(c);
    CountMemo counts;
    PassTiles tiles(chip, by_class, counts);
    const auto form = pass_form_of(attention({.tokens = 64, .positions = 640}), chip);
    ASSERT_TRUE(form);
    for (const auto& [rows, columns] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {33, 32}, {4, 128}, {1, 16}}) {
      SCOPED_TRACE(text(name, " ", rows, " x ", columns));
      const auto* both = tiles.of(*form, rows, columns);
      ASSERT_TRUE(both);
      Chip one = by_class[static_cast<size_t>(ProductClass::batched)];
      *one.fill_bytes_per_cycle /= static_cast<double>(one.cores);
      one.cores = 1;
      for (size_t p : {0, 1}) {
        const ProductTiles& t = (*both)[p];
        Work five = t.first.work;
        five.statement.domain.extent[p == 0 ? 1 : 2] = 5 * columns;
        const Product product = *product_of(five);
        const Placement placement =
            *tiled_placement(five, product, one, {.sum_bits = 32}, {}, {0, p == 0 ? columns : 0, p == 0 ? 0 : columns});
        const auto cost = cost_on_array(five,
                                        product,
                                        placement,
                                        {.precision = *t.first.precision},
                                        one,
                                        counts,
                                        std::vector(3, std::vector(3, true)));
        const auto& c = std::get<StatementCost>(cost);
        EXPECT_EQ(c.stream_cycles, t.over(1, 5, t.first.stream_cycles, t.two.stream_cycles));
        EXPECT_NEAR(c.load_cycles, t.over(1, 5, t.first.load_cycles, t.two.load_cycles), 5);
        EXPECT_EQ(c.counts->macs, t.over(1, 5, t.first.counts->macs, t.two.counts->macs));
        EXPECT_EQ(c.register_bits, t.over(1, 5, t.first.register_bits, t.two.register_bits));
        for (size_t a = 0; a < 3; ++a)
          EXPECT_EQ(c.counts->tensors[a].assigned,
                    t.over(1, 5, t.first.counts->tensors[a].assigned, t.two.counts->tensors[a].assigned));
      }
    }
  }
}

// One sequence has work for 8 of 132 cores: each head's positions are cut in parts, which meet behind a barrier.
TEST(OnePass, FewHeadsAreCutAlongThePositions) {
  const Chip h200 = find_chip("h200");
  Chip alone = h200;
  alone.barrier_cycles.reset();
  const Kernel decode = attention({.heads = 8, .group = 4, .tokens = 1, .positions = 16384, .depth = 128});
  const KernelCost cut = CostEngine(h200).cost(decode), whole = CostEngine(alone).cost(decode);
  auto cores = [](const KernelCost& c) { return c.statements[0].placement->cores_used; };
  EXPECT_EQ(cores(whole), 8);
  EXPECT_GT(cores(cut), 4.3e12 / (64 * 1.83e9));  // ports that take what DRAM gives
  EXPECT_LT(cut.latency_s, whole.latency_s / 3.5);
  auto barriers = [](const KernelCost& c) {
    int64_t cycles = 0;
    for (const CyclePart& p : c.latency_parts)
      if (p.name.find("barrier") != p.name.npos) cycles += p.cycles;
    return cycles;
  };
  EXPECT_EQ(barriers(cut), *h200.barrier_cycles);
  EXPECT_EQ(barriers(whole), 0);
  // The cores' ports bind one core for each head: 67 MB through 8 ports of 64 bytes per cycle.
  EXPECT_NEAR(static_cast<double>(whole.latency_cycles), 2.0 * 8 * 16384 * 128 * 2 / (8 * 64), 20000);
  // With enough sequences nothing is cut.
  const KernelCost many = CostEngine(h200).cost(attention({.heads = 512, .group = 4, .tokens = 1, .positions = 2048}));
  EXPECT_EQ(barriers(many), 0);
}

TEST(OnePass, MoreWorkIsNeverQuicker) {
  CostEngine engine(find_chip("h200"));
  double last = 0;
  for (int64_t positions : {1, 100, 500, 1000, 1024, 2000, 4096, 9999, 16384, 65536}) {
    const double latency = engine.cost(attention({.heads = 32, .tokens = 1, .positions = positions})).latency_s;
    EXPECT_GE(latency, last * 0.999) << positions;
    last = latency;
  }
  last = 0;
  for (int64_t tokens : {16, 64, 128, 200, 512, 1024, 2048, 4096}) {
    const double latency = engine.cost(attention({.heads = 32, .tokens = tokens, .positions = 4096})).latency_s;
    EXPECT_GE(latency, last * 0.999) << tokens;
    last = latency;
  }
}

// The busiest core of a schedule by longest blocks first has at most 4/3 of the best possible (Graham, 1969): so the array's time
// of the whole is at most that, and at least the mean.
TEST(OnePass, CoresShareBlocksEvenly) {
  const Chip chip = find_chip("h200");
  CostEngine engine(chip);
  for (int64_t tokens : {1024, 4096}) {
    const Shape s{.heads = 32, .tokens = tokens, .positions = tokens, .depth = 128};
    const KernelCost cost = engine.cost(attention(s));
    double busiest = 0, all = 0;
    for (const StatementCost& c : cost.statements)
      if (c.on_array())
        busiest += static_cast<double>(c.stream_cycles),
            all += static_cast<double>(c.instances) / static_cast<double>(chip.rows * chip.columns);
    const auto [rows, columns] = tile_of(cost);
    const double mean = all / static_cast<double>(chip.cores);
    const double longest =
        2.0 * static_cast<double>(rows * (tokens + columns) * s.depth) / static_cast<double>(chip.rows * chip.columns);
    EXPECT_GE(busiest, 0.999 * mean);
    EXPECT_LE(busiest, 4.0 / 3 * std::max(mean, longest) + longest / 3);
  }
}

TEST(OnePass, OtherKernelsAreNoSuchPass) {
  const Chip chip = find_chip("h200");
  Kernel stored = attention({});
  EXPECT_TRUE(pass_form_of(stored, chip));
  stored.one_pass = false;
  EXPECT_FALSE(pass_form_of(stored, chip));
  Kernel leaves = attention({});  // scores that another kernel reads
  leaves.work[0].operands[2].internal = leaves.work[1].operands[0].internal = leaves.work[2].operands[0].internal =
      false;
  EXPECT_FALSE(pass_form_of(leaves, chip));
  Kernel one = attention({});
  one.work.resize(1);
  EXPECT_FALSE(pass_form_of(one, chip));
  EXPECT_GT(CostEngine(chip).cost(one).latency_s, 0);
}

}  // namespace
}  // namespace sator::dataflow
