#pragma once

#include <string_view>

#include "codegen/emit/emit.h"

namespace sator::codegen {

/// What a builtin becomes: one row per op of ir/builtins.cc that machine code can have.
struct EmitBuiltin {
  std::string_view op;
  llvm::Value* (*emit)(Emit& e, const Call& n);
};

/// lookup.cc: tir.lookup16.
llvm::Value* emit_lookup16(Emit& e, const Call& n);
/// dot.cc: tir.dot4 and tir.dp4a; tir.dot2.
llvm::Value* emit_dot4(Emit& e, const Call& n);
llvm::Value* emit_dot2(Emit& e, const Call& n);
// tiles.cc. Errors: a level without matrix tiles; dtypes, sizes or strides that it has no instruction for.
llvm::Value* emit_tile_product(Emit& e, const Call& n);
llvm::Value* emit_tile_dot(Emit& e, const Call& n);
llvm::Value* emit_tile_store(Emit& e, const Call& n);

}  // namespace sator::codegen
