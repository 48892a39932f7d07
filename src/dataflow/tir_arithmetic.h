#pragma once

#include "dataflow/tir_index.h"
#include "tir/nodes.h"

namespace sator::dataflow {

/// The arithmetic of one store.
struct Arithmetic {
  bool multiply_accumulate = false;  // stored = stored + load * load, casts aside
  double operations = 0;             // what else is computed on data, index arithmetic apart
  Expr first, second;                // the factors of a multiply-accumulate, without casts around them
};

/// values: what the variables around the store stand for; indices that follow from them are no data.
Arithmetic arithmetic_of(const tir::BufferStore& store, const VarValues& values);

}  // namespace sator::dataflow
