// Speeds on this machine, measured so that what else it does falls on all schemes alike.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "study/result.h"

namespace sator::study {

/// Measures the speeds of a prompt and of generated tokens once, in tokens per second.
using SpeedProbe = std::function<std::array<double, 2>()>;

inline constexpr int64_t kRounds = 5;  ///< in turns, behind each figure
inline constexpr int kAgain = 2;       ///< times that an unsteady figure is measured anew

/// Runs the probes in turns, A B C A B C ..., kRounds times. Those with an unsteady figure run once more so, in turns with the
/// first probe, at most kAgain times; of a figure's measurements the one counts whose rounds differ least.
///   →   per probe, both figures
std::vector<std::array<HostSpeed, 2>> measure_in_turns(std::span<const SpeedProbe> probes);

}  // namespace sator::study
