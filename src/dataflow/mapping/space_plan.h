// The array's part of a mapping: what lies side by side on PEs.
#pragma once

#include "dataflow/mapping/core_share.h"

namespace sator::dataflow {

/// How the array's two axes are used: PE coordinates, and how many values of each iterator one stamp covers.
struct SpacePlan {
  size_t stationary = 0;  // the access that stays in the PEs
  bool swapped = false;   // of a product whose outputs stay: the first factor's axis lies along the columns
  int64_t most_rows = 0, most_columns = 0;  // PEs that the plan was allowed
  Map space;
  std::vector<int64_t> cover;  // per iterator
  std::vector<rules::ArrayNest::Side> rows, columns, at_once;
  int64_t rows_used = 1, columns_used = 1;
  std::string words;
};

/// The plans of the chip's dataflow: outputs stay (an output axis of each factor on the array, either way round), or a factor
/// stays (a reduction and an output axis of it); of two activations either. Row-stationary chips lay a filter's row along a
/// column of PEs where the product has one.
std::vector<SpacePlan> space_plans(const CoreShare& share);

/// The same plan on part of the array. Row-stationary plans with filters stay as they are.
SpacePlan on_part(const CoreShare& share, const SpacePlan& plan, int64_t rows, int64_t columns);

/// The factor that lies where weights are held: the one that stays, under a dataflow where a factor stays. Where the
/// dataflow keeps the input, that is the other one.
size_t weight_under(const CoreShare& share, const SpacePlan& plan);

}  // namespace sator::dataflow
