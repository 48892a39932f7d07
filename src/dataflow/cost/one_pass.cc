#include "dataflow/cost/one_pass.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "dataflow/cost/latency.h"
#include "dataflow/cost/pass_ways.h"
#include "dataflow/cost/totals.h"
#include "dataflow/programs/masks.h"

namespace sator::dataflow {

namespace {

constexpr double kCombine = 2;  // operations for each sum of a part of a block

int64_t rounded_up(double v) { return static_cast<int64_t>(std::ceil(v - 1e-9)); }

}  // namespace

class OnePass::Impl {
 public:
  Impl(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
      : chip_(chip), ways_(chip, by_class, counts) {}

  std::optional<KernelCost> cost(const Kernel& kernel) {
    if (!chip_.one_pass || chip_.tenet) return {};
    const std::optional<PassForm> form = pass_form_of(kernel, chip_);
    if (!form) return {};
    std::optional<KernelCost> best;
    for (const Way& way : ways_.quickest_ways(*form)) {
      KernelCost cost = cost_of(kernel, *form, way);
      if (!best || cost.unrounded_cycles < best->unrounded_cycles) best = std::move(cost);
    }
    return best;
  }

 private:
  struct PassRun {
    const PassForm& form;
    const Way& way;
    const Amounts& amounts;
    PassSchedule schedule;
    double uneven = 1;                               // the last core's time by the mean of all of the chip's
    std::set<std::pair<std::string, size_t>> moved;  // tensors that a memory has taken in
  };

  KernelCost cost_of(const Kernel& kernel, const PassForm& form, const Way& way) {
    const Amounts a = amounts_of(form, way, row_blocks(form, way.rows));
    PassRun run{form, way, a, ways_.schedule(form, way, a), 1, {}};
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
      const ProductTiles& t = (*ways_.tiles().of(run.form, b.rows, run.way.columns))[second];
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
    const int64_t once = dataflow::bits_of(ways_.columns_from_outside(form, run.amounts), element);
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
    Traffic parts{.memory = ways_.shared(), .tensor = tensor, .kind = o.kind};
    parts.write_bits = dataflow::bits_of(run.amounts.loaded_rows, kPartBits * (run.form.values + kNumbersPerRow));
    cost.traffic.push_back(std::move(parts));
  }

  /// A result leaves through the memories that hold outputs.
  void send_out(PassRun& run, const Work& work, size_t access, int bits, std::vector<Traffic>& traffic) {
    const PassForm::Part& part = run.form.second;
    const int64_t all = dataflow::bits_of(run.form.batches * run.form.row_count, bits * run.form.values);
    std::vector<size_t> path = path_of(run.form.work(part), part, part.output);
    if (run.way.parts > 1)
      while (path.size() > 1 && path.back() > ways_.shared()) path.pop_back();
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
    if (!ways_.is_inline(cost.work))
      cost.vector_cycles = rounded_up(static_cast<double>(cost.vector_ops) / ways_.lanes() * uneven);
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
    Traffic parts{.memory = ways_.shared(), .tensor = "parts"};
    parts.read_bits = dataflow::bits_of(run.amounts.loaded_rows, kPartBits * (run.form.values + kNumbersPerRow));
    cost.waits = 1;
    cost.traffic.push_back(std::move(parts));
    return cost;
  }

  const Chip& chip_;
  PassWays ways_;
  std::optional<Chip> one_core_;
};

OnePass::OnePass(const Chip& chip, const std::vector<Chip>& by_class, CountMemo& counts)
    : impl_(std::make_unique<Impl>(chip, by_class, counts)) {}
OnePass::~OnePass() = default;

std::optional<KernelCost> OnePass::cost(const Kernel& kernel) { return impl_->cost(kernel); }

}  // namespace sator::dataflow
