#include "dataflow/cost/array_cost.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/counts/boxes.h"
#include "dataflow/counts/nest_forms.h"
#include "dataflow/programs/masks.h"

namespace sator::dataflow {

int64_t bits_of(int64_t count, int64_t bits) {
  auto product = narrow(static_cast<Wide>(count) * bits);
  if (!product)
    fail({.what = "the traffic does not fit 64 bits", .needs = "fewer than 2^63 bits", .hint = "use smaller extents"});
  return *product;
}

Pace pace_of(const PrecisionChoice& choice) {
  const double rate = choice.precision.macs_per_pe_per_cycle;
  return {.macs_per_stamp = std::max<int64_t>(1, std::llround(rate)),
          .cycles_per_stamp = std::max<int64_t>(1, std::llround(1 / rate)) * choice.passes,
          .sum_bits = choice.precision.accumulator_bits,
          .sustained_clock_hz = choice.precision.sustained_clock_hz};
}

Problem problem_at_pes(const StatementCost& cost, const Chip& chip) {
  if (cost.tenet) return cost.tenet->problem;
  if (cost.tile) return cost.tile->problem;
  return problem_at_pes(cost.work.statement, cost.placement->mapping, chip, cost.placement->core);
}

namespace {

Array cores_of(const Chip& chip) { return {Domain::box({"core"}, {chip.cores}), {}}; }

class ArrayCost {
 public:
  ArrayCost(const Work& work, const Product& product, const Placement& placement, const PrecisionChoice& choice,
            const Chip& chip, CountMemo& memo, const std::vector<std::vector<bool>>& in_parts)
      : work_(work),
        product_(product),
        placement_(placement),
        chip_(chip),
        memo_(memo),
        in_parts_(in_parts),
        pace_(pace_of(choice)),
        flat_(placement.mapping),
        weight_(placement.weight.value_or(weight_of(work, product))),
        none_{.macs = 1, .pe_array = 1, .space = 1, .time = 1, .spacetime = 1} {
    cost_.name = work.statement.name;
    cost_.work = work;
    cost_.product = product;
    cost_.placement = placement;
    for (size_t x = 0; placement.core && x < product.uses.size(); ++x)
      cost_.placement->shares_reduction |= !product.uses[x].output && mentions(*placement.core, static_cast<int>(x));
    cost_.precision = choice.precision;
    cost_.passes = choice.passes;
    bare_ = work.statement;
    bare_.accesses.clear();
    none_.tensors.resize(work.statement.accesses.size(), {.assigned = 1, .unique = 1, .footprint = 1});
  }

  std::variant<StatementCost, Reason> run() {
    if (placement_.held_since.size() != chip_.memories.size())
      fail({.what = text("the mapping says of ",
                         placement_.held_since.size(),
                         " memories what they hold, but ",
                         chip_.name,
                         " has ",
                         chip_.memories.size()),
            .needs = "one number of outer loops per memory of the chip",
            .hint = "list the chip's memories outermost first"});
    count_at_pes();
    if (!why_not_) time_stamps();
    if (!why_not_) cut_into_folds();
    if (!why_not_ && chip_.dataflow != Stationary::output && chip_.dataflow != Stationary::schedule) time_loads();
    for (size_t a = 0; a < work_.statement.accesses.size() && !why_not_; ++a) move(a);
    if (why_not_) return std::move(*why_not_);
    // Each MAC reads both factors and the sum, and writes the sum.
    cost_.register_bits =
        bits_of(cost_.instances,
                work_.operands[product_.first].bits + work_.operands[product_.second].bits + 2 * pace_.sum_bits);
    return std::move(cost_);
  }

 private:
  /// Where the engine refuses: its reason is kept for the end of the step, which goes on with counts of 1.
  const Counts& counts_of(const Problem& problem) {
    const std::variant<Counts, Reason>& counted = memo_.counted(problem);
    if (auto* counts = std::get_if<Counts>(&counted)) return *counts;
    if (!why_not_) {
      why_not_ = std::get<Reason>(counted);
      why_not_->where = text("counting statement ", work_.statement.name, " for chip ", chip_.name);
    }
    return none_;
  }

  void count_at_pes() {
    cost_.counts = counts_of(problem_at_pes(work_.statement, flat_, chip_, placement_.core));
    for (size_t a = 0; a < cost_.counts->tensors.size(); ++a)
      cost_.counts->tensors[a].tensor = work_.statement.accesses[a].tensor;  // equal structures share counts, not names
    if (cost_.counts->outside_array)
      why_not_ = Reason{
          .what = text("the space map of ", work_.statement.name, " uses PEs that ", chip_.name, " does not have"),
          .needs = text("PE coordinates within ",
                        chip_.rows,
                        " x ",
                        chip_.columns,
                        chip_.cores > 1 ? text(" of ", chip_.cores, " cores") : ""),
          .hint = "take the coordinates modulo the array's size"};
    cost_.instances = cost_.counts->macs;
    cost_.macs = work_.only_where.empty() ? cost_.instances : unmasked_instances(work_);
  }

  /// Stamps that work, and the wave of operands that crosses the array.
  void time_stamps() {
    const Counts& stamps =
        counts_of({bare_, with_core(flat_, placement_.core), pes_of(chip_, placement_.core.has_value())});
    const int64_t per_pe = (stamps.macs + stamps.spacetime - 1) / stamps.spacetime;
    const int64_t work = stamps.work_cycles.value_or(stamps.time * per_pe);
    const int64_t paced = (work + pace_.macs_per_stamp - 1) / pace_.macs_per_stamp;
    cost_.stream_cycles = bits_of(std::max(stamps.time, paced), pace_.cycles_per_stamp);
    int64_t working = stamps.time;  // of all cores
    if (chip_.wires == Wires::systolic && (chip_.tiles_overlap || !skews(flat_, chip_))) {
      const Problem wave{bare_, {{number(0)}, {flat_.space[0] + flat_.space[1]}}, one_pe()};
      cost_.fill_drain_cycles = counts_of(wave).time - 1;
    } else if (chip_.wires == Wires::systolic) {
      cost_.fill_drain_cycles = cost_.counts->time - stamps.time;
      working = cost_.counts->time;
    }
    cost_.pes_used = static_cast<double>(stamps.spacetime) / static_cast<double>(working);
  }

  /// The access that stays in the PEs while others stream past: the output, or the factor that the chip keeps.
  size_t stationary() const {
    auto hits = [&](size_t a) { return cost_.counts->tensors[a].temporal_hits; };
    const size_t kept = hits(product_.first) >= hits(product_.second) ? product_.first : product_.second;
    if (chip_.dataflow == Stationary::output) return product_.output;
    if (chip_.dataflow == Stationary::schedule) return hits(product_.output) >= hits(kept) ? product_.output : kept;
    if (!placement_.weight) return kept;
    const size_t other = weight_ == product_.first ? product_.second : product_.first;
    return chip_.dataflow == Stationary::input ? other : weight_;
  }

  /// Whether iterator x has part in where access a points.
  bool indexes(size_t a, size_t x) const {
    for (const Map& reference : work_.statement.accesses[a].references)
      for (const QuasiAffine& e : reference)
        if (mentions(e, static_cast<int>(x))) return true;
    return false;
  }

  bool moves(const QuasiAffine& e, size_t a) const {
    for (size_t x = 0; x < product_.uses.size(); ++x)
      if (mentions(e, static_cast<int>(x)) && indexes(a, x)) return true;
    return false;
  }

  /// Whether a coordinate of time does nothing but choose among tiles of access a that come or go one after the other.
  bool chooses_part(const QuasiAffine& e, size_t a) const {
    for (size_t x = 0; x < product_.uses.size(); ++x)
      if (mentions(e, static_cast<int>(x)) && (!indexes(a, x) || !in_parts_[a][x])) return false;
    return !e.is_constant();
  }

  int64_t distinct(Map coordinates) {
    if (coordinates.empty()) return 1;
    if (const std::optional<int64_t> stamps = nest_stamps(bare_.domain, coordinates)) return *stamps;
    return counts_of({bare_, {{number(0)}, std::move(coordinates)}, one_pe()}).time;
  }

  /// A fold is a run of stamps during which the array keeps what is stationary. Other units work on tiles of tensors that
  /// one fold needs or finishes, while the array is at other folds.
  void cut_into_folds() {
    const size_t kept = stationary();
    size_t outer = flat_.time.size();
    while (outer > 0 && !moves(flat_.time[outer - 1], kept)) --outer;
    folds_.assign(flat_.time.begin(), flat_.time.begin() + static_cast<long>(outer));
    cost_.folds = distinct(folds_);
    for (size_t a = 0; a < work_.statement.accesses.size(); ++a) {
      Map choosing;
      for (const QuasiAffine& e : folds_)
        if (chooses_part(e, a)) choosing.push_back(e);
      cost_.parts.push_back(distinct(std::move(choosing)));
    }
    // The first part of the output is complete when all other loops have come to their ends for the first time.
    int64_t before = 0;
    for (const QuasiAffine& e : folds_) {
      const int64_t turns = distinct({e});
      before = std::min(cost_.folds - 1, before * turns + (chooses_part(e, product_.output) ? 0 : turns - 1));
    }
    cost_.folds_until_output = cost_.placement->shares_reduction ? cost_.folds : before + 1;
  }

  /// The stationary factor loads one row of the array per cycle, or as many bytes as the chip says; a hidden load takes
  /// place during the fold before.
  void time_loads() {
    if (chip_.fill_bytes_per_cycle) {
      const size_t kept = stationary();
      const double bits = static_cast<double>(bits_of(cost_.counts->tensors[kept].unique, work_.operands[kept].bits));
      cost_.load_cycles = static_cast<int64_t>(std::ceil(bits / 8 / *chip_.fill_bytes_per_cycle));
      if (chip_.stationary_load_hidden)
        cost_.load_cycles =
            cost_.load_cycles / cost_.folds + std::max<int64_t>(0, cost_.load_cycles - cost_.stream_cycles);
      return;
    }
    Map rows_of_folds = folds_;
    rows_of_folds.push_back(flat_.space[0]);
    const int64_t folds = cost_.folds, rows = distinct(std::move(rows_of_folds));
    const int64_t rows_each = (rows + folds - 1) / folds, stream_each = cost_.stream_cycles / folds;
    cost_.load_cycles =
        chip_.stationary_load_hidden ? rows_each + (folds - 1) * std::max<int64_t>(0, rows_each - stream_each) : rows;
  }

  /// How many outer loops choose what memory m holds of access a.
  size_t held_since(size_t a, size_t m) const {
    const size_t since =
        a < placement_.held_by_access.size() ? placement_.held_by_access[a].at(m) : placement_.held_since[m];
    return std::min(since, flat_.time.size());
  }

  /// A memory is one PE whose stamps are its tiles: what is unique there is what it must take in. Where each core has its
  /// own, there is a PE per core, and none supplies another.
  const Counts& tiles_at(size_t memory, size_t since, const Statement& statement) {
    const Counts& tiles = counts_of(problem_of_tiles(memory, since, statement));
    cost_.tiles = std::max(cost_.tiles, tiles.time);
    return tiles;
  }
  Problem problem_of_tiles(size_t memory, size_t since, const Statement& statement) const {
    const Map outer(flat_.time.begin(), flat_.time.begin() + static_cast<long>(since));
    if (chip_.memories[memory].per_core && placement_.core)
      return {statement, {{*placement_.core}, outer}, cores_of(chip_)};
    return {statement, {{number(0)}, outer}, one_pe()};
  }

  /// What of access a lies outside of the chip and passes to its next memory, or to the PEs where there is none. Tiles are
  /// filled up with less than one of them, so each has elements that lie outside, and comes in the same order. Null where all
  /// does, or the engine refuses to count it.
  const TensorCounts* outside_of(size_t a, std::optional<size_t> inner) {
    const std::vector<QuasiAffine>& where = work_.operands[a].lies_outside_where;
    if (where.empty()) return nullptr;
    Statement lying = work_.statement;
    lying.domain.guards.insert(lying.domain.guards.end(), where.begin(), where.end());
    const auto& counted = memo_.counted(inner ? problem_of_tiles(*inner, held_since(a, *inner), lying)
                                              : problem_at_pes(lying, flat_, chip_, placement_.core));
    const Counts* counts = std::get_if<Counts>(&counted);
    return counts ? &counts->tensors[a] : nullptr;
  }

  /// What memory `outer` moves in whole bursts for tiles of access a in memory `inner`, per element that is needed. Rows of
  /// the tensor lie one behind the other; a tile that has part of each row moves whole bursts for that part.
  double burst_share(size_t a, size_t outer, size_t inner, const TensorCounts& tiles) {
    const int64_t burst_bits = 8 * chip_.memories[outer].burst_bytes;
    if (burst_bits <= 8 || tiles.unique == 0) return 1;
    Statement rows = work_.statement;
    rows.accesses = {rows.accesses[a]};
    for (Map& reference : rows.accesses[0].references)
      if (!reference.empty()) reference.pop_back();
    const TensorCounts& runs = tiles_at(inner, held_since(a, inner), rows).tensors[0];
    const double run = static_cast<double>(tiles.assigned) / static_cast<double>(std::max<int64_t>(1, runs.assigned));
    const double row = static_cast<double>(tiles.footprint) / static_cast<double>(std::max<int64_t>(1, runs.footprint));
    if (run >= row) return 1;  // whole rows
    const double bits = run * work_.operands[a].bits;
    return std::ceil(bits / static_cast<double>(burst_bits)) * static_cast<double>(burst_bits) / bits;
  }

  static int64_t in_bursts(int64_t bits, double share) {
    return share == 1 ? bits : static_cast<int64_t>(std::ceil(static_cast<double>(bits) * share));
  }

  /// Traffic of one access along the memories that it passes.
  void move(size_t a) {
    const Access& access = work_.statement.accesses[a];
    const bool output = a == product_.output;
    if (!output && access.tensor == work_.statement.accesses[product_.output].tensor) return;  // the sum read back
    const Operand& operand = work_.operands[a];
    const TensorCounts& at_pes = cost_.counts->tensors[a];
    std::vector<Traffic> along;
    const std::vector<size_t> path = memory_path(work_, product_, weight_, a, chip_);
    for (size_t m : path)
      along.push_back({.memory = m,
                       .tensor = access.tensor,
                       .kind = operand.kind,
                       .instances = chip_.memories[m].per_core ? placement_.cores_used : 1,
                       .parts = cost_.parts[a],
                       .waits = output ? cost_.until_output() : 0});
    for (size_t i = 0; i < path.size(); ++i) {
      const bool last = i + 1 == path.size();
      const TensorCounts* tiles =
          last ? nullptr : &tiles_at(path[i + 1], held_since(a, path[i + 1]), work_.statement).tensors[a];
      const double share = last ? 1 : burst_share(a, path[i], path[i + 1], *tiles);
      const TensorCounts& inside = last ? at_pes : *tiles;
      // Zeros that fill up tiles lie in no memory outside: they are made on the way in, and left behind on the way out.
      const TensorCounts* lying =
          path[i] == 0 ? outside_of(a, last ? std::nullopt : std::optional(path[i + 1])) : nullptr;
      const int64_t elements = lying ? lying->unique : inside.unique;
      const int64_t complete = lying ? lying->footprint : at_pes.footprint;
      if (!output) {
        along[i].read_bits += in_bursts(bits_of(elements, operand.bits), share);
        if (last) continue;
        along[i + 1].refill(along[i].memory, bits_of(elements, operand.bits), 0);
        along[i + 1].write_bits += bits_of(inside.unique - elements, operand.bits);
        continue;
      }
      // Sums that are not complete leave and come back at the accumulator's width; complete ones leave once.
      const int64_t partial = elements - complete;
      const int64_t complete_bits = last ? std::max(pace_.sum_bits, operand.bits) : operand.bits;
      const int64_t leaves = bits_of(complete, complete_bits) + bits_of(partial, pace_.sum_bits);
      const int64_t returns = bits_of(partial, pace_.sum_bits);
      along[i].write_bits += in_bursts(leaves, share);
      along[i].read_bits += in_bursts(returns, share);
      if (!last) along[i + 1].refill(along[i].memory, returns, leaves);
    }
    cost_.traffic.insert(cost_.traffic.end(), along.begin(), along.end());
    if (!output && a != product_.first && a != product_.second) return;
    const int64_t passed_on = std::max<int64_t>(0, at_pes.assigned - at_pes.temporal_hits - at_pes.unique);
    cost_.hop_bits += bits_of(passed_on, output ? pace_.sum_bits : operand.bits);
  }

  const Work& work_;
  const Product& product_;
  const Placement& placement_;
  const Chip& chip_;
  CountMemo& memo_;
  const std::vector<std::vector<bool>>& in_parts_;
  Pace pace_;
  const Mapping& flat_;
  size_t weight_;
  Statement bare_;  // without accesses: for counts of stamps alone
  Map folds_;       // the outer coordinates of time, which number the folds
  Counts none_;     // what stands for counts that the engine refuses
  std::optional<Reason> why_not_;
  StatementCost cost_;
};

}  // namespace

std::variant<StatementCost, Reason> cost_on_array(const Work& work, const Product& product, const Placement& placement,
                                                  const PrecisionChoice& choice, const Chip& chip, CountMemo& memo,
                                                  const std::vector<std::vector<bool>>& in_parts) {
  return ArrayCost(work, product, placement, choice, chip, memo, in_parts).run();
}

}  // namespace sator::dataflow
