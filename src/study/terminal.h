// The study's table for a terminal.
#pragma once

#include "study/result.h"

namespace sator::study {

/// What was run, one line per scheme (quality, size, speed here), one table per chip (latency, MACs, MAC units used,
/// bandwidth of prefill and decode, each with the ratio to the baseline), who wins and why, what was costed. Plain text
/// without colours; no line is wider than `width` columns.
std::string terminal_table(const Study& study, size_t width = 120);

}  // namespace sator::study
