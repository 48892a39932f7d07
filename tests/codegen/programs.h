// Small programs for tests.
#pragma once

#include <vector>

#include "tir/nodes.h"

namespace sator::codegen {

/// A function over these buffers, which do not overlap.
inline tir::PrimFuncRef prim_func(const std::vector<BufferRef>& buffers, tir::Stmt body,
                                  std::vector<VarRef> scalars = {}) {
  std::vector<VarRef> params;
  std::vector<std::pair<VarRef, BufferRef>> map;
  for (const BufferRef& b : buffers) {
    params.push_back(make_var(b->name + "_handle", DType::Handle()));
    map.emplace_back(params.back(), b);
  }
  params.insert(params.end(), scalars.begin(), scalars.end());
  return make<tir::PrimFunc>(
      std::move(params), std::move(map), DType::Void(), Attrs{{"tir.noalias", bool_imm(true)}}, std::move(body));
}

}  // namespace sator::codegen
