#include "codegen/jit.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include "base/error.h"
#include "codegen/llvm.h"
#include "codegen/machine.h"

namespace sator::codegen {

struct Jit::Engine {
  const target::CpuLevel* level;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  int count = 0;
};

namespace {

template <class T>
T require(llvm::Expected<T> value) {
  if (!value) internal_error(text("in-process compilation: ", llvm::toString(value.takeError())));
  return std::move(*value);
}

}  // namespace

Jit::Jit() = default;
Jit::~Jit() = default;

Ref<Jit> Jit::create(const target::CpuLevel& level) {
  if (!target::host_runs(level))
    fail({.what = text("this CPU does not run the level ", level.name),
          .needs = text(level.does),
          .hint = "ask for the level native"});
  const EndWhenMemoryRunsOut guard;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  Ref<Jit> jit(new Jit);
  jit->engine_ = std::make_unique<Engine>();
  jit->engine_->level = &level;
  jit->engine_->jit = require(llvm::orc::LLJITBuilder().create());
  llvm::orc::LLJIT& engine = *jit->engine_->jit;
  char prefix = engine.getDataLayout().getGlobalPrefix();
  engine.getMainJITDylib().addGenerator(
      require(llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(prefix)));
  return jit;
}

SatorKernel Jit::add(const tir::PrimFunc& func) {
  const EndWhenMemoryRunsOut guard;
  std::string symbol = text("kernel_", engine_->count++);
  std::string object = compile_object(func, symbol, *engine_->level);
  if (llvm::Error error = engine_->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object, symbol)))
    internal_error(text("in-process compilation: ", llvm::toString(std::move(error))));
  return require(engine_->jit->lookup(symbol)).toPtr<SatorKernel>();
}

}  // namespace sator::codegen
