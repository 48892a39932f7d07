#include "dataflow/cost/latency.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/mapping/overlap.h"

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
  friend double cycles(const Time& t) { return t.cycles(); }

 private:
  std::array<double, kMost> by_{};
};

class Latency {
 public:
  Latency(KernelCost& cost, const Chip& chip) : cost_(cost), chip_(chip) {
    check_memories();
    for (size_t i = cost.statements.size(); i-- > 0;)
      if (const StatementCost& s = cost.statements[i]; s.on_array()) kernel_class_ = class_of(s.work, *s.product);
    factors_ = time_factors(chip, kernel_class_);
    moves_.start(chip.memories.size());
    for (const StatementCost& s : cost.statements) {
      add_work(s);
      for (const Traffic& t : s.traffic) add_traffic(t);
    }
    wait_for_power();
    vector_ = times_.vector;
    auto time_of = [](size_t resource, double cycles) { return Time::of(resource, cycles); };
    set_memory_times(times_, moves_, chip, factors_, time_of, [&](size_t memory, const Time& time) {
      serial_.emplace_back(chip.memories[memory].name, time);
    });
  }

  void run() {
    list_resources();
    if (vector_waits()) times_.vector = Time();
    const size_t bound = find_bound();
    cost_.bound = cost_.resources[bound].name;
    const int64_t longest = cycles_rounded_up(cycles(times_.of(bound)));
    for (size_t r = 0; r < cost_.resources.size(); ++r)
      cost_.resources[r].slack_cycles = std::max<int64_t>(0, longest - cycles_rounded_up(cycles(times_.of(r))));
    if (bound == kArray) {
      add_array_parts();
    } else {
      add_part(cost_.bound, times_.of(bound));
    }
    std::vector<Time> exposed(cost_.resources.size());
    add_exposed(times_, bound, [&](size_t resource, const Time& time) { exposed[resource] += time; });
    for (size_t r = 0; r < exposed.size(); ++r)
      add_part(text(cost_.resources[r].name, ": first or last tile"), exposed[r]);
    for (const auto& [memory, time] : serial_) add_part(text(memory, ": refills in between"), time);
    if (vector_waits()) add_part("vector: after the array", vector_);
    // What starts a kernel has to be done once more where all cores wait for each other.
    const double overhead = (chip_.calibration ? chip_.calibration->overhead_s : 0) * chip_.clock_hz;
    for (const StatementCost& s : cost_.statements)
      if (s.placement && s.placement->shares_reduction)
        add_part("launch: barrier of cores that share sums",
                 Time::of(launch(), static_cast<double>(chip_.barrier_cycles.value_or(0)) + overhead));
    add_part(text("launch: first bytes of ", chip_.memories[first_read()].name),
             Time::of(launch(), static_cast<double>(chip_.memories[first_read()].latency_cycles)));
    add_part("launch", Time::of(launch(), static_cast<double>(chip_.launch_cycles) + overhead));
    finish();
  }

 private:
  size_t launch() const { return kMemories + chip_.memories.size(); }
  bool vector_waits() const { return !chip_.vector.overlaps_array && cycles(times_.array) > 0; }

  void check_memories() const {
    if (chip_.memories.size() > kMostMemories)
      fail({.what = text(chip_.name, " has ", chip_.memories.size(), " memories"),
            .needs = text("at most ", kMostMemories),
            .hint = "leave out memories that hold nothing of their own"});
  }

  Time array_time(const StatementCost& s, double cycles) const {
    const double of_class = s.on_array() ? array_factor(chip_, class_of(s.work, *s.product)) : 1;
    return Time::of(kArray, cycles * factors_.array * of_class);
  }

  void add_work(const StatementCost& s) {
    const Time array = array_time(s, static_cast<double>(s.array_cycles()));
    times_.array += array;
    times_.fold += array * (1 / static_cast<double>(s.folds));
    times_.until_output += array * s.until_output();
    const Time vector = Time::of(kVector, static_cast<double>(s.vector_cycles) * factors_.vector);
    times_.vector += vector;
    times_.vector_part += vector * (1 / static_cast<double>(s.vector_parts));
    if (s.waits == 0) times_.vector_for_array += vector;
    if (s.vector_cycles > 0) times_.vector_late.add(s.waits, vector);
  }

  /// The power limit holds for all products together.
  void wait_for_power() {
    Time least;
    for (const StatementCost& s : cost_.statements)
      if (s.on_array() && !s.tenet)
        least += array_time(s,
                            sustained_cycles(chip_,
                                             s.precision->sustained_clock_hz,
                                             static_cast<double>(s.instances) * static_cast<double>(s.passes),
                                             1 / s.precision->macs_per_pe_per_cycle));
    const double array = cycles(times_.array), waits = cycles(least) - array;
    if (waits <= 0 || array <= 0) return;
    waits_for_power_ = Time::of(kArray, waits);
    times_.array += waits_for_power_;
    times_.fold = times_.fold * (1 + waits / array);
    times_.until_output = times_.until_output * (1 + waits / array);
  }

  /// The outermost memory that something is read from.
  size_t first_read() const {
    size_t m = 0;
    while (m + 1 < chip_.memories.size() && moves_.read[m] == 0) ++m;
    return m;
  }

  void add_traffic(const Traffic& t) {
    const double instances = static_cast<double>(t.instances);
    moves_.read[t.memory] += static_cast<double>(t.read_bits) / instances;
    moves_.write[t.memory] += static_cast<double>(t.write_bits) / instances;
    moves_.sharers[t.memory] = std::max(moves_.sharers[t.memory], instances);
    if (t.refill_in_bits + t.refill_out_bits == 0) return;
    const Memory& outer = chip_.memories[t.filled_from];
    const double sources = outer.per_core ? instances : 1;
    const double in = static_cast<double>(t.refill_in_bits) / sources,
                 out = static_cast<double>(t.refill_out_bits) / sources;
    moves_.exchange(chip_, t.filled_from, t.memory, in, out, static_cast<double>(t.parts));
    if (out > 0 && chip_.memories[t.memory].double_buffered)
      times_.memories[t.filled_from].late.add(
          t.waits,
          Time::of(kMemories + t.filled_from, transfer_cycles(outer, 0, out) * factors_.of_memory(t.filled_from)));
  }

  void list_resources() {
    auto list = [&](const std::string& name, double time) {
      cost_.resources.push_back({.name = name, .cycles = cycles_rounded_up(time)});
    };
    list("array", cycles(times_.array));
    list("vector", cycles(times_.vector));
    for (size_t m = 0; m < chip_.memories.size(); ++m) list(chip_.memories[m].name, cycles(times_.memories[m].whole));
  }

  /// The resource by which the latency is longest; of equal ones the one that works longest, then the first.
  size_t find_bound() const {
    std::vector<size_t> order = {kArray};
    for (size_t r = kVector; r < cost_.resources.size(); ++r)
      if (cycles(times_.of(r)) > 0) order.push_back(r);
    std::stable_sort(
        order.begin(), order.end(), [&](size_t a, size_t b) { return cycles(times_.of(a)) > cycles(times_.of(b)); });
    size_t bound = kArray;
    double longest = -1;
    for (size_t r : order)
      if (const double total = cycles_if_bound(times_, r); total > longest * (1 + 1e-12)) longest = total, bound = r;
    return bound;
  }

  const ResourceCost& resource(const std::string& name) const {
    return *std::find_if(cost_.resources.begin(), cost_.resources.end(), [&](const auto& r) { return r.name == name; });
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
    add_part("array: waits for power", waits_for_power_);
  }

  void add_part(std::string name, const Time& time) {
    const int64_t whole = cycles_rounded_up(cycles(time));
    if (whole <= 0) return;
    total_ += time;
    cost_.latency_parts.push_back({std::move(name), whole});
    cost_.latency_cycles += whole;
  }

  void finish() {
    cost_.latency_s = static_cast<double>(cost_.latency_cycles) / chip_.clock_hz;
    if (const auto& measured = chip_.calibration) {
      const size_t kind = kernel_class_ ? static_cast<size_t>(*kernel_class_) : std::size(kProductClasses);
      const double low = measured->low_of[kind], high = measured->high_of[kind];
      cost_.latency_interval = {cost_.latency_s * (low > 0 ? low : measured->low),
                                cost_.latency_s * (high > 0 ? high : measured->high)};
    }
    cost_.unrounded_cycles = total_.cycles();
    if (cost_.unrounded_cycles > 0) {
      for (size_t r = 0; r < cost_.resources.size(); ++r)
        cost_.resources[r].elasticity = total_.of(r) / cost_.unrounded_cycles;
      cost_.launch_elasticity = total_.of(launch()) / cost_.unrounded_cycles;
    }
    // A transfer that nothing overlaps may be what takes longest.
    for (const ResourceCost& r : cost_.resources)
      if (!(vector_waits() && r.name == "vector") && r.cycles > resource(cost_.bound).cycles) cost_.bound = r.name;
    // Nothing works during the launch: where it takes longest, no resource is to blame.
    if (total_.of(launch()) > static_cast<double>(resource(cost_.bound).cycles)) cost_.bound = "launch";
  }

  KernelCost& cost_;
  const Chip& chip_;
  std::optional<ProductClass> kernel_class_;  // of its first product
  TimeFactors factors_;
  Movement moves_;
  ResourceTimes<Time> times_;
  std::vector<std::pair<std::string, Time>> serial_;  // by the memory that is refilled
  Time vector_, waits_for_power_, total_;
};

}  // namespace

void find_latency(KernelCost& cost, const Chip& chip) { Latency(cost, chip).run(); }

}  // namespace sator::dataflow
