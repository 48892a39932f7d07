// A matmul as a tensor program, for mappings to be written on.
#pragma once

#include "dataflow/programs/from_tir.h"
#include "dataflow/programs/matmul.h"

namespace sator::dataflow {

/// The product of matmul_kernel as a TVMScript function `matmul` with one block `matmul`, for readers and for schedules:
/// X [i, k], W [j, k] as the array takes it in, Y [i, j] in floats; of integers x_codes, codes, sums of 32 bits. Narrow codes stand in
/// int8, codes less their zero points in int16. A product of integers per group has the loops i, j, g, k.
/// Errors: those of matmul_kernel.
std::string matmul_program(const Matmul& matmul);

/// What that function cannot tell of its parameters: stored widths, the weight.
FunctionFacts facts_of(const Matmul& matmul);

}  // namespace sator::dataflow
