// Bring your own code: parts of a graph that a backend takes whole, found by pattern.
#pragma once

#include "passes/dataflow_pattern.h"
#include "passes/pass.h"

namespace sator::passes {

/// A row of the table of patterns.
///   name   "BACKEND.WHAT": what becomes the attribute Composite; BACKEND becomes Codegen
struct FusionPattern {
  std::string name;
  std::string does;
  DFPattern pattern;
};

/// The patterns of backend `chip`, a described chip that multiplies matrices: largest first. Names of the parts:
/// dequantize (the weight is made from codes), matmul, rescale (by a scale for all, per column, or of integer sums), bias.
const std::vector<FusionPattern>& fusion_patterns();

/// Each match of a pattern becomes a private function with the attributes Composite, Codegen and Primitive, called where the
/// match's last binding stood. Patterns are tried in the order of the table, and a binding belongs to one match. A match is
/// left alone where something outside of it uses a value inside, for the group would hide it.
ModuleRef fuse_ops_by_pattern(const ModuleRef& module, const PassContext& ctx);

/// Lowers the functions with the attribute Codegen to one tensor function each, which keeps Codegen and Composite and is
/// fused with nothing else: the backend's kernel. A described chip needs no machine code; on the host its meaning runs.
ModuleRef run_codegen(const ModuleRef& module, const PassContext& ctx);

}  // namespace sator::passes
