#pragma once

#include "study/study.h"

namespace sator::study {

/// The workers that compile, run and cost models. What they count for one scheme they remember for the next.
Workers model_workers();

}  // namespace sator::study
