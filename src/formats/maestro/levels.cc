#include "formats/maestro/levels.h"

#include <algorithm>

#include "base/error.h"
#include "base/text_line.h"

namespace sator::formats::maestro {
namespace {

/// The dimension that slides in a window of another: R in Y, S in X. Itself where none does.
Dim window_of(Dim dim) { return dim == Dim::y ? Dim::r : dim == Dim::x ? Dim::s : dim; }
Dim output_of(Dim dim) { return dim == Dim::y ? Dim::out_y : dim == Dim::x ? Dim::out_x : dim; }
Dim input_of(Dim dim) { return dim == Dim::out_y ? Dim::y : dim == Dim::out_x ? Dim::x : dim; }

class LevelBuilder {
 public:
  LevelBuilder(const Layer& layer, const Tensors& tensors, int64_t pes)
      : layer_(layer), windowed_(layer.type != LayerType::gemm), pes_(pes) {
    for (int i = 0; i < kDims; ++i)
      for (const auto* dims : {&tensors.input, &tensors.weight})
        if (std::find(dims->begin(), dims->end(), static_cast<Dim>(i)) != dims->end()) {
          inputs_.push_back(static_cast<Dim>(i));
          break;
        }
  }
  std::vector<Level> build();

 private:
  using Group = std::vector<Directive>;
  std::vector<Group> groups();
  void size_layer();
  void to_inputs(Group& group) const;
  /// `opened`: the Cluster before the group, or the layer.
  Level level(const Group& group, Place opened, const Level* above, const PerDim<int64_t>& size) const;
  void apply_stride(LevelMap& map, bool top, const PerDim<int64_t>& size) const;
  void count_edge_clusters(Level& level) const;
  void measure(Level& level) const;
  [[noreturn]] void refuse(const Place& place, std::string what, std::string needs, std::string hint) const {
    fail({.what = text("layer ", shown(layer_.name), ": ", what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .where = where_of(place)});
  }

  const Layer& layer_;
  const bool windowed_;
  const int64_t pes_;
  std::vector<Dim> inputs_;  // dimensions of the inputs, alphabetical
  PerDim<int64_t> size_{}, stride_{};
};

void LevelBuilder::size_layer() {
  size_ = layer_.size;
  stride_ = layer_.stride;
  for (Dim dim : {Dim::y, Dim::x}) {
    const Dim out = output_of(dim), window = window_of(dim);
    if (!windowed_) break;
    if (size_[dim] != 0 && size_[out] != 0)
      refuse(layer_.place,
             text("both ", name_of(dim), " and ", name_of(out), " have a size"),
             "one of the two",
             "remove one of the two");
    if (size_[window] == 0)
      refuse(layer_.place, text("there is no ", name_of(window)), "R and S in Dimensions", "add it");
    if (size_[out] != 0) {
      size_[dim] = size_[out] + size_[window] - 1;
      // MAESTRO takes the stride of the other output dimension here.
      stride_[dim] = layer_.stride[dim == Dim::y ? Dim::out_x : Dim::out_y];
    }
    if (size_[dim] != 0 && size_[dim] < size_[window])
      refuse(layer_.place,
             text(name_of(window), " is larger than ", name_of(dim)),
             "the filter fits into the input",
             "use a larger input");
  }
  for (Dim dim : inputs_)
    if (size_[dim] == 0)
      refuse(layer_.place,
             text("there is no size for ", name_of(dim)),
             "a size for each dimension of the tensors",
             "add it to Dimensions");
}

std::vector<LevelBuilder::Group> LevelBuilder::groups() {
  constexpr size_t kMostLevels = 4;
  std::vector<Group> out(1);
  for (const Directive& d : layer_.dataflow) {
    out.back().push_back(d);
    if (d.kind == Directive::Kind::cluster) out.emplace_back();
  }
  if (out.size() > kMostLevels)
    refuse(out[kMostLevels - 1].back().place,
           "a fourth Cluster",
           "at most three Cluster lines (MAESTRO describes four levels of wires)",
           "join levels");
  return out;
}

/// Y' and X' become Y and X: an output tile of n positions needs n + R - 1 input positions.
void LevelBuilder::to_inputs(Group& group) const {
  for (Directive& map : group) {
    const Dim in = input_of(map.dim);
    if (map.kind == Directive::Kind::cluster || in == map.dim) continue;
    const auto window = std::find_if(group.begin(), group.end(), [&](const Directive& d) {
      return d.kind != Directive::Kind::cluster && d.dim == window_of(in);
    });
    if (window == group.end())
      refuse(map.place,
             text(name_of(map.dim), " is mapped without ", name_of(window_of(in))),
             text("a map of ", name_of(window_of(in)), " on the same level"),
             text("map ", name_of(in), " instead, or add ", name_of(window_of(in))));
    map.dim = in;
    map.size += window->size - 1;
  }
}

void LevelBuilder::apply_stride(LevelMap& map, bool top, const PerDim<int64_t>&) const {
  const Dim window = window_of(map.dim);
  const int64_t stride = stride_[map.dim], filter = size_[window];
  if (!windowed_ || window == map.dim || stride == 1 || map.size < filter) return;
  const int64_t outputs = (map.size + stride - filter) / stride;
  map.size = outputs * std::min(stride, filter) + std::max<int64_t>(filter - stride, 0);
  map.offset = outputs * (!top && filter < stride ? filter : stride);
}

Level LevelBuilder::level(const Group& group, Place place, const Level* above, const PerDim<int64_t>& size) const {
  Level out;
  out.size = size;
  out.map_of.fill(-1);
  PerDim<bool> mapped{};
  int spatial = 0;
  for (const Directive& d : group) {
    place = d.place;
    if (d.kind == Directive::Kind::cluster) continue;
    if (mapped[d.dim])
      refuse(d.place,
             text(name_of(d.dim), " is mapped twice on one level"),
             "one map for each dimension of a level (Y and Y' are one)",
             "remove one of the two");
    mapped[d.dim] = true;
    spatial += d.kind == Directive::Kind::spatial;
    out.maps.push_back({d.kind == Directive::Kind::spatial, d.size, d.offset, d.dim});
  }
  if (spatial == 0 || spatial > 2)
    refuse(place,
           text("the level that ends here has ", spatial, " spatial maps"),
           "one SpatialMap on each level (two where their dimensions move together)",
           "add or remove a SpatialMap");
  if (above)
    for (const LevelMap& map : above->maps)
      if (!mapped[map.dim]) {
        mapped[map.dim] = true;
        out.maps.insert(out.maps.begin(), {false, map.size, map.offset, map.dim});
      }
  for (Dim dim : inputs_)
    if (!mapped[dim]) out.maps.push_back({false, size[dim], size[dim], dim});
  for (LevelMap& map : out.maps) {
    if (size[map.dim] == 0)
      refuse(place,
             text(name_of(map.dim), " is mapped and has no size here"),
             "maps of the layer's dimensions; below a Cluster, of its input's and filter's",
             text("remove the map of ", name_of(map.dim)));
    apply_stride(map, above == nullptr, size);
  }
  for (size_t i = 0; i < out.maps.size(); ++i) out.map_of[out.maps[i].dim] = static_cast<int>(i);
  return out;
}

void LevelBuilder::count_edge_clusters(Level& level) const {
  const LevelMap& map = level.maps[level.spatial_map()];
  const int64_t size = level.size[map.dim];
  const int64_t covered = map.offset * (level.clusters - 1) + map.size;  // by one round
  int64_t left = size, edge = 1;
  if (size > covered) {
    const int64_t steady = ((size - map.size) / map.offset + 1) / level.clusters - 1;
    left = size - (steady + 1) * map.offset * level.clusters;
    if (left >= map.size) edge = (left - map.size) / map.offset + 1;
  } else if (size > map.size) {
    edge = (size - map.size) / map.offset + 1;
    if (map.offset * (edge - 1) + map.size < size) ++edge;
  }
  level.edge_clusters = edge;
}

void LevelBuilder::measure(Level& level) const {
  for (const LevelMap& map : level.maps) {
    const int64_t size = level.size[map.dim];
    const int64_t steady = std::max<int64_t>(0, (size - map.size) / map.offset);
    const bool edge = steady * map.offset + map.size < size || map.size > size;
    int64_t edge_size = size - (steady + 1) * map.offset;
    if (edge_size < 0) edge_size = size;
    Extent& extent = level.extent[map.dim];
    extent.mapped = map.size;
    extent.fresh = !map.spatial && size <= map.size ? 0 : std::min(map.size, map.offset);
    extent.mapped_edge = edge ? edge_size : map.size;
    extent.fresh_edge = std::max<int64_t>(map.offset - (map.size - edge_size), 0);
  }
  if (!windowed_) return;
  for (const LevelMap& map : level.maps) {
    const Dim window = window_of(map.dim);
    if (window == map.dim) continue;
    const Extent &in = level.extent[map.dim], &filter = level.extent[window];
    Extent& out = level.extent[output_of(map.dim)];
    out.mapped = in.mapped - filter.mapped + 1;
    out.fresh = std::min(map.offset, map.size);
    out.mapped_edge = in.mapped_edge - filter.mapped_edge + 1;
    out.fresh_edge = std::min(map.offset, out.mapped_edge);
  }
}

std::vector<Level> LevelBuilder::build() {
  size_layer();
  std::vector<Group> split = groups();
  int64_t product = 1;  // units inside of a cluster of the first level
  for (const Directive& d : layer_.dataflow)
    if (d.kind == Directive::Kind::cluster) {
      product *= d.size;
      if (product > pes_)
        refuse(d.place,
               text("clusters of ", product, " PEs on ", pes_, " PEs"),
               "the clusters' sizes multiply to no more than num_pes",
               "use smaller clusters or more PEs");
    }
  std::vector<Level> levels;
  PerDim<int64_t> size = size_;
  int64_t clusters = pes_ / product;
  Place opened = layer_.place;
  for (Group& group : split) {
    to_inputs(group);
    Level next = level(group, opened, levels.empty() ? nullptr : &levels.back(), size);
    next.clusters = clusters;
    count_edge_clusters(next);
    measure(next);
    PerDim<int64_t> inner{};
    for (Dim dim : inputs_) inner[dim] = std::min(next.map(dim)->size, size[dim]);
    size = inner;
    if (!group.empty() && group.back().kind == Directive::Kind::cluster)
      clusters = group.back().size, opened = group.back().place;
    levels.push_back(std::move(next));
  }
  return levels;
}

}  // namespace

Tensors tensors_of(LayerType type, bool batched) {
  using enum Dim;
  Tensors out;
  switch (type) {
    case LayerType::gemm: return {{m, k}, {k, n}, {m, n}};
    case LayerType::dsconv: out = {{c, y, x}, {c, r, s}, {c, y, x}}; break;
    case LayerType::ngconv: out = {{g, c, y, x}, {g, k, c, r, s}, {g, k, c, y, x}}; break;
    case LayerType::conv: out = {{c, y, x}, {k, c, r, s}, {k, y, x}}; break;
  }
  if (batched)
    for (auto* dims : {&out.input, &out.output}) dims->insert(dims->begin(), n);
  return out;
}

int Level::spatial_map() const {
  return static_cast<int>(std::find_if(maps.begin(), maps.end(), [](const LevelMap& m) { return m.spatial; }) -
                          maps.begin());
}

std::vector<Level> levels_of(const Layer& layer, const Tensors& tensors, int64_t pes) {
  return LevelBuilder(layer, tensors, pes).build();
}

std::string where_of(const Place& place) { return text("mapping line ", place.line, ", column ", place.column); }

}  // namespace sator::formats::maestro
