#include "dataflow/cost.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/array_cost.h"
#include "dataflow/count_memo.h"

namespace sator::dataflow {

struct CostEngine::Memo {
  CountMemo counts;
  std::unordered_map<std::string, Placement> placements;

  /// The default mapping of a product; equal structures, widths and paces share one.
  const Placement& place(const Work& work, const Product& product, const Chip& chip, const Pace& pace) {
    std::string key = structure_key({work.statement, {}, one_pe()});
    for (const Operand& o : work.operands)
      key += text(o.bits, o.on_the_way ? "w" : o.internal ? "i" : "", static_cast<int>(o.kind), ",");
    key += text(pace.macs_per_stamp, ",", pace.cycles_per_stamp, ",", pace.sum_bits);
    auto [at, fresh] = placements.try_emplace(std::move(key));
    if (fresh) at->second = sator::dataflow::place(work, product, chip, pace);
    return at->second;
  }
};

CostEngine::CostEngine(Chip chip) : chip_(std::move(chip)), memo_(std::make_unique<Memo>()) {}
CostEngine::~CostEngine() = default;

namespace {

int64_t whole_cycles(double v) { return static_cast<int64_t>(std::ceil(v - 1e-9)); }

bool contains(const std::vector<VectorWork>& list, VectorWork work) {
  return std::find(list.begin(), list.end(), work) != list.end();
}

/// A kernel's statements with the dequantize statements of its products taken into them.
struct Merged {
  struct Made {
    size_t consumer, producer, access;  // of the consumer: the stream of made elements
  };
  std::vector<Work> works;
  std::vector<std::optional<Product>> products;  // per statement
  std::vector<bool> gone;                        // taken into another
  std::vector<Made> made;
};

double volume_of(const Work& work) {
  double volume = 1;
  for (int64_t extent : work.statement.domain.extent) volume *= static_cast<double>(extent);
  return volume;
}

/// A statement that reads less than the dequantize statement before it makes (rows of a table) makes what it reads itself.
void take_rows(Merged& merged, const Kernel& kernel, size_t consumer) {
  for (size_t p = 0; p < consumer; ++p) {
    const Work& producer = kernel.work[p];
    Work& work = merged.works[consumer];
    if (producer.vector_work != VectorWork::dequantize || producer.multiply_accumulate || merged.gone[p]) continue;
    if (volume_of(work) >= volume_of(producer)) continue;
    for (size_t a = 0; a < kernel.work[consumer].operands.size(); ++a) {
      if (work.statement.accesses[a].role != Role::read || !work.operands[a].internal) continue;
      auto joined = inline_producer(work, a, producer);
      if (!joined) continue;
      work = std::move(*joined);
      work.vector_ops += producer.vector_ops;
      work.vector_work = VectorWork::dequantize;
      merged.gone[p] = true;
    }
  }
}

Merged merge_producers(const Kernel& kernel) {
  Merged merged{.works = kernel.work, .products = {}, .gone = std::vector<bool>(kernel.work.size(), false), .made = {}};
  for (size_t i = 0; i < kernel.work.size(); ++i) {
    Work& work = merged.works[i];
    if (product_of(work))
      for (size_t p = 0; p < i; ++p) {
        const Work& producer = kernel.work[p];
        if (producer.vector_work != VectorWork::dequantize || producer.multiply_accumulate) continue;
        for (size_t a = 0; a < kernel.work[i].operands.size(); ++a) {
          if (kernel.work[i].statement.accesses[a].role != Role::read || !kernel.work[i].operands[a].internal) continue;
          auto joined = inline_producer(work, a, producer);
          if (!joined) continue;
          work = std::move(*joined);
          merged.gone[p] = true;
          merged.made.push_back({i, p, a});
        }
      }
    else
      take_rows(merged, kernel, i);
    merged.products.push_back(product_of(work));
  }
  return merged;
}

/// Puts a kernel's cost together, part by part.
class Composer {
 public:
  Composer(const Kernel& kernel, const Chip& chip, CountMemo& counts) : kernel_(kernel), chip_(chip), counts_(counts) {
    total_.kernel = kernel.name;
    total_.chip = chip.name;
    for (const Work& work : kernel.work)
      if (work.operands.size() != work.statement.accesses.size())
        fail({.what = text("statement ",
                           work.statement.name,
                           " has ",
                           work.statement.accesses.size(),
                           " accesses and ",
                           work.operands.size(),
                           " operands"),
              .needs = "one operand per access",
              .hint = "describe every access"});
    merged_ = merge_producers(kernel);
  }

  template <class PlaceProduct>
  KernelCost run(PlaceProduct place_product) {
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (merged_.products[i]) add_product(i, place_product);
    for (size_t i = 0; i < merged_.works.size(); ++i)
      if (!merged_.products[i] && !merged_.gone[i]) add_vector_statement(merged_.works[i]);
    time_vector_unit();
    sum_traffic();
    find_bound();
    rate_memories();
    rate_array();
    sum_energy();
    return std::move(total_);
  }

 private:
  template <class PlaceProduct>
  void add_product(size_t i, PlaceProduct place_product) {
    const Work& work = merged_.works[i];
    const Product& product = *merged_.products[i];
    const size_t weight = weight_of(work, product), input = weight == product.first ? product.second : product.first;
    const Operand &w = work.operands[weight], &a = work.operands[input];
    PrecisionChoice choice = choose_precision(chip_, w.bits, w.is_float, a.bits, a.is_float);
    note(choice.note);
    StatementCost cost =
        cost_on_array(work, product, place_product(work, product, pace_of(choice)), choice, chip_, counts_);
    if (cost.counts->enumerated) note(text("counts of ", work.statement.name, " were listed one by one"));
    for (const Access& access : work.statement.accesses) on_chip_.insert(access.tensor);
    for (const Merged::Made& made : merged_.made) {
      if (made.consumer != i) continue;
      // The elements are made each time the array takes them in.
      const Work& maker = kernel_.work[made.producer];
      StatementCost making;
      making.name = maker.statement.name;
      making.vector_work = maker.vector_work;
      making.instances = cost.counts->tensors[made.access].unique;
      making.vector_ops = whole_cycles(static_cast<double>(making.instances) * maker.vector_ops);
      total_.statements.push_back(std::move(making));
    }
    total_.statements.push_back(std::move(cost));
  }

  /// All instances at one stamp of one place: what counts is how many there are and what they touch. Tensors of other
  /// kernels come from outside once; those of this one lie in the memory beside the vector unit.
  void add_vector_statement(const Work& work) {
    StatementCost cost;
    cost.name = work.statement.name;
    cost.vector_work = work.vector_work;
    const Problem at_once{work.statement, {{number(0)}, {}}, one_pe()};
    cost.counts = counts_.of(at_once, text("statement ", work.statement.name, " for chip ", chip_.name));
    cost.instances = cost.counts->macs;
    if (work.multiply_accumulate) cost.macs = cost.instances;
    cost.vector_ops =
        whole_cycles(static_cast<double>(cost.instances) * (work.vector_ops + (work.multiply_accumulate ? 2 : 0)));
    size_t near = chip_.memories.size() - 1;
    while (near > 0 && !chip_.memories[near].holds_activations) --near;
    for (size_t a = 0; a < work.operands.size(); ++a) {
      const Access& access = work.statement.accesses[a];
      const Operand& operand = work.operands[a];
      if (operand.on_the_way) continue;
      const TensorCounts& touched = cost.counts->tensors[a];
      const bool reads = access.role == Role::read;
      Traffic beside{near, access.tensor, operand.kind, 0, 0}, outside{0, access.tensor, operand.kind, 0, 0};
      (reads ? beside.read_bits : beside.write_bits) = bits_of(touched.total, operand.bits);
      const bool passes = !operand.internal && (reads ? on_chip_ : written_).insert(access.tensor).second;
      if (passes) {
        const int64_t bits = bits_of(touched.footprint, operand.bits);
        (reads ? outside.read_bits : outside.write_bits) = bits;
        (reads ? beside.write_bits : beside.read_bits) += bits;
        cost.traffic.push_back(std::move(outside));
      }
      if (!reads) on_chip_.insert(access.tensor);
      cost.traffic.push_back(std::move(beside));
    }
    total_.statements.push_back(std::move(cost));
  }

  void time_vector_unit() {
    for (StatementCost& cost : total_.statements) {
      if (cost.vector_ops == 0 || contains(chip_.inline_work, cost.vector_work)) continue;
      if (!contains(chip_.vector.does, cost.vector_work))
        note(text(chip_.name, " has no unit to ", name_of(cost.vector_work), "; its vector unit is assumed to"));
      cost.vector_cycles =
          whole_cycles(static_cast<double>(cost.vector_ops) /
                       (static_cast<double>(chip_.vector.lanes) * chip_.vector.ops_per_lane_per_cycle));
      vector_cycles_ += cost.vector_cycles;
    }
  }

  void sum_traffic() {
    read_bits_.assign(chip_.memories.size(), 0);
    write_bits_ = read_bits_;
    for (const StatementCost& cost : total_.statements) {
      total_.macs += cost.macs;
      stream_cycles_ += cost.stream_cycles;
      fill_cycles_ += cost.fill_drain_cycles;
      load_cycles_ += cost.load_cycles;
      tiles_ = std::max(tiles_, cost.tiles);
      for (const Traffic& t : cost.traffic) {
        read_bits_[t.memory] += t.read_bits;
        write_bits_[t.memory] += t.write_bits;
        if (t.memory == 0) total_.outside.push_back(t);
      }
    }
  }

  int64_t memory_cycles(size_t m) const {
    const Memory& memory = chip_.memories[m];
    const double r = static_cast<double>(read_bits_[m]) / 8 / memory.read_bytes_per_cycle;
    const double w = static_cast<double>(write_bits_[m]) / 8 / memory.write_bytes_per_cycle;
    return whole_cycles(memory.shared_port ? r + w : std::max(r, w));
  }

  /// Resources work beside each other; the longest binds. What the others do for one tile comes before or after it.
  void find_bound() {
    const int64_t array_cycles = stream_cycles_ + fill_cycles_ + load_cycles_;
    const bool serial_vector = !chip_.vector.overlaps_array && array_cycles > 0;
    total_.resources.push_back({"array", array_cycles, 0});
    total_.resources.push_back({"vector", vector_cycles_, 0});
    for (size_t m = 0; m < chip_.memories.size(); ++m)
      total_.resources.push_back({chip_.memories[m].name, memory_cycles(m), 0});
    size_t longest = 0;
    for (size_t r = 0; r < total_.resources.size(); ++r)
      if (!(serial_vector && r == 1) && total_.resources[r].cycles > total_.resources[longest].cycles) longest = r;
    const ResourceCost bound = total_.resources[longest];
    total_.bound = bound.name;
    for (ResourceCost& r : total_.resources) r.slack_cycles = std::max<int64_t>(0, bound.cycles - r.cycles);
    if (longest == 0) {
      add_part("array: stamps", stream_cycles_);
      add_part("array: fill and drain", fill_cycles_);
      add_part("array: stationary load", load_cycles_);
    } else {
      add_part(bound.name, bound.cycles);
    }
    for (size_t stage : {size_t{0}, size_t{1}, size_t{2}}) {  // array, vector unit, outermost memory
      if (stage == longest || (stage == 1 && serial_vector)) continue;
      const ResourceCost& r = total_.resources[stage];
      add_part(text(r.name, ": first or last tile"), (r.cycles + tiles_ - 1) / tiles_);
    }
    if (serial_vector) add_part("vector: after the array", vector_cycles_);
    add_part("launch", chip_.launch_cycles);
    total_.latency_s = static_cast<double>(total_.latency_cycles) / chip_.clock_hz;
  }

  void add_part(std::string name, int64_t cycles) {
    if (cycles == 0) return;
    total_.latency_parts.push_back({std::move(name), cycles});
    total_.latency_cycles += cycles;
  }

  void rate_memories() {
    const int64_t work = std::max({int64_t{1}, total_.resources[0].cycles, total_.resources[1].cycles});
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      const Memory& memory = chip_.memories[m];
      MemoryCost cost{
          .name = memory.name, .read_bytes = (read_bits_[m] + 7) / 8, .write_bytes = (write_bits_[m] + 7) / 8};
      const double bytes = static_cast<double>(cost.read_bytes + cost.write_bytes);
      cost.required_bytes_per_s = bytes / static_cast<double>(work) * chip_.clock_hz;
      if (total_.latency_s > 0) cost.achieved_bytes_per_s = bytes / total_.latency_s;
      cost.available_bytes_per_s =
          (memory.read_bytes_per_cycle + (memory.shared_port ? 0 : memory.write_bytes_per_cycle)) * chip_.clock_hz;
      total_.memories.push_back(std::move(cost));
    }
  }

  void rate_array() {
    double pe_cycles = 0, at_work = 0, cycles = 0;
    for (const StatementCost& cost : total_.statements) {
      if (!cost.on_array) continue;
      pe_cycles +=
          static_cast<double>(cost.macs) * static_cast<double>(cost.passes) / cost.precision->macs_per_pe_per_cycle;
      at_work += cost.pes_used * static_cast<double>(cost.stream_cycles);
      cycles += static_cast<double>(cost.stream_cycles);
    }
    if (cycles > 0) total_.mac_units_used = at_work / cycles;
    if (total_.latency_cycles > 0)
      total_.utilization = pe_cycles / static_cast<double>(chip_.pes()) / static_cast<double>(total_.latency_cycles);
  }

  void sum_energy() {
    for (const StatementCost& cost : total_.statements) {
      if (cost.on_array)
        spend("mac", static_cast<double>(cost.macs) * static_cast<double>(cost.passes), cost.precision->energy_per_mac);
      spend("registers", static_cast<double>(cost.register_bits), chip_.pe.energy_per_bit);
      spend("wires", static_cast<double>(cost.hop_bits), chip_.energy_per_hop_bit);
      spend("vector", static_cast<double>(cost.vector_ops), chip_.vector.energy_per_op);
    }
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      spend(chip_.memories[m].name, static_cast<double>(read_bits_[m]), chip_.memories[m].read_energy_per_bit);
      spend(chip_.memories[m].name, static_cast<double>(write_bits_[m]), chip_.memories[m].write_energy_per_bit);
    }
    spend("static", total_.latency_s, {chip_.static_watts * 1e12, chip_.static_source});
    for (const EnergyPart& e : total_.energy_parts) total_.energy_j += e.joules;
    total_.energy_node_nm = chip_.node_nm;
  }

  void spend(const std::string& name, double times, const EnergyFigure& each) {
    const double joules = times * each.picojoules * 1e-12;
    if (joules == 0) return;
    for (EnergyPart& known : total_.energy_parts)
      if (known.name == name && known.source == each.source) {
        known.joules += joules;
        return;
      }
    total_.energy_parts.push_back({name, joules, each.source});
  }

  void note(const std::string& words) {
    if (!words.empty() && std::find(total_.notes.begin(), total_.notes.end(), words) == total_.notes.end())
      total_.notes.push_back(words);
  }

  const Kernel& kernel_;
  const Chip& chip_;
  CountMemo& counts_;
  Merged merged_;
  std::set<std::string> on_chip_, written_;      // tensors that the kernel has brought in, has sent out
  std::vector<int64_t> read_bits_, write_bits_;  // per memory
  int64_t stream_cycles_ = 0, fill_cycles_ = 0, load_cycles_ = 0, vector_cycles_ = 0, tiles_ = 1;
  KernelCost total_;
};

}  // namespace

KernelCost CostEngine::cost(const Kernel& kernel) { return cost(kernel, {}); }

KernelCost CostEngine::cost(const Kernel& kernel, const std::vector<std::optional<Placement>>& placements) {
  size_t next = 0;
  return Composer(kernel, chip_, memo_->counts).run([&](const Work& work, const Product& product, const Pace& pace) {
    const size_t i = next++;
    if (i < placements.size() && placements[i]) return *placements[i];
    return memo_->place(work, product, chip_, pace);
  });
}

}  // namespace sator::dataflow
