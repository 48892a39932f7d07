#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataflow/counts/counts.h"
#include "dataflow/tenet/tenet_text.h"

namespace sator::formats {

/// The two branches of TENET's program that people run. They differ in the compute delay and in the energy's type.
enum class TenetBranch { master, micro_tutorial };

/// What the program returns for one tensor. Doubles can be infinite, or no number, where counts wrap to 0.
struct TenetProgramTensor {
  int32_t total = 0, unique = 0;
  double reuse_factor = 0, temporal_reuse = 0, spatial_reuse = 0;
  int32_t delay = 0;
};

/// What TENET's program returns: 32-bit counts read off printed text, integer divisions, a reuse factor rounded to float,
/// energy truncated after each addition.
struct TenetProgram {
  int32_t delay_in = 0, delay_out = 0, delay_compute = 0, delay = 0;
  int32_t active_pe = 0, mac_num = 0, total_time = 0;
  double avg_active_pe = 0;
  int64_t energy = 0;                       // master: an int; micro_tutorial: an unsigned long long
  std::vector<TenetProgramTensor> tensors;  // in the order of counts.tensors
};

/// Nothing where the program dies of a division by zero.
/// Source: what the public functions of TENET (master 8a3b3bc, micro_tutorial 294c543) compute on x86-64, where a double
/// that does not fit an int becomes the smallest int.
std::optional<TenetProgram> as_tenet_prints(const dataflow::Counts& counts, const dataflow::TenetHardware& hardware,
                                            TenetBranch branch);

/// The lines that its command prints. `all`: with those of each tensor (micro_tutorial's --all).
std::string tenet_program_text(const TenetProgram& program, const dataflow::Counts& counts, bool all);

}  // namespace sator::formats
