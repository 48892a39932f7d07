#include "dataflow/cost/tenet_array.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/cost/array_cost.h"
#include "dataflow/programs/masks.h"
#include "dataflow/programs/product_axes.h"
#include "dataflow/tenet/metrics.h"

namespace sator::dataflow {

TenetArray tenet_array_of(const Chip& chip) {
  const TenetFiles& files = *chip.tenet;
  TenetArray array = parse_tenet_array({.pe_array = files.pe_array,
                                        .mapping = files.mapping,
                                        .statement = {},
                                        .pe_array_name = files.pe_array_file,
                                        .mapping_name = files.mapping_file});
  if (array.rank != 3 && array.rank != 4)
    fail({.what = text("the mapping has ", array.rank, " iterators"),
          .needs = text("products ", array.tuple, "[i,j,k], or ", array.tuple, "[b,i,j,k] with a batch"),
          .hint = "name rows, columns and reduction of a product, in this order",
          .where = text(files.mapping_file, " line 1")});
  return array;
}

namespace {

/// The files' mapping over the statement's own iterators.
Mapping mapping_for(const Work& work, const ProductAxes& axes, const TenetArray& array) {
  const Domain& domain = work.statement.domain;
  std::vector<QuasiAffine> iterators;
  if (array.rank == 4) iterators.push_back(fused(axes.batch, domain));
  for (const auto* list : {&axes.i, &axes.j, &axes.k}) iterators.push_back(fused(*list, domain));
  Mapping mapping;
  if (array.rank == 3)
    for (size_t x : axes.batch) mapping.time.push_back(variable(static_cast<int>(x)));
  for (const QuasiAffine& e : array.mapping.space) mapping.space.push_back(substitute(e, iterators));
  for (const QuasiAffine& e : array.mapping.time) mapping.time.push_back(substitute(e, iterators));
  return mapping;
}

/// The files' mapping on one line, as they have it.
std::string words_of(const TenetArray& array) {
  const std::vector<std::string> names =
      array.rank == 4 ? std::vector<std::string>{"b", "i", "j", "k"} : std::vector<std::string>{"i", "j", "k"};
  std::vector<std::string> space, time;
  for (const QuasiAffine& e : array.mapping.space) space.push_back(to_text(e, names));
  for (const QuasiAffine& e : array.mapping.time) time.push_back(to_text(e, names));
  return text("PE[", join(space, ","), "] T[", join(time, ","), "]");
}

/// Counts of what moves: without elements that are made on their way.
Counts moved(const StatementCost& cost) {
  Counts counts = *cost.counts;
  counts.tensors.clear();
  for (size_t a = 0; a < cost.work.operands.size(); ++a)
    if (!cost.work.operands[a].on_the_way) counts.tensors.push_back(cost.counts->tensors[a]);
  return counts;
}

void move(StatementCost& cost, size_t a, size_t weight, const Chip& chip) {
  const Access& access = cost.work.statement.accesses[a];
  const Operand& operand = cost.work.operands[a];
  const TensorCounts& counts = cost.counts->tensors[a];
  const std::vector<size_t> path = memory_path(cost.work, *cost.product, weight, a, chip);
  for (size_t m = 0; m < path.size(); ++m) {
    Traffic traffic{.memory = path[m], .tensor = access.tensor, .kind = operand.kind};
    const int64_t bits = bits_of(m + 1 == path.size() ? counts.unique : counts.footprint, operand.bits);
    (access.role == Role::read ? traffic.read_bits : traffic.write_bits) = bits;
    cost.traffic.push_back(std::move(traffic));
  }
  if (operand.on_the_way) return;
  cost.hop_bits += bits_of(std::max<int64_t>(0, counts.assigned - counts.temporal_hits - counts.unique), operand.bits);
}

}  // namespace

StatementCost cost_on_tenet_array(const Work& work, const Product& product, const PrecisionChoice& choice,
                                  const Chip& chip, const TenetArray& array, CountMemo& memo) {
  const std::optional<ProductAxes> axes = axes_of(work, product);
  if (!axes) internal_error(text("statement ", work.statement.name, " is no product of i, j, k"));
  StatementCost cost;
  cost.name = work.statement.name;
  cost.work = work;
  cost.product = product;
  cost.precision = choice.precision;
  Placement& placement = cost.placement.emplace();
  placement.mapping = mapping_for(work, *axes, array);
  placement.held_since.assign(chip.memories.size(), 0);
  placement.words = words_of(array);
  TenetUse& use = cost.tenet.emplace();
  use.problem = {work.statement, placement.mapping, array.array};
  cost.counts = memo.of(use.problem, text("statement ", work.statement.name, " for chip ", chip.name));
  for (size_t a = 0; a < cost.counts->tensors.size(); ++a)
    cost.counts->tensors[a].tensor = work.statement.accesses[a].tensor;  // equal structures share counts, not names
  const TenetMetrics metrics = tenet_metrics(moved(cost), array.hardware);
  use.delay_in = std::max<int64_t>(0, metrics.delay_in);  // TENET's is -1 where nothing waits
  use.delay_out = std::max<int64_t>(0, metrics.delay_out);
  use.delay_compute = metrics.delay_compute_master;
  cost.instances = cost.counts->macs;
  cost.macs = work.only_where.empty() ? cost.instances : unmasked_instances(work);
  cost.stream_cycles = use.delay_compute;
  cost.pes_used = metrics.avg_active_pe;
  cost.parts.assign(work.operands.size(), 1);
  const size_t weight = weight_of(work, product);
  for (size_t a = 0; a < work.operands.size(); ++a) move(cost, a, weight, chip);
  // Each MAC reads both factors and the sum, and writes the sum.
  cost.register_bits = bits_of(
      cost.instances,
      work.operands[product.first].bits + work.operands[product.second].bits + 2 * choice.precision.accumulator_bits);
  return cost;
}

Problem moved_alone(const StatementCost& cost, Problem problem) {
  std::vector<Access>& accesses = problem.statement.accesses;
  for (size_t a = accesses.size(); a-- > 0;)
    if (cost.work.operands[a].on_the_way) accesses.erase(accesses.begin() + static_cast<long>(a));
  return problem;
}

double items_per_cycle(const Chip& chip) {
  return 2 * static_cast<double>(tenet_array_of(chip).hardware.bandwidth_bits_per_cycle) / kTenetItemBits;
}

void find_tenet_latency(KernelCost& cost, const Chip& chip) {
  const std::string& scratchpad = chip.memories.back().name;
  int64_t array = 0, moving = 0, vector = 0;
  int64_t bound_array = 0, bound_in = 0, bound_out = 0;
  int64_t waits = 0;  // of transfers that bind: cycles until the first item, whatever the bandwidth
  const int64_t wait = std::max<int64_t>(0, tenet_array_of(chip).hardware.latency_cycles - 1);
  for (const StatementCost& s : cost.statements) {
    vector += s.vector_cycles;
    if (!s.tenet) continue;
    array += s.tenet->delay_compute;
    const int64_t moves = std::max(s.tenet->delay_in, s.tenet->delay_out);
    moving += moves;
    if (s.tenet->delay_compute >= moves)
      bound_array += s.tenet->delay_compute;
    else
      (s.tenet->delay_in >= s.tenet->delay_out ? bound_in : bound_out) += moves, waits += std::min(wait, moves);
  }
  cost.resources = {{.name = "array", .cycles = array}, {.name = "vector", .cycles = vector}};
  for (const Memory& m : chip.memories) cost.resources.push_back({.name = m.name});
  cost.resources.back().cycles = moving;
  auto add = [&](const std::string& name, int64_t cycles) {
    if (cycles <= 0) return;
    cost.latency_parts.push_back({name, cycles});
    cost.latency_cycles += cycles;
  };
  add("array: MACs / PEs", bound_array);
  add(scratchpad + ": items in", bound_in);
  add(scratchpad + ": items out", bound_out);
  add("vector: after the array", vector);
  add("launch", chip.launch_cycles);
  cost.latency_s = static_cast<double>(cost.latency_cycles) / chip.clock_hz;
  cost.unrounded_cycles = static_cast<double>(cost.latency_cycles);
  const int64_t shares[] = {bound_array, vector};
  size_t bound = 0;
  for (size_t r = 0; r < cost.resources.size(); ++r) {
    const int64_t share = r < 2 ? shares[r] : r + 1 == cost.resources.size() ? bound_in + bound_out - waits : 0;
    if (cost.latency_cycles > 0)
      cost.resources[r].elasticity = static_cast<double>(share) / static_cast<double>(cost.latency_cycles);
    if (cost.resources[r].elasticity > cost.resources[bound].elasticity) bound = r;
  }
  if (cost.latency_cycles > 0)
    cost.launch_elasticity = static_cast<double>(chip.launch_cycles) / static_cast<double>(cost.latency_cycles);
  cost.bound = cost.resources[bound].name;
  for (ResourceCost& r : cost.resources) r.slack_cycles = std::max<int64_t>(0, cost.resources[bound].cycles - r.cycles);
}

}  // namespace sator::dataflow
