#include "formats/tenet/program.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "dataflow/counts/boxes.h"
#include "dataflow/tenet/metrics.h"

namespace sator::formats {

using namespace dataflow;

namespace {

/// What the low 32 bits of a count mean as an int.
int32_t wrap(Wide count) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<unsigned __int128>(count))); }

int32_t wrapped_difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

/// A double as an int, by the instruction that compilers use on x86-64.
int32_t truncated(double v) {
  constexpr double kEnd = 2147483648.0;
  return v > -kEnd - 1 && v < kEnd ? static_cast<int32_t>(v) : INT32_MIN;
}

/// A double as an unsigned long long, likewise: negative values keep their two's complement.
uint64_t truncated_unsigned(double v) {
  constexpr double kHalf = 9223372036854775808.0;
  if (v >= 2 * kHalf || std::isnan(v) || v < -kHalf) return uint64_t{1} << 63;
  return v < kHalf ? static_cast<uint64_t>(static_cast<int64_t>(v)) : static_cast<uint64_t>(v);
}

/// Bits over the bandwidth plus the latency less one, in 64 bits; only the product of items and bits wraps before.
int32_t transfer(int32_t unique, const TenetHardware& hardware) {
  const int64_t bits = static_cast<int64_t>(static_cast<uint32_t>(unique) * uint32_t{kTenetItemBits});
  return wrap(static_cast<Wide>(bits / hardware.bandwidth_bits_per_cycle) + hardware.latency_cycles - 1);
}

/// The tensors of one role by name: the order in which energy is summed.
std::vector<size_t> by_name(const Counts& counts, Role role) {
  std::vector<size_t> order;
  for (size_t i = 0; i < counts.tensors.size(); ++i)
    if (counts.tensors[i].role == role) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return counts.tensors[a].tensor < counts.tensors[b].tensor;
  });
  return order;
}

int64_t energy_of(const TenetProgram& program, const Counts& counts, TenetBranch branch) {
  int32_t energy = program.mac_num;
  // On the other branch an int becomes an unsigned long long, sign extended.
  uint64_t wide_energy = static_cast<uint64_t>(static_cast<int64_t>(energy));
  auto add = [&](double factor, int32_t count) {
    energy = truncated(energy + factor * count);
    wide_energy = truncated_unsigned(static_cast<double>(wide_energy) + factor * count);
  };
  for (Role role : {Role::read, Role::write})
    for (size_t i : by_name(counts, role)) {
      const TenetProgramTensor& t = program.tensors[i];
      // Once for reading, once for writing, each truncated on its own.
      for (int way = 0; way < 2; ++way) add(kTenetL1Access, t.total);
      for (int way = 0; way < 2; ++way) add(kTenetL2Access, t.unique);
    }
  return branch == TenetBranch::master ? energy : static_cast<int64_t>(wide_energy);
}

}  // namespace

std::optional<TenetProgram> as_tenet_prints(const Counts& counts, const TenetHardware& hardware, TenetBranch branch) {
  TenetProgram p;
  p.mac_num = wrap(counts.macs);
  p.active_pe = wrap(counts.space);
  p.total_time = wrap(counts.time);
  p.avg_active_pe = static_cast<double>(wrap(counts.spacetime)) / p.total_time;
  const int32_t divisor = branch == TenetBranch::master ? p.active_pe : truncated(p.avg_active_pe);
  if (divisor == 0 || (divisor == -1 && p.mac_num == INT32_MIN)) return std::nullopt;
  p.delay_compute = p.mac_num / divisor;
  Wide in = 0, out = 0;
  for (const TensorCounts& t : counts.tensors) {
    (t.role == Role::read ? in : out) += t.unique;
    TenetProgramTensor own;
    own.total = wrap(t.total);
    own.unique = wrap(t.unique);
    own.reuse_factor = static_cast<float>(own.total) / static_cast<float>(own.unique);
    const int32_t fresh = wrap(static_cast<Wide>(t.assigned) - t.temporal_hits);
    own.temporal_reuse = static_cast<double>(wrapped_difference(own.total, fresh)) / p.mac_num;
    own.spatial_reuse = static_cast<double>(wrap(t.spatial_hits)) / p.mac_num;
    own.delay = transfer(own.unique, hardware);
    p.tensors.push_back(own);
  }
  p.delay_in = transfer(wrap(in), hardware);
  p.delay_out = transfer(wrap(out), hardware);
  p.delay = std::max({p.delay_in, p.delay_out, p.delay_compute});
  p.energy = energy_of(p, counts, branch);
  return p;
}

std::string tenet_program_text(const TenetProgram& p, const Counts& counts, bool all) {
  char line[160];
  std::string out;
  auto add = [&](const char* format, auto... values) {
    std::snprintf(line, sizeof line, format, values...);
    out += line;
  };
  add("Delay: In: %d; Out: %d; Com: %d\n", p.delay_in, p.delay_out, p.delay_compute);
  add("Active PE Num: %d; Average: %.2f\n", p.active_pe, p.avg_active_pe);
  if (!all) return out;
  for (Role role : {Role::read, Role::write})
    for (size_t i : by_name(counts, role)) {
      const TenetProgramTensor& t = p.tensors[i];
      out += text(role == Role::read ? "Input" : "Output", " Tensor: ", counts.tensors[i].tensor, "\n");
      add(" Reuse Factor: %.2f\n", t.reuse_factor);
      add(" temporal: %f\n spatial: %f\n", t.temporal_reuse, t.spatial_reuse);
      add(" TotalVolume: %d\n UniqueVolume: %d\n", t.total, t.unique);
    }
  return out;
}

}  // namespace sator::formats
