// GEMMs on systolic arrays: the example worked by hand, the catalogue's closed forms, and LLM-sized figures.
#include "dataflow/counts/gemm.h"

#include <gtest/gtest.h>

#include <random>

#include "dataflow/tenet/metrics.h"

namespace sator::dataflow {
namespace {

struct Variant {
  bool skewed;
  int64_t direction;
  int64_t unique_a, unique_b;
};

// 2x2x2 on 2x2: A[i,k] is used at PE[i,0], then at PE[i,1] one stamp later. A wire that points to the PE
// before brings it; one that points to the PE after does not; without skew both PEs want it at once and
// either direction serves.
TEST(HandExample, AllVariants) {
  for (const Variant& v :
       {Variant{true, -1, 4, 4}, Variant{true, 1, 8, 8}, Variant{false, -1, 4, 4}, Variant{false, 1, 4, 4}}) {
    SCOPED_TRACE(testing::Message() << "skewed " << v.skewed << " direction " << v.direction);
    Problem p{gemm(2, 2, 2), stationary(Flow::os, 2, 2, v.skewed), systolic(2, 2, v.direction)};
    p.mapping.time = {p.mapping.time.back()};
    Counts c = exact(p);
    EXPECT_EQ(c.macs, 8);
    EXPECT_EQ(c.space, 4);
    EXPECT_EQ(c.time, v.skewed ? 4 : 2);
    EXPECT_EQ(c.spacetime, 8);
    EXPECT_EQ(tensor(c, "A").unique, v.unique_a);
    EXPECT_EQ(tensor(c, "B").unique, v.unique_b);
    EXPECT_EQ(tensor(c, "C").unique, 4);
    EXPECT_EQ(tensor(c, "C").temporal_hits, 4);
    if (v.skewed && v.direction == -1) {
      TenetMetrics m = tenet_metrics(c, {.bandwidth_bits_per_cycle = 64, .latency_cycles = 16});
      EXPECT_EQ(m.delay_in, 17);
      EXPECT_EQ(m.delay_out, 16);
      EXPECT_EQ(m.delay_compute_master, 2);
      EXPECT_EQ(m.delay_compute_micro_tutorial, 4);
      EXPECT_EQ(m.latency_master, 17);
    }
  }
}

TEST(HandExample, WithoutWiresNothingIsShared) {
  Problem p{gemm(2, 2, 2), stationary(Flow::os, 2, 2, true), {Domain::box({"x", "y"}, {2, 2}), {}}};
  Counts c = exact(p);
  EXPECT_EQ(tensor(c, "A").unique, 8);
  EXPECT_EQ(tensor(c, "B").unique, 8);
  EXPECT_EQ(tensor(c, "C").unique, 4);
}

/// Sizes of the tiles along an iterator of extent n.
std::vector<int64_t> tiles(int64_t n, int64_t size) {
  std::vector<int64_t> widths;
  for (int64_t at = 0; at < n; at += size) widths.push_back(std::min(size, n - at));
  return widths;
}

struct ClosedForm {
  int64_t a, b, c, time;
};

ClosedForm closed_form(Flow flow, int64_t i, int64_t j, int64_t k, int64_t rows, int64_t columns) {
  const int64_t row = flow == Flow::os ? i : k, column = flow == Flow::is ? i : j;
  const int64_t streamed = flow == Flow::os ? k : flow == Flow::ws ? i : j;
  const int64_t row_tiles = ceil_div(row, rows), column_tiles = ceil_div(column, columns);
  int64_t time = 0;
  for (int64_t r : tiles(row, rows))
    for (int64_t c : tiles(column, columns)) time += r + c + streamed - 2;
  switch (flow) {
    case Flow::os: return {i * k * column_tiles, k * j * row_tiles, i * j, time};
    case Flow::ws: return {i * k * column_tiles, k * j, i * j * row_tiles, time};
    case Flow::is: return {i * k, k * j * column_tiles, i * j * row_tiles, time};
  }
  return {};
}

TEST(ClosedForms, EngineEqualsFormulaEqualsEnumeration) {
  std::mt19937 random(1);
  auto draw = [&](int lo, int hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); };
  int enumerated = 0;
  for (int round = 0; round < 300; ++round)
    for (Flow flow : {Flow::os, Flow::ws, Flow::is}) {
      const bool small = round % 2 == 0;
      const int64_t i = draw(1, small ? 14 : 5000), j = draw(1, small ? 14 : 5000), k = draw(1, small ? 14 : 5000);
      // Arrays of 4x4 and more: on narrower ones tiles meet and share beyond the formula.
      const int64_t rows = draw(4, small ? 6 : 256), columns = draw(4, small ? 6 : 256);
      SCOPED_TRACE(testing::Message() << i << "x" << j << "x" << k << " on " << rows << "x" << columns << " flow "
                                      << static_cast<int>(flow));
      Problem p{gemm(i, j, k), stationary(flow, rows, columns, true), systolic(rows, columns)};
      Counts got = exact(p);
      ClosedForm want = closed_form(flow, i, j, k, rows, columns);
      EXPECT_EQ(got.time, want.time);
      EXPECT_EQ(got.work_cycles, want.time);
      // Tiles that are one PE wide, and single instances per tile, meet their neighbours in time: formula is
      // then a bound.
      auto thin = [](int64_t n, int64_t size) { return n % size == 1 || n == 1; };
      const bool plain =
          !thin(i, flow == Flow::is ? columns : rows) && !thin(j, columns) && !thin(k, rows) && i > 1 && j > 1 && k > 1;
      const int64_t a = tensor(got, "A").unique, b = tensor(got, "B").unique, c = tensor(got, "C").unique;
      if (plain) {
        EXPECT_EQ(a, want.a);
        EXPECT_EQ(b, want.b);
        EXPECT_EQ(c, want.c);
      } else {
        EXPECT_LE(a, want.a);
        EXPECT_LE(b, want.b);
        EXPECT_LE(c, want.c);
      }
      if (!small) continue;
      ++enumerated;
      Counts points = std::get<Counts>(enumerate(p, 1 << 16));
      EXPECT_EQ(a, tensor(points, "A").unique);
      EXPECT_EQ(b, tensor(points, "B").unique);
      EXPECT_EQ(c, tensor(points, "C").unique);
      EXPECT_EQ(got.time, points.time);
    }
  EXPECT_GE(enumerated, 400);
}

struct LlmRow {
  const char* name;
  int64_t tokens, out, in;
  Flow flow;
  int64_t side;
  int64_t time, a, b, c, delay_in, delay_out, compute;
};

// Linear layers of 7B models; stamps, unique and delays as TENET's relations give them (2048 bits per cycle,
// latency 4).
const LlmRow kLlmRows[] = {
    {"qkvo7b_tok1_ws_skew_128", 1, 4096, 4096, Flow::ws, 128, 261120, 131072, 16777216, 131072, 132099, 1027, 1024},
    {"qkvo7b_tok1_os_skew_32", 1, 4096, 4096, Flow::os, 32, 528256, 524288, 16777216, 4096, 135171, 35, 524288},
    {"qkvo7b_tok1_is_skew_64", 1, 4096, 4096, Flow::is, 64, 266176, 4096, 16777216, 262144, 131107, 2051, 262144},
    {"qkvo7b_tok512_ws_skew_128",
     512,
     4096,
     4096,
     Flow::ws,
     128,
     784384,
     67108864,
     16777216,
     67108864,
     655363,
     524291,
     524288},
    {"qkvo7b_tok512_os_skew_32",
     512,
     4096,
     4096,
     Flow::os,
     32,
     8515584,
     268435456,
     268435456,
     2097152,
     4194307,
     16387,
     8388608},
    {"qkvo7b_tok512_is_skew_64",
     512,
     4096,
     4096,
     Flow::is,
     64,
     2161664,
     2097152,
     134217728,
     134217728,
     1064963,
     1048579,
     2097152},
    {"lmhead7b_tok1_ws_skew_128",
     1,
     32000,
     4096,
     Flow::ws,
     128,
     2040000,
     1024000,
     131072000,
     1024000,
     1032003,
     8003,
     8000},
    {"lmhead7b_tok1_os_skew_32",
     1,
     32000,
     4096,
     Flow::os,
     32,
     4127000,
     4096000,
     131072000,
     32000,
     1056003,
     253,
     4096000},
    {"lmhead7b_tok1_is_skew_64",
     1,
     32000,
     4096,
     Flow::is,
     64,
     2052032,
     4096,
     131072000,
     2048000,
     1024035,
     16003,
     2048000},
    {"lmhead7b_tok512_ws_skew_128",
     512,
     32000,
     4096,
     Flow::ws,
     128,
     6128000,
     524288000,
     131072000,
     524288000,
     5120003,
     4096003,
     4096000},
    {"lmhead7b_tok512_os_skew_32",
     512,
     32000,
     4096,
     Flow::os,
     32,
     66528000,
     2097152000,
     2097152000,
     16384000,
     32768003,
     128003,
     65536000},
    {"lmhead7b_tok512_is_skew_64",
     512,
     32000,
     4096,
     Flow::is,
     64,
     16448512,
     2097152,
     1048576000,
     1048576000,
     8208387,
     8192003,
     16384000},
};

TEST(LlmScale, LinearLayers) {
  for (const LlmRow& row : kLlmRows) {
    SCOPED_TRACE(row.name);
    Problem p{gemm(row.tokens, row.out, row.in),
              stationary(row.flow, row.side, row.side, true),
              systolic(row.side, row.side)};
    Counts c = exact(p);
    TenetMetrics m = tenet_metrics(c, {.bandwidth_bits_per_cycle = 2048, .latency_cycles = 4});
    EXPECT_EQ(c.macs, row.tokens * row.out * row.in);
    EXPECT_EQ(c.time, row.time);
    EXPECT_EQ(tensor(c, "A").unique, row.a);
    EXPECT_EQ(tensor(c, "B").unique, row.b);
    EXPECT_EQ(tensor(c, "C").unique, row.c);
    EXPECT_EQ(m.delay_in, row.delay_in);
    EXPECT_EQ(m.delay_out, row.delay_out);
    EXPECT_EQ(m.delay_compute_master, row.compute);
  }
}

/// Weights as codes Q[k,j] and one scale per `group` of k: a scale is one more tensor.
Statement grouped(int64_t i, int64_t j, int64_t k, int64_t group) {
  Statement s = gemm(i, j, k);
  s.accesses = {{"A", Role::read, {{variable(0), variable(2)}}},
                {"Q", Role::read, {{variable(2), variable(1)}}},
                {"Sc", Role::read, {{floor_div(variable(2), group), variable(1)}}},
                {"C", Role::write, {{variable(0), variable(1)}}}};
  return s;
}

struct GroupRow {
  const char* name;
  int64_t i, j, k, group;
  Flow flow;
  bool skewed;
  int64_t side, a, q, scale, c;
};

// Scale traffic under skew and raggedness, and at the size of a 7B layer.
const GroupRow kGroupRows[] = {
    {"os skewed", 16, 32, 64, 16, Flow::os, true, 8, 4096, 4096, 256, 512},
    {"os skewed ragged", 5, 30, 70, 32, Flow::os, true, 8, 1400, 2100, 90, 150},
    {"ws skewed", 16, 32, 64, 16, Flow::ws, true, 8, 4096, 2048, 256, 4096},
    {"ws skewed ragged", 5, 30, 70, 32, Flow::ws, true, 8, 1400, 2100, 270, 1350},
    {"ws broadcast ragged", 5, 30, 70, 32, Flow::ws, false, 8, 1400, 2100, 90, 1350},
    {"is skewed", 16, 32, 64, 16, Flow::is, true, 8, 1024, 4096, 512, 4096},
    {"is skewed ragged", 5, 30, 70, 32, Flow::is, true, 8, 350, 2100, 270, 1350},
    {"4096 one token ws", 1, 4096, 4096, 32, Flow::ws, true, 128, 131072, 16777216, 524288, 131072},
    {"4096 one token os", 1, 4096, 4096, 32, Flow::os, true, 32, 524288, 16777216, 524288, 4096},
    {"4096 128 tokens ws", 128, 4096, 4096, 32, Flow::ws, true, 128, 16777216, 16777216, 524288, 16777216},
    {"4096 128 tokens os", 128, 4096, 4096, 32, Flow::os, true, 32, 67108864, 67108864, 2097152, 524288},
};

TEST(LlmScale, GroupScales) {
  for (const GroupRow& row : kGroupRows) {
    SCOPED_TRACE(row.name);
    Problem p{grouped(row.i, row.j, row.k, row.group),
              stationary(row.flow, row.side, row.side, row.skewed),
              systolic(row.side, row.side)};
    Counts c = exact(p);
    EXPECT_EQ(tensor(c, "A").unique, row.a);
    EXPECT_EQ(tensor(c, "Q").unique, row.q);
    EXPECT_EQ(tensor(c, "Sc").unique, row.scale);
    EXPECT_EQ(tensor(c, "C").unique, row.c);
  }
}

// One token's weight layer on a row vector of 1024 PEs.
TEST(LlmScale, RowVector) {
  for (int64_t tokens : {1, 128}) {
    Statement s = grouped(tokens, 4096, 4096, 32);
    QuasiAffine i = variable(0), j = variable(1), k = variable(2);
    Problem p{s, {{mod(j, 1024)}, {floor_div(j, 1024), i, k}}, {Domain::box({"x"}, {1024}), {link::shift({-1})}}};
    Counts c = exact(p);
    EXPECT_EQ(tensor(c, "A").unique, tokens == 1 ? 16384 : 2097152);
    EXPECT_EQ(tensor(c, "Q").unique, tokens * 16777216);
    EXPECT_EQ(tensor(c, "Sc").unique, tokens * 524288);
    EXPECT_EQ(tensor(c, "C").unique, tokens * 4096);
  }
}

}  // namespace
}  // namespace sator::dataflow
