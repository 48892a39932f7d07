// Estimates for the chip that is this very machine, beside what was measured on it.
#pragma once

#include "study/result.h"

namespace sator::study {

/// One phase of a scheme: tokens per second, and how its kernels compare.
struct HostPhase {
  std::string scheme, phase;
  double estimated_tokens_per_s = 0, low_tokens_per_s = 0, high_tokens_per_s = 0;
  std::optional<double> measured_tokens_per_s;  // of the whole step, with what happens between kernels
  size_t kernels = 0, within = 0;               // that took a microsecond or more; of these within their interval
  double mean_error = 0;                        // of these, |estimated / measured - 1|
  double estimated_s = 0, measured_s = 0;       // of these, all calls
};

/// Of every scheme and phase; nothing if the chip is not this machine.
std::vector<HostPhase> host_phases(const Study& study, size_t chip);

/// estimated / measured - 1, "+12 %"; "-" where nothing was measured.
std::string error_words(double estimated, std::optional<double> measured);

/// host_phases as a table for the terminal; empty if there are none.
std::string host_table(const Study& study, size_t chip);

/// The same for the page, with a table of the kernels of each scheme.
std::string host_section(const Study& study, size_t chip);

}  // namespace sator::study
