// Counts of nests by closed form against the list of all points, and against boxes at real sizes.
#include <gtest/gtest.h>
#include <algorithm>
#include <random>

#include "dataflow/counts/enumerate.h"
#include "dataflow/counts/nest_forms.h"
#include "dataflow/counts/wave_forms.h"

namespace sator::dataflow {
namespace {

/// Draws nests: digits of every iterator in space, in time in any order, or in none.
class RandomNest {
 public:
  RandomNest(uint64_t seed, int64_t scale) : random_(seed), scale_(scale) {}

  Problem draw() {
    Problem p;
    const int rank = pick(1, 4);
    const bool tensors = chance(2);
    Map rows, columns;
    std::vector<std::pair<int, QuasiAffine>> time;  // by loops of an iterator from outside to inside
    for (int x = 0; x < rank; ++x) {
      p.statement.domain.names.push_back(std::string(1, static_cast<char>('i' + x)));
      p.statement.domain.lower.push_back(chance(6) ? pick(-2, 3) : 0);
      p.statement.domain.extent.push_back(pick(1, 9) * (chance(2) ? scale_ : 1));
      const QuasiAffine value = variable(x) - p.statement.domain.lower.back();
      // From the innermost digit out: blocks of blocks.
      int64_t block = chance(2) ? 1 : pick(2, 4);
      std::vector<QuasiAffine> digits;
      for (int d = pick(0, 3); d > 0; --d) {
        const int64_t values = pick(2, 4);
        const bool outermost = d == 1 && !chance(6);
        QuasiAffine digit = floor_div(value, block);
        if (!outermost) digit = chance(3) ? floor_div(mod(value, block * values), block) : mod(digit, values);
        digits.push_back(digit);
        block *= values * (chance(5) ? 2 : 1);  // a digit left out
      }
      for (size_t d = digits.size(); d-- > 0;) {
        if (chance(8)) continue;
        if (!tensors && d + 1 < digits.size() && chance(2))
          (chance(2) ? rows : columns).push_back(digits[d]);
        else
          time.emplace_back(x, digits[d]);
      }
    }
    // Any order of loops; mostly those of one iterator from outside to inside.
    std::vector<size_t> order(time.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random_);
    if (!chance(6)) {
      for (int x = 0; x < rank; ++x) {
        std::vector<size_t> places, loops;
        for (size_t i = 0; i < order.size(); ++i)
          if (time[order[i]].first == x) places.push_back(i), loops.push_back(order[i]);
        std::sort(loops.begin(), loops.end());
        for (size_t i = 0; i < places.size(); ++i) order[places[i]] = loops[i];
      }
    }
    for (size_t i : order) p.mapping.time.push_back(time[i].second);
    for (Map* side : {&rows, &columns}) {
      QuasiAffine coordinate = number(0);
      int64_t factor = 1;
      for (const QuasiAffine& digit : *side) {
        coordinate = coordinate + digit * factor;
        factor *= 4;
      }
      p.mapping.space.push_back(coordinate);
    }
    p.array.pes = Domain::box({"x", "y"}, {256, chance(10) ? 2 : 256});
    if (tensors)
      for (int t = pick(1, 3); t > 0; --t) p.statement.accesses.push_back(access(p.statement.domain, t));
    if (!tensors && chance(2) && p.mapping.time.size() > 1) {
      // The wave of operands across an array.
      p.mapping.space = {number(0), number(0)};
      QuasiAffine sum;
      for (const QuasiAffine& e : p.mapping.time) sum = sum + e;
      p.mapping.time = {sum};
    }
    return p;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int n) { return pick(1, n) == 1; }

  Access access(const Domain& domain, int t) {
    Access a{.tensor = text("T", t), .role = chance(3) ? Role::write : Role::read, .references = {Map{}}};
    for (int x = 0; x < domain.rank(); ++x) {
      if (chance(3)) continue;
      const QuasiAffine value = variable(x) - domain.lower[static_cast<size_t>(x)];
      if (chance(4))
        a.references[0].push_back(floor_div(value, pick(2, 4)));
      else
        a.references[0].push_back(value * (chance(4) ? -2 : 1) + pick(0, 3));
    }
    std::shuffle(a.references[0].begin(), a.references[0].end(), random_);
    return a;
  }

  std::mt19937_64 random_;
  int64_t scale_;
};

std::string show(const Problem& p) {
  std::string out = text("extents ", join(p.statement.domain.extent, " "), "; space ");
  for (const QuasiAffine& e : p.mapping.space) out += to_text(e, p.statement.domain.names) + ", ";
  out += "; time ";
  for (const QuasiAffine& e : p.mapping.time) out += to_text(e, p.statement.domain.names) + ", ";
  for (const Access& a : p.statement.accesses) {
    out += "; " + a.tensor + " ";
    for (const QuasiAffine& e : a.references[0]) out += to_text(e, p.statement.domain.names) + ", ";
  }
  return out;
}

std::vector<int64_t> figures(const Counts& c) {
  std::vector<int64_t> all = {
      c.macs, c.pe_array, c.space, c.time, c.spacetime, c.work_cycles.value_or(-1), c.outside_array};
  for (const TensorCounts& t : c.tensors)
    all.insert(all.end(), {t.total, t.assigned, t.unique, t.temporal_hits, t.spatial_hits, t.footprint});
  return all;
}

TEST(NestForms, EqualTheListOfPoints) {
  constexpr int kProblems = 8000;
  int closed = 0, with_tensors = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Problem p = RandomNest(static_cast<uint64_t>(seed), 1).draw();
    const std::optional<Counts> counts = nest_counts(p);
    if (!counts) continue;
    SCOPED_TRACE(text("seed ", seed, ": ", show(p)));
    ++closed, with_tensors += !p.statement.accesses.empty();
    auto points = enumerate(p, 1 << 20);
    ASSERT_TRUE(std::holds_alternative<Counts>(points)) << std::get<Reason>(points).render();
    ASSERT_EQ(figures(*counts), figures(std::get<Counts>(points)));
    if (auto stamps = nest_stamps(p.statement.domain, p.mapping.time)) {
      ASSERT_EQ(*stamps, counts->time);
    }
  }
  EXPECT_GT(closed, kProblems / 2);
  EXPECT_GT(with_tensors, kProblems / 5);
}

TEST(NestForms, EqualBoxesAtRealSizes) {
  constexpr int kProblems = 300;
  int closed = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Problem p = RandomNest(static_cast<uint64_t>(seed), 1009).draw();
    const std::optional<Counts> counts = nest_counts(p);
    auto boxes = count_by_boxes(p);
    if (!counts || !std::holds_alternative<Counts>(boxes)) continue;
    SCOPED_TRACE(text("seed ", seed, ": ", show(p)));
    ++closed;
    Counts by_boxes = std::get<Counts>(boxes);
    if (!by_boxes.work_cycles) by_boxes.work_cycles = counts->work_cycles;
    ASSERT_EQ(figures(*counts), figures(by_boxes));
  }
  EXPECT_GT(closed, kProblems / 2);
}

/// Loops over tiles around a wave on systolic wires: rows, columns and steps of any iterators, several of one too.
class RandomWave {
 public:
  explicit RandomWave(uint64_t seed) : random_(seed) {}

  Problem draw() {
    Problem p;
    const int rank = pick(1, 4);
    for (int x = 0; x < rank; ++x) {
      p.statement.domain.names.push_back(std::string(1, static_cast<char>('i' + x)));
      p.statement.domain.lower.push_back(chance(8) ? pick(-2, 3) : 0);
      p.statement.domain.extent.push_back(chance(5) ? 1 : pick(2, 9));
      if (chance(3)) p.statement.domain.extent.back() *= pick(1, 3);
    }
    // From the innermost digit out: columns, rows, the step, loops; now and then in another order.
    std::vector<int64_t> block(static_cast<size_t>(rank), 1);
    for (int64_t& b : block)
      if (chance(4)) b = pick(2, 4);
    auto next_digit = [&](int64_t most, bool outermost) {
      const auto x = static_cast<size_t>(pick(0, rank - 1));
      const int64_t values = pick(2, static_cast<int>(most)), from = block[x];
      const QuasiAffine value = variable(static_cast<int>(x)) - p.statement.domain.lower[x];
      block[x] *= outermost ? 1000 : values;
      return outermost ? floor_div(value, from) : mod(floor_div(value, from), values);
    };
    QuasiAffine row = number(0), column = number(0), step = number(0);
    if (!chance(8)) column = next_digit(4, chance(8));
    if (!chance(8)) row = next_digit(4, chance(8));
    if (!chance(5)) step = next_digit(4, chance(3));
    if (chance(8)) std::swap(row, step);
    Map loops;
    for (int l = pick(0, 3); l > 0; --l) loops.push_back(next_digit(4, chance(2)));
    for (int x = 0; x < rank; ++x)
      if (!chance(5) && block[static_cast<size_t>(x)] < p.statement.domain.extent[static_cast<size_t>(x)])
        loops.push_back(
            floor_div(variable(x) - p.statement.domain.lower[static_cast<size_t>(x)], block[static_cast<size_t>(x)]));
    std::shuffle(loops.begin(), loops.end(), random_);
    p.mapping.space = {row, column};
    p.mapping.time = loops;
    p.mapping.time.push_back(step + row + column);
    p.array = {Domain::box({"x", "y"}, {32, chance(9) ? 3 : 32}), {link::shift({-1, 0}), link::shift({0, -1})}};
    for (int t = pick(1, 3); t > 0; --t) {
      Access access{.tensor = text("T", t), .role = chance(3) ? Role::write : Role::read, .references = {Map{}}};
      for (int x = 0; x < rank; ++x) {
        if (chance(2)) continue;
        const QuasiAffine value = variable(x) - p.statement.domain.lower[static_cast<size_t>(x)];
        access.references[0].push_back(chance(3) ? floor_div(value, pick(2, 8)) : value + pick(0, 2));
      }
      p.statement.accesses.push_back(std::move(access));
    }
    return p;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int n) { return pick(1, n) == 1; }
  std::mt19937_64 random_;
};

TEST(NestForms, WavesEqualTheListOfPoints) {
  constexpr int kProblems = 20000;
  int closed = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Problem p = RandomWave(static_cast<uint64_t>(seed)).draw();
    const std::optional<Counts> counts = wave_counts(p);
    if (!counts) continue;
    SCOPED_TRACE(text("seed ", seed, ": ", show(p)));
    ++closed;
    auto points = enumerate(p, 1 << 20);
    ASSERT_TRUE(std::holds_alternative<Counts>(points)) << std::get<Reason>(points).render();
    ASSERT_EQ(figures(*counts), figures(std::get<Counts>(points)));
  }
  EXPECT_GT(closed, kProblems / 5);
}

// Scales of groups along the reduction, whichever factor stays: the closed form is that of the boxes at real sizes.
TEST(NestForms, GroupsOfScalesInAWave) {
  for (int64_t k : {96, 768, 1000, 4096})
    for (int64_t group : {8, 32, 64, 128})
      for (bool outputs : {true, false}) {
        Problem p;
        const QuasiAffine i = variable(0), j = variable(1), c = variable(2);
        p.statement.domain = Domain::box({"i", "j", "k"}, {100, 257, k});
        p.statement.accesses = {{"X", Role::read, {{i, c}}},
                                {"W", Role::read, {{j, c}}},
                                {"S", Role::read, {{floor_div(c, group), j}}},
                                {"Y", Role::write, {{i, j}}}};
        p.mapping.space = outputs ? Map{mod(i, 32), mod(j, 32)} : Map{mod(c, 32), mod(j, 32)};
        p.mapping.time = outputs ? Map{floor_div(i, 32), floor_div(j, 32), c + mod(i, 32) + mod(j, 32)}
                                 : Map{floor_div(j, 32), floor_div(c, 32), i + mod(c, 32) + mod(j, 32)};
        p.array = {Domain::box({"x", "y"}, {32, 32}), {link::shift({-1, 0}), link::shift({0, -1})}};
        SCOPED_TRACE(text("k ", k, ", groups of ", group, outputs ? ", outputs stay" : ", weights stay"));
        const std::optional<Counts> counts = wave_counts(p);
        ASSERT_TRUE(counts);
        auto boxes = count_by_boxes(p);
        ASSERT_TRUE(std::holds_alternative<Counts>(boxes));
        if (!std::get<Counts>(boxes).work_cycles) std::get<Counts>(boxes).work_cycles = counts->work_cycles;
        EXPECT_EQ(figures(*counts), figures(std::get<Counts>(boxes)));
      }
}

// Attention of one token over a context, as the mapper lays it: the closed form is that of the boxes at any context.
TEST(NestForms, AttentionAtManyContexts) {
  for (int64_t context = 1; context < 2000; context += 37) {
    Problem p;
    const QuasiAffine h = variable(0), j = variable(2), d = variable(3);
    p.statement.domain = Domain::box({"h", "i", "j", "d"}, {32, 1, context, 128});
    p.statement.accesses = {{"q", Role::read, {{h, variable(1), d}}},
                            {"K", Role::read, {{h, j, d}}},
                            {"S", Role::write, {{h, variable(1), j}}}};
    p.mapping.space = {mod(d, 32), mod(j, 32)};
    p.mapping.time = {h, floor_div(j, 32), floor_div(d, 32) + mod(d, 32) + mod(j, 32)};
    p.array = {Domain::box({"x", "y"}, {32, 32}), {link::shift({-1, 0}), link::shift({0, -1})}};
    const std::optional<Counts> counts = wave_counts(p);
    ASSERT_TRUE(counts);
    auto boxes = count_by_boxes(p);
    ASSERT_TRUE(std::holds_alternative<Counts>(boxes));
    if (!std::get<Counts>(boxes).work_cycles) std::get<Counts>(boxes).work_cycles = counts->work_cycles;
    EXPECT_EQ(figures(*counts), figures(std::get<Counts>(boxes))) << context;
  }
}

}  // namespace
}  // namespace sator::dataflow
