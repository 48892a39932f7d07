#pragma once

#include <optional>
#include <vector>

#include "formats/maestro/network.h"

namespace sator::formats::maestro {

/// The dimensions that index each tensor.
struct Tensors {
  std::vector<Dim> input, weight, output;
};

/// Source: the couplings that MAESTRO has for its layer types; `batched` adds n to input and output.
Tensors tensors_of(LayerType type, bool batched);

/// A map as a level uses it: in input coordinates (Y' and X' became Y and X), stride applied.
struct LevelMap {
  bool spatial = false;
  int64_t size = 1, offset = 1;
  Dim dim = Dim::k;
};

/// How many positions of a dimension one tile covers, and how many of those its neighbour does not: of a full tile and of
/// the tile at the edge. MAESTRO's own arithmetic; `fresh` is 0 where one tile covers all in time.
struct Extent {
  int64_t mapped = 0, mapped_edge = 0;
  int64_t fresh = 0, fresh_edge = 0;
};

/// One level of clusters.
struct Level {
  int64_t clusters = 1;        // units side by side
  int64_t edge_clusters = 1;   // of these, used in the last round over a dimension that does not divide
  std::vector<LevelMap> maps;  // outermost first
  PerDim<int> map_of{};        // the map of a dimension, or -1
  PerDim<int64_t> size{};      // of the tile that a unit of the level above hands down
  PerDim<Extent> extent{};     // of the maps' dimensions, and of Y' and X' of a convolution
  const LevelMap* map(Dim dim) const { return map_of[dim] < 0 ? nullptr : &maps[map_of[dim]]; }
  int spatial_map() const;  // index of the outermost one
};

/// Splits a layer's dataflow at its clusters and completes each level as MAESTRO does: maps that a level leaves out come
/// from the level above, or cover the whole dimension.
/// Errors, each with the line: no or more than two spatial maps on a level, a dimension mapped twice or missing, Y' without
/// R (X' without S) beside it, more clusters than PEs, more than three Cluster lines.
std::vector<Level> levels_of(const Layer& layer, const Tensors& tensors, int64_t pes);

/// "mapping line 3, column 5".
std::string where_of(const Place& place);

}  // namespace sator::formats::maestro
