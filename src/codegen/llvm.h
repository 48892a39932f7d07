// Lowered functions to machine code through LLVM. No LLVM header is needed to use this.
#pragma once

#include <string>

#include "target/cpu.h"
#include "tir/nodes.h"

namespace sator::codegen {

/// The LLVM that makes the code: version and build. Another one may make other code of the same function.
const std::string& llvm_id();

/// What LLVM made of a kernel on the way, for eyes.
struct Listing {
  std::string ir;         ///< before optimisation
  std::string optimized;  ///< after
  std::string assembly;
};

/// The ELF object of one kernel: the function `symbol` with the C signature SatorKernel of abi.h.
///   func   lowered (the stage `flat` of passes/lower)
///   →      bytes of a relocatable object, equal for equal input
/// Errors: a construct that machine code for a CPU cannot have. Several threads may call this at once.
std::string compile_object(const tir::PrimFunc& func, const std::string& symbol, const target::CpuLevel& level);

/// The same kernel as text. Cost: compiles it.
Listing compile_listing(const tir::PrimFunc& func, const std::string& symbol, const target::CpuLevel& level);

}  // namespace sator::codegen
