#include "formats/timeloop/as_relation.h"

#include <algorithm>

namespace sator::formats::timeloop {

using namespace dataflow;

namespace {

/// A loop's index as an expression of its dimension.
QuasiAffine digit(const Loop& loop, int64_t stride, int64_t extent) {
  QuasiAffine index = variable(loop.dimension);
  if (stride > 1) index = floor_div(index, stride);
  if (stride * loop.bound < extent) index = mod(index, loop.bound);
  return index;
}

}  // namespace

Problem as_relation(const Workload& w, const Mapping& mapping, int level) {
  Problem p;
  p.statement.domain = Domain::box(w.dimensions, w.bounds);
  for (const DataSpace& s : w.spaces) {
    Access access{.tensor = s.name, .role = s.read_write ? Role::write : Role::read, .references = {{}}};
    for (const auto& rank : s.ranks) {
      QuasiAffine coordinate = number(0);
      for (const ProjectionTerm& t : rank) coordinate = coordinate + variable(t.dimension) * t.coefficient;
      access.references[0].push_back(std::move(coordinate));
    }
    p.statement.accesses.push_back(std::move(access));
  }
  std::vector<int64_t> stride(w.dimensions.size(), 1);
  QuasiAffine coordinate[2] = {number(0), number(0)};
  int64_t side[2] = {1, 1};
  for (int l = 0; l < static_cast<int>(mapping.levels.size()); ++l) {
    for (const Loop& loop : mapping.levels[l].spatial) {
      if (l > level) {
        coordinate[loop.on_y] =
            coordinate[loop.on_y] + digit(loop, stride[loop.dimension], w.bounds[loop.dimension]) * side[loop.on_y];
        side[loop.on_y] *= loop.bound;
      }
      stride[loop.dimension] *= loop.bound;
    }
    for (const Loop& loop : mapping.levels[l].temporal) {
      if (l > level) p.mapping.time.push_back(digit(loop, stride[loop.dimension], w.bounds[loop.dimension]));
      stride[loop.dimension] *= loop.bound;
    }
  }
  std::reverse(p.mapping.time.begin(), p.mapping.time.end());
  if (p.mapping.time.empty()) p.mapping.time.push_back(number(0));
  p.mapping.space = {coordinate[0], coordinate[1]};
  p.array.pes = Domain::box({"x", "y"}, {side[0], side[1]});
  return p;
}

}  // namespace sator::formats::timeloop
