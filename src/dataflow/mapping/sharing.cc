#include "dataflow/mapping/sharing.h"

#include <algorithm>
#include <optional>

#include "dataflow/counts/boxes.h"

namespace sator::dataflow {

namespace {

/// Distinct values of e when each iterator runs over `block` consecutive values from an aligned start.
int64_t span_of(const QuasiAffine& e, const std::vector<int64_t>& block) {
  Wide reach = 0, points = 1;
  for (const Term& t : e.terms) {
    int64_t values;
    if (!t.division)
      values = block[static_cast<size_t>(t.variable)];
    else if (t.division->remainder)
      values = std::min(t.division->divisor, span_of(t.division->inner, block));
    else
      values = (span_of(t.division->inner, block) - 1) / t.division->divisor + 1;
    reach += static_cast<Wide>(std::abs(t.coefficient)) * (values - 1);
    points = std::min(points * values, Wide{1} << 62);
  }
  return narrow(std::min(reach + 1, points)).value_or(INT64_MAX);
}

}  // namespace

double elements_of(const Access& access, const std::vector<int64_t>& block) {
  double product = 1;
  for (const QuasiAffine& e : access.references[0]) product *= static_cast<double>(span_of(e, block));
  return product * static_cast<double>(access.references.size());
}

namespace {

/// The ways whose blocks are whole tiles, first of the one size, then of the larger, where they are longer than that.
///   cores   that share the outputs
///   whole   per iterator: what they share
///   tiles   per iterator
///   least   per iterator: blocks are whole multiples of it
std::vector<std::vector<int64_t>> ways_in_tiles(const Work& work, const Product& product, int64_t cores,
                                                const std::vector<int64_t>& whole, const Beside& beside,
                                                const std::vector<int64_t>& grain,
                                                const std::vector<std::vector<int64_t>>& tiles,
                                                const std::vector<int64_t>& least) {
  constexpr size_t kWays = 6, kAxes = 3;
  const std::vector<int64_t>& extent = whole;
  std::vector<size_t> axes;
  for (size_t x = 0; x < extent.size(); ++x)
    if (product.uses[x].output && extent[x] > 1 && !is_summed_later(product, beside, x)) axes.push_back(x);
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return extent[a] > extent[b]; });
  axes.resize(std::min(axes.size(), kAxes));
  struct Way {
    double work, fetched;
    std::vector<int64_t> block;
  };
  std::vector<Way> ways;
  auto add = [&](const std::vector<int64_t>& parts) {
    std::vector<int64_t> block = extent;
    for (size_t x : axes) {
      block[x] = ceil_div(extent[x], parts[x]);
      block[x] = std::min(extent[x], ceil_div(block[x], least[x]) * least[x]);
      for (int64_t tile : tiles[x])
        if (block[x] > tile) block[x] = std::min(extent[x], ceil_div(block[x], tile) * tile);
      if (!grain.empty()) block[x] = ceil_div(block[x], grain[x]) * grain[x];
    }
    Way way{1, 0, block};
    for (size_t x = 0; x < extent.size(); ++x) way.work *= static_cast<double>(block[x]);
    for (size_t a : {product.first, product.second, product.output})
      way.fetched += elements_of(work.statement.accesses[a], block) * work.operands[a].bits;
    ways.push_back(std::move(way));
  };
  // Parts that leave no core without work that it could have: blocks per axis of every useful number.
  auto grow = [&](auto& self, std::vector<int64_t> parts, size_t next, int64_t left) -> void {
    if (next == axes.size()) return add(parts);
    const size_t x = axes[next];
    for (int64_t p = 1; p <= std::min(left, extent[x]); p = p < 16 ? p + 1 : std::max(p + 1, p * 9 / 8)) {
      parts[x] = p;
      self(self, parts, next + 1, left / p);
    }
    parts[x] = std::min(left, extent[x]);
    self(self, parts, next + 1, left / parts[x]);
  };
  grow(grow, std::vector<int64_t>(extent.size(), 1), 0, cores);
  double least_work = ways[0].work, least_fetched = ways[0].fetched;
  for (const Way& way : ways) {
    least_work = std::min(least_work, way.work);
    least_fetched = std::min(least_fetched, way.fetched);
  }
  auto cost = [&](const Way& way) { return 4 * way.work / least_work + way.fetched / least_fetched; };
  std::stable_sort(ways.begin(), ways.end(), [&](const Way& a, const Way& b) { return cost(a) < cost(b); });
  std::vector<std::vector<int64_t>> best;
  for (const Way& way : ways)
    if (best.size() < kWays && std::find(best.begin(), best.end(), way.block) == best.end()) best.push_back(way.block);
  return best;
}

/// The longest reduction, where sharing it may pay: the best way to share outputs leaves a core waiting for operands, or some
/// without work.
std::optional<size_t> reduction_to_share(const Work& work, const Product& product, const Chip& chip,
                                         const std::vector<int64_t>& best) {
  constexpr double kBusy = 1.25;  // times the mean work of a core
  if (!chip.barrier_cycles) return {};
  const std::vector<int64_t>& extent = work.statement.domain.extent;
  std::optional<size_t> longest;
  double macs = 1, all_macs = 1, bits = 0;
  for (size_t x = 0; x < extent.size(); ++x) {
    macs *= static_cast<double>(best[x]), all_macs *= static_cast<double>(extent[x]);
    if (!product.uses[x].output && (!longest || extent[x] > extent[*longest])) longest = x;
  }
  for (size_t a : {product.first, product.second})
    bits += elements_of(work.statement.accesses[a], best) * work.operands[a].bits;
  const double fetch = chip.core_bytes_per_cycle ? bits / 8 / *chip.core_bytes_per_cycle : 0;
  const bool waits = fetch * static_cast<double>(chip.rows * chip.columns) > macs;
  return waits || macs * static_cast<double>(chip.cores) > kBusy * all_macs ? longest : std::nullopt;
}

}  // namespace

std::vector<std::vector<int64_t>> ways_to_share(const Work& work, const Product& product, const Chip& chip,
                                                const Beside& beside, const std::vector<int64_t>& grain) {
  if (chip.cores == 1) return {work.statement.domain.extent};
  const size_t rank = work.statement.domain.extent.size();
  std::vector<std::vector<int64_t>> ways;
  std::vector<int64_t> least(rank, 1);
  std::vector<int64_t> whole = work.statement.domain.extent;
  int64_t cores = chip.cores;
  auto add = [&](const std::vector<std::vector<int64_t>>& tiles) {
    for (std::vector<int64_t>& way : ways_in_tiles(work, product, cores, whole, beside, grain, tiles, least))
      if (std::ranges::find(ways, way) == ways.end()) ways.push_back(std::move(way));
  };
  if (chip.dataflow == Stationary::output || chip.dataflow == Stationary::schedule) {
    const int64_t short_side = std::min(chip.rows, chip.columns), long_side = std::max(chip.rows, chip.columns);
    add(std::vector(rank, std::vector{short_side, long_side}));
    if (short_side < long_side) add(std::vector(rank, std::vector{short_side}));
    return ways;
  }
  // Where a factor stays, columns of the array are its outputs; the other factor's outputs stream, and their blocks may be of
  // any size: of whole eights, so that tiles can divide them. Half of the columns too: what suits an array suits one of
  // twice the size.
  const size_t weight = weight_of(work, product), input = weight == product.first ? product.second : product.first;
  const size_t stays = chip.dataflow == Stationary::input ? input : weight;
  for (size_t x = 0; x < rank; ++x)
    if (product.in(x, stays) && product.uses[x].output && !product.in(x, stays == weight ? input : weight))
      least[x] = chip.least_columns;
  auto add_all = [&] {
    for (int64_t columns : {chip.columns, std::max<int64_t>(1, chip.columns / 2)}) {
      add(std::vector(rank, std::vector{columns}));
      std::vector<std::vector<int64_t>> of_what_stays(rank, {8});
      for (size_t x = 0; x < rank; ++x)
        if (product.in(x, stays)) of_what_stays[x] = {columns};
      add(of_what_stays);
    }
  };
  add_all();
  const std::optional<size_t> reduction = reduction_to_share(work, product, chip, ways.front());
  for (int64_t parts = 2; reduction && parts <= chip.cores; parts *= 2) {
    const int64_t extent = work.statement.domain.extent[*reduction];
    whole[*reduction] = ceil_div(ceil_div(extent, parts), chip.rows) * chip.rows;
    if (whole[*reduction] * (parts - 1) >= extent) break;  // a core without work
    cores = chip.cores / parts;
    add_all();
  }
  return ways;
}

}  // namespace sator::dataflow
