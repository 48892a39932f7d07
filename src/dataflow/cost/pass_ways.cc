#include "dataflow/cost/pass_ways.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>

#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

constexpr size_t kWaysJudged = 6;  // ways that are costed in full, of those that look quickest

/// Powers of two up to `most`, and `most`; from `least` on.
std::vector<int64_t> sizes(int64_t least, int64_t most, int64_t limit) {
  std::vector<int64_t> all;
  for (int64_t s = least; s < most && s <= limit; s *= 2) all.push_back(s);
  if (most <= limit) all.push_back(most);
  return all;
}

double factor_bits(const PassForm& form, const PassForm::Part& part, size_t access) {
  return form.work(part).operands[access].bits;
}

double bits_per_column(const PassForm& form) {
  return static_cast<double>(form.depth) * factor_bits(form, form.first, form.first.weight) +
         static_cast<double>(form.values) * factor_bits(form, form.second, form.second.weight);
}

}  // namespace

PassWays::PassWays(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
    : chip_(chip), tiles_(chip, by_class, counts) {
  for (size_t m = 0; chip.one_pass && m < chip.memories.size(); ++m)
    if (chip.memories[m].name == chip.one_pass->memory) kept_in_ = m;
  for (size_t m = 0; m < chip.memories.size(); ++m)
    if (!chip.memories[m].per_core) shared_ = m;
}

Amounts amounts_of(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks) {
  Amounts a;
  std::map<std::pair<int64_t, int64_t>, int64_t> alike;  // rows and tiles
  int64_t first = form.columns, last = 0;
  for (const RowBlock& block : blocks) {
    const int64_t begin = block.begin / way.columns, end = ceil_div(block.end, way.columns);
    if (block.end <= block.begin) continue;
    const int64_t tiles = end - begin, parts = std::min(way.parts, tiles);
    alike[{block.rows, tiles / parts}] += parts - tiles % parts;
    if (tiles % parts > 0) alike[{block.rows, tiles / parts + 1}] += tiles % parts;
    a.all_blocks += parts, a.all_tiles += tiles;
    a.scores += block.rows * tiles * way.columns;
    a.sums += block.rows * tiles * form.values;
    a.loaded_rows += block.rows * parts;
    a.loaded_columns += std::min(end * way.columns, form.columns) - begin * way.columns;
    first = std::min(first, begin * way.columns), last = std::max(last, std::min(end * way.columns, form.columns));
  }
  for (const auto& [key, count] : alike) a.blocks.push_back({count * form.batches, key.first, key.second});
  a.touched_columns = std::max<int64_t>(0, last - first);
  for (int64_t* n :
       {&a.all_blocks, &a.all_tiles, &a.scores, &a.sums, &a.loaded_rows, &a.loaded_columns, &a.touched_columns})
    *n *= form.batches;
  return a;
}

/// Whether what a core needs at a time fits: tiles of both weights, twice where a memory is double-buffered, a block's rows, and
/// where the chip keeps them, the tile of scores and the block's sums.
bool PassWays::fits(const PassForm& form, const Way& way) const {
  const double rows = static_cast<double>(way.rows), columns = static_cast<double>(way.columns),
               values = static_cast<double>(form.values), depth = static_cast<double>(form.depth);
  const double weights = columns * (depth * factor_bits(form, form.first, form.first.weight) +
                                    values * factor_bits(form, form.second, form.second.weight));
  const double inputs = rows * depth * factor_bits(form, form.first, form.first.input);
  const double kept = rows * (columns + values) * kPartBits;
  for (size_t m = 1; m < chip_.memories.size(); ++m) {
    const Memory& memory = chip_.memories[m];
    if (!memory.capacity_bytes) continue;
    const double bits = (memory.holds_weights ? weights * (memory.double_buffered ? 2 : 1) : 0) +
                        (memory.holds_activations ? inputs : 0) + (m == kept_in_ ? kept : 0);
    const double cores = memory.per_core ? 1 : static_cast<double>(chip_.cores);
    if (bits * cores > 8 * static_cast<double>(*memory.capacity_bytes)) return false;
  }
  return true;
}

std::vector<Way> PassWays::quickest_ways(const PassForm& form) {
  std::vector<std::pair<double, Way>> all;
  constexpr int64_t kMostRows = 1024, kMostColumns = 1024, kLeast = 16;
  for (int64_t rows : sizes(kLeast, form.row_count, kMostRows)) {
    const std::vector<RowBlock> blocks = row_blocks(form, rows);
    for (int64_t columns : sizes(kLeast, form.columns, kMostColumns)) {
      Way way{rows, columns, 1};
      if (!fits(form, way)) continue;
      const int64_t whole = static_cast<int64_t>(blocks.size()) * form.batches;
      const int64_t most = chip_.barrier_cycles && whole < chip_.cores ? ceil_div(form.columns, columns) : 1;
      const int64_t fill = std::max<int64_t>(1, std::min(most, chip_.cores / std::max<int64_t>(1, whole)));
      for (way.parts = 1; way.parts <= fill; way.parts = way.parts < fill ? std::min(2 * way.parts, fill) : fill + 1)
        if (const auto cycles = estimate(form, way, blocks)) all.emplace_back(*cycles, way);
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Way> best;
  for (size_t w = 0; w < std::min(all.size(), kWaysJudged); ++w) best.push_back(all[w].second);
  return best;
}

/// Cycles of the array for a block.
std::optional<double> PassWays::array_cycles(const PassForm& form, const Way& way, const Blocks& b) {
  const auto* tiles = tiles_.of(form, b.rows, way.columns);
  if (!tiles) return {};
  return (*tiles)[0].array_cycles(1, b.tiles) + (*tiles)[1].array_cycles(1, b.tiles);
}

double PassWays::between_ops(const PassForm& form) const {
  double ops = 0;
  for (size_t s : form.between)
    if (!is_inline(form.merged.works[s])) ops += form.merged.works[s].vector_ops;
  return ops;
}
bool PassWays::is_inline(const Work& work) const {
  return std::find(chip_.inline_work.begin(), chip_.inline_work.end(), work.vector_work) != chip_.inline_work.end();
}

int64_t PassWays::columns_from_outside(const PassForm& form, const Amounts& a) const {
  const double wave = std::min(static_cast<double>(chip_.cores), static_cast<double>(a.all_blocks));
  const double per_batch = static_cast<double>(a.all_blocks) / static_cast<double>(form.batches);
  const double batches = std::min(static_cast<double>(form.batches), std::ceil(wave / per_batch));
  const double needs =
      static_cast<double>(a.touched_columns) / static_cast<double>(form.batches) * batches * bits_per_column(form);
  const Memory& memory = chip_.memories[shared_];
  if (shared_ > 0 && (!memory.capacity_bytes || needs <= 8 * static_cast<double>(*memory.capacity_bytes)))
    return a.touched_columns;
  return std::min(a.loaded_columns, a.touched_columns * ceil_div(a.all_blocks, chip_.cores));
}

/// What the PEs of all cores read from the memory beside them, in cycles of one core's share.
double PassWays::beside_cycles(const PassForm& form, const Way& way, const Amounts& a, double active) {
  std::vector<double> bits(chip_.memories.size(), 0);
  for (const Blocks& b : a.blocks)
    for (const ProductTiles& t : *tiles_.of(form, b.rows, way.columns))
      for (const ProductTiles::Beside& x : t.beside)
        if (x.memory)
          bits[*x.memory] +=
              static_cast<double>(b.count) *
              static_cast<double>(x.first.read + x.first.write + (b.tiles - 1) * (x.next.read + x.next.write));
  double longest = 0;
  for (size_t m = 0; m < bits.size(); ++m)
    longest =
        std::max(longest, transfer_cycles(chip_.memories[m], bits[m], 0) / (chip_.memories[m].per_core ? active : 1));
  return longest;
}

/// The longest of the resources, roughly; nothing where a tile does not fit.
std::optional<double> PassWays::estimate(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks) {
  const Amounts a = amounts_of(form, way, blocks);
  const double cores = static_cast<double>(chip_.cores);
  double longest = 0, all = 0;
  for (const Blocks& b : a.blocks) {
    const auto cycles = array_cycles(form, way, b);
    if (!cycles) return {};
    longest = std::max(longest, *cycles), all += *cycles * static_cast<double>(b.count);
  }
  const double array = std::max(longest, all / cores), uneven = all > 0 ? array * cores / all : 1;
  double vector = static_cast<double>(a.scores) * between_ops(form);
  if (form.reduces_between) vector += static_cast<double>(a.sums) * kRescale;
  vector = vector / lanes() * uneven;
  const double loads =
      static_cast<double>(a.loaded_columns) * bits_per_column(form) +
      static_cast<double>(a.loaded_rows * form.depth) * factor_bits(form, form.first, form.first.input);
  const double active = std::min(cores, static_cast<double>(a.all_blocks));
  double memory = transfer_cycles(chip_.memories[shared_], loads, 0);
  if (chip_.core_bytes_per_cycle) memory = std::max(memory, loads / 8 / active / *chip_.core_bytes_per_cycle);
  const double outside =
      transfer_cycles(chip_.memories[0], static_cast<double>(columns_from_outside(form, a)) * bits_per_column(form), 0);
  const double beside = beside_cycles(form, way, a, active);
  double cycles = std::max({array, memory, outside, beside, chip_.vector.overlaps_array ? vector : array + vector});
  if (way.parts > 1) {
    const double parts = static_cast<double>(a.loaded_rows * (form.values + kNumbersPerRow) * kPartBits);
    cycles += static_cast<double>(*chip_.barrier_cycles) + transfer_cycles(chip_.memories[shared_], parts, parts);
  }
  return cycles;
}

PassSchedule PassWays::schedule(const PassForm& form, const Way& way, const Amounts& a) {
  struct Core {
    double cycles = 0;
    int64_t tiles = 0, blocks = 0;
    bool operator<(const Core& other) const { return cycles > other.cycles; }
  };
  std::vector<std::pair<double, Blocks>> order;
  for (const Blocks& b : a.blocks) order.emplace_back(*array_cycles(form, way, b), b);
  std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  PassSchedule s;
  s.cores = std::min(chip_.cores, a.all_blocks);
  std::priority_queue<Core> free(std::less<Core>(), std::vector<Core>(static_cast<size_t>(s.cores)));
  Core last;
  for (const auto& [cycles, b] : order)
    for (int64_t i = 0; i < b.count; ++i) {
      Core core = free.top();
      free.pop();
      core.cycles += cycles, core.tiles += b.tiles, ++core.blocks;
      s.all_cycles += cycles;
      if (core.cycles > last.cycles) last = core;
      free.push(core);
    }
  s.cycles = last.cycles, s.tiles = last.tiles, s.blocks = last.blocks;
  return s;
}

}  // namespace sator::dataflow
