#include "dataflow/tiles.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/array_cost.h"
#include "dataflow/product_axes.h"
#include "dataflow/sharing.h"

namespace sator::dataflow {

namespace {

/// Builds the mapping of the part of a product that one core does.
class Tiling {
 public:
  ///   block   per iterator: consecutive values that one core takes
  Tiling(const Work& work, const Product& product, const Chip& chip, const Pace& pace, const ProductAxes& axes,
         const std::array<int64_t, 3>& asked, const std::vector<int64_t>& block)
      : work_(work), product_(product), chip_(chip), pace_(pace), axes_(axes), block_(block) {
    const std::vector<size_t>* const lists[] = {&axes.i, &axes.j, &axes.k};
    static constexpr const char* kNames[] = {"i", "j", "k"};
    for (size_t d = 0; d < 3; ++d) {
      Side& side = sides_[d];
      side.value = number(0);
      side.name = kNames[d];
      if (!lists[d]->empty()) {
        const size_t x = lists[d]->front();
        side.iterator = x;
        side.extent = block[x];
        side.value = from_zero(x);
        side.name = work.statement.domain.names[x];
      }
      side.tile = asked[d] == 0 ? side.extent : std::min(asked[d], side.extent);
    }
  }

  Placement run() {
    for (size_t x : axes_.batch) turn(x, 1, from_zero(x), text(name(x)));
    for (Side& side : sides_) {
      if (side.tile == side.extent) continue;
      turn(*side.iterator, side.tile, floor_div(side.value, side.tile), text(side.name, " by ", side.tile));
      side.value = mod(side.value, side.tile);
    }
    const size_t outer = out_.mapping.time.size();
    check_room(outer == 0);
    out_.held_since.assign(chip_.memories.size(), outer);
    out_.held_since[0] = 0;
    out_.weight = weight_of(work_, product_);
    out_.tiled = true;
    lay_on_array();
    if (out_.mapping.time.empty()) out_.mapping.time.push_back(number(0));
    nest_.held_since.assign(out_.held_since.begin(), out_.held_since.end());
    choose_cores();
    out_.nest = std::move(nest_);
    return std::move(out_);
  }

 private:
  /// i, j or k: its iterator, and what is left of it within a tile.
  struct Side {
    std::optional<size_t> iterator;
    int64_t extent = 1, tile = 1;
    QuasiAffine value;
    std::string name;
  };

  std::string name(size_t x) const { return work_.statement.domain.names[x]; }
  int64_t parts(size_t x) const { return ceil_div(work_.statement.domain.extent[x], block_[x]); }
  QuasiAffine from_zero(size_t x) const {
    const QuasiAffine value = variable(static_cast<int>(x)) - work_.statement.domain.lower[x];
    return parts(x) > 1 ? mod(value, block_[x]) : value;
  }
  void turn(size_t iterator, int64_t block, QuasiAffine at, std::string words) {
    out_.mapping.time.push_back(std::move(at));
    nest_.time.push_back({.loop = iterator, .block = block});
    words_.push_back(std::move(words));
  }

  /// Puts what is left of a side on an axis of the array; its folds.
  QuasiAffine along(Side& side, int64_t size, int64_t lanes, std::vector<rules::ArrayNest::Side>& into, Map& folds) {
    if (side.tile < 2) return number(0);
    lanes = std::min(lanes, side.tile);
    const QuasiAffine value = floor_div(side.value, lanes);
    const int64_t blocks = ceil_div(side.tile, lanes), take = std::min(size, blocks);
    into.push_back({.loop = *side.iterator, .values = take, .at_once = lanes});
    if (take == blocks) return value;
    folds.push_back(floor_div(value, take));
    nest_.time.push_back({.loop = *side.iterator, .block = take * lanes});
    return mod(value, take);
  }

  void lay_on_array() {
    const bool outputs = chip_.dataflow == Stationary::output || chip_.dataflow == Stationary::schedule;
    Side& column = sides_[chip_.dataflow == Stationary::input ? 0 : 1];
    Side& row = sides_[outputs ? 0 : 2];
    Side& streamed = sides_[outputs ? 2 : chip_.dataflow == Stationary::input ? 1 : 0];
    const int64_t lanes = pace_.macs_per_stamp;
    // The first axis that has folds runs outermost: rows where outputs stay, columns where a factor stays.
    Map folds;
    QuasiAffine r, c;
    if (outputs) {
      r = along(row, chip_.rows, 1, nest_.rows, folds);
      c = along(column, chip_.columns, 1, nest_.columns, folds);
    } else {
      c = along(column, chip_.columns, 1, nest_.columns, folds);
      r = along(row, chip_.rows, lanes, nest_.rows, folds);
    }
    out_.mapping.space = {r, c};
    out_.mapping.time.insert(out_.mapping.time.end(), folds.begin(), folds.end());
    if (streamed.tile > 1) {
      // A PE takes several values of the reduction at one stamp where it has the units for it.
      const int64_t at_once = outputs ? std::min(lanes, streamed.tile) : 1;
      if (at_once > 1) nest_.at_once.push_back({.loop = *streamed.iterator, .at_once = at_once});
      if (at_once < streamed.tile) {
        out_.mapping.time.push_back(floor_div(streamed.value, at_once));
        nest_.time.push_back({.loop = *streamed.iterator, .block = at_once});
      }
    }
    out_.words = text("for ",
                      words_.empty() ? "one tile" : join(words_, ", "),
                      "; rows ",
                      row.name,
                      ", columns ",
                      column.name,
                      ", ",
                      streamed.name,
                      " streams");
  }

  void choose_cores() {
    if (chip_.cores == 1) return;
    QuasiAffine core = number(0);
    int64_t stride = 1;
    std::vector<std::string> shared;
    for (size_t x = 0; x < block_.size(); ++x) {
      if (parts(x) == 1) continue;
      core = core + floor_div(variable(static_cast<int>(x)) - work_.statement.domain.lower[x], block_[x]) * stride;
      stride *= parts(x);
      nest_.cores.push_back({.loop = x, .block = block_[x], .parts = parts(x)});
      shared.push_back(text(name(x), " in ", parts(x)));
    }
    out_.core = core;
    out_.cores_used = stride;
    out_.words += text("; cores ", shared.empty() ? "one" : join(shared, ", "));
  }

  void check_room(bool whole) const {
    std::vector<int64_t> tile = block_;
    for (size_t x : axes_.batch) tile[x] = 1;
    for (const Side& side : sides_)
      if (side.iterator) tile[*side.iterator] = side.tile;
    for (size_t level = 1; level < chip_.memories.size(); ++level) {
      const Memory& memory = chip_.memories[level];
      if (!memory.capacity_bytes) continue;
      double bits = 0;
      for (size_t a = 0; a < work_.operands.size(); ++a) {
        const bool sums = work_.statement.accesses[a].tensor == work_.statement.accesses[product_.output].tensor;
        if (sums && a != product_.output) continue;  // the sum read back
        const auto path = memory_path(work_, product_, weight_of(work_, product_), a, chip_);
        if (std::find(path.begin(), path.end(), level) == path.end()) continue;
        const int width = sums ? std::max(pace_.sum_bits, work_.operands[a].bits) : work_.operands[a].bits;
        double cores = 1;  // whose parts lie there
        for (size_t x = 0; !memory.per_core && x < block_.size(); ++x)
          if (product_.in(x, a == product_.first || a == product_.second ? a : product_.output))
            cores *= static_cast<double>(parts(x));
        bits += elements_of(work_.statement.accesses[a], tile) * width * cores;
      }
      const double room = static_cast<double>(*memory.capacity_bytes) / (memory.double_buffered && !whole ? 2 : 1);
      if (bits / 8 > room)
        fail({.what = text("tiles of ",
                           sides_[0].tile,
                           " x ",
                           sides_[1].tile,
                           " x ",
                           sides_[2].tile,
                           " take ",
                           static_cast<int64_t>(bits / 8),
                           " bytes of ",
                           memory.name,
                           ", which has room for ",
                           static_cast<int64_t>(room)),
              .needs = memory.double_buffered ? "tiles that fit half of a double-buffered memory"
                                              : "tiles that fit the memory",
              .hint = "give smaller tiles, or none: then they are chosen"});
    }
  }

  const Work& work_;
  const Product& product_;
  const Chip& chip_;
  const Pace& pace_;
  const ProductAxes& axes_;
  const std::vector<int64_t>& block_;
  std::array<Side, 3> sides_;
  std::vector<std::string> words_;
  Placement out_;
  rules::ArrayNest nest_;
};

}  // namespace

std::optional<Placement> tiled_placement(const Work& work, const Product& product, const Chip& chip, const Pace& pace,
                                         const Beside& beside, const std::array<int64_t, 3>& tile) {
  for (int64_t t : tile)
    if (t < 0) fail({.what = text("a tile of ", t), .needs = "tiles of at least 1, or 0 for the whole", .hint = {}});
  const std::optional<ProductAxes> axes = axes_of(work, product);
  if (!axes || axes->i.size() > 1 || axes->j.size() > 1 || axes->k.size() > 1) return {};
  std::optional<Placement> first;
  for (const std::vector<int64_t>& block : ways_to_share(work, product, chip, beside)) {
    Placement placement = Tiling(work, product, chip, pace, *axes, tile, block).run();
    if (chip.cores == 1 || has_countable_stamps(work, placement, chip)) return placement;
    if (!first) first = std::move(placement);
  }
  return first;
}

}  // namespace sator::dataflow
