#include "codegen/llvm.h"

#include <llvm-c/Core.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "base/build_id.h"
#include "codegen/emit/kernel.h"
#include "codegen/machine.h"

namespace sator::codegen {

namespace {

thread_local int calls_of_llvm = 0;

/// Given back when memory runs out: saying so and removing what is temporary takes a little.
std::unique_ptr<char[]>& reserve() {
  static auto& bytes = *new std::unique_ptr<char[]>(new char[size_t{1} << 20]);
  return bytes;
}

/// The terminate handler finds std::bad_alloc as the present exception.
[[noreturn]] void end_without_memory() {
  calls_of_llvm = 0;
  reserve().reset();
  try {
    throw std::bad_alloc();
  } catch (...) {
    std::terminate();
  }
}

void out_of_memory() {
  if (calls_of_llvm > 0) end_without_memory();
  throw std::bad_alloc();
}

void start_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    reserve();
    std::set_new_handler(out_of_memory);
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { end_without_memory(); });
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
  });
}

std::string printed(const llvm::Module& module) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  module.print(stream, nullptr);
  return out;
}

/// GVN looks for loads through all paths between two places: in a nest whose unrolled loops left 244 others it took 96 % of six
/// minutes. The kernels of models have up to 28 loops.
constexpr size_t kMostLoopsForGvn = 100;

size_t num_loops(const llvm::Module& module) {
  size_t loops = 0;
  for (const llvm::Function& f : module)
    if (!f.isDeclaration())
      loops += llvm::LoopInfo(llvm::DominatorTree(const_cast<llvm::Function&>(f))).getLoopsInPreorder().size();
  return loops;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = true;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassInstrumentationCallbacks callbacks;
  if (num_loops(module) > kMostLoopsForGvn)
    callbacks.registerShouldRunOptionalPassCallback(
        [](llvm::StringRef pass, const llvm::Any&) { return pass != "GVNPass"; });
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

/// Emits, checks and optimises; `before` gets the text before optimisation.
std::unique_ptr<llvm::Module> compiled(llvm::LLVMContext& llvm, llvm::TargetMachine& machine, const tir::PrimFunc& func,
                                       const std::string& symbol, const target::CpuLevel& level, std::string* before) {
  auto module = std::make_unique<llvm::Module>(symbol, llvm);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  emit_kernel(*module, func, symbol, level);
  if (before) *before = printed(*module);
  std::string mistakes;
  llvm::raw_string_ostream stream(mistakes);
  if (llvm::verifyModule(*module, &stream))
    internal_error(text("kernel ", symbol, " is not valid LLVM IR: ", stream.str()));
  optimize(*module, machine);
  return module;
}

}  // namespace

EndWhenMemoryRunsOut::EndWhenMemoryRunsOut() {
  start_llvm();
  ++calls_of_llvm;
}

EndWhenMemoryRunsOut::~EndWhenMemoryRunsOut() { --calls_of_llvm; }

std::unique_ptr<llvm::TargetMachine> target_machine(const target::CpuLevel& level) {
  start_llvm();
  std::string error, triple(level.triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) internal_error(text("LLVM has no target ", triple, ": ", error));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // which sums are fused is written in the IR
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple,
                                                                          level.cpu,
                                                                          level.features,
                                                                          options,
                                                                          llvm::Reloc::PIC_,
                                                                          llvm::CodeModel::Small,
                                                                          llvm::CodeGenOptLevel::Aggressive));
}

std::string write_module(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) internal_error("LLVM cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

const std::string& llvm_id() {
  static const std::string id = [] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return text(major, ".", minor, ".", patch, " ", build_id_of(reinterpret_cast<const void*>(&LLVMGetVersion)));
  }();
  return id;
}

std::string compile_object(const tir::PrimFunc& func, const std::string& symbol, const target::CpuLevel& level) {
  const EndWhenMemoryRunsOut guard;
  auto machine = target_machine(level);
  llvm::LLVMContext llvm;
  auto module = compiled(llvm, *machine, func, symbol, level, nullptr);
  return write_module(*module, *machine, llvm::CodeGenFileType::ObjectFile);
}

Listing compile_listing(const tir::PrimFunc& func, const std::string& symbol, const target::CpuLevel& level) {
  const EndWhenMemoryRunsOut guard;
  auto machine = target_machine(level);
  llvm::LLVMContext llvm;
  Listing out;
  auto module = compiled(llvm, *machine, func, symbol, level, &out.ir);
  out.optimized = printed(*module);
  out.assembly = write_module(*module, *machine, llvm::CodeGenFileType::AssemblyFile);
  return out;
}

}  // namespace sator::codegen
