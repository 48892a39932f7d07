#include "dataflow/cost/row_blocks.h"

#include <algorithm>

#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/cost/latency.h"
#include "dataflow/cost/tenet_array.h"
#include "dataflow/cost/totals.h"

namespace sator::dataflow {

namespace {

using CostedBlocks = std::vector<CostedRows>;

std::optional<size_t> number_of(const Kernel& kernel, const std::string& statement) {
  for (size_t s = 0; s < kernel.work.size(); ++s)
    if (kernel.work[s].statement.name == statement) return s;
  return {};
}

/// Adds up one statement of the kernel over all blocks.
class Sum {
 public:
  ///   number   of the statement in each block's cost
  Sum(const Kernel& kernel, const MaskedRows& masked, const CostedBlocks& blocks, size_t number, const Chip& chip)
      : blocks_(blocks), number_(number), chip_(chip), sum_(in(blocks.front())) {
    of_ = number_of(kernel, sum_.name);
    if (!of_) return;
    row_ = masked.row[*of_], column_ = masked.column[*of_];
    sum_.work.statement.domain = kernel.work[*of_].statement.domain;
    sum_.work.only_where = kernel.work[*of_].only_where;
    for (size_t a = 0; a < kernel.work[*of_].operands.size() && a < sum_.work.operands.size(); ++a)
      sum_.work.operands[a].lies_outside_where = kernel.work[*of_].operands[a].lies_outside_where;
  }

  StatementCost run() {
    double at_work = 0;
    for (const CostedRows& block : blocks_)
      at_work += in(block).pes_used * static_cast<double>(in(block).stream_cycles);
    for (size_t b = 1; b < blocks_.size(); ++b) add(in(blocks_[b]));
    if (sum_.stream_cycles > 0) sum_.pes_used = at_work / static_cast<double>(sum_.stream_cycles);
    if (sum_.counts && of_) set_footprints();
    if (sum_.on_array()) describe();
    return std::move(sum_);
  }

 private:
  const StatementCost& in(const CostedRows& block) const { return block.cost->statements[number_]; }

  void add(const StatementCost& s) {
    sum_.passes = std::max(sum_.passes, s.passes);
    sum_.accumulator_bits_needed = std::max(sum_.accumulator_bits_needed, s.accumulator_bits_needed);
    sum_.instances += s.instances, sum_.macs += s.macs, sum_.vector_ops += s.vector_ops;
    sum_.stream_cycles += s.stream_cycles, sum_.fill_drain_cycles += s.fill_drain_cycles;
    sum_.load_cycles += s.load_cycles;
    sum_.folds += s.folds;
    for (size_t a = 0; a < sum_.parts.size(); ++a) sum_.parts[a] += s.parts[a];
    sum_.vector_cycles += s.vector_cycles, sum_.vector_parts += s.vector_parts;
    sum_.register_bits += s.register_bits, sum_.hop_bits += s.hop_bits;
    sum_.tiles += s.tiles;
    if (sum_.tenet) {
      sum_.tenet->delay_in += s.tenet->delay_in, sum_.tenet->delay_out += s.tenet->delay_out;
      sum_.tenet->delay_compute += s.tenet->delay_compute;
    }
    for (const Traffic& t : s.traffic) add(t);
    if (s.counts) add(*s.counts);
  }

  void add(const Traffic& t) {
    for (Traffic& known : sum_.traffic) {
      if (known.memory != t.memory || known.tensor != t.tensor || known.filled_from != t.filled_from ||
          known.instances != t.instances ||
          (known.refill_in_bits + known.refill_out_bits > 0) != (t.refill_in_bits + t.refill_out_bits > 0))
        continue;
      known.read_bits += t.read_bits, known.write_bits += t.write_bits;
      known.refill_in_bits += t.refill_in_bits, known.refill_out_bits += t.refill_out_bits;
      known.parts += t.parts;
      return;
    }
    sum_.traffic.push_back(t);
  }

  void add(const Counts& counts) {
    Counts& all = *sum_.counts;
    all.macs += counts.macs, all.time += counts.time, all.spacetime += counts.spacetime;
    all.space = std::max(all.space, counts.space);
    all.work_cycles.reset();
    all.enumerated |= counts.enumerated, all.outside_array |= counts.outside_array;
    for (size_t a = 0; a < all.tensors.size(); ++a) {
      TensorCounts& t = all.tensors[a];
      const TensorCounts& more = counts.tensors[a];
      t.total += more.total, t.assigned += more.assigned, t.unique += more.unique;
      t.temporal_hits += more.temporal_hits, t.spatial_hits += more.spatial_hits;
    }
  }

  bool indexes(size_t access, size_t iterator) const {
    for (const Map& reference : sum_.work.statement.accesses[access].references)
      for (const QuasiAffine& e : reference)
        if (mentions(e, static_cast<int>(iterator))) return true;
    return false;
  }

  /// CostedBlocks have rows of their own and may share columns.
  void set_footprints() {
    int64_t columns = 0, end = 0;  // blocks come in the order of their columns too
    for (const CostedRows& block : blocks_) {
      columns += std::max<int64_t>(0, block.columns.end - std::max(end, block.columns.begin));
      end = std::max(end, block.columns.end);
    }
    for (size_t a = 0; a < sum_.counts->tensors.size(); ++a) {
      int64_t& footprint = sum_.counts->tensors[a].footprint;
      const auto of_block = [&](const CostedRows& b) { return in(b).counts->tensors[a].footprint; };
      footprint = 0;
      if (indexes(a, row_)) {
        for (const CostedRows& block : blocks_) footprint += of_block(block);
      } else if (column_ && indexes(a, *column_)) {
        footprint = of_block(blocks_.front()) / blocks_.front().columns.size() * columns;
      } else {
        for (const CostedRows& block : blocks_) footprint = std::max(footprint, of_block(block));
      }
    }
  }

  /// The mapping of the last block, which has most to do, stands for all.
  void describe() {
    const CostedRows& last = blocks_.back();
    sum_.tile = TileUse{problem_at_pes(in(last), chip_), *in(last).counts};
    if (sum_.tenet) sum_.tenet->problem = in(last).tenet->problem;
    Placement& placement = *sum_.placement;
    placement = *in(last).placement;
    for (const CostedRows& block : blocks_)
      placement.cores_used = std::max(placement.cores_used, in(block).placement->cores_used);
    placement.nest.reset();  // that of one block: no schedule of the whole function
    placement.estimate = {};
    const bool one = blocks_.size() == 1;
    placement.words = text("in ",
                           blocks_.size(),
                           one ? " block of " : " blocks of ",
                           blocks_.front().rows.size(),
                           one ? " rows, over the " : " rows, each over the columns that it sees; the last, over ",
                           last.columns.size(),
                           one ? " columns that it sees: " : " columns: ",
                           placement.words);
  }

  const CostedBlocks& blocks_;
  size_t number_;
  const Chip& chip_;
  std::optional<size_t> of_;  // statement of the kernel; none: it makes elements on the way
  size_t row_ = 0;
  std::optional<size_t> column_;
  StatementCost sum_;
};

bool fit_together(const CostedBlocks& blocks) {
  const std::vector<StatementCost>& first = blocks.front().cost->statements;
  for (const CostedRows& block : blocks) {
    const std::vector<StatementCost>& all = block.cost->statements;
    if (all.size() != first.size()) return false;
    for (size_t s = 0; s < all.size(); ++s) {
      if (all[s].name != first[s].name || all[s].on_array() != first[s].on_array()) return false;
      if (blocks.size() > 1 && all[s].placement && all[s].placement->shares_reduction) return false;
    }
  }
  return true;
}

}  // namespace

std::vector<int64_t> block_sizes(const MaskedRows& masked) {
  std::vector<int64_t> sizes = {masked.rows};
  for (int64_t size = kLeastRows; size < masked.rows; size *= 2)
    if (ceil_div(masked.rows, size) <= kMostBlocks) sizes.push_back(size);
  return sizes;
}

SearchedRows::SearchedRows(const RowsOfKernel& block, const MaskedRows& masked, const KernelCost& cost)
    : rows_(block.rows.size()), columns_(block.columns.size()) {
  for (const StatementCost& s : cost.statements) {
    if (!s.on_array()) continue;
    const std::optional<size_t> of = number_of(block.kernel, s.name);
    const std::optional<size_t> column = of ? masked.column[*of] : std::nullopt;
    if (s.placement->core && column && mentions(*s.placement->core, static_cast<int>(*column))) least_ = 0.8;
    placements_.push_back(*s.placement);
    statements_.push_back(s.name);
  }
}

bool SearchedRows::suits(const RowsOfKernel& block) const {
  const int64_t columns = block.columns.size();
  return block.rows.size() == rows_ && columns <= columns_ &&
         static_cast<double>(columns) >= least_ * static_cast<double>(columns_);
}

std::vector<Placement> SearchedRows::placements_for(const Kernel& block, const Chip& chip, CountMemo& counts) const {
  std::vector<Placement> all = placements_;
  for (size_t p = 0; p < all.size(); ++p) {
    const std::optional<size_t> of = number_of(block, statements_[p]);
    if (!all[p].core || !of) continue;
    Statement bare = block.work[*of].statement;
    bare.accesses.clear();
    const Array cores{Domain::box({"core"}, {chip.cores}), {}};
    all[p].cores_used = counts.of({bare, {{*all[p].core}, {number(0)}}, cores}, "the cores of a block of rows").space;
  }
  return all;
}

std::optional<KernelCost> added_up(const Kernel& kernel, const MaskedRows& masked, const CostedBlocks& blocks,
                                   const Chip& chip) {
  if (blocks.empty() || !fit_together(blocks)) return {};
  KernelCost total;
  total.kernel = kernel.name, total.chip = chip.name;
  // What waits for a part of the first block waits for a smaller part of all of them.
  double array = 0, first = 0;
  for (const CostedRows& block : blocks)
    for (const StatementCost& s : block.cost->statements) {
      array += static_cast<double>(s.array_cycles());
      if (&block == &blocks.front()) first += static_cast<double>(s.array_cycles());
    }
  const double share = array > 0 ? first / array : 1;
  for (size_t s = 0; s < blocks.front().cost->statements.size(); ++s) {
    total.statements.push_back(Sum(kernel, masked, blocks, s, chip).run());
    StatementCost& sum = total.statements.back();
    sum.waits *= share;
    for (Traffic& t : sum.traffic) t.waits *= share;
  }
  for (const CostedRows& block : blocks)
    for (const std::string& note : block.cost->notes)
      if (std::find(total.notes.begin(), total.notes.end(), note) == total.notes.end()) total.notes.push_back(note);
  if (chip.tenet)
    find_tenet_latency(total, chip);
  else
    find_latency(total, chip);
  sum_up(total, chip);
  return total;
}

}  // namespace sator::dataflow
