#pragma once

#include "dataflow/mapping/nest_time.h"

namespace sator::dataflow {

/// What the loops around the stationary tile cut the work into. Loops outside of the innermost one that moves what stays in
/// the PEs number the folds: between them the other units hand over parts.
struct NestTime::Steps {
  size_t outer = 0;
  double folds = 1;
  double most_folds = 1;    // of the nests that a bound is asked for
  double until_output = 1;  // the first part of the output is complete: share of the folds
};

}  // namespace sator::dataflow
