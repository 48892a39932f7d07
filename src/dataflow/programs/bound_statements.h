#pragma once

#include <string>
#include <vector>

#include "dataflow/counts/relation.h"
#include "dataflow/programs/from_tir.h"

namespace sator::dataflow {

/// Axes of a chip along which bound loops run side by side, outermost first: those of GPUs and of arrays of PEs.
inline constexpr const char* kSpaceAxes[] = {"blockIdx.z",
                                             "blockIdx.y",
                                             "blockIdx.x",
                                             "vthread.z",
                                             "vthread.y",
                                             "vthread.x",
                                             "vthread",
                                             "threadIdx.z",
                                             "threadIdx.y",
                                             "threadIdx.x",
                                             "core.z",
                                             "core.y",
                                             "core.x",
                                             "pe.x",
                                             "pe.y"};

/// A statement of a scheduled function: bound loops are its space stamp, in the order of kSpaceAxes; the other loops, outermost
/// first, are its time stamp, without unrolled ones, which run at once. The array has the loops' extents and no wires.
struct BoundStatement {
  Statement statement;
  Mapping mapping;
  Array array;
  std::vector<std::string> axes;  // of the space stamp

  Problem problem() const { return {statement, mapping, array}; }
};

/// The statements of a function that loops bound to axes surround, in the order of the program; of a GPU's schedule the copies into
/// shared memory too.
/// Errors: those of work_of; a loop bound to an unknown axis, two loops around a statement bound to one.
std::vector<BoundStatement> bound_statements(const tir::PrimFunc& func, const FunctionFacts& facts);

}  // namespace sator::dataflow
