#include "dataflow/cost/totals.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/figures.h"
#include "base/text.h"
#include "dataflow/cost/array_cost.h"
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
    note_what_has_no_room();
    if (chip_.tenet) rate_items();
    rate_array();
    sum_energy();
  }

 private:
  /// Bits of a tensor: what a memory moves of it, what its elements have.
  struct Moved {
    int64_t read = 0, write = 0;
  };

  void sum_traffic() {
    moved_.resize(chip_.memories.size());
    read_bits_.assign(chip_.memories.size(), 0);
    write_bits_ = read_bits_;
    for (const StatementCost& cost : total_.statements) {
      total_.macs += cost.macs;
      for (const Traffic& t : cost.traffic) {
        read_bits_[t.memory] += t.read_bits;
        write_bits_[t.memory] += t.write_bits;
        moved_[t.memory][t.tensor].read += t.read_bits;
        moved_[t.memory][t.tensor].write += t.write_bits;
        if (t.memory == 0) total_.outside.push_back(t);
      }
    }
  }

  /// Per memory: each tensor's elements once for each direction in which the memory moves it at all.
  std::vector<int64_t> compulsory_bits() const {
    std::map<std::string, int64_t> elements;  // of each tensor, in bits
    std::set<std::string> made, own;
    for (const StatementCost& s : total_.statements) {
      if (s.placement) own.insert(s.placement->stored_outside.begin(), s.placement->stored_outside.end());
      for (size_t a = 0; s.counts && a < s.work.operands.size(); ++a) {
        const std::string& tensor = s.work.statement.accesses[a].tensor;
        int64_t& bits = elements[tensor];
        bits = std::max(bits, bits_of(s.counts->tensors[a].footprint, s.work.operands[a].bits));
        if (s.work.statement.accesses[a].role != Role::read) made.insert(tensor);
        if (s.work.operands[a].internal) own.insert(tensor);
      }
    }
    std::vector<int64_t> bits(chip_.memories.size(), 0);
    for (size_t m = 0; m < bits.size(); ++m)
      for (const auto& [tensor, moved] : moved_[m]) {
        const auto of_it = elements.find(tensor);
        if (of_it == elements.end() || (m == 0 && own.contains(tensor))) continue;
        const bool is_made = made.contains(tensor);
        if (m > 0 || !is_made) bits[m] += std::min(of_it->second, moved.read);
        if (m > 0 || is_made) bits[m] += std::min(of_it->second, moved.write);
      }
    return bits;
  }

  void rate_memories() {
    const std::vector<int64_t> compulsory = compulsory_bits();
    const int64_t work = std::max({int64_t{1}, total_.resources[0].cycles, total_.resources[1].cycles});
    for (size_t m = 0; m < chip_.memories.size(); ++m) {
      const Memory& memory = chip_.memories[m];
      MemoryCost cost{.name = memory.name,
                      .read_bytes = (read_bits_[m] + 7) / 8,
                      .write_bytes = (write_bits_[m] + 7) / 8,
                      .compulsory_bytes = compulsory[m] / 8};
      const double bytes = static_cast<double>(cost.read_bytes + cost.write_bytes);
      cost.required_bytes_per_s = bytes / static_cast<double>(work) * chip_.clock_hz;
      if (total_.latency_s > 0) cost.achieved_bytes_per_s = bytes / total_.latency_s;
      cost.available_bytes_per_s = available_bytes_per_s(memory, chip_);
      total_.memories.push_back(std::move(cost));
    }
  }

  /// The outermost memory holds all that the kernel is given and gives back.
  void note_what_has_no_room() {
    const Memory& outermost = chip_.memories[0];
    const int64_t bytes = total_.memories[0].compulsory_bytes;
    if (!outermost.capacity_bytes || bytes <= *outermost.capacity_bytes) return;
    total_.notes.push_back(text(total_.kernel,
                                " does not fit: its tensors have ",
                                quantity(static_cast<double>(bytes), "B"),
                                ", ",
                                outermost.name,
                                " of ",
                                chip_.name,
                                " holds ",
                                quantity(static_cast<double>(*outermost.capacity_bytes), "B"),
                                "; it is costed as if they did"));
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
  std::vector<int64_t> read_bits_, write_bits_;      // per memory
  std::vector<std::map<std::string, Moved>> moved_;  // per memory, of each tensor
};

}  // namespace

void sum_up(KernelCost& cost, const Chip& chip) { Totals(cost, chip).run(); }

}  // namespace sator::dataflow
