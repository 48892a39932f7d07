#pragma once

#include <string>

#include "target/cpu.h"
#include "tir/nodes.h"

namespace llvm {
class Module;
}

namespace sator::codegen {

/// Adds to the module the C function `symbol` (SatorKernel of abi.h) that runs a lowered function.
void emit_kernel(llvm::Module& module, const tir::PrimFunc& func, const std::string& symbol,
                 const target::CpuLevel& level);

}  // namespace sator::codegen
