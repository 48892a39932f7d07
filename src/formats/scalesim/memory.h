#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "formats/scalesim/compute.h"

namespace sator::formats {

/// What SCALE-Sim reports of one operand's way to DRAM.
struct ScalesimDram {
  int64_t words = 0;                        // read or written
  int64_t start_cycle = 0, stop_cycle = 0;  // of the first and the last transfer; before cycle 0 for the first fill
  double words_per_cycle() const {
    return static_cast<double>(words) / static_cast<double>(stop_cycle - start_cycle + 1);
  }
};

/// A layer run with SCALE-Sim's double-buffered SRAMs behind the array.
struct ScalesimMemoryRun {
  int64_t total_cycles = 0;  // index of the last cycle in which the array works, stalls included
  int64_t stall_cycles = 0;
  int64_t overall_cycles = 0;  // from the first DRAM read to the last DRAM write
  double overall_utilization = 0;
  ScalesimDram ifmap, filter, ofmap;
};

/// Follows every request of the array through the three SRAMs, cycle by cycle where something can miss and in closed
/// form where all is at hand.
///   CALC: an operand's SRAM is a window over the last 50 to 100 "sets" (1/100 of it each) of words that were missing;
///   every 50 sets the window moves and half of the SRAM is fetched anew, at the bandwidth that this took.
///   USER: words come in the order of the prefetch matrix (skewed operands along its anti-diagonals), half of the SRAM at
///   a time; a miss waits for the next half, and SCALE-Sim counts a wait twice and takes back what came early.
///   Outputs: once half of the SRAM is full, half drains; lines that were cut short count in full.
/// The answer is a Reason where SCALE-Sim itself stops (an SRAM of less than a set, two windows in one cycle) and where
/// the layer has too many requests to follow.
/// Cost: under CALC a product takes microseconds a fold; else some nanoseconds a request that can miss.
std::variant<ScalesimMemoryRun, Reason> scalesim_memory(const ScalesimConfig& config, const ScalesimLayer& layer);

}  // namespace sator::formats
