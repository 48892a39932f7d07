#include "dataflow/cost/totals.h"

#include <algorithm>

#include "dataflow/cost/tenet_array.h"
#include "dataflow/tenet/metrics.h"

namespace sator::dataflow {

namespace {

/// Adds up a kernel's statements, whose latency is found.
class Totals {
 public:
  Totals(KernelCost& total, const Chip& chip) : total_(total), chip_(chip) {}

  void run() {
    sum_traffic();
    rate_memories();
    if (chip_.tenet) rate_items();
    rate_array();
    sum_energy();
  }

 private:
  void sum_traffic() {
    read_bits_.assign(chip_.memories.size(), 0);
    write_bits_ = read_bits_;
    for (const StatementCost& cost : total_.statements) {
      total_.macs += cost.macs;
      for (const Traffic& t : cost.traffic) {
        read_bits_[t.memory] += t.read_bits;
        write_bits_[t.memory] += t.write_bits;
        if (t.memory == 0) total_.outside.push_back(t);
      }
    }
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
      cost.available_bytes_per_s = available_bytes_per_s(memory, chip_);
      total_.memories.push_back(std::move(cost));
    }
  }

  /// TENET's scratchpad hands over so many items per cycle, whatever their widths, and takes as many meanwhile: in bytes it
  /// can do what so many items of this kernel have.
  void rate_items() {
    double items = 0, bits = 0;
    for (const StatementCost& s : total_.statements)
      for (size_t a = 0; s.tenet && a < s.work.operands.size(); ++a) {
        if (s.work.operands[a].on_the_way) continue;
        const auto moved = static_cast<double>(s.counts->tensors[a].unique);
        items += moved, bits += moved * s.work.operands[a].bits;
      }
    if (items == 0) return;
    MemoryCost& scratchpad = total_.memories.back();
    scratchpad.available_bytes_per_s = items_per_cycle(chip_) * chip_.clock_hz * bits / items / 8;
    // Cycles are rounded down per product.
    scratchpad.available_bytes_per_s = std::max(scratchpad.available_bytes_per_s, scratchpad.achieved_bytes_per_s);
  }

  void rate_array() {
    double pe_cycles = 0, at_work = 0, cycles = 0;
    for (const StatementCost& cost : total_.statements) {
      if (!cost.on_array()) continue;
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
      if (cost.on_array())
        spend("mac",
              static_cast<double>(cost.instances) * static_cast<double>(cost.passes),
              cost.precision->energy_per_mac);
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
    total_.energy_node_nm = chip_.energy_node_nm;
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

  KernelCost& total_;
  const Chip& chip_;
  std::vector<int64_t> read_bits_, write_bits_;  // per memory
};

}  // namespace

void sum_up(KernelCost& cost, const Chip& chip) { Totals(cost, chip).run(); }

}  // namespace sator::dataflow
