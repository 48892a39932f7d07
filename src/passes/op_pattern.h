#pragma once

#include "passes/pass.h"
#include "tir/nodes.h"

namespace sator::passes {

/// How a tensor function may be fused with its neighbours. The numbers are those of the attribute `op_pattern`.
///   elementwise     each output element depends on the same element of one input at least; others may repeat
///   broadcast       as elementwise, but every input lacks dimensions or repeats
///   injective       each output element depends on one element of each input
///   reduction       reduces (sum, softmax, ...); may take element-wise producers in
///   out_fusable     a matmul or convolution: takes element-wise consumers in
///   opaque          is left alone
enum class OpPattern {
  elementwise = 0,
  broadcast = 1,
  injective = 2,
  reduction = 3,
  out_fusable = 4,
  tuple = 7,
  opaque = 8
};

/// The pattern of a function, read off its blocks' accesses (never its name).
OpPattern op_pattern_of(const tir::PrimFunc& func);

/// Sets the attribute `op_pattern` of each PrimFunc that has none.
ModuleRef annotate_tir_op_pattern(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
