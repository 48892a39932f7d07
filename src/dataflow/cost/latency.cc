#include "dataflow/cost/latency.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/mapping/sharing.h"

namespace sator::dataflow {

namespace {

int64_t cycles_rounded_up(double v) { return static_cast<int64_t>(std::ceil(v - 1e-6)); }

/// Cycles, and which resources' time they are: a sum over resources of factor * time per unit of work. Everything that the
/// formula does with cycles (sums, shares, the longer of two) leaves it one, so the derivative by each time is exact.
class Time {
 public:
  static constexpr size_t kMost = 24;

  Time() = default;
  static Time of(size_t resource, double cycles) {
    Time t;
    t.by_.at(resource) = cycles;
    return t;
  }
  double cycles() const {
    double sum = 0;
    for (double c : by_) sum += c;
    return sum;
  }
  double of(size_t resource) const { return by_.at(resource); }

  Time& operator+=(const Time& other) {
    for (size_t r = 0; r < kMost; ++r) by_[r] += other.by_[r];
    return *this;
  }
  Time operator*(double factor) const {
    Time t = *this;
    for (double& c : t.by_) c *= factor;
    return t;
  }
  friend Time operator+(Time a, const Time& b) { return a += b; }
  friend Time operator-(const Time& a, const Time& b) { return a + b * -1; }
  friend Time longer(const Time& a, const Time& b) { return b.cycles() > a.cycles() ? b : a; }
  friend Time shorter(const Time& a, const Time& b) { return b.cycles() < a.cycles() ? b : a; }
  friend Time at_least_zero(const Time& a) { return longer(Time(), a); }

 private:
  std::array<double, kMost> by_{};
};

class Latency {
 public:
  Latency(KernelCost& cost, const Chip& chip) : cost_(cost), chip_(chip), memories_(chip.memories.size()) {
    if (chip.calibration) measured_ = *chip.calibration;
    if (memories_.size() + 3 > Time::kMost)
      fail({.what = text(chip.name, " has ", memories_.size(), " memories"),
            .needs = text("at most ", Time::kMost - 3),
            .hint = "leave out memories that hold nothing of their own"});
    for (size_t i = chip.calibration ? cost.statements.size() : 0; i-- > 0;)
      if (const StatementCost& s = cost.statements[i]; s.on_array())
        kind_ = static_cast<size_t>(class_of(s.work, *s.product));
    for (const StatementCost& s : cost.statements) {
      array_ += array_time(s, static_cast<double>(s.array_cycles()));
      vector_ += vector_time(s);
      for (const Traffic& t : s.traffic) add(t);
    }
    for (size_t m = 0; m < memories_.size(); ++m) memories_[m].beside = time_of(m);
  }

  void run() {
    const bool serial_vector = !chip_.vector.overlaps_array && array_.cycles() > 0;
    list_resources();
    take_out_serial_transfers();
    // Candidates for the bound, in the order of the resources: array, vector unit, memories.
    std::vector<Time> beside = {array_, serial_vector ? Time() : vector_};
    for (const Moved& m : memories_) beside.push_back(m.beside);
    auto ends_beside = [&](size_t r) {
      std::vector<Time> ends = {end_of_array(r), {}}, left(2);
      if (!serial_vector) ends[kVector] = end_of_vector(r), left[kVector] = left_of_vector(r, beside[r]);
      for (size_t m = 0; m < memories_.size(); ++m) {
        ends.push_back(end_of_memory(m));
        left.push_back(left_of_memory(m, beside[r]));
      }
      // What is left over of one resource's work is done beside what is left of the others'.
      size_t latest = r;
      double longest = 0;
      for (size_t other = 0; other < ends.size(); ++other) {
        ends[other] = other == r ? Time() : shorter(ends[other], beside[other]);
        left[other] = other == r ? Time() : shorter(left[other], beside[other]);
        if (const double more = left[other].cycles() - ends[other].cycles(); more > longest)
          longest = more, latest = other;
      }
      if (latest != r) ends[latest] = left[latest];
      return ends;
    };
    size_t bound = 0;
    std::vector<Time> ends;
    for (double longest = -1; size_t r : by_time(beside)) {
      std::vector<Time> own = ends_beside(r);
      double total = beside[r].cycles();
      for (const Time& end : own) total += end.cycles();
      if (total > longest * (1 + 1e-12)) longest = total, bound = r, ends = std::move(own);
    }
    cost_.bound = cost_.resources[bound].name;
    for (size_t r = 0; r < beside.size(); ++r)
      cost_.resources[r].slack_cycles =
          std::max<int64_t>(0, cycles_rounded_up(beside[bound].cycles()) - cycles_rounded_up(beside[r].cycles()));
    if (bound == 0) {
      add_array_parts();
    } else {
      add_part(cost_.bound, beside[bound]);
    }
    for (size_t r = 0; r < ends.size(); ++r) add_part(text(cost_.resources[r].name, ": first or last tile"), ends[r]);
    for (const auto& [memory, time] : serial_) add_part(text(memory, ": refills in between"), time);
    if (serial_vector) add_part("vector: after the array", vector_);
    add_part("launch",
             Time::of(launch(), static_cast<double>(chip_.launch_cycles) + measured_.overhead_s * chip_.clock_hz));
    finish(serial_vector);
  }

 private:
  static constexpr size_t kArray = 0, kVector = 1, kMemories = 2;
  size_t launch() const { return kMemories + memories_.size(); }

  /// Bits in and out of a memory (of one instance of it), and its share that runs beside other work.
  struct Moved {
    double read = 0, write = 0;
    Time beside;
    struct Refill {
      double in = 0, out = 0, first = 0, last = 0;  // bits; of the first and the last part
      std::vector<std::pair<double, double>> late;  // waits, and the bits that go out then
    };
    std::vector<Refill> to;  // per memory inside
    double bits() const { return read + write; }
  };

  void add(const Traffic& t) {
    Moved& here = memories_[t.memory];
    const double instances = static_cast<double>(t.instances);
    here.read += static_cast<double>(t.read_bits) / instances;
    here.write += static_cast<double>(t.write_bits) / instances;
    if (t.refill_in_bits + t.refill_out_bits == 0) return;
    Moved& outside = memories_[t.filled_from];
    outside.to.resize(memories_.size());
    Moved::Refill& refill = outside.to[t.memory];
    const double sources = chip_.memories[t.filled_from].per_core ? instances : 1;
    const double in = static_cast<double>(t.refill_in_bits) / sources,
                 out = static_cast<double>(t.refill_out_bits) / sources;
    refill.in += in;
    refill.out += out;
    refill.first += in / static_cast<double>(t.parts);
    refill.last += out / static_cast<double>(t.parts);
    refill.late.emplace_back(t.waits, out);
  }

  Time array_time(const StatementCost& s, double cycles) const {
    const double factor = chip_.calibration && s.on_array()
                              ? measured_.array_time_of[static_cast<size_t>(class_of(s.work, *s.product))]
                              : 1;
    return Time::of(kArray, cycles * measured_.array_time * factor);
  }
  Time vector_time(const StatementCost& s) const {
    const double factor = measured_.vector_time * measured_.vector_time_of[kind_];
    return Time::of(kVector, static_cast<double>(s.vector_cycles) * factor);
  }

  /// Of work that can begin after its share of the bound's time: how much is left when that time is over.
  static Time left_over(const std::vector<std::pair<double, Time>>& work, const Time& bound) {
    Time left;
    for (const auto& [waits, own] : work) {
      Time waiting;
      for (const auto& [other_waits, time] : work)
        if (other_waits >= waits) waiting += time;
      left = longer(left, waiting - bound * (1 - waits));
    }
    return left;
  }

  Time time_of(size_t m, double read_bits, double write_bits) const {
    const double cycles = transfer_cycles(chip_.memories[m], read_bits, write_bits);
    return Time::of(kMemories + m, cycles * (m == 0 ? measured_.memory_time : measured_.cache_time));
  }
  Time time_of(size_t m) const { return time_of(m, memories_[m].read, memories_[m].write); }

  void list_resources() {
    cost_.resources.push_back({.name = "array", .cycles = cycles_rounded_up(array_.cycles())});
    cost_.resources.push_back({.name = "vector", .cycles = cycles_rounded_up(vector_.cycles())});
    for (size_t m = 0; m < memories_.size(); ++m)
      cost_.resources.push_back({.name = chip_.memories[m].name, .cycles = cycles_rounded_up(time_of(m).cycles())});
  }

  /// Numbers of resources, the longest at work first; of equal ones the first.
  static std::vector<size_t> by_time(const std::vector<Time>& beside) {
    std::vector<size_t> order;
    for (size_t r = 0; r < beside.size(); ++r)
      if (order.empty() || beside[r].cycles() > 0) order.push_back(r);
    std::stable_sort(
        order.begin(), order.end(), [&](size_t a, size_t b) { return beside[a].cycles() > beside[b].cycles(); });
    return order;
  }

  const ResourceCost& resource(const std::string& name) const {
    return *std::find_if(cost_.resources.begin(), cost_.resources.end(), [&](const auto& r) { return r.name == name; });
  }

  /// A memory that is not double-buffered is filled and emptied while nothing works on what it holds. Both ends of the
  /// transfer give the time for it, in proportion to the bits.
  void take_out_serial_transfers() {
    for (size_t inner = 1; inner < memories_.size(); ++inner) {
      if (chip_.memories[inner].double_buffered) continue;
      double refilled = 0;
      Time longest;
      for (size_t outer = 0; outer < memories_.size(); ++outer) {
        if (memories_[outer].to.empty()) continue;
        const Moved::Refill& refill = memories_[outer].to[inner];
        const double bits = refill.in + refill.out;
        if (bits == 0) continue;
        refilled += bits;
        const Time there = time_of(outer) * (bits / memories_[outer].bits());
        memories_[outer].beside = memories_[outer].beside - there;
        longest = longer(longest, there);
      }
      if (refilled == 0) continue;
      const Time here = time_of(inner) * (refilled / memories_[inner].bits());
      memories_[inner].beside = memories_[inner].beside - here;
      serial_.emplace_back(chip_.memories[inner].name, longer(longest, here));
    }
    for (Moved& m : memories_) m.beside = at_least_zero(m.beside);
  }

  /// One fold after the last operand; before a vector unit that binds, the folds until the first part of the output, as far
  /// as the unit has not its work for the array to do meanwhile.
  Time end_of_array(size_t bound) const {
    if (bound > kMemories) return {};  // a memory at the array's side works with it stamp by stamp
    Time one_fold, until_output, for_array;
    for (const StatementCost& s : cost_.statements) {
      const Time array = array_time(s, static_cast<double>(s.array_cycles()));
      one_fold += array * (1 / static_cast<double>(s.folds));
      until_output += array * s.until_output();
      if (s.waits == 0) for_array += vector_time(s);
    }
    return bound == kVector ? longer(one_fold, until_output - for_array) : one_fold;
  }

  /// What the vector unit does on one part.
  Time end_of_vector(size_t bound) const {
    Time one_part;
    if (bound > kMemories && array_.cycles() == 0) return one_part;
    for (const StatementCost& s : cost_.statements)
      one_part += vector_time(s) * (1 / static_cast<double>(s.vector_parts));
    return one_part;
  }
  /// What is left over of its work from the time in which it has had parts to work on.
  Time left_of_vector(size_t bound, const Time& bound_time) const {
    if (bound > kMemories && array_.cycles() == 0) return {};
    std::vector<std::pair<double, Time>> late;
    for (const StatementCost& s : cost_.statements)
      if (s.vector_cycles > 0) late.emplace_back(s.waits, vector_time(s));
    return left_over(late, bound_time);
  }

  /// What a memory hands in first, and takes last.
  Time end_of_memory(size_t m) const {
    const auto [first, last] = first_and_last(m);
    return time_of(m, first, 0) + time_of(m, 0, last);
  }
  Time left_of_memory(size_t m, const Time& bound_time) const {
    std::vector<std::pair<double, Time>> late;
    for (size_t inner = 0; inner < memories_[m].to.size(); ++inner)
      if (chip_.memories[inner].double_buffered)
        for (const auto& [waits, bits] : memories_[m].to[inner].late) late.emplace_back(waits, time_of(m, 0, bits));
    return time_of(m, first_and_last(m).first, 0) + left_over(late, bound_time);
  }
  std::pair<double, double> first_and_last(size_t m) const {
    double first = 0, last = 0;
    for (size_t inner = 0; inner < memories_[m].to.size(); ++inner) {
      if (!chip_.memories[inner].double_buffered) continue;
      first += memories_[m].to[inner].first;
      last += memories_[m].to[inner].last;
    }
    return {first, last};
  }

  void add_array_parts() {
    Time stream, fill, load;
    for (const StatementCost& s : cost_.statements) {
      stream += array_time(s, static_cast<double>(s.stream_cycles));
      fill += array_time(s, static_cast<double>(s.fill_drain_cycles));
      load += array_time(s, static_cast<double>(s.load_cycles));
    }
    add_part("array: stamps", stream);
    add_part("array: fill and drain", fill);
    add_part("array: stationary load", load);
  }

  void add_part(std::string name, const Time& time) {
    const int64_t whole = cycles_rounded_up(time.cycles());
    if (whole <= 0) return;
    total_ += time;
    cost_.latency_parts.push_back({std::move(name), whole});
    cost_.latency_cycles += whole;
  }

  void finish(bool serial_vector) {
    cost_.latency_s = static_cast<double>(cost_.latency_cycles) / chip_.clock_hz;
    const double low = measured_.low_of[kind_], high = measured_.high_of[kind_];
    cost_.latency_low_s = cost_.latency_s * (low > 0 ? low : measured_.low);
    cost_.latency_high_s = cost_.latency_s * (high > 0 ? high : measured_.high);
    cost_.unrounded_cycles = total_.cycles();
    if (cost_.unrounded_cycles > 0) {
      for (size_t r = 0; r < cost_.resources.size(); ++r)
        cost_.resources[r].elasticity = total_.of(r) / cost_.unrounded_cycles;
      cost_.launch_elasticity = total_.of(launch()) / cost_.unrounded_cycles;
    }
    // A transfer that nothing overlaps may be what takes longest.
    for (const ResourceCost& r : cost_.resources)
      if (!(serial_vector && r.name == "vector") && r.cycles > resource(cost_.bound).cycles) cost_.bound = r.name;
    // Nothing works during the launch: where it takes longest, no resource is to blame.
    if (total_.of(launch()) > static_cast<double>(resource(cost_.bound).cycles)) cost_.bound = "launch";
  }

  KernelCost& cost_;
  const Chip& chip_;
  ChipCalibration measured_;
  size_t kind_ = std::size(kProductClasses);  // the class of the kernel's first product; the last: it has none
  std::vector<Moved> memories_;
  std::vector<std::pair<std::string, Time>> serial_;  // by the memory that is refilled
  Time array_, vector_, total_;
};

}  // namespace

void find_latency(KernelCost& cost, const Chip& chip) { Latency(cost, chip).run(); }

}  // namespace sator::dataflow
