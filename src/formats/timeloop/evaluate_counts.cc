#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "formats/timeloop/evaluate.h"

namespace sator::formats::timeloop {

namespace {

constexpr int64_t kMostPlaces = int64_t{1} << 20;  // instances that are looked at one by one

/// To the nearest whole number, for v >= 0.
int64_t nearest(double v) { return static_cast<int64_t>(v < 4.5e15 ? v + 0.5 : v); }

/// a * b / c, rounded down, of positive numbers below 2^62.
int64_t share(int64_t a, int64_t b, int64_t c) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product / c;
  return static_cast<int64_t>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b) /
                              static_cast<unsigned __int128>(c));
}

}  // namespace

int64_t Model::box(size_t space, const std::array<int64_t, kMaxDimensions>& extent) const {
  int64_t words = 1, width = 1;
  for (const BoxTerm& t : box_terms_[space]) {
    width += t.step * (extent[t.dimension] - 1);
    if (!t.ends_rank) continue;
    words *= width;
    width = 1;
  }
  return words;
}

/// How large the tiles are, and how many instances work at each level.
std::optional<Reason> Model::place(const Mapping& mapping, Figures& out) {
  std::array<int64_t, kMaxDimensions> extent;
  extent.fill(1);
  for (size_t l = 0; l < levels_; ++l) {
    const LevelMapping& level = mapping.levels[l];
    for (const Loop& loop : level.spatial) extent[loop.dimension] *= loop.bound;
    if (!level.spatial.empty()) std::copy_n(extent.begin(), dimensions_, array_extent_[l].begin());
    for (const Loop& loop : level.temporal) extent[loop.dimension] *= loop.bound;
    std::copy_n(extent.begin(), dimensions_, tile_extent_[l].begin());
  }
  int64_t x = 1, y = 1, cycles = 1;
  for (size_t l = levels_; l-- > 0;) {
    mesh_x_[l] = x;
    mesh_y_[l] = y;
    instances_[l] = x * y;
    for (const Loop& loop : mapping.levels[l].spatial) (loop.on_y ? y : x) *= loop.bound;
    for (const Loop& loop : mapping.levels[l].temporal) cycles *= loop.bound;
  }
  out.working_units = x * y;
  out.compute_cycles = cycles;
  out.operations = cycles * out.working_units;
  if (x > a_.compute.mesh_x || y > a_.compute.mesh_y)
    return Reason{.what = text("the mapping needs ", x, " x ", y, " units of ", a_.compute.name),
                  .needs = text("at most ", a_.compute.mesh_x, " x ", a_.compute.mesh_y),
                  .hint = "lower the spatial factors, or move loops between X and Y"};
  return {};
}

/// All data spaces whose ranks each follow one dimension: tiles do not overlap, so each step of a relevant loop brings a
/// whole tile, and a loop inside of all relevant ones brings nothing.
void Model::count_boxes(const Mapping& mapping) {
  std::array<double, kMaxSpaces> tiles;  // that come over the loops so far
  tiles.fill(1);
  double all = 1;
  for (size_t l = levels_; l-- > 0;) {
    for (auto loop = mapping.levels[l].temporal.rbegin(); loop != mapping.levels[l].temporal.rend(); ++loop) {
      all *= static_cast<double>(loop->bound);
      for (size_t s = 0; s < spaces_; ++s)
        if (relevant_[s] >> loop->dimension & 1) tiles[s] = all;
    }
    for (size_t s = 0; s < spaces_; ++s) {
      // What the level below (or, below the innermost, the arithmetic) asks of this one.
      Flow& f = flow_[s][l];
      double fan_out = 1, distinct = 1;
      for (const Loop& loop : mapping.levels[l].spatial) {
        fan_out *= static_cast<double>(loop.bound);
        if (relevant_[s] >> loop.dimension & 1) distinct *= static_cast<double>(loop.bound);
      }
      if (mapping.levels[l].no_multicast >> s & 1) distinct = fan_out;
      double words = l == 0 ? all
                            : static_cast<double>(flow_[s][l - 1].words) *
                                  (mapping.levels[l - 1].no_temporal_reuse >> s & 1 ? all : tiles[s]);
      f.fan_out = fan_out;
      if (l > 0) flow_[s][l - 1].from_parent = words;
      f.served = words * distinct;
      f.weighted = words * fan_out;
      f.passed = 0;
      f.detail = nullptr;
    }
  }
}

std::optional<Reason> Model::count_slides(const Mapping& mapping, size_t s, size_t level) {
  TileMoves moves{.ranks = static_cast<int>(w_.spaces[s].ranks.size())};
  auto shift = [&](const Loop& loop, int64_t stride) {
    TileStep step{.bound = loop.bound};
    for (size_t r = 0; r < w_.spaces[s].ranks.size(); ++r)
      for (const ProjectionTerm& t : w_.spaces[s].ranks[r])
        if (t.dimension == loop.dimension) step.shift[r] += t.coefficient * stride;
    return step;
  };
  std::array<int64_t, kMaxDimensions> extent{};
  if (level == 0)
    extent.fill(1);
  else
    extent = tile_extent_[level - 1];
  for (size_t r = 0; r < w_.spaces[s].ranks.size(); ++r) {
    moves.extent[r] = 1;
    for (const ProjectionTerm& t : w_.spaces[s].ranks[r])
      moves.extent[r] += std::abs(t.coefficient) * (extent[t.dimension] - 1);
  }
  time_.clear();
  space_.clear();
  int64_t instances = 1;
  for (size_t l = level; l < levels_; ++l) {
    for (const Loop& loop : mapping.levels[l].spatial) {
      if (l == level) {
        space_.push_back(shift(loop, extent[loop.dimension]));
        instances *= loop.bound;
      }
      extent[loop.dimension] *= loop.bound;
    }
    for (const Loop& loop : mapping.levels[l].temporal) {
      time_.push_back(shift(loop, extent[loop.dimension]));
      extent[loop.dimension] *= loop.bound;
    }
  }
  if (instances > kMostPlaces)
    return Reason{.what = text("tiles of ", w_.spaces[s].name, " slide over an array of ", instances, " instances"),
                  .needs = text("at most ", kMostPlaces, " instances where a rank sums dimensions"),
                  .hint = "spread the loops over several levels"};
  moves.resident = level > 0 && !(mapping.levels[level - 1].no_temporal_reuse >> s & 1);
  moves.time = time_;
  moves.space = space_;
  moves.multicast = !(mapping.levels[level].no_multicast >> s & 1);
  moves.neighbours = !(mapping.levels[level].no_link_transfer >> s & 1);
  int64_t logical_x = 1, logical_y = 1;
  for (const Loop& loop : mapping.levels[level].spatial) (loop.on_y ? logical_y : logical_x) *= loop.bound;
  int64_t inner_x = level == 0 ? a_.compute.mesh_x : a_.levels[level - 1].mesh_x;
  int64_t inner_y = level == 0 ? a_.compute.mesh_y : a_.levels[level - 1].mesh_y;
  moves.width = std::max(logical_x, inner_x / a_.levels[level].mesh_x);
  moves.height = std::max(logical_y, inner_y / a_.levels[level].mesh_y);
  Traffic& t = traffic_[s][level];
  if (!mover_.count(moves, t))
    return Reason{.what = text("the tiles of ", w_.spaces[s].name, " lie too far apart over the array"),
                  .needs = "places whose coordinates need less than 62 bits together",
                  .hint = "lower the spatial factors or the extents"};
  Flow& f = flow_[s][level];
  f.fan_out = static_cast<double>(instances);
  f.served = f.weighted = 0;
  double each = 0;
  for (const Delivery& d : t.deliveries) {
    double given = d.accesses * static_cast<double>(d.multicast);
    f.served += d.accesses;
    f.weighted += given;
    each += given / f.fan_out;
  }
  if (level > 0) flow_[s][level - 1].from_parent = each;
  f.passed = t.passed;
  f.detail = &t;
  return {};
}

/// A level that bypasses a data space hands the accesses to it on to the next outer one.
void Model::bypass(const Mapping& mapping, size_t s) {
  auto& flow = flow_[s];
  for (size_t l = 0; l < levels_; ++l) {
    if (mapping.levels[l].keep >> s & 1) continue;
    Flow& f = flow[l];
    if (l + 1 < levels_) {
      Flow& outer = flow[l + 1];
      double factor = f.served * outer.fan_out / outer.weighted;
      if (outer.detail) {
        outer.served = 0;
        outer.weighted = 0;
        for (Delivery& d : traffic_[s][l + 1].deliveries) {
          d.accesses *= factor;
          outer.served += d.accesses;
          outer.weighted += d.accesses * static_cast<double>(d.multicast);
        }
      } else {
        outer.served *= factor;
        outer.weighted *= factor;
      }
      outer.passed = 0;
    }
    f.words = f.partition = 0;
    f.served = f.from_parent = 0;
  }
  // The outermost level that keeps it gets it from nowhere; what lies above keeps nothing in motion.
  for (size_t l = levels_; l-- > 0;) {
    if (mapping.levels[l].keep >> s & 1) {
      flow[l].from_parent = 0;
      break;
    }
    flow[l].passed = 0;
  }
}

/// The tiles of one data space, and the words that each instance is responsible for.
void Model::measure(const Mapping& mapping, size_t s) {
  int64_t partition = box(s, tile_extent_[levels_ - 1]);
  for (size_t l = levels_; l-- > 0;) {
    Flow& f = flow_[s][l];
    f.words = l + 1 == levels_ ? partition : box(s, tile_extent_[l]);
    if (l + 1 < levels_ && !mapping.levels[l + 1].spatial.empty()) {
      int64_t beside = box(s, array_extent_[l + 1]);
      if (beside != f.words) partition = share(partition, f.words, beside);
    }
    f.partition = partition;
  }
}

/// Reads, fills and updates of one data space at all levels.
std::optional<Reason> Model::split(const Mapping& mapping, size_t s, Figures& out) {
  auto& flow = flow_[s];
  for (size_t l = 0; l < levels_; ++l) flow[l].peer = 0;
  for (size_t l = levels_; l-- > 1;)
    if (flow[l].passed != 0) flow[l - 1].peer = flow[l].passed / static_cast<double>(instances_[l - 1]);
  size_t outermost = levels_;
  while (outermost > 0 && flow[outermost - 1].words == 0) --outermost;
  auto whole = [&](double v) {
    if (v < -0.5) out.clamped = true;
    return v <= 0 ? int64_t{0} : v > kLargestCount ? int64_t{-1} : nearest(v);
  };
  for (size_t l = 0; l < levels_; ++l) {
    const Flow& f = flow[l];
    SpaceFigures& g = out.levels[l].spaces[s];
    g = {.kept = (mapping.levels[l].keep >> s & 1) != 0, .tile_words = f.words, .instances = instances_[l]};
    if (f.words == 0) continue;
    if (w_.spaces[s].read_write) {
      bool first_read = mapping.levels[l].rmw_first_update >> s & 1;
      double partition = first_read ? 0 : static_cast<double>(f.partition);
      g.updates = whole(f.served);
      g.reads = whole(f.served + f.peer - partition);
      g.fills = whole(f.from_parent + f.peer - (l + 1 == outermost ? 0 : partition));
    } else {
      g.reads = whole(f.served + f.peer);
      double fills = f.from_parent + f.peer;
      g.fills = fills > kLargestCount ? -1 : static_cast<int64_t>(fills);
    }
    if (g.reads < 0 || g.fills < 0 || g.updates < 0)
      return beyond_62_bits(text("a count of ", w_.spaces[s].name, " at ", a_.levels[l].name));
  }
  return {};
}

}  // namespace sator::formats::timeloop
