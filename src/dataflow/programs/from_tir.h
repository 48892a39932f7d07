#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dataflow/programs/placement.h"
#include "dataflow/programs/work.h"
#include "tir/nodes.h"

namespace sator::dataflow {

/// What the program cannot tell of a buffer parameter.
struct ParamFacts {
  OperandKind kind = OperandKind::activation;
  int bits = 0;  // per number as stored outside: an element of a wider dtype holds several; 0: those of the dtype
  bool operator==(const ParamFacts&) const = default;
};

struct FunctionFacts {
  std::string name;                      // of the kernel, in messages and reports
  std::map<std::string, int64_t> sizes;  // values of symbolic sizes, by name
  std::vector<ParamFacts> params;        // per buffer parameter, in order; missing ones are activations
  int64_t sequences = 1;                 // that one launch does this for, each with tensors of its own but for weights
};

/// A tensor program as the cost engine sees it.
struct TirWork {
  Kernel kernel;
  /// Per product of the kernel: the mapping that loops bound to pe.x (rows), pe.y (columns) and core.* state, with what each
  /// memory of the chip holds by where its copies are made; absent where no loop is bound.
  std::vector<std::optional<Placement>> placements;
  std::vector<std::string> notes;  // what had to be assumed
};

/// Attribute of a function whose running program goes through its products in one pass (Kernel::one_pass). In such a function
/// an `if` on indices without an else masks what it leaves out (Work::only_where).
inline constexpr const char* kOnePass = "sator.one_pass";

/// Statements with their accesses, from every store of the function: loops are iterators, predicates and triangular loops
/// are guards. A store that adds a product of two loads to itself is a multiply-accumulate; roles of other statements
/// follow from what they read and write (codes of weights to floats: dequantize; integer sums to floats: rescale; floats
/// to narrow integers: quantize; several instances per element: reduce). Taking codes out of their words, and widening
/// stored floats, is no arithmetic: it happens on the way to the product, which has the stored width. Copies into scopes named as memories of `chip`
/// are no work: they say what the memory holds. Rows that a loaded index picks are taken as distinct, and noted.
/// Several sequences are an iterator outside of all loops.
/// Errors: a size without a value; a loop whose extent does not follow from the sizes; while loops; more than 2^50 of
/// anything.
TirWork work_of(const tir::PrimFunc& func, const FunctionFacts& facts, const Chip* chip = nullptr);

}  // namespace sator::dataflow
