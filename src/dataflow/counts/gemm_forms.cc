#include "dataflow/counts/gemm_forms.h"

#include <algorithm>

#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

namespace {

/// An iterator cut into tiles: all of `size` but the last.
struct Cut {
  int64_t extent, size, tiles;
  Cut(int64_t extent, int64_t size) : extent(extent), size(size), tiles((extent - 1) / size + 1) {}
  int64_t widest() const { return std::min(extent, size); }
  int64_t last() const { return extent - (tiles - 1) * size; }
  /// Tiles that are one PE wide.
  int64_t thin() const { return (size == 1 ? tiles - 1 : 0) + (last() == 1 ? 1 : 0); }
};

}  // namespace

std::optional<GemmCounts> gemm_counts(const GemmNest& n) {
  if (n.i < 1 || n.j < 1 || n.k < 1 || n.rows < 1 || n.columns < 1 || n.lanes < 1) return std::nullopt;
  const Wide macs = static_cast<Wide>(n.i) * n.j;
  if (macs >= Wide{1} << 61 || macs * n.k >= Wide{1} << 61) return std::nullopt;
  const bool outputs = n.stays == GemmNest::Stays::outputs, inputs = n.stays == GemmNest::Stays::inputs;
  const Cut rows(outputs ? n.i : n.k, n.rows), columns(inputs ? n.i : n.j, n.columns);
  const int64_t streamed = outputs ? n.k : inputs ? n.j : n.i;
  const int64_t blocks = (streamed - 1) / n.lanes + 1, last_block = streamed - (blocks - 1) * n.lanes;
  const int64_t tiles = rows.tiles * columns.tiles, staying = rows.extent * columns.extent;

  GemmCounts out;
  out.macs = static_cast<int64_t>(macs) * n.k;
  out.space = rows.widest() * columns.widest();
  out.spacetime = staying * blocks;
  // A skewed tile of w x h PEs takes w + h - 2 stamps until its last PE begins.
  const int64_t wave = n.skewed ? columns.tiles * rows.extent + rows.tiles * columns.extent - 2 * tiles : 0;
  out.time = tiles * blocks + wave;
  // A stamp lasts as long as its fullest block; the short last one is alone at the end of a tile, or all there is.
  out.work_cycles = blocks == 1 ? out.time * last_block : n.lanes * (out.time - tiles) + tiles * last_block;

  // What streams along the rows of PEs is indexed by (row, streamed), along the columns by (streamed, column).
  GemmTensor along_rows, along_columns, stays;
  const int64_t row_elements = rows.extent * streamed, column_elements = columns.extent * streamed;
  along_rows = {.total = out.macs, .assigned = out.macs, .footprint = row_elements};
  along_columns = {.total = out.macs, .assigned = out.macs, .footprint = column_elements};
  stays = {.total = out.macs,
           .assigned = out.spacetime,
           .unique = staying,
           .temporal_hits = staying * (blocks - 1),
           .footprint = staying};
  // Where a tile is one stamp long, the next tile with the same rows (or columns) finds what it needs in its own PEs.
  bool rows_go_on = false, columns_go_on = false;
  if (blocks == 1 && n.skewed) {
    // Only a tile of one PE ends where the next begins; as the last of all tiles it passes nothing on.
    const int64_t single = rows.thin() * columns.thin();
    const bool only_the_last = single == 1 && rows.last() == 1 && columns.last() == 1;
    if (single > 0 && !only_the_last) return std::nullopt;
  } else if (blocks == 1) {
    rows_go_on = !n.row_tiles_inside || rows.tiles == 1;
    columns_go_on = n.row_tiles_inside || columns.tiles == 1;
  }
  if (rows_go_on) along_rows.temporal_hits = row_elements * (columns.extent - columns.widest());
  if (columns_go_on) along_columns.temporal_hits = column_elements * (rows.extent - rows.widest());
  if (n.wired) {
    // The first column of PEs of a tile takes an element from outside, the others from their neighbour.
    along_rows.spatial_hits = out.macs - row_elements * columns.tiles;
    along_columns.spatial_hits = out.macs - column_elements * rows.tiles;
    along_rows.unique = row_elements * (rows_go_on ? 1 : columns.tiles);
    along_columns.unique = column_elements * (columns_go_on ? 1 : rows.tiles);
  } else {
    along_rows.unique = out.macs - along_rows.temporal_hits;
    along_columns.unique = out.macs - along_columns.temporal_hits;
  }
  switch (n.stays) {
    case GemmNest::Stays::outputs: out.a = along_rows, out.b = along_columns, out.c = stays; break;
    case GemmNest::Stays::weights: out.a = along_rows, out.b = stays, out.c = along_columns; break;
    case GemmNest::Stays::inputs: out.a = stays, out.b = along_rows, out.c = along_columns; break;
  }
  return out;
}

Problem problem_of(const GemmNest& n) {
  const QuasiAffine i = variable(0), j = variable(1), k = variable(2);
  const bool outputs = n.stays == GemmNest::Stays::outputs, inputs = n.stays == GemmNest::Stays::inputs;
  const QuasiAffine row = outputs ? i : k, column = inputs ? i : j, streamed = outputs ? k : inputs ? j : i;
  Problem p;
  p.statement.domain = Domain::box({"i", "j", "k"}, {n.i, n.j, n.k});
  p.statement.accesses = {{"A", Role::read, {{i, k}}}, {"B", Role::read, {{k, j}}}, {"C", Role::write, {{i, j}}}};
  p.mapping.space = {mod(row, n.rows), mod(column, n.columns)};
  QuasiAffine inner = floor_div(streamed, n.lanes);
  if (n.skewed) inner = p.mapping.space[0] + p.mapping.space[1] + inner;
  p.mapping.time = {floor_div(row, n.rows), floor_div(column, n.columns)};
  if (n.row_tiles_inside) std::swap(p.mapping.time[0], p.mapping.time[1]);
  p.mapping.time.push_back(inner);
  p.array.pes = Domain::box({"x", "y"}, {n.rows, n.columns});
  if (n.wired) p.array.interconnect = {link::shift({-1, 0}), link::shift({0, -1})};
  return p;
}

}  // namespace sator::dataflow
