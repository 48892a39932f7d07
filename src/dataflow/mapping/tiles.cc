#include "dataflow/mapping/tiles.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/mapping/at_pes.h"
#include "dataflow/mapping/sharing.h"
#include "dataflow/programs/product_axes.h"

namespace sator::dataflow {

namespace {

/// Builds the mapping of the part of a product that one core does.
class Tiling {
 public:
  ///   block   per iterator: consecutive values that one core takes
  Tiling(const Work& work, const Product& product, const Chip& chip, const Pace& pace, const ProductAxes& axes,
         const Beside& beside, const std::array<int64_t, 3>& asked, const std::vector<int64_t>& block)
      : work_(work), product_(product), chip_(chip), pace_(pace), axes_(axes), beside_(beside), block_(block) {
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
    auto batch = [&](bool summed_later) {
      for (size_t x : axes_.batch)
        if (is_summed_later(product_, beside_, x) == summed_later) turn(x, 1, from_zero(x), text(name(x)));
    };
    batch(false);
    for (Side& side : sides_) {
      if (&side == &sides_.back()) batch(true);
      if (side.tile == side.extent) continue;
      turn(*side.iterator, side.tile, floor_div(side.value, side.tile), text(side.name, " by ", side.tile));
      side.value = mod(side.value, side.tile);
    }
    const size_t outer = out_.mapping.time.size();
    out_.held_since.assign(chip_.memories.size(), outer);
    out_.held_since[0] = 0;
    out_.weight = weight_of(work_, product_);
    out_.tiled = true;
    lay_on_array();
    for (size_t level = 1; level < chip_.memories.size(); ++level)
      if (chip_.memories[level].capacity_bytes) check_room(level, outer == 0);
    if (out_.mapping.time.empty()) out_.mapping.time.push_back(number(0));
    nest_.held_since.assign(out_.held_since.begin(), out_.held_since.end());
    nest_.stored_outside = out_.stored_outside;
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

  /// What of one of the kernel's own tensors stands at once: the part that the outermost loops over its parts leave.
  double standing_bits(const Beside::Standing& standing, bool double_buffered) const {
    std::vector<int64_t> part = block_;
    size_t leading = 0;
    for (; leading < nest_.time.size() && (standing.in_parts >> nest_.time[leading].loop & 1); ++leading)
      part[nest_.time[leading].loop] = nest_.time[leading].block;
    double elements = standing.others, cores = 1;
    for (size_t x = 0; x < block_.size(); ++x)
      if (standing.indexes >> x & 1) elements *= static_cast<double>(part[x]), cores *= static_cast<double>(parts(x));
    if (standing.access) elements = elements_of(work_.statement.accesses[*standing.access], part);
    if (!chip_.memories[standing.memory].per_core) elements *= cores;
    return elements * (standing.access ? width(*standing.access) : standing.bits) *
           (double_buffered && leading > 0 ? 2 : 1);
  }

  bool is_output(size_t a) const {
    return work_.statement.accesses[a].tensor == work_.statement.accesses[product_.output].tensor;
  }
  double width(size_t a) const {
    return is_output(a) ? std::max(pace_.sum_bits, work_.operands[a].bits) : work_.operands[a].bits;
  }

  /// Of a memory's level: tiles have to fit, and what stands there beside them of the kernel's own tensors, as far as it
  /// cannot stand outside.
  void check_room(size_t level, bool whole) {
    const Memory& memory = chip_.memories[level];
    std::vector<int64_t> tile = block_;
    for (size_t x : axes_.batch) tile[x] = 1;
    for (const Side& side : sides_)
      if (side.iterator) tile[*side.iterator] = side.tile;
    std::vector<const Beside::Standing*> here;
    for (const Beside::Standing& standing : beside_.standing)
      if (standing.memory == level) here.push_back(&standing);
    std::stable_sort(here.begin(), here.end(), [&](const Beside::Standing* a, const Beside::Standing* b) {
      return standing_bits(*a, false) < standing_bits(*b, false);
    });
    const bool twice = memory.double_buffered && !whole;
    const double room = 8 * static_cast<double>(*memory.capacity_bytes);
    auto tiles_bits = [&] {
      double bits = 0;
      for (size_t a = 0; a < work_.operands.size(); ++a) {
        if (is_output(a) && a != product_.output) continue;  // the sum read back
        if (std::any_of(here.begin(), here.end(), [&](const Beside::Standing* s) { return s->access == a; })) continue;
        const auto path = memory_path(work_, product_, weight_of(work_, product_), a, chip_);
        if (std::find(path.begin(), path.end(), level) == path.end()) continue;
        double cores = 1;  // whose parts lie there
        for (size_t x = 0; !memory.per_core && x < block_.size(); ++x)
          if (product_.in(x, a == product_.first || a == product_.second ? a : product_.output))
            cores *= static_cast<double>(parts(x));
        bits += elements_of(work_.statement.accesses[a], tile) * width(a) * cores;
      }
      return bits;
    };
    while (true) {
      double bits = tiles_bits();
      double all = bits * (twice ? 2 : 1);
      for (const Beside::Standing* standing : here) {
        bits += standing_bits(*standing, false);
        all += standing_bits(*standing, memory.double_buffered);
      }
      if (all <= room) return;
      const auto largest = std::find_if(here.rbegin(), here.rend(), [](const auto* s) { return !s->running; });
      if (largest != here.rend()) {
        out_.stored_outside.push_back((*largest)->tensor);
        here.erase(std::next(largest).base());
        continue;
      }
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
                         static_cast<int64_t>(room / 8 / (twice ? 2 : 1))),
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
  const Beside& beside_;
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
    Placement placement = Tiling(work, product, chip, pace, *axes, beside, tile, block).run();
    if (chip.cores == 1 || has_countable_stamps(work, placement, chip)) return placement;
    if (!first) first = std::move(placement);
  }
  return first;
}

}  // namespace sator::dataflow
