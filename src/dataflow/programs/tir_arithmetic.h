#pragma once

#include "dataflow/programs/tir_index.h"
#include "tir/nodes.h"

namespace sator::dataflow {

/// The arithmetic of one store.
struct Arithmetic {
  bool multiply_accumulate = false;  // stored = stored + load * load, or less it, casts aside
  double operations = 0;             // what else is computed on data, index arithmetic apart
  Expr first, second;                // the factors of a multiply-accumulate, without casts around them
};

/// values: what the variables around the store stand for; indices that follow from them are no data.
Arithmetic arithmetic_of(const tir::BufferStore& store, const VarValues& values);

/// Operations on data that the expression computes.
double operations_of(const Expr& e, const VarValues& values);

/// Whether the store leaves the element as it was: it stores it again, or adds zero to it or takes zero off it.
bool changes_nothing(const tir::BufferStore& store);

}  // namespace sator::dataflow
