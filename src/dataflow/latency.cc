#include "dataflow/latency.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace sator::dataflow {

namespace {

int64_t whole_cycles(double v) { return static_cast<int64_t>(std::ceil(v - 1e-6)); }

class Latency {
 public:
  Latency(KernelCost& cost, const Chip& chip) : cost_(cost), chip_(chip), memories_(chip.memories.size()) {
    for (const StatementCost& s : cost.statements) {
      array_ += s.array_cycles();
      vector_ += s.vector_cycles;
      for (const Traffic& t : s.traffic) add(t);
    }
    for (size_t m = 0; m < memories_.size(); ++m) memories_[m].beside = cycles_of(m);
  }

  void run() {
    const bool serial_vector = !chip_.vector.overlaps_array && array_ > 0;
    list_resources();
    take_out_serial_transfers();
    // Candidates for the bound, in the order of the resources: array, vector unit, memories.
    std::vector<double> beside = {static_cast<double>(array_), serial_vector ? 0 : static_cast<double>(vector_)};
    for (const Moved& m : memories_) beside.push_back(m.beside);
    const size_t bound = static_cast<size_t>(std::max_element(beside.begin(), beside.end()) - beside.begin());
    cost_.bound = cost_.resources[bound].name;
    if (bound == 0) {
      add_array_parts();
    } else {
      add_part(cost_.bound, beside[bound]);
    }
    std::vector<double> ends = {end_of_array(bound), serial_vector ? 0 : end_of_vector(bound, beside[bound])};
    for (size_t m = 0; m < memories_.size(); ++m) ends.push_back(end_of_memory(m, beside[bound]));
    for (size_t r = 0; r < ends.size(); ++r)
      if (r != bound) add_part(text(cost_.resources[r].name, ": first or last tile"), std::min(ends[r], beside[r]));
    for (const auto& [memory, cycles] : serial_) add_part(text(memory, ": refills in between"), cycles);
    if (serial_vector) add_part("vector: after the array", static_cast<double>(vector_));
    add_part("launch", static_cast<double>(chip_.launch_cycles));
    cost_.latency_s = static_cast<double>(cost_.latency_cycles) / chip_.clock_hz;
    // A transfer that nothing overlaps may be what takes longest.
    for (const ResourceCost& r : cost_.resources)
      if (!(serial_vector && r.name == "vector") && r.cycles > resource(cost_.bound).cycles) cost_.bound = r.name;
  }

 private:
  /// Bits in and out of a memory, and its share that runs beside other work.
  struct Moved {
    double read = 0, write = 0;
    double beside = 0;  // cycles
    struct Refill {
      double in = 0, out = 0, first = 0, last = 0;  // bits; of the first and the last part
      std::vector<std::pair<double, double>> late;  // waits, and the bits that go out then
    };
    std::vector<Refill> to;  // per memory inside
    double bits() const { return read + write; }
  };

  void add(const Traffic& t) {
    Moved& here = memories_[t.memory];
    here.read += static_cast<double>(t.read_bits);
    here.write += static_cast<double>(t.write_bits);
    if (t.refill_in_bits + t.refill_out_bits == 0) return;
    Moved& outside = memories_[t.filled_from];
    outside.to.resize(memories_.size());
    Moved::Refill& refill = outside.to[t.memory];
    refill.in += static_cast<double>(t.refill_in_bits);
    refill.out += static_cast<double>(t.refill_out_bits);
    refill.first += static_cast<double>(t.refill_in_bits) / static_cast<double>(t.parts);
    refill.last += static_cast<double>(t.refill_out_bits) / static_cast<double>(t.parts);
    refill.late.emplace_back(t.waits, static_cast<double>(t.refill_out_bits));
  }

  /// Of work that can begin after its share of the bound's time: how much is left when that time is over.
  static double left_over(const std::vector<std::pair<double, double>>& work, double bound_cycles) {
    double left = 0;
    for (const auto& [waits, own] : work) {
      double waiting = 0;
      for (const auto& [other_waits, cycles] : work)
        if (other_waits >= waits) waiting += cycles;
      left = std::max(left, waiting - bound_cycles * (1 - waits));
    }
    return left;
  }

  double cycles_of(size_t m, double read_bits, double write_bits) const {
    const Memory& memory = chip_.memories[m];
    const double r = read_bits / 8 / memory.read_bytes_per_cycle, w = write_bits / 8 / memory.write_bytes_per_cycle;
    return memory.shared_port ? r + w : std::max(r, w);
  }
  double cycles_of(size_t m) const { return cycles_of(m, memories_[m].read, memories_[m].write); }

  void list_resources() {
    cost_.resources.push_back({"array", array_});
    cost_.resources.push_back({"vector", vector_});
    for (size_t m = 0; m < memories_.size(); ++m)
      cost_.resources.push_back({chip_.memories[m].name, whole_cycles(cycles_of(m))});
  }

  const ResourceCost& resource(const std::string& name) const {
    return *std::find_if(cost_.resources.begin(), cost_.resources.end(), [&](const auto& r) { return r.name == name; });
  }

  /// A memory that is not double-buffered is filled and emptied while nothing works on what it holds. Both ends of the
  /// transfer give the time for it, in proportion to the bits.
  void take_out_serial_transfers() {
    for (size_t inner = 1; inner < memories_.size(); ++inner) {
      if (chip_.memories[inner].double_buffered) continue;
      double refilled = 0, longest = 0;
      for (size_t outer = 0; outer < memories_.size(); ++outer) {
        if (memories_[outer].to.empty()) continue;
        const Moved::Refill& refill = memories_[outer].to[inner];
        const double bits = refill.in + refill.out;
        if (bits == 0) continue;
        refilled += bits;
        const double there = cycles_of(outer) * bits / memories_[outer].bits();
        memories_[outer].beside -= there;
        longest = std::max(longest, there);
      }
      if (refilled == 0) continue;
      const double here = cycles_of(inner) * refilled / memories_[inner].bits();
      memories_[inner].beside -= here;
      serial_.emplace_back(chip_.memories[inner].name, std::max(longest, here));
    }
    for (Moved& m : memories_) m.beside = std::max(0.0, m.beside);
  }

  /// One fold after the last operand; before a vector unit that binds, the folds until the first part of the output, as far
  /// as the unit has not its work for the array to do meanwhile.
  double end_of_array(size_t bound) const {
    if (bound > 2) return 0;  // a memory at the array's side works with it stamp by stamp
    double one_fold = 0, until_output = 0, for_array = 0;
    for (const StatementCost& s : cost_.statements) {
      one_fold += static_cast<double>(s.array_cycles()) / static_cast<double>(s.folds);
      until_output += static_cast<double>(s.array_cycles()) * s.until_output();
      if (s.waits == 0) for_array += static_cast<double>(s.vector_cycles);
    }
    return bound == 1 ? std::max(one_fold, until_output - for_array) : one_fold;
  }

  /// What the vector unit does on one part; at least what is left over from the time in which it has had parts to work on.
  double end_of_vector(size_t bound, double bound_cycles) const {
    if (bound > 2 && array_ == 0) return 0;
    double one_part = 0;
    std::vector<std::pair<double, double>> late;
    for (const StatementCost& s : cost_.statements) {
      one_part += static_cast<double>(s.vector_cycles) / static_cast<double>(s.vector_parts);
      if (s.vector_cycles > 0) late.emplace_back(s.waits, static_cast<double>(s.vector_cycles));
    }
    return std::max(one_part, left_over(late, bound_cycles));
  }

  double end_of_memory(size_t m, double bound_cycles) const {
    double first = 0, last = 0;
    std::vector<std::pair<double, double>> late;
    for (size_t inner = 0; inner < memories_[m].to.size(); ++inner) {
      if (!chip_.memories[inner].double_buffered) continue;
      const Moved::Refill& refill = memories_[m].to[inner];
      first += refill.first;
      last += refill.last;
      for (const auto& [waits, bits] : refill.late) late.emplace_back(waits, cycles_of(m, 0, bits));
    }
    return cycles_of(m, first, 0) + std::max(cycles_of(m, 0, last), left_over(late, bound_cycles));
  }

  void add_array_parts() {
    int64_t stream = 0, fill = 0, load = 0;
    for (const StatementCost& s : cost_.statements) {
      stream += s.stream_cycles;
      fill += s.fill_drain_cycles;
      load += s.load_cycles;
    }
    add_part("array: stamps", static_cast<double>(stream));
    add_part("array: fill and drain", static_cast<double>(fill));
    add_part("array: stationary load", static_cast<double>(load));
  }

  void add_part(std::string name, double cycles) {
    const int64_t whole = whole_cycles(cycles);
    if (whole <= 0) return;
    cost_.latency_parts.push_back({std::move(name), whole});
    cost_.latency_cycles += whole;
  }

  KernelCost& cost_;
  const Chip& chip_;
  std::vector<Moved> memories_;
  std::vector<std::pair<std::string, double>> serial_;  // by the memory that is refilled
  int64_t array_ = 0, vector_ = 0;
};

}  // namespace

void find_latency(KernelCost& cost, const Chip& chip) { Latency(cost, chip).run(); }

}  // namespace sator::dataflow
