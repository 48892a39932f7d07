#pragma once

#include "dataflow/counts/relation.h"
#include "formats/scalesim/compute.h"

namespace sator::formats {

/// A layer on SCALE-Sim's array as relations: C[m,n] += A[m,k] B[k,n] with A the matrix of windows (im2col) and B the
/// filters; space is the array's row and column, time the fold over columns, the fold over rows and the skewed step, and
/// wires pass operands to the right and downwards. Idle cycles (the preload, and rows and columns that a fold leaves
/// unused) have no stamp.
dataflow::Problem scalesim_problem(const ScalesimConfig& config, const ScalesimLayer& layer);

}  // namespace sator::formats
