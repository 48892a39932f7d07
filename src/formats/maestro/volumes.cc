#include "formats/maestro/volumes.h"

#include <algorithm>

#include "base/error.h"

namespace sator::formats::maestro {
namespace {

using At = LoopState::At;

[[noreturn]] void overflow() {
  fail({.what = "a count takes more than 64 bits", .needs = "every count below 2^63", .hint = "use smaller sizes"});
}

bool indexes(const std::vector<Dim>& tensor, Dim dim) {
  return std::find(tensor.begin(), tensor.end(), dim) != tensor.end();
}

Dim output_dim(Dim dim) { return dim == Dim::y ? Dim::out_y : dim == Dim::x ? Dim::out_x : dim; }

std::vector<LoopState> temporal_states(const LevelMap& map, int64_t size) {
  std::vector<LoopState> states{{.at = At::first, .all_at_once = size <= map.size, .first_is_short = size < map.size}};
  if (size <= map.size) return states;
  const int64_t steady = (size - map.size) / map.offset;
  if (steady > 0) states.push_back({.at = At::middle, .times = steady});
  if (steady * map.offset + map.size < size) states.push_back({.at = At::edge});
  return states;
}

std::vector<LoopState> spatial_states(const LevelMap& map, int64_t size, int64_t units) {
  const int64_t round = times(map.offset, units);  // from one round of all units to the next
  const int64_t covered = plus(map.size, round - map.offset);
  std::vector<LoopState> states{{.at = At::first,
                                 .all_at_once = size <= covered,
                                 .first_is_short = size < covered,
                                 .last_unit_short = size < covered}};
  if (size <= covered) return states;
  const int64_t steady = ((size - map.size) / map.offset + 1) / units - 1;
  if (steady > 0) states.push_back({.at = At::middle, .times = steady});
  if (plus(times(steady + 1, round), covered) > size && steady * round + covered != size) {
    const int64_t left = size - (steady + 1) * round;
    const int64_t whole = left < map.size ? 1 : (left - map.size) / map.offset + 1;
    states.push_back({.at = At::edge, .last_unit_short = (whole - 1) * map.offset + map.size < left});
  }
  return states;
}

}  // namespace

int64_t times(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_mul_overflow(a, b, &out)) overflow();
  return out;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t out = 0;
  if (__builtin_add_overflow(a, b, &out)) overflow();
  return out;
}

std::vector<std::vector<LoopState>> loop_states(const Level& level, const PerDim<int64_t>& size) {
  std::vector<std::vector<LoopState>> out;
  for (const LevelMap& map : level.maps)
    out.push_back(map.spatial ? spatial_states(map, size[map.dim], level.clusters)
                              : temporal_states(map, size[map.dim]));
  return out;
}

Volumes::Spread Volumes::spread_of(const std::vector<Dim>& tensor, bool any_spatial) const {
  Spread spread;
  const auto take = [&](int index) {
    if (!level_.maps[index].spatial) return;
    spread.state = &loops_[index];
    spread.short_tile = spread.short_tile || loops_[index].short_tile();
  };
  for (Dim dim : tensor) take(level_.map_of[dim]);
  if (any_spatial)
    for (size_t i = 0; i < level_.maps.size(); ++i) take(static_cast<int>(i));
  return spread;
}

/// All that the unit's tiles of the tensor cover.
int64_t Volumes::mapped(const std::vector<Dim>& tensor, Unit unit) const {
  int64_t words = 1;
  for (size_t i = 0; i < level_.maps.size(); ++i) {
    const LevelMap& map = level_.maps[i];
    if (!indexes(tensor, map.dim)) continue;
    const Extent& extent = level_.extent[map.dim];
    if (!loops_[i].short_tile()) {
      words = times(words, extent.mapped);
    } else if (!map.spatial) {
      words = times(words, extent.mapped_edge);
    } else if (level_.edge_clusters > 1) {
      words = times(words, unit.short_tile ? extent.mapped_edge : extent.mapped);
    } else if (unit.first || unit.short_tile) {
      words = times(words, extent.mapped_edge);
    }
  }
  return words;
}

/// Of these, the words that the unit does not have from the step before, nor shares with its neighbour.
int64_t Volumes::fresh(const std::vector<Dim>& tensor, Unit unit) const {
  int moving = -1;  // the innermost loop that is not at its first tile
  for (size_t i = 0; i < loops_.size(); ++i)
    if (loops_[i].at != At::first) moving = static_cast<int>(i);
  if (moving < 0) return mapped(tensor, unit);
  if (!indexes(tensor, level_.maps[moving].dim)) return 0;
  bool restarts = false;  // a loop of the tensor inside of the moving one begins again
  for (size_t i = moving + 1; i < loops_.size(); ++i)
    restarts = restarts || (loops_[i].at == At::first && !loops_[i].all_at_once && indexes(tensor, level_.maps[i].dim));
  int64_t words = 1;
  for (int i = 0; i < static_cast<int>(loops_.size()); ++i) {
    const LevelMap& map = level_.maps[i];
    if (!indexes(tensor, map.dim)) continue;
    const Extent& extent = level_.extent[map.dim];
    const bool at_first = loops_[i].at == At::first;
    if (map.spatial) {
      const bool shared = !unit.first && (at_first ? i > moving : i == moving && !restarts);
      const int64_t full = shared ? extent.fresh : extent.mapped;
      words = times(words, !unit.short_tile ? full : shared ? extent.fresh_edge : extent.mapped_edge);
    } else if (at_first) {
      words = times(words, loops_[i].short_tile() ? extent.mapped_edge : extent.mapped);
    } else {
      if (i == moving && extent.fresh == 0 && !restarts)
        fail({.what = text("a cluster is handed more of ", name_of(map.dim), " than its own tile covers"),
              .needs = "maps whose tiles fit into those of the level above; MAESTRO stops here too",
              .hint = text("make the tile of ", name_of(map.dim), " on the level above a multiple of its offset")});
      words = times(words, i == moving && !restarts ? extent.fresh : extent.mapped);
    }
  }
  return words;
}

int64_t Volumes::ingress(const std::vector<Dim>& tensor) const {
  const Spread spread = spread_of(tensor, false);
  if (!spread.state) return fresh(tensor, {});
  if (!spread.short_tile) return plus(fresh(tensor, {}), times(level_.clusters - 1, fresh(tensor, {.first = false})));
  const bool ragged = spread.state->last_unit_short;
  const int64_t units = level_.edge_clusters;
  int64_t words = fresh(tensor, {.first = true, .short_tile = units == 1 && ragged});
  if (units > 1) {
    words = plus(words, times(std::max<int64_t>(units - 1 - ragged, 0), fresh(tensor, {.first = false})));
    if (ragged) words = plus(words, fresh(tensor, {.first = false, .short_tile = true}));
  }
  return words;
}

/// One spatial map's part of a unit's output words or products. `edge_extent` is what MAESTRO takes where a single unit
/// works at the edge.
int64_t Volumes::share(const LoopState& state, const Extent& extent, const Extent& edge_extent, Unit unit,
                       bool fresh_at_first) const {
  const int64_t inner = unit.first ? extent.mapped : extent.fresh != 0 ? extent.fresh : 1;
  const bool one = level_.edge_clusters == 1;
  switch (state.at) {
    case At::first:
      if (!state.short_tile() || !unit.short_tile) return inner;
      return !one && fresh_at_first ? extent.fresh_edge : extent.mapped_edge;
    case At::middle: return inner;
    case At::edge:
      if (one) return unit.first || unit.short_tile ? edge_extent.mapped_edge : 1;
      return unit.short_tile ? extent.fresh_edge : inner;
  }
  return inner;
}

int64_t Volumes::output_words(const std::vector<Dim>& output, bool products, Unit unit, bool overlap_at_first) const {
  int64_t words = 1;
  for (size_t i = 0; i < level_.maps.size(); ++i) {
    const LevelMap& map = level_.maps[i];
    const bool of_output = indexes(output, map.dim);
    if (!of_output && !products) continue;
    const LoopState& state = loops_[i];
    const Extent& own = level_.extent[map.dim];
    const Extent& extent = of_output ? level_.extent[output_dim(map.dim)] : own;
    if (map.spatial)
      words = times(words, share(state, extent, own, unit, of_output && overlap_at_first));
    else
      words = times(words, state.short_tile() ? extent.mapped_edge : extent.mapped);
  }
  return words;
}

int64_t Volumes::egress(const std::vector<Dim>& output) const {
  const Spread spread = spread_of(output, false);
  const auto of = [&](Unit unit) { return output_words(output, false, unit, true); };
  if (!spread.state) return of({});
  if (!spread.short_tile) return plus(of({}), times(level_.clusters - 1, of({.first = false})));
  const bool ragged = spread.state->last_unit_short;
  const int64_t units = level_.edge_clusters;
  int64_t words = of({.first = true, .short_tile = units == 1 && ragged});
  if (units > 1) {
    words = plus(words, times(std::max<int64_t>(units - 1 - ragged, 0), of({.first = false})));
    if (ragged) words = plus(words, of({.first = false, .short_tile = true}));
  }
  return words;
}

int64_t Volumes::products_of_a_unit(const std::vector<Dim>& output) const {
  const Spread spread = spread_of(output, false);
  const bool short_unit =
      spread.state && spread.short_tile && level_.edge_clusters == 1 && spread.state->last_unit_short;
  return output_words(output, true, {.first = true, .short_tile = short_unit}, true);
}

int64_t Volumes::products(const std::vector<Dim>& output) const {
  const Spread spread = spread_of(output, true);
  const auto of = [&](Unit unit, bool overlap) { return output_words(output, true, unit, overlap); };
  if (!spread.state || !spread.short_tile) return times(level_.clusters, of({}, true));
  const bool ragged = spread.state->last_unit_short;
  const int64_t units = level_.edge_clusters;
  int64_t words = of({.first = true, .short_tile = units == 1 && ragged}, true);
  if (units > 1) {
    words = plus(words, times(std::max<int64_t>(units - 1 - ragged, 0), of({}, true)));
    if (ragged) words = plus(words, of({.first = false, .short_tile = true}, false));
  }
  return words;
}

PerDim<int64_t> Volumes::inner_size(bool short_unit) const {
  PerDim<int64_t> out{};
  for (size_t i = 0; i < level_.maps.size(); ++i) {
    const LevelMap& map = level_.maps[i];
    const Extent& extent = level_.extent[map.dim];
    const bool short_tile = loops_[i].short_tile() && (!map.spatial || level_.edge_clusters == 1 || short_unit);
    out[map.dim] = short_tile ? extent.mapped_edge : extent.mapped;
  }
  return out;
}

int64_t Volumes::active_units() const {
  return loops_[level_.spatial_map()].short_tile() ? level_.edge_clusters : level_.clusters;
}

}  // namespace sator::formats::maestro
