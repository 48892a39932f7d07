#include "dataflow/mapping/nest_time.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "dataflow/mapping/nest_steps.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

/// Distinct values of an iterator's digits over `blocks`, outermost first, from 0 to extent - 1.
double digits_of(int64_t extent, const int64_t* blocks, size_t count) {
  if (extent == 0) return 0;
  if (count == 0) return 1;
  const int64_t whole = extent / *blocks, rest = extent % *blocks;
  return (whole > 0 ? static_cast<double>(whole) * digits_of(*blocks, blocks + 1, count - 1) : 0) +
         digits_of(rest, blocks + 1, count - 1);
}

}  // namespace

void Nest::add(size_t x, int64_t block, int64_t extent) {
  std::array<int64_t, kMostLoops> blocks{};
  size_t before = 0;
  for (size_t d = 0; d < depth; ++d)
    if (loops[d].iterator == x) blocks[before++] = loops[d].block;
  if (block >= (before > 0 ? blocks[before - 1] : extent) || depth == kMostLoops) return;
  const double outer = digits_of(extent, blocks.data(), before);
  blocks[before] = block;
  const int64_t whole = before > 0 ? blocks[before - 1] : extent;
  loops[depth++] = {
      x, block, digits_of(extent, blocks.data(), before + 1) / outer, static_cast<double>(ceil_div(whole, block))};
}

double Nest::turns(size_t from, size_t to) const {
  double turns = 1;
  for (size_t d = from; d < to; ++d) turns *= loops[d].count;
  return turns;
}

NestTime::NestTime(const CoreShare& share, const Beside& beside)
    : s_(share),
      beside_(beside),
      factors_(time_factors(share.chip, beside.kernel_class.value_or(class_of(share.work, share.product)))) {
  factors_.array *= array_factor(share.chip, class_of(share.work, share.product));
  double macs = 1;
  for (int64_t extent : share.work.statement.domain.extent) macs *= static_cast<double>(extent);
  sustained_ = sustained_cycles(
      share.chip,
      share.pace.sustained_clock_hz,
      macs,
      static_cast<double>(share.pace.cycles_per_stamp) / static_cast<double>(share.pace.macs_per_stamp));
  in_parts_.assign(share.accesses(), ~uint64_t{0});
  for (size_t a = 0; a < beside.in_parts.size(); ++a)
    for (size_t x = 0; x < beside.in_parts[a].size(); ++x)
      if (!beside.in_parts[a][x]) in_parts_[a] &= ~(uint64_t{1} << x);
}

void NestTime::use(const SpacePlan& plan) {
  plan_ = &plan;
  fetching_.fill(1);
  if (s_.chip.wires == Wires::none)
    for (const std::vector<rules::ArrayNest::Side>* sides : {&plan.rows, &plan.columns})
      for (const rules::ArrayNest::Side& side : *sides)
        for (size_t a = 0; a < s_.accesses(); ++a)
          if (!s_.relevant(a, side.loop)) fetching_[a] *= static_cast<double>(side.values);
  const size_t weight = weight_under(s_, plan);
  if (weight == weight_) return;
  weight_ = weight;
  paths_.clear();
  passed_by_.fill(0);
  for (size_t a = 0; a < s_.accesses(); ++a) {
    const std::vector<size_t> path = memory_path(s_.work, s_.product, weight, a, s_.chip, true);
    std::vector<Stop>& stops = paths_.emplace_back();
    for (size_t i = 0; i < path.size(); ++i) {
      const bool last = i + 1 == path.size();
      Stop stop{.memory = path[i], .all = s_.copies(a, last ? s_.chip.memories.size() : path[i + 1])};
      stop.here = stop.all / s_.sharers(path[i]);
      stop.inside = last ? 0 : stop.all / s_.sharers(path[i + 1]);
      stop.source = s_.chip.memories[path[i]].per_core ? stop.here : stop.all;
      stops.push_back(stop);
      passed_by_[path[i]] |= uint32_t{1} << a;
    }
  }
  // What stands on the chip does so in the first of its memories there.
  standing_of_.fill(kMostStanding);
  stands_at_.fill(0);
  for (size_t n = 0; n < beside_.standing.size(); ++n) {
    const Beside::Standing& standing = beside_.standing[n];
    size_t memory = standing.memory;
    if (standing.access) {
      standing_of_[*standing.access] = n;
      const std::vector<Stop>& stops = paths_[*standing.access];
      const size_t first = !stops.empty() && stops[0].memory == 0 ? 1 : 0;
      memory = first < stops.size() ? stops[first].memory : 0;
    }
    if (memory > 0) stands_at_[memory] |= uint32_t{1} << n;
  }
}

/// Whether access a of a tensor of the kernel's own begins at the first memory on the chip, not at the outermost one.
bool NestTime::starts_inside(const Nest& nest, size_t a) const {
  if (!s_.work.operands[a].internal || paths_[a].empty() || paths_[a][0].memory != 0) return false;
  return standing_of_[a] == kMostStanding || !(nest.outside >> standing_of_[a] & 1);
}

double NestTime::estimate(Nest& nest) {
  latency_ = kDoesNotFit;
  find_held(nest);
  find_standing(nest);
  const bool fits = hold_most(nest, true);
  if (beside_.standing.empty()) return fits ? cycles_of(nest) : kDoesNotFit;
  // What stands outside leaves room for larger tiles.
  Nest other = nest;
  if (!hold_most(other, false)) return fits ? cycles_of(nest) : kDoesNotFit;
  if (fits && (other.outside == 0 || other.held_since == nest.held_since)) return cycles_of(nest);
  const double inside = fits ? cycles_of(nest) : kDoesNotFit, latency = latency_, outside = cycles_of(other);
  if (outside >= inside) {
    latency_ = latency;
    return inside;
  }
  nest = other;
  return outside;
}

double NestTime::cycles_of(const Nest& nest) {
  const Steps steps = steps_of(nest);
  find_fetched(nest, steps);
  move_product(nest, steps);
  move_standing(nest);
  move_beside();
  latency_ = latency(nest, steps);
  return latency_ + preference();
}

Placement::Estimate NestTime::estimate_of_product(Nest& nest) {
  estimate(nest);
  const Steps steps = steps_of(nest);
  find_fetched(nest, steps);
  move_product(nest, steps);
  move_standing(nest);
  move_beside();
  Placement::Estimate result{.cycles = latency(nest, steps), .memory_cycles = {}};
  find_fetched(nest, steps);
  move_product(nest, steps);
  result.array_cycles = array_cycles(nest, steps);
  result.fold_cycles = result.array_cycles / steps.folds;
  for (size_t m = 0; m < s_.chip.memories.size(); ++m)
    result.memory_cycles.push_back(transfer_cycles(s_.chip.memories[m], bits_.read[m], bits_.write[m]));
  return result;
}

NestTime::Moves NestTime::moves_of_product(Nest& nest) {
  estimate(nest);
  const Steps steps = steps_of(nest);
  find_fetched(nest, steps);
  move_product(nest, steps);
  move_standing(nest);
  Moves moves{.outside_bits = bits_.read[0] + bits_.write[0]};
  for (size_t m = 0; m < s_.chip.memories.size(); ++m) {
    const Memory& memory = s_.chip.memories[m];
    moves.picojoules += s_.sharers(m) * (bits_.read[m] * memory.read_energy_per_bit.picojoules +
                                         bits_.write[m] * memory.write_energy_per_bit.picojoules);
  }
  return moves;
}

/// Whether a loop over x does nothing but choose among parts of the output that are used up one after the other.
bool NestTime::completes(size_t x) const {
  const size_t output = s_.product.output;
  return s_.relevant(output, x) && (in_parts_[output] >> x & 1);
}

NestTime::Steps NestTime::steps_of(const Nest& nest) const {
  Steps steps;
  steps.outer = nest.depth;
  while (steps.outer > 0 && !s_.relevant(plan_->stationary, nest.loops[steps.outer - 1].iterator)) --steps.outer;
  steps.folds = nest.turns(0, steps.outer);
  steps.most_folds = steps.folds;
  double before = 0;
  for (size_t d = 0; d < steps.outer; ++d)  // as many as the engine counts
    before = before * nest.loops[d].most + (completes(nest.loops[d].iterator) ? 0 : nest.loops[d].most - 1);
  steps.until_output = s_.shares_reduction ? 1 : std::min(1.0, (before + 1) / steps.folds);
  return steps;
}

/// What times_fetched answers from, and in how many parts tensors come and go.
void NestTime::find_fetched(const Nest& nest, const Steps& steps) {
  for (size_t a = 0; a < s_.accesses(); ++a) {
    double elements = s_.footprint[a], parts = 1;
    uint8_t moved = 0;
    for (size_t d = 0; d <= nest.depth; ++d) {
      repeated_[a][d] = elements;
      moved_to_[a][d] = moved;
      if (d == nest.depth) break;
      const BlockLoop& loop = nest.loops[d];
      if (s_.relevant(a, loop.iterator)) {
        moved = static_cast<uint8_t>(d + 1);
        if (d < steps.outer && (in_parts_[a] >> loop.iterator & 1)) parts *= loop.count;
      } else {
        elements *= loop.count;
      }
    }
    parts_[a] = parts;
  }
}

/// Stamps, the wave of operands that crosses the array, the loads of what stays.
double NestTime::array_cycles(const Nest& nest, const Steps& steps) const {
  const Chip& chip = s_.chip;
  const double stamps = nest.turns(0, nest.depth), stream = stamps * static_cast<double>(s_.pace.cycles_per_stamp);
  const double reach = static_cast<double>(plan_->rows_used + plan_->columns_used - 2);
  double cycles = stream;
  if (chip.wires == Wires::systolic)
    cycles += chip.tiles_overlap || nest.depth == 0 ? reach : reach * nest.turns(0, nest.depth - 1);
  if (plan_->stationary == s_.product.output) return cycles;
  if (chip.fill_bytes_per_cycle) {
    const double load = fetched_by_pes(nest, plan_->stationary) * s_.bits_of(plan_->stationary) / 8 /
                        *chip.fill_bytes_per_cycle * static_cast<double>(s_.cores);
    return cycles +
           (chip.stationary_load_hidden ? load / steps.most_folds + std::max(0.0, load - stream) : std::ceil(load));
  }
  const double rows = static_cast<double>(plan_->rows_used), folds = steps.folds;
  if (!chip.stationary_load_hidden) return cycles + rows * folds;
  return cycles + rows + (folds - 1) * std::max(0.0, rows - std::floor(stream / folds));
}

/// Elements of access a that a memory below the first `since` loops takes in: the whole tensor once, again for every
/// turn of a loop that does not move it but lies outside of one that does. PEs keep nothing while a wave of operands runs
/// out: on systolic wires each turn around the innermost loop begins with a wave of its own.
double NestTime::times_fetched(const Nest& nest, size_t a, size_t since) const {
  const bool waves =
      since == nest.depth && s_.chip.wires == Wires::systolic && plan_->rows_used + plan_->columns_used > 2;
  size_t last = moved_to_[a][since];
  if (waves && since > 0) last = std::max(last, since - 1);
  return repeated_[a][last];
}

/// Without wires each PE that works on an element fetches it for itself, and hands its own sum back.
double NestTime::fetched_by_pes(const Nest& nest, size_t a) const {
  return times_fetched(nest, a, nest.depth) * fetching_[a];
}

/// What memory `outer` moves in whole bursts, per bit that is needed, where a tile has part of each row of the tensor.
double NestTime::burst_share(const Nest& nest, size_t a, size_t outer, size_t since) const {
  const double burst = 8.0 * static_cast<double>(s_.chip.memories[outer].burst_bytes);
  const Map& at = s_.work.statement.accesses[a].references[0];
  if (burst <= 8 || at.empty() || at.back().terms.size() != 1 || at.back().terms[0].division) return 1;
  const size_t x = static_cast<size_t>(at.back().terms[0].variable);
  int64_t run = s_.extent[x];
  for (size_t d = 0; d < since; ++d)
    if (nest.loops[d].iterator == x) run = nest.loops[d].block;
  if (run >= s_.work.statement.domain.extent[x]) return 1;
  const double bits = static_cast<double>(run) * s_.work.operands[a].bits;
  if (of_a_range_) return std::max(1.0, burst / bits);
  return std::ceil(bits / burst) * burst / bits;
}

void NestTime::refill(size_t outer, size_t inner, double in, double out, double parts, bool after) {
  bits_.exchange(s_.chip, outer, inner, in, out, parts);
  if (out > 0 && s_.chip.memories[inner].double_buffered)
    times_.memories[outer].late.add(after ? waits_ : 0,
                                    transfer_cycles(s_.chip.memories[outer], 0, out) * factors_.of_memory(outer));
}

void NestTime::move_product(const Nest& nest, const Steps& steps) {
  const size_t memories = s_.chip.memories.size();
  waits_ = steps.until_output;
  bits_.start(memories);
  for (size_t m = 0; m < memories; ++m) bits_.sharers[m] = s_.sharers(m), times_.memories[m].late.clear();
  times_.vector_late.clear();
  making_ = 0;
  for (size_t a = 0; a < s_.accesses(); ++a) {
    if (s_.is_running_sum(a)) continue;
    const bool output = a == s_.product.output;
    const double bits = s_.work.operands[a].bits, sum_bits = s_.pace.sum_bits, parts = parts_[a];
    const std::vector<Stop>& path = paths_[a];
    for (size_t i = starts_inside(nest, a) ? 1 : 0; i < path.size(); ++i) {
      const bool last = i + 1 == path.size();
      const Stop& at = path[i];
      const size_t since = last ? nest.depth : nest.held_since[path[i + 1].memory];
      const double elements = last ? fetched_by_pes(nest, a) : times_fetched(nest, a, since);
      const double share = last ? 1 : burst_share(nest, a, at.memory, since);
      double in = elements * bits, out = 0;
      if (output) {
        // Sums that are not complete leave and come back at the accumulator's width; complete ones leave once. Of parts of
        // the same sums on several cores one is the complete one.
        const double complete = s_.footprint[a] * s_.spread[a] / at.all;
        in = (elements - complete) * sum_bits;
        out = complete * (last ? std::max(sum_bits, bits) : bits) + in;
      }
      bits_.read[at.memory] += in * at.here * share;
      bits_.write[at.memory] += out * at.here * share;
      if (last) continue;
      const size_t next = path[i + 1].memory;
      bits_.write[next] += in * at.inside;
      bits_.read[next] += out * at.inside;
      refill(at.memory, next, in * at.source, out * at.source, parts, output);
    }
  }
  for (size_t a = 0; a < std::min(s_.accesses(), s_.pace.making_cycles.size()); ++a)
    if (s_.pace.making_cycles[a] > 0)
      making_ += fetched_by_pes(nest, a) * s_.pace.making_cycles[a] * static_cast<double>(s_.cores);
  times_.vector = times_.vector_for_array = making_;
  times_.vector_part = making_ / steps.most_folds;
  if (making_ > 0) times_.vector_late.add(0, making_);
}

/// What the vector unit moves out and in of the kernel's own tensors that stand outside.
void NestTime::move_standing(const Nest& nest) {
  for (uint32_t left = nest.outside; left != 0; left &= left - 1) {
    const Beside::Standing& standing = beside_.standing[static_cast<size_t>(std::countr_zero(left))];
    double bits = standing.others * standing.bits;
    for (size_t x = 0; x < s_.rank(); ++x)
      if (standing.indexes >> x & 1) bits *= static_cast<double>(s_.work.statement.domain.extent[x]);
    const double out = standing.made_by_vector_unit ? bits : 0, in = bits * static_cast<double>(standing.reads);
    const size_t near = standing.beside_vector_unit;
    bits_.read[0] += in, bits_.write[0] += out;
    if (near == 0) continue;
    bits_.write[near] += in / s_.sharers(near);
    bits_.read[near] += out / s_.sharers(near);
    const size_t paced_by = standing.access.value_or(s_.product.output);
    refill(0, near, in, out, parts_[paced_by], standing.after);
  }
}

void NestTime::move_beside() {
  for (const Beside::Step& step : beside_.steps) {
    double parts = step.accesses.empty() ? static_cast<double>(step.parts) : 1e300;
    for (size_t a : step.accesses) parts = std::min(parts, parts_[a]);
    times_.vector += step.vector_cycles;
    times_.vector_part += step.vector_cycles / parts;
    if (!step.after) times_.vector_for_array += step.vector_cycles;
    if (step.vector_cycles > 0) times_.vector_late.add(step.after ? waits_ : 0, step.vector_cycles);
    for (const Beside::Move& move : step.moves) {
      bits_.read[move.memory] += move.read_bits;
      bits_.write[move.memory] += move.write_bits;
      if (move.in_bits + move.out_bits > 0)
        refill(move.from, move.memory, move.in_bits, move.out_bits, parts, step.after);
    }
  }
  times_.vector *= factors_.vector;
  times_.vector_part *= factors_.vector;
  times_.vector_for_array *= factors_.vector;
  times_.vector_late.scale(factors_.vector);
}

void NestTime::time_array(const Nest& nest, const Steps& steps) {
  times_.array = std::max(array_cycles(nest, steps), sustained_) * factors_.array;
  times_.fold = times_.array / steps.most_folds;
  times_.until_output = times_.array * steps.until_output;
}

/// What nothing overlaps, memories' refills left out.
double NestTime::serial_cycles() {
  const bool vector_waits = !s_.chip.vector.overlaps_array && times_.array > 0;
  return (vector_waits ? std::exchange(times_.vector, 0) : 0) +
         (s_.shares_reduction ? static_cast<double>(*s_.chip.barrier_cycles) : 0);
}

double NestTime::latency(const Nest& nest, const Steps& steps) {
  time_array(nest, steps);
  double serial = serial_cycles();
  set_memory_times(
      times_,
      bits_,
      s_.chip,
      factors_,
      [](size_t, double cycles) { return cycles; },
      [&](size_t, double refills) { serial += refills; });
  return serial + longest_if_bound(times_);
}

/// Of mappings that are as quick, the one that moves and makes less.
double NestTime::preference() const {
  const Chip& chip = s_.chip;
  auto time = [&](size_t m) {
    return transfer_cycles(chip.memories[m], bits_.read[m], bits_.write[m]) * factors_.of_memory(m);
  };
  double inside = 0;
  for (size_t m = 0; m < times_.memory_count; ++m) inside += time(m);
  return (time(0) + making_) / 2048 + inside / 16384;
}

}  // namespace sator::dataflow
