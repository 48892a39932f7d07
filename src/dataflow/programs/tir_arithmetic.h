#pragma once

#include <map>

#include "dataflow/programs/tir_index.h"
#include "tir/nodes.h"

namespace sator::dataflow {

/// The arithmetic of one store.
struct Arithmetic {
  bool multiply_accumulate = false;  // stored = stored + load * load, or less it, casts aside
  double operations = 0;             // what else is computed on data, index arithmetic apart
  Expr first, second;                // the factors of a multiply-accumulate, without casts around them
};

/// Values that lets name, as nodes of the expressions that they stand in. Each is computed once, where it is bound, however often it is
/// used.
struct NamedValues {
  std::map<Expr, double> times;  ///< how often it is still to be counted per instance; 0: it has been
  double times_around = 1;       ///< of the one that is being counted
};

/// values: what the variables around the store stand for; indices that follow from them are no data.
Arithmetic arithmetic_of(const tir::BufferStore& store, const VarValues& values, NamedValues& named);

/// Operations on data that the expression computes.
double operations_of(const Expr& e, const VarValues& values, NamedValues& named);

/// Whether the store leaves the element as it was: it stores it again, or adds zero to it or takes zero off it.
bool changes_nothing(const tir::BufferStore& store);

}  // namespace sator::dataflow
