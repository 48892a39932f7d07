// LLVM's view of a level (internal to codegen/: includes LLVM).
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "target/cpu.h"

namespace sator::codegen {

/// While this lives, memory that runs out in this thread ends the process in the words of its terminate handler. LLVM is built
/// without exceptions: one that passes through its frames leaves half changed what our destructors then walk.
class EndWhenMemoryRunsOut {
 public:
  EndWhenMemoryRunsOut();
  ~EndWhenMemoryRunsOut();
  EndWhenMemoryRunsOut(const EndWhenMemoryRunsOut&) = delete;
  EndWhenMemoryRunsOut& operator=(const EndWhenMemoryRunsOut&) = delete;
};

std::unique_ptr<llvm::TargetMachine> target_machine(const target::CpuLevel& level);
/// Machine code of the module as an object file or as assembly.
std::string write_module(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type);

}  // namespace sator::codegen
