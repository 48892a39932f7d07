// The latency of a kernel whose array, vector unit and memories work at the same time: the one place of KernelCost's formula.
// The search for mappings asks it for cycles (T = double), a report for cycles and whose they are (T keeps both apart).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "dataflow/mapping/sharing.h"
#include "target/chip.h"

namespace sator::dataflow {

inline constexpr size_t kMostMemories = 16;

/// Resources by number, as KernelCost lists them: the array, the vector unit, the memories with the outermost first.
inline constexpr size_t kArray = 0, kVector = 1, kMemories = 2;

inline double cycles(double time) { return time; }
template <class T>
T longer(const T& a, const T& b) {
  return cycles(b) > cycles(a) ? b : a;
}
template <class T>
T shorter(const T& a, const T& b) {
  return cycles(b) < cycles(a) ? b : a;
}

/// Of a resource's work, what cannot begin before its share of the bound's time is over: the first output, say.
template <class T>
class LateWork {
 public:
  void clear() { work_.clear(); }
  void add(double waits, const T& time) {
    for (auto& [known, sum] : work_)
      if (known == waits) {
        sum += time;
        return;
      }
    work_.emplace_back(waits, time);
  }
  void scale(double factor) {
    for (auto& [waits, time] : work_) time = time * factor;
  }
  /// How much is left when the bound's time is over.
  T left(const T& bound) const {
    T left{};
    for (const auto& [waits, own] : work_) {
      T waiting{};
      for (const auto& [other_waits, time] : work_)
        if (other_waits >= waits) waiting += time;
      left = longer(left, waiting - bound * (1 - waits));
    }
    return left;
  }

 private:
  std::vector<std::pair<double, T>> work_;
};

/// The time that each resource works for a kernel, and how that time can be cut.
template <class T>
struct ResourceTimes {
  struct MemoryTimes {
    T whole{};
    T all{};             // of that, beside the others: without what nothing overlaps
    T first{}, last{};   // the first part of each tensor to hand in, the last one to take out
    LateWork<T> late{};  // what it takes out
  };
  T array{}, fold{}, until_output{};  // in all; one fold; the folds until the first part of the output is complete
  T vector{}, vector_part{};          // in all, beside the array; on one part
  T vector_for_array{};               // what the array waits for
  LateWork<T> vector_late{};
  size_t memory_count = 0;
  std::array<MemoryTimes, kMostMemories> memories{};

  const T& of(size_t resource) const {
    return resource == kArray ? array : resource == kVector ? vector : memories[resource - kMemories].all;
  }
};

/// What the other resources add to the time of `bound`: the part of each that it cannot overlap, and of one of them, the
/// one with most, what is left over of work that had to wait.
///   add   called with (resource, time), up to twice for a resource
template <class T, class Add>
void add_exposed(const ResourceTimes<T>& times, size_t bound, Add&& add) {
  const T& time = times.of(bound);
  const bool memory_inside = bound > kMemories;  // works with the array, stamp by stamp
  if (bound == kVector)
    add(kArray, shorter(longer(times.fold, times.until_output - times.vector_for_array), times.array));
  else if (bound == kMemories)
    add(kArray, shorter(times.fold, times.array));
  size_t latest = bound;
  T more{};
  auto beside = [&](size_t resource, const T& all, const T& end, const T& left) {
    const T exposed = shorter(end, all), rest = shorter(left, all) - exposed;
    add(resource, exposed);
    if (cycles(rest) > cycles(more)) more = rest, latest = resource;
  };
  if (bound != kVector && !(memory_inside && cycles(times.array) == 0))
    beside(kVector, times.vector, times.vector_part, times.vector_late.left(time));
  for (size_t m = 0; m < times.memory_count; ++m) {
    const auto& memory = times.memories[m];
    if (bound != kMemories + m && cycles(memory.all) > 0)
      beside(kMemories + m, memory.all, memory.first + memory.last, memory.first + memory.late.left(time));
  }
  if (latest != bound) add(latest, more);
}

/// The latency if this resource binds, in cycles: a lower bound of it for each.
template <class T>
double cycles_if_bound(const ResourceTimes<T>& times, size_t resource) {
  double sum = cycles(times.of(resource));
  add_exposed(times, resource, [&](size_t, const T& time) { sum += cycles(time); });
  return sum;
}

/// The latency without what nothing overlaps: the longest of these bounds.
inline double longest_if_bound(const ResourceTimes<double>& times) {
  double longest = 0;
  for (size_t r = 0; r < kMemories + times.memory_count; ++r)
    if (r == kArray || times.of(r) > 0) longest = std::max(longest, cycles_if_bound(times, r));
  return longest;
}

/// What a calibration of the chip says of the times by its description.
struct TimeFactors {
  double array = 1, vector = 1, outermost = 1, inside = 1;
  double of_memory(size_t m) const { return m == 0 ? outermost : inside; }
};

/// Of a kernel whose first product is of this class, none where it has no product; without `array`'s part by class.
TimeFactors time_factors(const Chip& chip, std::optional<ProductClass> kernel_class);
/// The least time of so many multiply-accumulates, in cycles of the highest clock: they come at most as all PEs at work make
/// them at the clock that the board's power, or the precision, sustains. Arrays that wait, or cores without work, leave power
/// to the others.
///   own_clock_hz     Precision::sustained_clock_hz
///   cycles_per_mac   of one PE
///   →                0 where neither is stated
double sustained_cycles(const Chip& chip, std::optional<double> own_clock_hz, double macs, double cycles_per_mac);
/// What a class of products adds to TimeFactors::array.
double array_factor(const Chip& chip, ProductClass product_class);

/// Bits that a kernel moves. Of a memory that each core has, those of one core.
struct Movement {
  size_t memory_count = 0;
  std::array<double, kMostMemories> read{}, write{};
  std::array<double, kMostMemories> first{},
      last{};                                   // of the first and the last part, to and from double-buffered memories
  std::array<double, kMostMemories> sharers{};  // instances of the memory that are at work
  std::array<std::array<double, kMostMemories>, kMostMemories> exchanged{};  // [outer][inner], of one instance of outer

  void start(size_t memories) {
    memory_count = memories;
    for (size_t m = 0; m < memories; ++m) {
      read[m] = write[m] = first[m] = last[m] = 0;
      sharers[m] = 1;
      for (size_t n = 0; n < memories; ++n) exchanged[m][n] = 0;
    }
  }
  /// A memory takes in bits from one further out and hands some back, in so many parts.
  void exchange(const Chip& chip, size_t outer, size_t inner, double in, double out, double parts) {
    exchanged[outer][inner] += in + out;
    if (!chip.memories[inner].double_buffered) return;
    first[outer] += in / parts;
    last[outer] += out / parts;
  }
};

/// How many times as long a memory that cores share works because the cores at work cannot take its bandwidth: what each
/// exchanges with it passes the core's port.
inline double slowed_by_ports(const Movement& moves, const Chip& chip, size_t m) {
  if (!chip.core_bytes_per_cycle || chip.memories[m].per_core) return 1;
  double bits = 0;  // of one core
  for (size_t inner = m + 1; inner < moves.memory_count; ++inner)
    if (chip.memories[inner].per_core) bits += moves.exchanged[m][inner] / moves.sharers[inner];
  const double own = transfer_cycles(chip.memories[m], moves.read[m], moves.write[m]);
  return own > 0 ? std::max(1.0, bits / 8 / *chip.core_bytes_per_cycle / own) : 1;
}

/// Sets the memories' times, and takes out of them what nothing overlaps: a memory that is not double-buffered is filled and
/// emptied while nothing works on what it holds. Both ends of that transfer give time for it, in proportion to the bits.
///   time_of   (resource, cycles) to T
///   serial    called with (memory that is filled, time)
template <class T, class TimeOf, class Serial>
void set_memory_times(ResourceTimes<T>& times, const Movement& moves, const Chip& chip, const TimeFactors& factors,
                      TimeOf&& time_of, Serial&& serial) {
  std::array<double, kMostMemories> slower{};
  for (size_t m = 0; m < moves.memory_count; ++m) slower[m] = slowed_by_ports(moves, chip, m);
  auto time = [&](size_t m, double read, double write) {
    return time_of(kMemories + m, transfer_cycles(chip.memories[m], read, write) * slower[m] * factors.of_memory(m));
  };
  times.memory_count = moves.memory_count;
  for (size_t m = 0; m < moves.memory_count; ++m) {
    times.memories[m].whole = times.memories[m].all = time(m, moves.read[m], moves.write[m]);
    times.memories[m].first = time(m, moves.first[m], 0);
    times.memories[m].last = time(m, 0, moves.last[m]);
  }
  auto share = [&](size_t m, double bits) {
    return time(m, moves.read[m], moves.write[m]) * std::min(1.0, bits / (moves.read[m] + moves.write[m]));
  };
  for (size_t inner = 1; inner < moves.memory_count; ++inner) {
    if (chip.memories[inner].double_buffered) continue;
    double refilled = 0;
    T longest{};
    for (size_t outer = 0; outer < moves.memory_count; ++outer) {
      const double bits = moves.exchanged[outer][inner];
      if (bits == 0) continue;
      refilled += bits / (chip.memories[outer].per_core ? 1 : moves.sharers[inner]);
      const T there = share(outer, bits);
      times.memories[outer].all = times.memories[outer].all - there;
      longest = longer(longest, there);
    }
    if (refilled == 0) continue;
    const T here = share(inner, refilled);
    times.memories[inner].all = times.memories[inner].all - here;
    serial(inner, longer(longest, here));
  }
  for (size_t m = 0; m < moves.memory_count; ++m) times.memories[m].all = longer(T{}, times.memories[m].all);
}

/// A lower bound of the latency, where times and movements are lower bounds of those of a mapping: what the formula above
/// gives does not shrink when they grow. With T the time of the resource that binds, the latency is
///   serial + T + sum over the others of E + max over them of (L - E)
/// (1) L falls by at most what T grows, and L - E by at most what E grows, of which only one is added: so the sum grows with
/// each T, E and L. E and L grow with times and bits, and with the share that outputs wait. The array's E where the vector
/// unit binds falls by what the vector unit works for the array, which T has too.
/// (2) A port makes a memory work for max(own time, bits / port), which grows with both; the first and last parts are
/// taken here without it.
/// (3) Bits that fill or empty a memory while nothing works leave T of both its ends and come back as serial, for the longer
/// of the two. So there are two bounds: T without these bits and their least time as serial; or, for each memory in turn, all
/// of its bits in T, for what they take in serial is at least what they leave in T. Its L is then smaller, as for a longer T.
///   serial   what nothing overlaps beside refills
inline double least_latency(ResourceTimes<double>& times, const Movement& moves, const Chip& chip,
                            const TimeFactors& factors, double serial) {
  times.memory_count = moves.memory_count;
  std::array<double, kMostMemories> paced{}, refilling{};  // bits of the latter kind
  double refills = 0;
  auto both_ways = [&](size_t m, double bits) {  // the quickest that so many bits can move
    const Memory& memory = chip.memories[m];
    const double bytes = memory.shared_port ? std::max(memory.read_bytes_per_cycle, memory.write_bytes_per_cycle)
                                            : memory.read_bytes_per_cycle + memory.write_bytes_per_cycle;
    return std::max(0.0, bits) / 8 / bytes * factors.of_memory(m);
  };
  for (size_t inner = 1; inner < moves.memory_count; ++inner) {
    if (chip.memories[inner].double_buffered) continue;
    double refilled = 0, longest = 0;
    for (size_t outer = 0; outer < moves.memory_count; ++outer) {
      const double bits = moves.exchanged[outer][inner];
      if (bits == 0) continue;
      refilled += bits / (chip.memories[outer].per_core ? 1 : moves.sharers[inner]);
      refilling[outer] += bits;
      longest = std::max(longest, both_ways(outer, std::min(bits, moves.read[outer] + moves.write[outer])));
    }
    refilling[inner] += refilled;
    refills += std::max(longest, both_ways(inner, std::min(refilled, moves.read[inner] + moves.write[inner])));
  }
  for (size_t m = 0; m < moves.memory_count; ++m) {
    const Memory& memory = chip.memories[m];
    paced[m] =
        transfer_cycles(memory, moves.read[m], moves.write[m]) * slowed_by_ports(moves, chip, m) * factors.of_memory(m);
    times.memories[m].whole = paced[m];
    times.memories[m].all = refilling[m] == 0 ? paced[m] : both_ways(m, moves.read[m] + moves.write[m] - refilling[m]);
    times.memories[m].first = transfer_cycles(memory, moves.first[m], 0) * factors.of_memory(m);
    times.memories[m].last = transfer_cycles(memory, 0, moves.last[m]) * factors.of_memory(m);
  }
  double longest = refills + longest_if_bound(times);
  for (size_t m = 0; m < moves.memory_count; ++m) {
    if (refilling[m] == 0) continue;
    const double without = std::exchange(times.memories[m].all, paced[m]);
    longest = std::max(longest, cycles_if_bound(times, kMemories + m));
    times.memories[m].all = without;
  }
  return serial + longest;
}

}  // namespace sator::dataflow
