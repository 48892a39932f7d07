// Timeloop's model: worked by hand, against the algorithm run step by step, and against exact counts of relations.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "dataflow/counts/counts.h"
#include "formats/timeloop/answer.h"
#include "formats/timeloop/as_relation.h"
#include "formats/timeloop/evaluate.h"
#include "timeloop_sample.h"

namespace sator::formats::timeloop {
namespace {

using namespace dataflow;

Figures figures_of(const Input& input, Release release = Release::v3_0_3) {
  Model model(input.workload, input.architecture, release);
  Figures figures;
  auto problem = model.evaluate(input.mapping, figures);
  EXPECT_FALSE(problem) << problem->render();
  return figures;
}

const SpaceFigures& of(const Input& input, const Figures& f, const std::string& level, const std::string& space) {
  for (size_t l = 0; l < input.architecture.levels.size(); ++l)
    for (size_t s = 0; s < input.workload.spaces.size(); ++s)
      if (input.architecture.levels[l].name == level && input.workload.spaces[s].name == space)
        return f.levels[l].spaces[s];
  throw std::runtime_error(text("no ", space, " at ", level));
}

// The sample: 16 * 4 * 3 * 32 = 6144 operations on 8 units. A register file holds 3 weights, 2*3+3 = 9 inputs, 4 outputs;
// above it run P 4, C 2 (buffer), K 4, P 2 (DRAM), innermost first.
TEST(TimeloopModel, SampleByHand) {
  Input input = parse({kArchitecture, kProblem, kMapping, kErt});
  Figures f = figures_of(input);
  EXPECT_EQ(f.operations, 6144);
  EXPECT_EQ(f.working_units, 8);
  EXPECT_EQ(f.compute_cycles, 768);
  // Weights stay over P, then come anew for each C, K and P: 3 * 2*4*2 = 48 per instance. Each unit reads one per
  // operation. Nothing keeps them in between, and all 8 instances want others: DRAM gives 48 * 8.
  EXPECT_EQ(of(input, f, "registers", "Weights").fills, 48);
  EXPECT_EQ(of(input, f, "registers", "Weights").reads, 768);
  EXPECT_EQ(of(input, f, "DRAM", "Weights").reads, 384);
  EXPECT_FALSE(of(input, f, "buffer", "Weights").kept);
  // Inputs slide by 8 of 9 over P: 9 + 3*8 = 33 at first; a new C starts anew, and the stride changed: the whole tile, and
  // the tile after it is taken for the first of a new stride: 33 again. So 33 * 2 * 4 * 2 = 528. The 4 instances along X
  // (K) want the same, the 2 along Y (C) others.
  EXPECT_EQ(of(input, f, "registers", "Inputs").fills, 528);
  EXPECT_EQ(of(input, f, "buffer", "Inputs").reads, 528 * 2);
  // The buffer's 4 * (2*15+3) = 132 inputs stay over K and are replaced by P; the stride was 0 before: all of them.
  EXPECT_EQ(of(input, f, "buffer", "Inputs").fills, 264);
  EXPECT_EQ(of(input, f, "DRAM", "Inputs").reads, 264);
  // Outputs: C outside of P brings each tile twice: 4 * 4*2*4*2 = 256 updates of the buffer by each of the 4 instances
  // along X; the two along Y (C) are summed on the way. Each of the 512 words is new once, so half are read back.
  EXPECT_EQ(of(input, f, "buffer", "Outputs").updates, 1024);
  EXPECT_EQ(of(input, f, "buffer", "Outputs").reads, 512);
  EXPECT_EQ(of(input, f, "buffer", "Outputs").fills, 0);
  EXPECT_EQ(of(input, f, "DRAM", "Outputs").updates, 512);
  EXPECT_EQ(of(input, f, "registers", "Outputs").updates, 768);
  // DRAM reads 384 + 264 = 648 words at 4 per cycle: 162 cycles; the buffer reads 1568 at 16: 98. Nobody waits.
  EXPECT_EQ(f.cycles, 768);
  EXPECT_DOUBLE_EQ(f.utilization, 1.0);
  // Vectors of 8 words at DRAM, of 4 at the buffer, of 1 in the registers.
  double dram = (384 + 264 + 512) / 8 * 512.0;
  double buffer = (1056 + 512) / 4 * 20.0 + (264 + 1024) / 4 * 16.0 + 0.5 * 768;
  const SpaceFigures& back = of(input, f, "registers", "Outputs");
  double registers = 8 * ((768 + 768 + back.reads) * 0.2 + (48 + 528 + back.fills + 768) * 0.25);
  EXPECT_NEAR(f.energy_pj, dram + buffer + registers + 6144 * 0.3, 1e-6);
}

TEST(TimeloopModel, AllFormsOfOneInputAreEqual) {
  Input input = parse({kArchitecture, kProblem, kMapping, kErt});
  Input tree = parse({kTree, kProblem, kPrinted, kErt});
  EXPECT_EQ(tree.mapping, input.mapping);
  EXPECT_EQ(to_json(tree, figures_of(tree)).dump(), to_json(input, figures_of(input)).dump());
}

TEST(TimeloopModel, TheFlatFormOfTheFirstReleasesReadsToo) {
  Input input = parse({R"(arch:
  arithmetic: {name: mac, instances: 8, meshX: 4, word-bits: 8}
  storage:
  - {name: registers, entries: 64, instances: 8, meshX: 4, word-bits: 8}
  - {name: inter_PE_spatial, entries: 1, instances: 1, word-bits: 1}
  - {name: buffer, sizeKB: 4, instances: 1, word-bits: 8, block-size: 4, read_bandwidth: 16, write_bandwidth: 16}
  - {name: DRAM, technology: DRAM, instances: 1, word-bits: 8, block-size: 8, bandwidth: 8}
)",
                       kProblem,
                       kPrinted,
                       kErt});
  Input tree = parse({kTree, kProblem, kPrinted, kErt});
  nlohmann::json flat = to_json(input, figures_of(input)), other = to_json(tree, figures_of(tree));
  EXPECT_EQ(flat.dump(), other.dump());
}

TEST(TimeloopModel, ConvolutionIsTheShapeOfFilesWithoutOne) {
  Workload w = parse_problem("problem: {R: 3, S: 3, P: 8, Q: 8, C: 4, M: 16, N: 1, Wstride: 2, Hdilation: 3}");
  ASSERT_EQ(w.spaces.size(), 3u);
  EXPECT_EQ(w.dimensions, (std::vector<std::string>{"C", "M", "R", "S", "N", "P", "Q"}));
  const auto& rows = w.spaces[1].ranks[2];  // R * Wdilation + P * Wstride
  EXPECT_EQ(rows,
            (std::vector<ProjectionTerm>{{.dimension = 2, .coefficient = 1}, {.dimension = 5, .coefficient = 2}}));
  const auto& columns = w.spaces[1].ranks[3];
  EXPECT_EQ(columns,
            (std::vector<ProjectionTerm>{{.dimension = 3, .coefficient = 3}, {.dimension = 6, .coefficient = 1}}));
  EXPECT_TRUE(w.spaces[2].read_write);
}

TEST(TimeloopModel, AnERTOfOldFormAndOneWithGaps) {
  std::string_view old = R"(ERT:
  version: 0.2
  tables:
    system.DRAM: {read: [{arguments: {data_delta: 0}, energy: 100}, {arguments: {data_delta: 1}, energy: 512}], write: {energy: 512}}
    system.buffer: {read: {energy: 20}, write: {energy: 16}, leak: {energy: 0.5}}
    system.registers: {read: 0.2, write: 0.25}
    system.mac: {mac_random: 0.3, mac_gated: 0.1}
)";
  Input input = parse({kArchitecture, kProblem, kMapping, old});
  Input as_new = parse({kArchitecture, kProblem, kMapping, kErt});
  EXPECT_DOUBLE_EQ(figures_of(input).energy_pj, figures_of(as_new).energy_pj);
  std::string gaps(kErt);
  gaps.replace(gaps.find("    - {name: write, energy: 16}\n"), 32, "");
  Input partly = parse({kArchitecture, kProblem, kMapping, gaps});
  EXPECT_EQ(partly.no_energy, "the ERT has no write of buffer");
  EXPECT_FALSE(to_json(partly, figures_of(partly)).contains("energy_pJ"));
}

TEST(TimeloopModel, WithoutEnergiesTheirKeysAreLeftOutAndItIsSaid) {
  nlohmann::json got = answer_timeloop({{"architecture", kArchitecture}, {"problem", kProblem}, {"mapping", kMapping}});
  EXPECT_EQ(got["cycles"], 768);
  EXPECT_FALSE(got.contains("energy_pJ"));
  EXPECT_FALSE(got["levels"][1]["Outputs"].contains("energy_pJ"));
  EXPECT_NE(got["notes"].dump().find("no ERT"), std::string::npos);
}

// ---- random nests ----

class RandomNest {
 public:
  explicit RandomNest(uint64_t seed) : random_(seed) {}

  Input draw(bool sliding) {
    Input input;
    Workload& w = input.workload;
    int dims = pick(2, 4), levels = pick(1, 3);
    w.dimensions = {"A", "B", "C", "D"};
    w.dimensions.resize(dims);
    w.bounds.assign(dims, 1);
    Architecture& a = input.architecture;
    a.compute = {.name = "mac", .instances = 4096, .mesh_x = 64, .mesh_y = 64};
    for (int l = 0; l < levels; ++l) {
      // Every level may fan out; the mesh halves per level, the outermost is one instance.
      int64_t side = l + 1 == levels ? 1 : 64 >> (2 * l + 2);
      a.levels.push_back({.name = text("level", l), .instances = side * side, .mesh_x = side, .mesh_y = side});
    }
    input.mapping.levels.resize(levels);
    for (LevelMapping& level : input.mapping.levels) {
      level.temporal = loops(w, pick(0, 3), false);
      level.spatial = loops(w, chance(2) ? pick(1, 2) : 0, true);
    }
    for (int s = 0; s < 3; ++s) {
      DataSpace space{.name = text("T", s), .read_write = s == 2};
      for (int d = 0; d < dims; ++d)
        if (chance(2)) space.ranks.push_back({{.dimension = d, .coefficient = chance(4) ? 2 : 1}});
      if (sliding && space.ranks.size() > 1) {  // two dimensions in one rank
        space.ranks[0].push_back(space.ranks.back()[0]);
        space.ranks.pop_back();
      }
      w.spaces.push_back(space);
    }
    for (StorageLevel& level : a.levels) level.bandwidth_scale.assign(w.spaces.size(), 1.0);
    return input;
  }
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int one_in) { return pick(1, one_in) == 1; }

 private:
  std::mt19937_64 random_;

  std::vector<Loop> loops(Workload& w, int count, bool spatial) {
    std::vector<int> order(w.dimensions.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<Loop> out;
    for (int i = 0; i < std::min<int>(count, static_cast<int>(order.size())); ++i) {
      Loop loop{.dimension = order[i], .bound = spatial ? pick(2, 3) : pick(2, 4), .on_y = spatial && i > 0};
      w.bounds[loop.dimension] *= loop.bound;
      out.push_back(loop);
    }
    return out;
  }
};

/// The algorithm of nests itself, step by step over the first two iterations of each loop, on boxes in place.
class Walk {
 public:
  Walk(const TileMoves& moves, Release release) : m_(moves), release_(release) {}

  Traffic run() {
    places_ = {Point{}};
    for (const TileStep& loop : m_.space) {
      size_t inner = places_.size();
      for (int64_t i = 1; i < loop.bound; ++i)
        for (size_t p = 0; p < inner; ++p) places_.push_back(plus(places_[p], loop.shift, i));
    }
    descend(m_.time.size(), Point{}, 1);
    Traffic out{.passed = passed_};
    for (auto& [key, accesses] : stats_) out.deliveries.push_back({key.first, key.second, accesses});
    return out;
  }

 private:
  struct Box {
    Point low{}, size{};
    auto operator<=>(const Box&) const = default;
  };
  const TileMoves& m_;
  Release release_;
  std::vector<Point> places_;
  bool has_last_ = false, has_stride_ = false;
  Point last_{}, stride_{};
  std::map<size_t, Box> before_;
  std::map<std::pair<int64_t, int64_t>, double> stats_;
  double passed_ = 0;

  static Point plus(Point a, const Point& b, int64_t times) {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i] * times;
    return a;
  }
  double volume(const Box& b) const {
    double v = 1;
    for (int r = 0; r < m_.ranks; ++r) v *= static_cast<double>(b.size[r]);
    return v;
  }
  Box without_last(Box now) const {
    int differ = -1;
    for (int r = 0; r < m_.ranks; ++r) {
      if (last_[r] + now.size[r] <= now.low[r] || now.low[r] + now.size[r] <= last_[r]) return now;
      if (last_[r] != now.low[r]) differ = differ == -1 ? r : -2;
    }
    if (differ == -2) return now;
    if (differ == -1) return {.size = {}};
    int64_t end = now.low[differ] + now.size[differ];
    if (last_[differ] < now.low[differ])
      now.low[differ] = last_[differ] + now.size[differ];
    else
      end = last_[differ];
    now.size[differ] = end - now.low[differ];
    return now;
  }
  Box new_words(const Point& at) {
    Box whole{at, m_.extent};
    if (!m_.resident) return whole;
    Box fresh = whole;
    if (!has_last_) {
      has_last_ = true;
    } else {
      Point stride = plus(at, last_, -1);
      bool still = stride == Point{};
      if (release_ == Release::master && still) {
        fresh = without_last(whole);
      } else if (!has_stride_) {
        fresh = without_last(whole);
        has_stride_ = true;
        stride_ = stride;
      } else if (stride == stride_) {
        fresh = without_last(whole);
      } else {
        has_stride_ = false;
      }
    }
    last_ = at;
    return fresh;
  }
  std::map<int64_t, int64_t> groups(const std::map<size_t, Box>& wanted) const {
    std::map<Box, int64_t> by_words;
    std::map<int64_t, int64_t> sizes;
    for (auto& [place, box] : wanted) {
      if (m_.multicast)
        ++by_words[box];
      else
        ++sizes[1];
    }
    for (auto& [box, count] : by_words) ++sizes[count];
    return sizes;
  }
  void tile(const Point& at, double weight) {
    Box fresh = new_words(at);
    double words = volume(fresh);
    std::map<size_t, Box> wanted, unlinked;
    for (size_t i = 0; i < places_.size(); ++i) wanted[i] = {plus(fresh.low, places_[i], 1), fresh.size};
    if (words > 0) {
      for (auto& [i, box] : wanted) {
        int64_t x = static_cast<int64_t>(i) % m_.width, y = static_cast<int64_t>(i) / m_.width;
        auto had = [&](bool there, int64_t place) {
          auto found = there ? before_.find(static_cast<size_t>(place)) : before_.end();
          return found != before_.end() && found->second == box;
        };
        int64_t p = static_cast<int64_t>(i);
        bool linked = m_.neighbours && places_.size() > 1 &&
                      (had(x > 0, p - 1) || had(x + 1 < m_.width, p + 1) || had(y > 0, p - m_.width) ||
                       had(y + 1 < m_.height, p + m_.width));
        if (!linked) unlinked[i] = box;
      }
      auto total = [](const std::map<int64_t, int64_t>& g) {
        int64_t n = 0;
        for (auto& [size, count] : g) n += count;
        return n;
      };
      auto with = groups(unlinked), without = groups(wanted);
      bool pass = total(with) < total(without);
      if (pass) passed_ += words * weight * static_cast<double>(wanted.size() - unlinked.size());
      for (auto& [size, count] : pass ? with : without) stats_[{size, count}] += words * weight * count;
    }
    before_ = wanted;
    if (words == 0) before_.clear();
  }
  void descend(size_t depth, const Point& at, double weight) {
    if (depth == 0) return tile(at, weight);
    const TileStep& loop = m_.time[depth - 1];
    descend(depth - 1, at, weight);
    descend(depth - 1, plus(at, loop.shift, 1), weight * static_cast<double>(loop.bound - 1));
  }
};

TEST(TimeloopModel, MovementEqualsTheAlgorithmStepByStep) {
  RandomNest random(11);
  TileMover old_mover(Release::v3_0_3), new_mover(Release::master);
  int passes = 0, differ = 0;
  for (int i = 0; i < 8000; ++i) {
    TileMoves moves{.ranks = random.pick(1, 3)};
    for (int r = 0; r < moves.ranks; ++r) moves.extent[r] = random.pick(1, 6);
    auto draw = [&](int most) {
      std::vector<TileStep> loops(random.pick(0, most));
      for (TileStep& loop : loops) {
        loop.bound = random.pick(2, 4);
        for (int r = 0; r < moves.ranks; ++r)
          if (random.chance(2)) loop.shift[r] = random.pick(-2, 6);
      }
      return loops;
    };
    std::vector<TileStep> time = draw(6), space = draw(2);
    moves.time = time;
    moves.space = space;
    moves.width = space.empty() ? 1 : space[0].bound + random.pick(0, 1);
    moves.height = space.size() < 2 ? random.pick(1, 2) : space[1].bound;
    moves.resident = !random.chance(5);
    moves.multicast = !random.chance(8);
    moves.neighbours = !random.chance(8);
    Traffic traffic[2];
    old_mover.count(moves, traffic[0]);
    new_mover.count(moves, traffic[1]);
    for (Release release : {Release::v3_0_3, Release::master}) {
      const Traffic& got = traffic[release == Release::master];
      Traffic want = Walk(moves, release).run();
      ASSERT_EQ(got.passed, want.passed) << i;
      ASSERT_EQ(got.deliveries.size(), want.deliveries.size()) << i;
      for (size_t d = 0; d < got.deliveries.size(); ++d) {
        ASSERT_EQ(got.deliveries[d].multicast, want.deliveries[d].multicast) << i;
        ASSERT_EQ(got.deliveries[d].scatter, want.deliveries[d].scatter) << i;
        ASSERT_EQ(got.deliveries[d].accesses, want.deliveries[d].accesses) << i;
      }
      passes += got.passed > 0;
    }
    double sums[2] = {0, 0};
    for (int k = 0; k < 2; ++k)
      for (const Delivery& d : traffic[k].deliveries) sums[k] += d.accesses;
    differ += sums[0] != sums[1];
  }
  EXPECT_GT(passes, 100) << "neighbours passed words on in some draws";
  EXPECT_GT(differ, 100) << "the two releases differ in some draws";
}

/// The words that come new to the instances of a level, exact: triples (instance, tile, word) that the tile before had not.
int64_t exact_fills(const Input& input, size_t level, size_t space) {
  auto counted = count(as_relation(input.workload, input.mapping, static_cast<int>(level)));
  if (auto* reason = std::get_if<Reason>(&counted)) {
    ADD_FAILURE() << reason->render();
    return -1;
  }
  return std::get<Counts>(counted).tensors[space].unique;
}

TEST(TimeloopModel, ClosedFormEqualsExactCountsOfTheRelation) {
  RandomNest random(5);
  int compared = 0, by_boxes = 0;
  for (int i = 0; i < 400; ++i) {
    Input input = random.draw(false);
    if (input.workload.spaces[0].ranks.empty() || input.workload.spaces[1].ranks.empty() ||
        input.workload.spaces[2].ranks.empty())
      continue;
    Figures f = figures_of(input);
    for (size_t l = 0; l + 1 < input.mapping.levels.size(); ++l) {
      by_boxes += std::holds_alternative<Counts>(
          count_by_boxes(as_relation(input.workload, input.mapping, static_cast<int>(l))));
      for (size_t s = 0; s < 3; ++s) {
        SCOPED_TRACE(testing::Message() << "nest " << i << ", level " << l << ", space " << s);
        bool plain = true;  // a stride above 1 leaves holes in Timeloop's boxes
        for (const auto& rank : input.workload.spaces[s].ranks) plain &= rank[0].coefficient == 1;
        if (!plain) continue;
        const SpaceFigures& g = f.levels[l].spaces[s];
        int64_t fresh = exact_fills(input, l, s);
        if (input.workload.spaces[s].read_write) {
          // Each tile goes up once; instances that differ only in loops that it does not follow add theirs on the way.
          int64_t adding = 1;
          for (const Loop& loop : input.mapping.levels[l + 1].spatial) {
            bool follows = false;
            for (const auto& rank : input.workload.spaces[s].ranks) follows |= rank[0].dimension == loop.dimension;
            if (!follows) adding *= loop.bound;
          }
          EXPECT_EQ(fresh, f.levels[l + 1].spaces[s].updates * f.levels[l + 1].spaces[s].instances * adding);
          EXPECT_GE(fresh, g.fills * g.instances);
        } else {
          EXPECT_EQ(fresh, g.fills * g.instances);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 300);
  EXPECT_GT(by_boxes, 100) << "most relations are counted by boxes";
}

TEST(TimeloopModel, WrittenMappingsReadBackEqual) {
  RandomNest random(3);
  for (int i = 0; i < 300; ++i) {
    Input input = random.draw(i % 2 == 0);
    SpaceSet all = (SpaceSet{1} << input.workload.spaces.size()) - 1;
    for (size_t l = 0; l < input.mapping.levels.size(); ++l) {
      LevelMapping& level = input.mapping.levels[l];
      level.keep = l + 1 == input.mapping.levels.size() ? all : static_cast<SpaceSet>(random.pick(0, 7));
      level.no_temporal_reuse = static_cast<SpaceSet>(random.chance(4) ? random.pick(0, 7) : 0);
      if (!level.spatial.empty()) level.no_multicast = static_cast<SpaceSet>(random.chance(4) ? random.pick(0, 7) : 0);
    }
    std::string written = mapping_text(input.mapping, input.workload, input.architecture);
    Mapping read = parse_mapping(written, input.workload, input.architecture);
    ASSERT_EQ(read, input.mapping) << written;
    EXPECT_EQ(mapping_text(read, input.workload, input.architecture), written);
    figures_of(input);
    figures_of(input, Release::master);
  }
}

TEST(TimeloopModel, NeighboursPassWordsOn) {
  // P lies along X, R runs in time, with no memory below the array: the input that unit x needs for r+1 is what unit x+1
  // had for r. Of 4 inputs per step after the first only the last comes from the buffer.
  Input input = parse({R"(architecture:
  nodes:
  - !Component {name: buffer, class: SRAM, attributes: {datawidth: 8}}
  - !Container {name: PE, spatial: {meshX: 4}}
  - !Component {name: mac, class: compute}
)",
                       R"(problem:
  shape:
    dimensions: [P, R]
    data_spaces:
    - {name: I, projection: [[[P], [R]]]}
    - {name: W, projection: [[[R]]]}
    - {name: O, projection: [[[P]]], read_write: true}
  instance: {P: 4, R: 3}
)",
                       R"(mapping:
- {target: buffer, type: temporal, factors: R=3, permutation: RP}
- {target: PE, type: spatial, factors: P=4, permutation: PR}
)",
                       ""});
  Figures f = figures_of(input);
  EXPECT_EQ(of(input, f, "buffer", "I").reads, 4 + 2 * 1);
  EXPECT_EQ(of(input, f, "buffer", "W").reads, 3);
}

TEST(TimeloopModel, WhatDoesNotFitIsRefused) {
  auto refusal = [](std::string_view from, std::string_view to) {
    std::string architecture(kArchitecture);
    size_t at = architecture.find(from);
    EXPECT_NE(at, std::string::npos);
    architecture.replace(at, from.size(), to);
    Input input = parse({architecture, kProblem, kMapping, kErt});
    Model model(input.workload, input.architecture);
    Figures figures;
    auto problem = model.evaluate(input.mapping, figures);
    return problem ? problem->render() : std::string("accepted");
  };
  EXPECT_NE(refusal("depth: 64,", "depth: 15,").find("registers have 16 words"), std::string::npos);
  EXPECT_NE(refusal("depth: 1024", "depth: 48").find("buffer have 196 words"), std::string::npos);
  EXPECT_NE(refusal("meshX: 4, meshY: 2", "meshX: 2, meshY: 4").find("4 x 2"), std::string::npos);
  EXPECT_NE(refusal("depth: 64,", "depth: 64, min_utilization: 0.9,").find("min_utilization"), std::string::npos);
}

}  // namespace
}  // namespace sator::formats::timeloop
