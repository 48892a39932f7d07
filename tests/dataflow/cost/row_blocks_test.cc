// Attention on chips that do not keep what lies between its two products: rows in blocks, each over the columns that it sees.
// What runs and what moves is found here by looking at single scores.
#include "dataflow/cost/row_blocks.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "dataflow/cost/attention_kernel.h"
#include "shipped_chips.h"
#include "target/chip.h"

namespace sator::dataflow {
namespace {

/// Rows of a block, by the words of the mapping; all rows where it names no blocks.
int64_t rows_of_a_block(const KernelCost& cost, int64_t all) {
  for (const StatementCost& s : cost.statements) {
    long blocks = 0, rows = 0;
    if (s.on_array() && std::sscanf(s.placement->words.c_str(), "in %ld block%*[s ]of %ld rows", &blocks, &rows) == 2)
      return rows;
  }
  return all;
}

/// For each block of so many tokens: the positions from the first that one of them sees to the last.
std::vector<std::pair<Span, Span>> listed(const Shape& s, int64_t rows) {
  std::vector<std::pair<Span, Span>> blocks;
  for (int64_t first = 0; first < s.tokens; first += rows) {
    Span tokens{first, std::min(first + rows, s.tokens)}, positions{s.positions, 0};
    for (int64_t t = tokens.begin; t < tokens.end; ++t) {
      const int64_t last = s.positions - s.tokens + t;
      positions.begin = std::min(positions.begin, last - seen(s, t) + 1);
      positions.end = std::max(positions.end, last + 1);
    }
    blocks.emplace_back(tokens, positions);
  }
  return blocks;
}

int64_t scores_run(const Shape& s, int64_t rows) {
  int64_t all = 0;
  for (const auto& [tokens, positions] : listed(s, rows)) all += tokens.size() * positions.size();
  return all * s.heads * s.group;
}

TEST(RowBlocks, RunTheColumnsThatTheirRowsSee) {
  for (const char* name : {"edge_npu32", "gemmini16", "tpuv3", "nvdla_large", "tenet-8x8"}) {
    CostEngine engine(find_chip(name));
    const bool maps_all = !engine.chip().tenet;  // TENET's files take products of one i
    for (const Shape& s : kShapes) {
      if (!maps_all && s.group > 1) continue;
      SCOPED_TRACE(text(name, ": ", words(s)));
      const KernelCost cost = engine.cost(attention(s));
      const int64_t rows = rows_of_a_block(cost, s.tokens), run = scores_run(s, rows);
      EXPECT_EQ(cost.macs, 2 * s.depth * causal_scores(s));
      const std::map<std::string, int64_t> instances = {{"scores", run * s.depth},
                                                        {"largest", run},
                                                        {"weights", run},
                                                        {"total", run},
                                                        {"values", run * s.depth},
                                                        {"quotient", s.heads * s.group * s.tokens * s.depth}};
      EXPECT_EQ(cost.statements.size(), maps_all ? 6u : 2u);
      for (const StatementCost& c : cost.statements) EXPECT_EQ(c.instances, instances.at(c.name)) << c.name;
    }
  }
}

// By hand: 64 tokens from position 0 in 4 blocks of 16 run 16 * (16 + 32 + 48 + 64) = 2,560 of 64 * 64 = 4,096 scores, of which
// 64 * 65 / 2 = 2,080 count.
TEST(RowBlocks, ATriangleByHand) {
  const Shape s{.heads = 1, .tokens = 64, .positions = 64, .depth = 32};
  const Kernel kernel = attention(s);
  const auto masked = masked_rows_of(kernel);
  ASSERT_TRUE(masked);
  EXPECT_EQ(masked->rows, 64);
  const std::vector<RowsOfKernel> blocks = in_blocks(kernel, *masked, 16);
  ASSERT_EQ(blocks.size(), 4u);
  int64_t run = 0, counts = 0;
  for (const RowsOfKernel& b : blocks) {
    run += b.rows.size() * b.columns.size();
    counts += unmasked_instances(b.kernel.work[1]);
  }
  EXPECT_EQ(run, 2560);
  EXPECT_EQ(counts, 2080);
}

// With a window of 8, from position 100 on: 16 tokens see 16 + 7 positions, from 100 - 7 on. All blocks are alike.
TEST(RowBlocks, AWindowByHand) {
  const Kernel kernel = attention({.heads = 1, .tokens = 64, .positions = 164, .depth = 32, .window = 8});
  const std::vector<RowsOfKernel> blocks = in_blocks(kernel, *masked_rows_of(kernel), 16);
  ASSERT_EQ(blocks.size(), 4u);
  for (size_t b = 0; b < 4; ++b) {
    EXPECT_EQ(blocks[b].columns.begin, 93 + 16 * static_cast<int64_t>(b));
    EXPECT_EQ(blocks[b].columns.size(), 23);
    EXPECT_EQ(unmasked_instances(blocks[b].kernel.work[1]), 16 * 8);
  }
}

/// A chip whose one memory on the chip has room for everything: each tensor of a block passes DRAM once.
Chip roomy_chip() {
  Chip chip = find_chip("edge_npu32");
  for (Memory& m : chip.memories) m.capacity_bytes.reset(), m.burst_bytes = 0;
  return chip;
}

// Bytes outside: queries and results once, keys and values once for each block that sees them, scores never. The blocks are listed.
TEST(RowBlocks, BytesAreThoseOfTheBlocks) {
  CostEngine engine(roomy_chip());
  for (const Shape& s : kShapes) {
    SCOPED_TRACE(words(s));
    const KernelCost cost = engine.cost(attention(s));
    int64_t columns = 0;
    for (const auto& [tokens, positions] : listed(s, rows_of_a_block(cost, s.tokens))) columns += positions.size();
    const int64_t rows = s.heads * s.group * s.tokens * s.depth;
    EXPECT_EQ(cost.memories[0].read_bytes, 2 * (rows + 2 * s.heads * columns * s.depth));
    EXPECT_EQ(cost.memories[0].write_bytes, 2 * rows);
    std::set<std::string> outside;
    for (const Traffic& t : cost.outside) outside.insert(t.tensor);
    EXPECT_EQ(outside, (std::set<std::string>{"Q", "K", "V", "O"}));
    // What no mapping avoids: the positions that some token sees, once.
    std::set<int64_t> positions_seen;
    for (int64_t t = 0; t < s.tokens; ++t)
      for (int64_t p = s.positions - s.tokens + t, n = seen(s, t); n > 0; --n, --p) positions_seen.insert(p);
    EXPECT_EQ(cost.memories[0].compulsory_bytes,
              2 * (2 * rows + 2 * s.heads * static_cast<int64_t>(positions_seen.size()) * s.depth));
  }
}

// All rows as one block is one of the choices.
TEST(RowBlocks, AreNeverSlowerThanTheRectangle) {
  for (const std::string& name : all_chips()) {
    const Chip chip = shipped(name);
    if (chip.one_pass) continue;
    CostEngine engine(chip);
    for (const Shape& s : kShapes) {
      Kernel rectangle = attention(s);
      rectangle.one_pass = false;
      EXPECT_LE(engine.cost(attention(s)).latency_s, 1.0006 * engine.cost(rectangle).latency_s)
          << chip.name << ": " << words(s);
    }
  }
}

TEST(RowBlocks, TriangleOfALongPromptTakesLittleMoreThanHalf) {
  CostEngine engine(find_chip("tpuv3"));
  Kernel prompt = attention({.heads = 12, .tokens = 1024, .positions = 1024, .depth = 128});
  const KernelCost blocks = engine.cost(prompt);
  prompt.one_pass = false;
  const KernelCost rectangle = engine.cost(prompt);
  EXPECT_LT(blocks.latency_s, 0.7 * rectangle.latency_s);
  EXPECT_EQ(blocks.macs, rectangle.macs);
}

// Whatever is masked how: each instance that counts lies in the block of its row.
TEST(RowBlocks, LeaveNothingOutThatCounts) {
  std::mt19937 random(15);
  auto draw = [&](int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random); };
  for (int round = 0; round < 200; ++round) {
    const Shape s{.heads = draw(1, 2), .group = draw(1, 2), .tokens = draw(1, 40), .positions = 40, .depth = 2};
    Kernel kernel = attention(s);
    const QuasiAffine i = variable(2), j = variable(3);
    for (int64_t masks = draw(1, 2); masks > 0; --masks) {
      const QuasiAffine mask = i * draw(-2, 2) + j * draw(-2, 2) + draw(-20, 40);
      for (size_t w = 0; w < 5; ++w)
        if (w != 1 || draw(0, 9) > 0) kernel.work[w].only_where.push_back(mask);
    }
    const auto masked = masked_rows_of(kernel);
    ASSERT_TRUE(masked);
    const int64_t rows = draw(1, 20);
    for (size_t w : {0, 1, 4}) {
      int64_t counted = 0;
      for (const RowsOfKernel& b : in_blocks(kernel, *masked, rows)) counted += unmasked_instances(b.kernel.work[w]);
      EXPECT_EQ(counted, unmasked_instances(kernel.work[w])) << round << " " << w;
    }
  }
}

TEST(RowBlocks, NeedStatementsThatFollowTheRows) {
  EXPECT_TRUE(masked_rows_of(attention({})));
  Kernel plain = attention({});
  for (Work& work : plain.work) work.only_where.clear();
  EXPECT_FALSE(masked_rows_of(plain));
  Kernel sums_rows = attention({});  // the largest score of a column
  sums_rows.work[1].statement.accesses[1].references[0][2] = variable(3);
  EXPECT_FALSE(masked_rows_of(sums_rows));
  Kernel shifted = attention({});  // takes the row before
  shifted.work[2].statement.accesses[0].references[0][2] = variable(2) + (-1);
  EXPECT_FALSE(masked_rows_of(shifted));
}

}  // namespace
}  // namespace sator::dataflow
