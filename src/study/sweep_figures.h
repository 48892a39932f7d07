// The sweep of batches and contexts on the page.
#pragma once

#include "study/result.h"

namespace sator::study {

/// Per chip: latency and tokens/s against context, a line per scheme; a row of plots per batch, those after the first behind
/// a click. Where there is one context and several batches, against the batch. Empty without a sweep of two points or more.
std::string sweep_section(const Study& study);

}  // namespace sator::study
