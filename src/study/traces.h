#pragma once

#include <utility>

#include "study/result.h"

namespace sator::study {

/// Each phase of each scheme on each chip as a trace of Chakra (dataflow/cost/chakra.h), by file name within the study's folder:
/// chakra/CHIP/SCHEME.PHASE.json. One chip's trace, a node per launch; with several chips its sums are collectives.
std::vector<std::pair<std::string, std::string>> trace_files(const Study& study);

}  // namespace sator::study
