#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/object.h"
#include "runtime/abi.h"
#include "target/cpu.h"
#include "tir/nodes.h"

namespace sator::codegen {

/// Machine code in this process, for tests, tuning and constant folding: kernels compiled for one level of this CPU.
/// The code lives as long as the object.
class Jit final : public Object {
 public:
  /// Errors: the CPU does not run the level.
  static Ref<Jit> create(const target::CpuLevel& level);
  ~Jit() override;
  /// Compiles a lowered function. Errors: as compile_object.
  SatorKernel add(const tir::PrimFunc& func);

 private:
  Jit();
  struct Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace sator::codegen
