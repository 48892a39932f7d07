#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "target/chip.h"

namespace sator::formats {

/// How SCALE-Sim models the memory behind the array; a word is one byte.
struct ScalesimMemory {
  /// InterfaceBandwidth. CALC (false): reads never stall, the bandwidth that this takes is reported. USER (true): the
  /// interface moves no more than the words given, and the array waits.
  bool user_bandwidth = false;
  int64_t ifmap_kb = 0, filter_kb = 0, ofmap_kb = 0;  // sizes of the three SRAMs
  int64_t ifmap_words_per_cycle = 0, filter_words_per_cycle = 0, ofmap_words_per_cycle = 0;
};

/// A SCALE-Sim configuration.
struct ScalesimConfig {
  std::string run_name;
  int64_t rows = 0, cols = 0;                // of the array
  Stationary dataflow = Stationary::output;  // output, weight (filter) or input (ifmap)
  ScalesimMemory memory;
};

/// Reads a .cfg as SCALE-Sim v3 does. Files of v2, which have no [layout] (then Bandwidth holds for all three
/// interfaces), no [sparsity] and no UseRamulatorTrace, are read too.
/// Errors: each names line and column; what the file switches on and is not modelled (Ramulator traces under USER,
/// custom layouts, sparsity) is refused by its line.
ScalesimConfig parse_scalesim_config(std::string_view text, std::string_view file = "config");

}  // namespace sator::formats
