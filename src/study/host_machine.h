// What this machine's processor can do, measured, and written as a chip's file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sator::study {

/// A level of the cache, as the system describes it, outermost first; or the memory behind them.
///   capacity_bytes    of one instance; 0: as much as is needed
///   bytes_per_s       read by all threads together from data that fits, the best of several runs
///   noise             median time / best time of the runs
struct MemoryLevel {
  std::string name;
  int64_t capacity_bytes = 0;
  bool per_core = false;
  double bytes_per_s = 0, noise = 1;
};

/// Multiply-adds of all threads in a product of our own kernels, its operands in the caches; the best of several runs.
struct ProductRate {
  std::string words;  // "256 x 1024 x 1024, float32"
  double macs_per_s = 0, noise = 1;
};

struct HostMachine {
  std::string cpu, isa, date;  // as the processor calls itself; the instruction set of the kernels; when
  int64_t threads = 1;
  int vector_bits = 256, vector_registers = 16;
  double core_hz = 0;  // by a chain of dependent additions
  ProductRate f32, int8;
  std::vector<MemoryLevel> levels;  // outermost first: "dram", "l3", "l2", "l1"
  double fork_join_s = 0, fork_join_noise = 1;
};

/// Measures for about two seconds, one figure after the other in each of several rounds, so that what else runs on the machine disturbs all
/// of them alike.
///   threads   nothing: those that models use
/// Errors: fewer than one thread.
HostMachine measure_machine(std::optional<int64_t> threads);

/// The text of a chip's file. PEs are the sums that a kernel keeps in registers; the clock is the one at which they do the
/// multiply-adds that were measured.
///   calibration   a file beside it; empty: none
std::string chip_text(const HostMachine& machine, const std::string& name, const std::string& calibration);

}  // namespace sator::study
