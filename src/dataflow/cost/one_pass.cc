#include "dataflow/cost/one_pass.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>

#include "base/text.h"
#include "dataflow/cost/latency.h"
#include "dataflow/cost/pass_tiles.h"
#include "dataflow/cost/totals.h"
#include "dataflow/mapping/sharing.h"
#include "dataflow/programs/masks.h"

namespace sator::dataflow {

namespace {

constexpr size_t kWaysJudged = 6;             // ways that are costed in full, of those that look quickest
constexpr int64_t kPartBits = 32;             // of sums that cores share
constexpr int64_t kNumbersPerRow = 2;         // beside them: the largest score and the total of a part
constexpr double kCombine = 2, kRescale = 1;  // operations for each of a part's sums; for each sum of a tile before

/// A way to run the pass.
struct Way {
  int64_t rows = 0, columns = 0, parts = 1;  // of a block, of a tile; cores that a block is cut for
};

/// Blocks of one length: how many, with how many tiles each.
struct Blocks {
  int64_t count = 0, rows = 0, tiles = 0;
};

/// What a way comes to, over all batches.
struct Amounts {
  std::vector<Blocks> blocks;  // parts of blocks are blocks of their own
  int64_t all_blocks = 0, all_tiles = 0;
  int64_t scores = 0;           // computed, masked ones within tiles too
  int64_t loaded_columns = 0;   // for all blocks
  int64_t touched_columns = 0;  // of all batches, once
  int64_t loaded_rows = 0;      // for all blocks
  int64_t sums = 0;             // of results, per tile: what a running reduction rescales
};

int64_t rounded_up(double v) { return static_cast<int64_t>(std::ceil(v - 1e-9)); }

}  // namespace

class OnePass::Impl {
 public:
  Impl(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
      : chip_(chip), tiles_(chip, by_class, counts) {
    for (size_t m = 0; chip.one_pass && m < chip.memories.size(); ++m)
      if (chip.memories[m].name == chip.one_pass->memory) kept_in_ = m;
    for (size_t m = 0; m < chip.memories.size(); ++m)
      if (!chip.memories[m].per_core) shared_ = m;
  }

  std::optional<KernelCost> cost(const Kernel& kernel) {
    if (!chip_.one_pass || chip_.tenet) return {};
    const std::optional<PassForm> form = pass_form_of(kernel, chip_);
    if (!form) return {};
    const std::vector<Way> ways = quickest_ways(*form);
    std::optional<KernelCost> best;
    for (const Way& way : ways) {
      KernelCost cost = cost_of(kernel, *form, way);
      if (!best || cost.unrounded_cycles < best->unrounded_cycles) best = std::move(cost);
    }
    return best;
  }

 private:
  /// Powers of two up to `most`, and `most`; from `least` on.
  static std::vector<int64_t> sizes(int64_t least, int64_t most, int64_t limit) {
    std::vector<int64_t> all;
    for (int64_t s = least; s < most && s <= limit; s *= 2) all.push_back(s);
    if (most <= limit) all.push_back(most);
    return all;
  }

  static double bits_of(const PassForm& form, const PassForm::Part& part, size_t access) {
    return form.work(part).operands[access].bits;
  }

  /// Whether what a core needs at a time fits: tiles of both weights, twice where a memory is double-buffered, a block's rows, and
  /// where the chip keeps them, the tile of scores and the block's sums.
  bool fits(const PassForm& form, const Way& way) const {
    const double rows = static_cast<double>(way.rows), columns = static_cast<double>(way.columns),
                 values = static_cast<double>(form.values), depth = static_cast<double>(form.depth);
    const double weights = columns * (depth * bits_of(form, form.first, form.first.weight) +
                                      values * bits_of(form, form.second, form.second.weight));
    const double inputs = rows * depth * bits_of(form, form.first, form.first.input);
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

  std::vector<Way> quickest_ways(const PassForm& form) {
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

  static Amounts amounts_of(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks) {
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

  /// Cycles of the array for a block.
  std::optional<double> array_cycles(const PassForm& form, const Way& way, const Blocks& b) {
    const auto* tiles = tiles_.of(form, b.rows, way.columns);
    if (!tiles) return {};
    return (*tiles)[0].array_cycles(1, b.tiles) + (*tiles)[1].array_cycles(1, b.tiles);
  }

  double between_ops(const PassForm& form) const {
    double ops = 0;
    for (size_t s : form.between)
      if (!is_inline(form.merged.works[s])) ops += form.merged.works[s].vector_ops;
    return ops;
  }
  bool is_inline(const Work& work) const {
    return std::find(chip_.inline_work.begin(), chip_.inline_work.end(), work.vector_work) != chip_.inline_work.end();
  }
  double lanes() const { return static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle; }

  /// Columns of keys and values that come from further out than the memory which cores share: once where that memory has room
  /// for what blocks of one wave need, else once for each wave, whose blocks go through them together.
  int64_t columns_from_outside(const PassForm& form, const Amounts& a) const {
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
  static double bits_per_column(const PassForm& form) {
    return static_cast<double>(form.depth) * bits_of(form, form.first, form.first.weight) +
           static_cast<double>(form.values) * bits_of(form, form.second, form.second.weight);
  }

  /// What the PEs of all cores read from the memory beside them, in cycles of one core's share.
  double beside_cycles(const PassForm& form, const Way& way, const Amounts& a, double active) {
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
  std::optional<double> estimate(const PassForm& form, const Way& way, const std::vector<RowBlock>& blocks) {
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
    const double loads = static_cast<double>(a.loaded_columns) * bits_per_column(form) +
                         static_cast<double>(a.loaded_rows * form.depth) * bits_of(form, form.first, form.first.input);
    const double active = std::min(cores, static_cast<double>(a.all_blocks));
    double memory = transfer_cycles(chip_.memories[shared_], loads, 0);
    if (chip_.core_bytes_per_cycle) memory = std::max(memory, loads / 8 / active / *chip_.core_bytes_per_cycle);
    const double outside = transfer_cycles(
        chip_.memories[0], static_cast<double>(columns_from_outside(form, a)) * bits_per_column(form), 0);
    const double beside = beside_cycles(form, way, a, active);
    double cycles = std::max({array, memory, outside, beside, chip_.vector.overlaps_array ? vector : array + vector});
    if (way.parts > 1) {
      const double parts = static_cast<double>(a.loaded_rows * (form.values + kNumbersPerRow) * kPartBits);
      cycles += static_cast<double>(*chip_.barrier_cycles) + transfer_cycles(chip_.memories[shared_], parts, parts);
    }
    return cycles;
  }

  /// When the last core is done, the longest blocks first, each on the core that is free first.
  struct Schedule {
    double cycles = 0, all_cycles = 0;
    int64_t cores = 0, tiles = 0, blocks = 0;  // that work; of the last core
  };
  Schedule schedule(const PassForm& form, const Way& way, const Amounts& a) {
    struct Core {
      double cycles = 0;
      int64_t tiles = 0, blocks = 0;
      bool operator<(const Core& other) const { return cycles > other.cycles; }
    };
    std::vector<std::pair<double, Blocks>> order;
    for (const Blocks& b : a.blocks) order.emplace_back(*array_cycles(form, way, b), b);
    std::stable_sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
    Schedule s;
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

  // ---- the full cost -------------------------------------------------------------------------------------------------

  struct PassRun {
    const PassForm& form;
    const Way& way;
    const Amounts& amounts;
    Schedule schedule;
    double uneven = 1;                               // the last core's time by the mean of all of the chip's
    std::set<std::pair<std::string, size_t>> moved;  // tensors that a memory has taken in
  };

  KernelCost cost_of(const Kernel& kernel, const PassForm& form, const Way& way) {
    const Amounts a = amounts_of(form, way, row_blocks(form, way.rows));
    PassRun run{form, way, a, schedule(form, way, a), 1, {}};
    if (run.schedule.all_cycles > 0)
      run.uneven = run.schedule.cycles * static_cast<double>(chip_.cores) / run.schedule.all_cycles;
    KernelCost total;
    total.kernel = kernel.name, total.chip = chip_.name;
    for (size_t s = 0; s < form.merged.works.size(); ++s) {
      if (s == form.second.statement && form.reduces_between) total.statements.push_back(rescaling(run));
      if (s == form.first.statement || s == form.second.statement)
        total.statements.push_back(product(run, s == form.second.statement, total.notes));
      else
        total.statements.push_back(vector_statement(run, s));
      if (s == form.second.statement && way.parts > 1) total.statements.push_back(combining(run));
    }
    find_latency(total, chip_);
    sum_up(total, chip_);
    return total;
  }

  static int64_t scaled(int64_t value, double share) { return rounded_up(static_cast<double>(value) * share); }

  /// One of the products: counts of all tiles, cycles of the last core.
  StatementCost product(PassRun& run, bool second, std::vector<std::string>& notes) {
    const PassForm::Part& part = second ? run.form.second : run.form.first;
    const Work& work = run.form.work(part);
    StatementCost cost;
    Counts counts;
    int64_t fill = 0;
    std::array<ProductTiles::Bits, 3> beside{};
    std::array<std::optional<size_t>, 3> innermost{};
    double at_work = 0;
    for (const Blocks& b : run.amounts.blocks) {
      const ProductTiles& t = (*tiles_.of(run.form, b.rows, run.way.columns))[second];
      const int64_t n = b.count, all = b.count * b.tiles;
      auto sum = [&](int64_t of_first, int64_t of_two) { return t.over(n, all, of_first, of_two); };
      cost.stream_cycles += sum(t.first.stream_cycles, t.two.stream_cycles);
      cost.load_cycles += sum(t.first.load_cycles, t.two.load_cycles);
      fill += n * t.first.fill_drain_cycles;
      cost.register_bits += sum(t.first.register_bits, t.two.register_bits);
      cost.hop_bits += sum(t.first.hop_bits, t.two.hop_bits);
      at_work += t.first.pes_used * static_cast<double>(sum(t.first.stream_cycles, t.two.stream_cycles));
      add_counts(counts, t, sum);
      for (size_t x = 0; x < 3; ++x) {
        beside[x].read += n * t.beside[x].first.read + (all - n) * t.beside[x].next.read;
        beside[x].write += n * t.beside[x].first.write + (all - n) * t.beside[x].next.write;
        innermost[x] = t.beside[x].memory;
      }
      if (b.rows == run.amounts.blocks.back().rows) {
        cost.precision = t.first.precision, cost.passes = t.first.passes;
        cost.tile = TileUse{{t.first.work.statement, t.first.placement->mapping, {}}, *t.first.counts};
        cost.tile->problem = sator::dataflow::problem_at_pes(t.first, one_core());
      }
    }
    const double last = run.schedule.all_cycles > 0 ? run.schedule.cycles / run.schedule.all_cycles : 0;
    const int64_t all_stream = cost.stream_cycles;
    cost.stream_cycles = scaled(all_stream, last);
    cost.load_cycles = scaled(cost.load_cycles, last);
    cost.fill_drain_cycles = scaled(fill, last);
    if (cost.stream_cycles > 0) cost.pes_used = at_work / static_cast<double>(cost.stream_cycles);
    name_precision(work, part, cost, notes);
    cost.name = work.statement.name;
    cost.work = work;
    cost.work.operands[second ? part.input : part.output].on_the_way = true;
    cost.product = part.product;
    cost.instances = counts.macs;
    cost.macs = work.only_where.empty() ? whole_of(work) : unmasked_instances(work);
    place(run, second, cost);
    counts.pe_array = chip_.pes();
    counts.time = scaled(counts.time, last);
    in_order_of_accesses(run, part, second, counts);
    cost.counts = std::move(counts);
    cost.folds = std::max<int64_t>(1, run.schedule.tiles);
    cost.parts.assign(work.operands.size(), cost.folds);
    cost.tiles = run.amounts.all_tiles;
    move_weight(run, part, innermost[1], beside[1].read, cost);
    if (!second) move_input(run, part, innermost[0], beside[0].read, cost);
    if (second) move_sums(run, part, innermost[2], beside[2], cost);
    return cost;
  }

  const Chip& one_core() {
    if (!one_core_) {
      one_core_ = chip_;
      one_core_->cores = 1;
    }
    return *one_core_;
  }

  static int64_t whole_of(const Work& work) {
    int64_t all = 1;
    for (int64_t extent : work.statement.domain.extent) all *= extent;
    return all;
  }

  template <class Sum>
  static void add_counts(Counts& counts, const ProductTiles& t, Sum&& sum) {
    const Counts &a = *t.first.counts, &b = *t.two.counts;
    counts.macs += sum(a.macs, b.macs);
    counts.space = std::max(counts.space, a.space);
    counts.time += sum(a.time, b.time);
    counts.spacetime += sum(a.spacetime, b.spacetime);
    counts.tensors.resize(3);
    for (size_t x = 0; x < 3; ++x) {
      TensorCounts& c = counts.tensors[x];
      const TensorCounts &one = a.tensors[x], &two = b.tensors[x];
      c.tensor = one.tensor, c.role = one.role;
      c.total += sum(one.total, two.total);
      c.assigned += sum(one.assigned, two.assigned);
      c.unique += sum(one.unique, two.unique);
      c.temporal_hits += sum(one.temporal_hits, two.temporal_hits);
      c.spatial_hits += sum(one.spatial_hits, two.spatial_hits);
    }
  }

  /// Tiles list input, weight, output; footprints are those of the kernel.
  static void in_order_of_accesses(const PassRun& run, const PassForm::Part& part, bool second, Counts& counts) {
    const PassForm& form = run.form;
    const std::vector<TensorCounts> tiles = counts.tensors;
    counts.tensors[part.input] = tiles[0], counts.tensors[part.weight] = tiles[1],
    counts.tensors[part.output] = tiles[2];
    const int64_t rows = form.batches * form.row_count;
    counts.tensors[part.input].footprint = second ? run.amounts.scores : rows * form.depth;
    counts.tensors[part.weight].footprint = run.amounts.touched_columns * (second ? form.values : form.depth);
    counts.tensors[part.output].footprint = second ? rows * form.values : run.amounts.scores;
    const Work& work = form.work(part);
    for (size_t a = 0; a < counts.tensors.size(); ++a) counts.tensors[a].tensor = work.statement.accesses[a].tensor;
  }

  void name_precision(const Work& work, const PassForm::Part& part, const StatementCost&,
                      std::vector<std::string>& notes) const {
    const Operand &w = work.operands[part.weight], &x = work.operands[part.input];
    const std::string note = choose_precision(chip_, w.bits, w.is_float, x.bits, x.is_float).note;
    if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }

  void place(const PassRun& run, bool second, StatementCost& cost) const {
    Placement& p = cost.placement.emplace();
    p.mapping = cost.tile->problem.mapping;
    p.held_since.assign(chip_.memories.size(), 0);
    p.cores_used = run.schedule.cores;
    p.shares_reduction = second && run.way.parts > 1;  // the barrier is paid once
    p.words = text("in one pass: blocks of ",
                   run.way.rows,
                   " rows, tiles of ",
                   run.way.columns,
                   " columns",
                   run.way.parts > 1 ? text(", each block in ", run.way.parts, " parts") : "",
                   "; ",
                   run.amounts.all_blocks,
                   " on ",
                   run.schedule.cores,
                   run.schedule.cores == 1 ? " core" : " cores");
  }

  /// The memories that hold an operand of a product, from the outermost.
  std::vector<size_t> path_of(const Work& work, const PassForm::Part& part, size_t access) const {
    Work outside = work;
    for (Operand& o : outside.operands) o.internal = o.on_the_way = false;
    return memory_path(outside, part.product, part.weight, access, chip_);
  }

  int64_t instances(const PassRun& run, size_t memory) const {
    return chip_.memories[memory].per_core ? run.schedule.cores : 1;
  }

  /// Along the memories of a path: `once` comes into those that all share, `each` into those of a core.
  void bring_in(PassRun& run, const std::vector<size_t>& path, const std::string& tensor, OperandKind kind,
                int64_t once, int64_t each, int64_t last_read, int64_t parts, std::vector<Traffic>& traffic) {
    std::vector<Traffic> along;
    for (size_t m : path)
      along.push_back({.memory = m,
                       .tensor = tensor,
                       .kind = kind,
                       .instances = instances(run, m),
                       .parts = std::max<int64_t>(1, parts)});
    for (size_t i = 0; i + 1 < along.size(); ++i) {
      const bool own = chip_.memories[path[i + 1]].per_core && chip_.cores > 1;
      const int64_t in = own ? each : once;
      along[i].read_bits += in;
      along[i + 1].refill(path[i], in, 0);
    }
    along.back().read_bits += last_read;
    traffic.insert(traffic.end(), along.begin(), along.end());
  }

  /// Keys or values.
  void move_weight(PassRun& run, const PassForm::Part& part, std::optional<size_t>, int64_t pe_read,
                   StatementCost& cost) {
    const PassForm& form = run.form;
    const Work& work = form.work(part);
    const bool second = part.statement == form.second.statement;
    const int64_t element = work.operands[part.weight].bits * (second ? form.values : form.depth);
    const int64_t each = dataflow::bits_of(run.amounts.loaded_columns, element);
    const int64_t once = dataflow::bits_of(columns_from_outside(form, run.amounts), element);
    const std::vector<size_t> path = path_of(work, part, part.weight);
    bring_in(run,
             path,
             work.statement.accesses[part.weight].tensor,
             work.operands[part.weight].kind,
             once,
             each,
             pe_read,
             cost.folds,
             cost.traffic);
  }

  /// Rows that a block multiplies: they come from outside, or a statement before makes them where the array takes them from.
  void move_input(PassRun& run, const PassForm::Part& part, std::optional<size_t> innermost, int64_t pe_read,
                  StatementCost& cost) {
    const Work& work = run.form.work(part);
    const Operand& o = work.operands[part.input];
    const std::string& tensor = work.statement.accesses[part.input].tensor;
    const int64_t each = dataflow::bits_of(run.amounts.loaded_rows, o.bits * run.form.depth);
    const int64_t once = dataflow::bits_of(run.form.batches * run.form.row_count, o.bits * run.form.depth);
    if (!o.internal) {
      bring_in(
          run, path_of(work, part, part.input), tensor, o.kind, once, each, pe_read, run.schedule.blocks, cost.traffic);
    } else if (innermost) {
      cost.traffic.push_back({.memory = *innermost,
                              .tensor = tensor,
                              .kind = o.kind,
                              .read_bits = pe_read,
                              .write_bits = each,
                              .instances = instances(run, *innermost),
                              .parts = std::max<int64_t>(1, run.schedule.blocks)});
    }
  }

  /// Sums stay where the chip keeps them; parts of them go to the memory that cores share. A result that no statement after
  /// takes leaves from there.
  void move_sums(PassRun& run, const PassForm::Part& part, std::optional<size_t> innermost, ProductTiles::Bits beside,
                 StatementCost& cost) {
    const Work& work = run.form.work(part);
    const Operand& o = work.operands[part.output];
    const std::string& tensor = work.statement.accesses[part.output].tensor;
    if (innermost)
      cost.traffic.push_back({.memory = *innermost,
                              .tensor = tensor,
                              .kind = o.kind,
                              .read_bits = beside.read,
                              .write_bits = beside.write,
                              .instances = instances(run, *innermost)});
    if (run.way.parts == 1) {
      if (!o.internal) send_out(run, work, part.output, o.bits, cost.traffic);
      return;
    }
    Traffic parts{.memory = shared_, .tensor = tensor, .kind = o.kind};
    parts.write_bits = dataflow::bits_of(run.amounts.loaded_rows, kPartBits * (run.form.values + kNumbersPerRow));
    cost.traffic.push_back(std::move(parts));
  }

  /// A result leaves through the memories that hold outputs.
  void send_out(PassRun& run, const Work& work, size_t access, int bits, std::vector<Traffic>& traffic) {
    const PassForm::Part& part = run.form.second;
    const int64_t all = dataflow::bits_of(run.form.batches * run.form.row_count, bits * run.form.values);
    std::vector<size_t> path = path_of(run.form.work(part), part, part.output);
    if (run.way.parts > 1)
      while (path.size() > 1 && path.back() > shared_) path.pop_back();
    const Access& to = work.statement.accesses[access];
    std::vector<Traffic> along;
    for (size_t m : path)
      along.push_back({.memory = m,
                       .tensor = to.tensor,
                       .kind = work.operands[access].kind,
                       .instances = instances(run, m),
                       .parts = std::max<int64_t>(1, run.schedule.blocks),
                       .waits = 1 / static_cast<double>(std::max<int64_t>(1, run.schedule.blocks))});
    for (size_t i = 0; i + 1 < along.size(); ++i) {
      along[i].write_bits += all;
      along[i + 1].refill(path[i], 0, all);
    }
    along.back().write_bits += all;
    traffic.insert(traffic.end(), along.begin(), along.end());
  }

  void time(PassRun& run, double uneven, StatementCost& cost) const {
    if (!is_inline(cost.work)) cost.vector_cycles = rounded_up(static_cast<double>(cost.vector_ops) / lanes() * uneven);
    cost.vector_parts = std::max<int64_t>(1, run.schedule.tiles);
  }

  StatementCost vector_statement(PassRun& run, size_t s) {
    const PassForm& form = run.form;
    const Work& work = form.merged.works[s];
    const bool before = s < form.first.statement, between = !before && s < form.second.statement;
    StatementCost cost;
    cost.name = work.statement.name;
    cost.work = work;
    cost.vector_work = work.vector_work;
    cost.instances = before ? run.amounts.loaded_rows * form.depth : between ? run.amounts.scores : whole_of(work);
    cost.vector_ops = rounded_up(static_cast<double>(cost.instances) * work.vector_ops);
    time(run, run.uneven, cost);
    const int64_t blocks = std::max<int64_t>(1, run.schedule.blocks);
    if (!between) cost.vector_parts = blocks;
    if (s > form.second.statement) cost.waits = 1 / static_cast<double>(blocks);
    for (size_t a = 0; a < work.operands.size(); ++a) {
      const Operand& o = work.operands[a];
      if (o.internal) continue;
      const std::string& tensor = work.statement.accesses[a].tensor;
      if (work.statement.accesses[a].role == Role::write) {
        send_out(run, work, a, o.bits, cost.traffic);
      } else {
        const std::vector<size_t> path = path_of(form.work(form.first), form.first, form.first.input);
        const int64_t row = o.bits * form.depth;
        bring_in(run,
                 path,
                 tensor,
                 o.kind,
                 dataflow::bits_of(form.batches * form.row_count, row),
                 dataflow::bits_of(run.amounts.loaded_rows, row),
                 dataflow::bits_of(run.amounts.loaded_rows, row),
                 blocks,
                 cost.traffic);
      }
    }
    return cost;
  }

  StatementCost made_by_pass(PassRun& run, std::string name, int64_t instances, double operations,
                             double uneven) const {
    StatementCost cost;
    cost.name = std::move(name);
    cost.work.statement.name = cost.name;
    cost.instances = instances;
    cost.vector_ops = rounded_up(static_cast<double>(instances) * operations);
    time(run, uneven, cost);
    return cost;
  }
  StatementCost rescaling(PassRun& run) const {
    return made_by_pass(run, "running_sums", run.amounts.sums, kRescale, run.uneven);
  }
  StatementCost combining(PassRun& run) const {
    StatementCost cost = made_by_pass(run, "parts", run.amounts.loaded_rows * run.form.values, kCombine, 1);
    Traffic parts{.memory = shared_, .tensor = "parts"};
    parts.read_bits = dataflow::bits_of(run.amounts.loaded_rows, kPartBits * (run.form.values + kNumbersPerRow));
    cost.waits = 1;
    cost.traffic.push_back(std::move(parts));
    return cost;
  }

  const Chip& chip_;
  PassTiles tiles_;
  std::optional<size_t> kept_in_;
  size_t shared_ = 0;  // the innermost memory that all cores share
  std::optional<Chip> one_core_;
};

OnePass::OnePass(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
    : impl_(std::make_unique<Impl>(chip, by_class, counts)) {}
OnePass::~OnePass() = default;

std::optional<KernelCost> OnePass::cost(const Kernel& kernel) { return impl_->cost(kernel); }

}  // namespace sator::dataflow
