#pragma once

#include <string>

#include "dataflow/counts/counts.h"
#include "dataflow/counts/enumerate.h"

namespace sator::dataflow {

/// C[i,j] += A[i,k] * B[k,j] with the stamps of the dataflow catalogue.
enum class Flow { os, ws, is };

inline Statement gemm(int64_t i, int64_t j, int64_t k) {
  Statement s;
  s.domain = Domain::box({"i", "j", "k"}, {i, j, k});
  s.accesses = {{"A", Role::read, {{variable(0), variable(2)}}},
                {"B", Role::read, {{variable(2), variable(1)}}},
                {"C", Role::write, {{variable(0), variable(1)}}}};
  return s;
}

inline Array systolic(int64_t rows, int64_t columns, int64_t direction = -1) {
  return {Domain::box({"x", "y"}, {rows, columns}), {link::shift({direction, 0}), link::shift({0, direction})}};
}

/// Rows and columns hold (i, j), (k, j) or (k, i); skewed: an operand takes one stamp per PE it passes.
inline Mapping stationary(Flow flow, int64_t rows, int64_t columns, bool skewed) {
  const int row = flow == Flow::os ? 0 : 2, column = flow == Flow::is ? 0 : 1;
  const int streamed = 3 - row - column;
  QuasiAffine r = variable(row), c = variable(column), inner = variable(streamed);
  if (skewed) inner = mod(r, rows) + mod(c, columns) + inner;
  std::vector<QuasiAffine> time = flow == Flow::os ? Map{floor_div(r, rows), floor_div(c, columns), inner}
                                                   : Map{floor_div(c, columns), floor_div(r, rows), inner};
  return {{mod(r, rows), mod(c, columns)}, time};
}

inline const TensorCounts& tensor(const Counts& counts, const std::string& name) {
  for (const TensorCounts& t : counts.tensors)
    if (t.tensor == name) return t;
  throw std::out_of_range(name);
}

inline Counts exact(const Problem& problem) {
  auto counted = count_by_boxes(problem);
  if (auto* reason = std::get_if<Reason>(&counted)) throw Error(*reason);
  return std::get<Counts>(counted);
}

}  // namespace sator::dataflow
