// The catalogue of dataflows at random sizes: operators x stamps x tiles x wires, ragged and not. Boxes count what the list of
// points counts.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "dataflow/counts/counts.h"
#include "dataflow/counts/enumerate.h"
#include "dataflow/counts/gemm.h"
#include "dataflow/counts/random_problem.h"

namespace sator::dataflow {
namespace {

class Catalogue {
 public:
  /// extent_scale, side_scale: 1 for what can be listed; more for layers and arrays of real size.
  explicit Catalogue(uint64_t seed, int64_t extent_scale = 1, int64_t side_scale = 1)
      : random_(seed), extent_scale_(extent_scale), side_scale_(side_scale) {}

  struct Drawn {
    Problem problem;
    std::string kind, wires;
  };

  Drawn draw() {
    using Make = void (Catalogue::*)();
    static constexpr std::pair<const char*, Make> kKinds[] = {
        {"gemm", &Catalogue::gemm},
        {"gemm, lanes", &Catalogue::lanes},
        {"gemm, group scales", &Catalogue::group_scales},
        {"gemm, two levels of tiles", &Catalogue::two_levels},
        {"gemm, moduli that do not divide", &Catalogue::odd_moduli},
        {"convolution, window inside a stamp", &Catalogue::convolution},
        {"convolution, systolic", &Catalogue::systolic_convolution},
        {"convolution, rows folded", &Catalogue::folded_convolution},
        {"attention, grouped queries", &Catalogue::attention},
        {"attention, causal", &Catalogue::causal},
        {"tensor product (MTTKRP)", &Catalogue::mttkrp},
        {"stencil", &Catalogue::stencil},
    };
    const auto& [name, make] = kKinds[pick(0, std::size(kKinds) - 1)];
    (this->*make)();
    Drawn out{.problem = std::move(p_), .kind = name, .wires = {}};
    const int rank = static_cast<int>(out.problem.mapping.space.size());
    out.wires = wire(out.problem.array, rank);
    return out;
  }

 private:
  int64_t pick(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random_); }
  int64_t extent(int64_t lo, int64_t hi) { return pick(lo, hi) * extent_scale_ + pick(0, extent_scale_ - 1); }
  int64_t side(int64_t lo, int64_t hi) { return pick(lo, hi) * side_scale_; }
  bool chance(int one_in) { return pick(1, one_in) == 1; }

  void begin(std::vector<std::string> names, std::vector<int64_t> extent) {
    p_ = {};
    p_.statement.domain = Domain::box(std::move(names), std::move(extent));
  }
  void reads(const char* tensor, Map map) { p_.statement.accesses.push_back({tensor, Role::read, {std::move(map)}}); }
  void writes(const char* tensor, Map map) { p_.statement.accesses.push_back({tensor, Role::write, {std::move(map)}}); }
  void pes(std::vector<int64_t> extent) {
    std::vector<std::string> names = {"x", "y", "z"};
    names.resize(extent.size());
    p_.array.pes = Domain::box(std::move(names), std::move(extent));
  }
  QuasiAffine v(int i) const { return variable(i); }

  /// Rows and columns of PEs hold two of three iterators; the third streams, with or without skew.
  void place(int row, int column, int streamed, int64_t rows, int64_t columns, Map before = {}) {
    p_.mapping.space = {mod(v(row), rows), mod(v(column), columns)};
    p_.mapping.time = std::move(before);
    Map tiles = {floor_div(v(row), rows), floor_div(v(column), columns)};
    if (chance(2)) std::swap(tiles[0], tiles[1]);
    p_.mapping.time.insert(p_.mapping.time.end(), tiles.begin(), tiles.end());
    QuasiAffine inner = v(streamed);
    if (chance(2)) inner = inner + p_.mapping.space[0] + p_.mapping.space[1];
    p_.mapping.time.push_back(inner);
    pes({rows, columns});
  }
  void product() {
    begin({"i", "j", "k"}, {extent(1, 13), extent(1, 13), extent(1, 13)});
    reads("A", {v(0), v(2)});
    reads("B", {v(2), v(1)});
    writes("C", {v(0), v(1)});
    if (chance(4)) reads("C", {v(0), v(1)});
  }
  void gemm() {
    product();
    const int flows[][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}};
    const int* flow = flows[pick(0, 2)];
    place(flow[0], flow[1], flow[2], side(1, 5), side(1, 5));
  }
  void lanes() {
    product();
    place(0, 1, 2, side(2, 4), side(2, 4));
    p_.mapping.time.back() = floor_div(v(2), pick(2, 4));
    if (chance(2)) p_.mapping.time.back() = p_.mapping.time.back() + p_.mapping.space[0] + p_.mapping.space[1];
  }
  void group_scales() {
    begin({"i", "j", "k"}, {extent(1, 6), extent(1, 9), extent(1, 40)});
    const int64_t group = int64_t{2} << pick(0, 3);
    reads("A", {v(0), v(2)});
    reads("Q", {v(2), v(1)});
    reads("Sc", {floor_div(v(2), group), v(1)});
    if (chance(2)) reads("Z", {floor_div(v(2), group), floor_div(v(1), 2)});
    writes("C", {v(0), v(1)});
    const int64_t rows = (int64_t{1} << pick(0, 3)) * side_scale_;
    const int flows[][3] = {{0, 1, 2}, {2, 1, 0}, {2, 0, 1}};
    const int* flow = flows[pick(0, 2)];
    place(flow[0], flow[1], flow[2], rows, side(1, 4));
  }
  void two_levels() {
    product();
    const int64_t inner = side(2, 3), outer = inner * pick(2, 3);
    QuasiAffine i = v(0), j = v(1), k = v(2);
    p_.mapping.space = {mod(i, inner), mod(j, inner)};
    p_.mapping.time = {floor_div(i, outer),
                       floor_div(j, outer),
                       floor_div(k, outer),
                       mod(floor_div(i, inner), outer / inner),
                       mod(floor_div(j, inner), outer / inner),
                       mod(k, outer)};
    if (chance(2)) p_.mapping.time.back() = p_.mapping.time.back() + mod(i, inner) + mod(j, inner);
    if (chance(3)) std::swap(p_.mapping.time[0], p_.mapping.time[2]);
    if (chance(3)) std::swap(p_.mapping.time[3], p_.mapping.time[4]);
    pes({inner, inner});
  }
  void odd_moduli() {
    begin({"i", "j", "k"}, {extent(1, 9), extent(1, 12), extent(1, 40)});
    // Tiles of one size, groups of another, neither dividing the other.
    const std::pair<int64_t, int64_t> pairs[] = {{4, 6}, {3, 4}, {2, 3}, {6, 4}, {5, 3}, {4, 10}, {8, 12}};
    const auto [tile, group] = pairs[pick(0, std::size(pairs) - 1)];
    reads("A", {v(0), v(2)});
    reads("Q", {v(2), v(1)});
    reads("Sc", {floor_div(v(2), group), v(1)});
    writes("C", {v(0), v(1)});
    if (chance(2))
      place(2, 1, 0, tile, side(1, 4));
    else
      place(0, 2, 1, side(1, 4), tile);
  }
  /// Iterators k, c, oy, ox, ry, rx.
  void images() {
    const int64_t window = pick(1, 3);
    begin({"k", "c", "oy", "ox", "ry", "rx"},
          {extent(1, 5), extent(1, 4), extent(1, 6), extent(1, 6), window, pick(1, window)});
    const int64_t stride = pick(1, 2), dilation = chance(3) ? 2 : 1;
    reads("I", {v(1), v(2) * stride + v(4) * dilation, v(3) * stride + v(5) * dilation});
    reads("W", {v(0), v(1), v(4), v(5)});
    writes("O", {v(0), v(2), v(3)});
  }
  void convolution() {
    images();
    // Output stationary, or channels on the array; the window's MACs share a stamp.
    if (chance(2))
      place(2, 3, chance(2) ? 0 : 1, side(2, 4), side(2, 4), {v(chance(2) ? 0 : 1)});
    else
      place(0, 1, 3, side(2, 4), side(2, 4), {v(2)});
  }
  void systolic_convolution() {
    images();
    const int64_t rows = side(2, 3), columns = side(2, 4);
    p_.mapping.space = {mod(v(1), rows), mod(v(0), columns)};
    p_.mapping.time = {
        floor_div(v(0), columns), floor_div(v(1), rows), v(4), v(5), v(2), v(3) + mod(v(0), columns) + mod(v(1), rows)};
    pes({rows, columns});
  }
  void folded_convolution() {
    images();
    const int64_t window = p_.statement.domain.extent[4], fold = pick(2, 3), rows = side(4, 4);
    // Row stationary: filter rows, and several channels folded, along one axis.
    p_.mapping.space = {v(4) + mod(v(1), fold) * window, mod(v(2), rows)};
    p_.mapping.time = {v(0), floor_div(v(1), fold), floor_div(v(2), rows), v(3)};
    if (chance(2)) p_.mapping.time.push_back(v(5));
    pes({window * fold, rows});
  }
  void attention() {
    const int64_t group = pick(1, 3);
    begin({"b", "h", "i", "j", "k"}, {pick(1, 2), group * pick(1, 2), extent(1, 6), extent(1, 7), extent(1, 6)});
    reads("Q", {v(0), v(1), v(2), v(4)});
    reads("K", {v(0), floor_div(v(1), group), v(3), v(4)});
    writes("S", {v(0), v(1), v(2), v(3)});
    if (chance(2))
      place(2, 3, 4, side(2, 4), side(2, 4), {v(0), v(1)});
    else
      place(1, 3, 4, group, side(2, 4), {v(0), v(2)});
  }
  void causal() {
    const int64_t tokens = extent(2, 12), tile = side(2, 4);
    begin({"i", "j", "k"}, {tokens, tokens, extent(1, 5)});
    p_.statement.domain.guards = {v(0) - v(1)};
    reads("Q", {v(0), v(2)});
    reads("K", {v(1), v(2)});
    writes("S", {v(0), v(1)});
    place(0, 1, 2, tile, chance(2) ? tile : side(2, 4));
  }
  void mttkrp() {
    begin({"i", "j", "k", "l"}, {extent(1, 7), extent(1, 7), extent(1, 5), extent(1, 5)});
    reads("A", {v(0), v(2), v(3)});
    reads("B", {v(2), v(1)});
    reads("C", {v(3), v(1)});
    writes("Y", {v(0), v(1)});
    const int flows[][4] = {{0, 1, 3, 2}, {2, 1, 3, 0}, {2, 3, 1, 0}};
    const int* flow = flows[pick(0, 2)];
    place(flow[0], flow[1], flow[2], side(2, 4), side(2, 4), {v(flow[3])});
  }
  void stencil() {
    begin({"i", "j"}, {extent(1, 20), extent(1, 20)});
    Access cross{.tensor = "A", .role = Role::read, .references = {}};
    const int64_t reach = pick(1, 2);
    for (auto [di, dj] : {std::pair<int64_t, int64_t>{0, 0}, {reach, 0}, {-reach, 0}, {0, reach}, {0, -reach}})
      cross.references.push_back({v(0) + di, v(1) + dj});
    p_.statement.accesses.push_back(std::move(cross));
    writes("B", {v(0), v(1)});
    const int64_t rows = side(2, 5), columns = side(2, 5);
    if (chance(2)) {
      p_.mapping.space = {mod(v(0), rows), mod(v(1), columns)};
      p_.mapping.time = {floor_div(v(0), rows), floor_div(v(1), columns)};
      pes({rows, columns});
    } else {
      p_.mapping.space = {mod(v(0), rows)};
      p_.mapping.time = {floor_div(v(0), rows), v(1)};
      pes({rows});
    }
  }

  std::string wire(Array& array, int rank) {
    auto axis = [&](int64_t first, int64_t second) {
      return rank == 1 ? std::vector<int64_t>{first} : std::vector<int64_t>{first, second};
    };
    std::vector<Link>& wires = array.interconnect;
    const int64_t rows = array.pes.extent[0];
    switch (pick(0, 9)) {
      case 0: return "none";
      case 1: wires = {link::shift(axis(-1, 0))}; return "1D systolic";
      case 2:
        wires = {link::shift(axis(-1, 0))};
        if (rank == 2) wires.push_back(link::shift({0, -1}));
        return "2D systolic";
      case 3:
        wires = {link::shift(axis(-1, 0))};
        if (rank == 2)
          for (auto o : {std::vector<int64_t>{0, -1}, {1, -1}, {-1, -1}}) wires.push_back(link::shift(o));
        return "half mesh";
      case 4:
        for (int64_t d : {-1, 1}) {
          wires.push_back(link::shift(axis(d, 0)));
          if (rank == 2) wires.push_back(link::shift({0, d}));
        }
        return "full mesh";
      case 5:
        for (int a = 0; a < rank; ++a)
          wires.push_back(link::wrap(rank, a, pick(0, 1) ? 1 : -1, array.pes.extent[static_cast<size_t>(a)]));
        return "torus";
      case 6: wires = {link::leader(rank, rank - 1, pick(0, 1))}; return "multicast from a leader";
      case 7: wires = {link::bus(rank, rank - 1)}; return "row bus";
      case 8:
        for (int a = 0; a < rank; ++a) wires.push_back(link::bus(rank, a));
        return "buses";
      default:
        wires = {link::shift(axis(-2, 0)), link::shift(axis(-1, rank == 2 && rows > 1 ? 1 : 0))};
        return "long wires";
    }
  }

  std::mt19937_64 random_;
  int64_t extent_scale_, side_scale_;
  Problem p_;
};

std::vector<int64_t> figures(const Counts& c) {
  std::vector<int64_t> all = {c.macs, c.pe_array, c.space, c.time, c.spacetime, c.outside_array};
  for (const TensorCounts& t : c.tensors)
    all.insert(all.end(), {t.total, t.assigned, t.unique, t.temporal_hits, t.spatial_hits, t.footprint});
  return all;
}

TEST(RandomCatalogue, BoxesEqualEnumeration) {
  constexpr int kProblems = 6000;
  struct Tally {
    int drawn = 0, boxes = 0;
  };
  std::map<std::string, Tally> kinds, wires;
  std::map<std::string, int> reasons;
  int by_boxes = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Catalogue::Drawn drawn = Catalogue(static_cast<uint64_t>(seed)).draw();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << drawn.kind << ", " << drawn.wires << "\n"
                                    << show(drawn.problem));
    ++kinds[drawn.kind].drawn;
    ++wires[drawn.wires].drawn;
    auto boxes = count_by_boxes(drawn.problem);
    if (auto* reason = std::get_if<Reason>(&boxes)) {
      ++reasons[reason->what];
      continue;
    }
    ++kinds[drawn.kind].boxes;
    ++wires[drawn.wires].boxes;
    ++by_boxes;
    auto points = enumerate(drawn.problem, 1 << 16);
    ASSERT_TRUE(std::holds_alternative<Counts>(points)) << std::get<Reason>(points).render();
    ASSERT_EQ(figures(std::get<Counts>(boxes)), figures(std::get<Counts>(points)));
    if (std::get<Counts>(boxes).work_cycles) {
      ASSERT_EQ(std::get<Counts>(boxes).work_cycles, std::get<Counts>(points).work_cycles);
    }
  }
  for (const auto* table : {&kinds, &wires})
    for (const auto& [name, tally] : *table)
      printf("%-36s %5d of %5d by boxes\n", name.c_str(), tally.boxes, tally.drawn);
  for (const auto& [what, times] : reasons) printf("%5d refused: %s\n", times, what.c_str());
  printf("%d of %d by boxes\n", by_boxes, kProblems);
  EXPECT_GT(by_boxes, kProblems * 99 / 100);
}

/// Rotary positions: element d of a head and its partner half a turn away, (d + shift) % size, beside the angle d % turn.
Problem rotated(int64_t tokens, int64_t heads, int64_t size, int64_t turn, int64_t shift, int64_t lanes) {
  Problem p;
  const QuasiAffine t = variable(0), h = variable(1), d = variable(2);
  p.statement.domain = Domain::box({"t", "h", "d"}, {tokens, heads, size});
  p.statement.domain.guards = {number(turn - 1) - d};  // the first half
  p.statement.accesses = {{"x", Role::read, {{t, h, d}}},
                          {"partner", Role::read, {{t, h, mod(d + shift, size)}}},
                          {"angle", Role::read, {{t, mod(d, turn)}}},
                          {"y", Role::write, {{t, h, d}}}};
  p.mapping = {{mod(d, lanes)}, {t, h, floor_div(d, lanes)}};
  p.array = {Domain::box({"lane"}, {lanes}), {}};
  return p;
}

TEST(RandomCatalogue, RotatedHalvesOfAHead) {
  for (auto [size, turn] : {std::pair<int64_t, int64_t>{8, 4}, {16, 4}, {32, 16}, {24, 4}})
    for (int64_t shift : {turn, size - turn})
      for (int64_t lanes : {1, 2, 4}) {
        SCOPED_TRACE(testing::Message() << size << " " << turn << " " << shift << " " << lanes);
        const Problem small = rotated(3, 2, size, turn, shift, lanes);
        EXPECT_EQ(figures(exact(small)), figures(std::get<Counts>(enumerate(small, 1 << 16))));
      }
  const Counts big = exact(rotated(512, 32, 128, 64, 64, 8));
  EXPECT_EQ(big.macs, 512 * 32 * 64);
  EXPECT_EQ(tensor(big, "partner").footprint, 512 * 32 * 64);
  EXPECT_EQ(tensor(big, "angle").footprint, 512 * 64);
}

// Layers and arrays of real size, where nothing can be listed: still by boxes, in time, and within what must hold.
TEST(RandomCatalogue, RealSizesAreCountedByBoxes) {
  constexpr int kProblems = 400;
  std::map<std::string, std::pair<int, int>> kinds;  // drawn, by boxes
  std::map<std::string, int> reasons;
  std::map<std::string, std::pair<double, std::string>> slowest;  // seconds, wires
  int by_boxes = 0;
  for (int seed = 0; seed < kProblems; ++seed) {
    const Catalogue::Drawn drawn = Catalogue(static_cast<uint64_t>(seed), 64, 16).draw();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << drawn.kind << ", " << drawn.wires << "\n"
                                    << show(drawn.problem));
    auto& [all, counted] = kinds[drawn.kind];
    ++all;
    const auto start = std::chrono::steady_clock::now();
    auto boxes = count_by_boxes(drawn.problem);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    auto& most = slowest[drawn.kind];
    most = std::max(most, {seconds, drawn.wires});
    if (seconds > 1)
      printf("%.1f s: %s, %s\n%s", seconds, drawn.kind.c_str(), drawn.wires.c_str(), show(drawn.problem).c_str());
    if (auto* reason = std::get_if<Reason>(&boxes)) {
      ++reasons[drawn.kind + ", " + drawn.wires + ": " + reason->what];
      continue;
    }
    ++counted, ++by_boxes;
    const Counts& c = std::get<Counts>(boxes);
    if (drawn.problem.statement.domain.guards.empty()) {
      int64_t instances = 1;
      for (int64_t extent : drawn.problem.statement.domain.extent) instances *= extent;
      EXPECT_EQ(c.macs, instances);
    }
    EXPECT_LE(c.spacetime, c.macs);
    for (const TensorCounts& t : c.tensors) {
      EXPECT_LE(t.unique, t.assigned);
      EXPECT_LE(t.assigned, t.total);
      EXPECT_GE(t.unique, t.assigned - t.temporal_hits - t.spatial_hits);
      if (drawn.wires == "none" || drawn.wires == "1D systolic" || drawn.wires == "2D systolic") {
        EXPECT_LE(t.footprint, t.unique);
      }
    }
  }
  for (const auto& [name, tally] : kinds)
    printf("%-36s %5d of %5d by boxes, slowest %.3f s: %s\n",
           name.c_str(),
           tally.second,
           tally.first,
           slowest[name].first,
           slowest[name].second.c_str());
  for (const auto& [what, times] : reasons) printf("%5d refused: %s\n", times, what.c_str());
  EXPECT_GT(by_boxes, kProblems * 9 / 10);
}

}  // namespace
}  // namespace sator::dataflow
