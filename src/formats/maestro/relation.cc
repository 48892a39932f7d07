#include "formats/maestro/relation.h"

#include <algorithm>

#include "base/error.h"
#include "base/text_line.h"
#include "formats/maestro/levels.h"

namespace sator::formats::maestro {

using namespace dataflow;
namespace {

/// What the statement runs over in place of a map's dimension.
Dim iterated(Dim dim) { return dim == Dim::y ? Dim::out_y : dim == Dim::x ? Dim::out_x : dim; }

class ProblemBuilder {
 public:
  ProblemBuilder(const Layer& layer, int64_t pes)
      : layer_(layer),
        tensors_(tensors_of(layer.type, layer.size[Dim::n] != 0)),
        levels_(levels_of(layer, tensors_, pes)) {}
  Problem build();

 private:
  void iterate();
  Map subscripts(const std::vector<Dim>& tensor, bool output) const;
  void add_level(size_t index);
  int64_t tile_of(const Level& level, const LevelMap& map) const;
  [[noreturn]] void refuse(std::string what, std::string needs, std::string hint) const {
    fail({.what = text("layer ", shown(layer_.name), ": ", what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .where = where_of(layer_.place)});
  }

  const Layer& layer_;
  const Tensors tensors_;
  const std::vector<Level> levels_;
  Problem problem_;
  PerDim<int> variable_{};             // of the statement, or -1
  PerDim<int64_t> tile_{}, stride_{};  // what the units of the level at hand have of each dimension
};

void ProblemBuilder::iterate() {
  variable_.fill(-1);
  stride_.fill(1);
  std::vector<std::string> names;
  std::vector<int64_t> extents;
  const auto add = [&](Dim dim, int64_t extent) {
    if (variable_[dim] >= 0) return;
    variable_[dim] = static_cast<int>(names.size());
    names.emplace_back(dim == Dim::out_y ? "Yo" : dim == Dim::out_x ? "Xo" : name_of(dim));
    extents.push_back(extent);
    tile_[dim] = extent;
  };
  const Level& top = levels_[0];
  for (const std::vector<Dim>* dims : {&tensors_.output, &tensors_.weight, &tensors_.input})
    for (Dim dim : *dims) {
      if (dim == Dim::y || dim == Dim::x) {
        const Dim window = dim == Dim::y ? Dim::r : Dim::s;
        stride_[iterated(dim)] = layer_.stride[dim];
        add(iterated(dim), (top.size[dim] - top.size[window]) / layer_.stride[dim] + 1);
      } else {
        add(dim, top.size[dim]);
      }
    }
  problem_.statement.domain = Domain::box(std::move(names), std::move(extents));
}

Map ProblemBuilder::subscripts(const std::vector<Dim>& tensor, bool output) const {
  Map map;
  for (Dim dim : tensor) {
    const QuasiAffine at = variable(variable_[iterated(dim)]);
    if (iterated(dim) == dim || output)
      map.push_back(at);
    else
      map.push_back(at * stride_[iterated(dim)] + variable(variable_[dim == Dim::y ? Dim::r : Dim::s]));
  }
  return map;
}

/// How many positions of the statement's dimension a tile of the map has.
int64_t ProblemBuilder::tile_of(const Level& level, const LevelMap& map) const {
  const Dim dim = iterated(map.dim);
  int64_t size = map.size, offset = map.offset;
  if (dim != map.dim) {
    const int64_t window = level.map(map.dim == Dim::y ? Dim::r : Dim::s)->size;
    size = (map.size - window) / stride_[dim] + 1;
    offset = map.offset % stride_[dim] == 0 ? map.offset / stride_[dim] : -1;
  }
  if (size >= tile_[dim]) return tile_[dim];
  if (size < 1 || size != offset)
    refuse(text("tiles of ",
                name_of(map.dim),
                " cover ",
                size,
                " positions and are ",
                offset < 0 ? text("no multiple of the stride") : text(offset),
                " apart"),
           "tiles that neither overlap nor leave gaps",
           "give size and offset alike (in outputs for Y and X)");
  return size;
}

void ProblemBuilder::add_level(size_t index) {
  const Level& level = levels_[index];
  if (std::count_if(level.maps.begin(), level.maps.end(), [](const LevelMap& m) { return m.spatial; }) > 1)
    refuse("two dimensions move together over the units of a level",
           "one SpatialMap a level",
           "map one of the two in time");
  for (const LevelMap& map : level.maps) {
    const Dim dim = iterated(map.dim);
    if (variable_[dim] < 0) continue;  // indexes no tensor
    const int64_t tile = tile_of(level, map);
    const int64_t extent = problem_.statement.domain.extent[variable_[dim]];
    QuasiAffine inside = variable(variable_[dim]);
    if (tile_[dim] < extent) inside = mod(inside, tile_[dim]);
    const QuasiAffine index_of_tile = tile == 1 ? inside : floor_div(inside, tile);
    const int64_t tiles = (tile_[dim] + tile - 1) / tile;
    if (map.spatial) {
      problem_.mapping.space.push_back(tiles <= level.clusters ? index_of_tile : mod(index_of_tile, level.clusters));
      if (tiles > level.clusters) problem_.mapping.time.push_back(floor_div(index_of_tile, level.clusters));
    } else if (tiles > 1) {
      problem_.mapping.time.push_back(index_of_tile);
    }
    tile_[dim] = tile;
  }
}

Problem ProblemBuilder::build() {
  iterate();
  problem_.statement.accesses = {{"input", Role::read, {subscripts(tensors_.input, false)}},
                                 {"filter", Role::read, {subscripts(tensors_.weight, false)}},
                                 {"output", Role::write, {subscripts(tensors_.output, true)}}};
  std::vector<std::string> names;
  std::vector<int64_t> units;
  for (size_t i = 0; i < levels_.size(); ++i) {
    add_level(i);
    names.push_back(text("u", i));
    units.push_back(levels_[i].clusters);
  }
  for (const LevelMap& map : levels_.back().maps)
    if (const Dim dim = iterated(map.dim); variable_[dim] >= 0 && tile_[dim] > 1) {
      const int64_t extent = problem_.statement.domain.extent[variable_[dim]];
      const QuasiAffine at = variable(variable_[dim]);
      problem_.mapping.time.push_back(tile_[dim] < extent ? mod(at, tile_[dim]) : at);
    }
  if (problem_.mapping.time.empty()) problem_.mapping.time.push_back(number(0));
  problem_.array.pes = Domain::box(std::move(names), std::move(units));
  for (size_t i = 0; i < levels_.size(); ++i)
    problem_.array.interconnect.push_back(link::bus(static_cast<int>(levels_.size()), static_cast<int>(i)));
  return std::move(problem_);
}

}  // namespace

Problem problem_of(const Layer& layer, int64_t pes) { return ProblemBuilder(layer, pes).build(); }

}  // namespace sator::formats::maestro
