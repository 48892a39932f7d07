#pragma once

#include "passes/pass.h"
#include "relax/ops/op.h"

namespace sator::passes {

/// What a caller says of single ops.
struct Legalizations {
  std::map<std::string, relax::LegalizeFn> by_op = {};  ///< in front of the op's own row, by the row's name: "nn.relu"
  std::function<void(const std::string& op)> missing = {};  ///< told of each op that neither says how to replace
};

/// Ops become calls of tensor functions: the op's formula as a private function of the module, called by R.call_tir. Equal
/// functions are shared; a second, different one of the same name is matmul1. An op whose shapes are not known stays.
ModuleRef legalize_ops(const ModuleRef& module, const PassContext& ctx, const Legalizations& given = {});

}  // namespace sator::passes
