#include "codegen/descriptor.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/machine.h"
#include "runtime/abi.h"

namespace sator::codegen {

namespace {

/// Constants of one module.
class Writer {
 public:
  Writer(llvm::Module& module) : module_(module), llvm_(module.getContext()) {}

  llvm::Constant* placed(llvm::Constant* value, const char* name, uint64_t align) {
    auto* global =
        new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage, value, name);
    global->setAlignment(llvm::Align(align));
    return global;
  }
  llvm::Constant* text(const std::string& s, const char* name) {
    return placed(llvm::ConstantDataArray::getString(llvm_, s), name, 1);
  }
  llvm::Constant* bytes(const std::string& s, const char* name) {
    return placed(llvm::ConstantDataArray::getString(llvm_, s, false), name, 64);
  }
  llvm::Constant* number(unsigned bits, uint64_t value) {
    return llvm::ConstantInt::get(llvm::Type::getIntNTy(llvm_, bits), value);
  }
  llvm::Constant* record(std::vector<llvm::Constant*> fields) { return llvm::ConstantStruct::getAnon(llvm_, fields); }
  llvm::Constant* list(const std::vector<llvm::Constant*>& items, llvm::Type* type, const char* name) {
    return placed(llvm::ConstantArray::get(llvm::ArrayType::get(type, items.size()), items), name, 8);
  }
  llvm::Type* ptr() { return llvm::PointerType::getUnqual(llvm_); }
  llvm::Constant* kernel(const std::string& symbol) {
    llvm::Type* i32 = llvm::Type::getInt32Ty(llvm_);
    auto* type = llvm::FunctionType::get(i32, {ptr(), ptr(), ptr()}, false);
    auto* f = llvm::cast<llvm::Function>(module_.getOrInsertFunction(symbol, type).getCallee());
    f->setVisibility(llvm::GlobalValue::HiddenVisibility);
    return f;
  }

 private:
  llvm::Module& module_;
  llvm::LLVMContext& llvm_;
};

}  // namespace

std::string descriptor_object(const std::vector<DescriptorLevel>& levels, const std::string& executable,
                              const std::string& metadata_json, const std::string& source_hash) {
  const EndWhenMemoryRunsOut guard;
  auto machine = target_machine(*levels.back().level);
  llvm::LLVMContext llvm;
  llvm::Module module("descriptor", llvm);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  Writer w(module);
  std::vector<llvm::Constant*> tables;
  for (const DescriptorLevel& level : levels) {
    std::vector<llvm::Constant*> kernels;
    for (const DescriptorKernel& k : level.kernels)
      kernels.push_back(w.record({w.text(k.name, "name"), w.kernel(k.symbol)}));
    llvm::Type* entry = llvm::StructType::get(llvm, {w.ptr(), w.ptr()});
    llvm::Constant* table = w.record({w.text(std::string(level.level->name), "isa"),
                                      w.number(32, kernels.size()),
                                      w.list(kernels, entry, "kernels")});
    tables.push_back(w.placed(table, "level", 8));
  }
  llvm::Constant* model = w.record({w.number(32, SATOR_ABI_VERSION),
                                    w.number(32, levels.size()),
                                    w.list(tables, w.ptr(), "levels"),
                                    w.text(source_hash, "source_hash"),
                                    w.text(metadata_json, "metadata"),
                                    w.bytes(executable, "executable"),
                                    w.number(64, executable.size())});
  llvm::Constant* placed = w.placed(model, "model", 8);
  auto* type = llvm::FunctionType::get(w.ptr(), {}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "sator_model", module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(llvm, "entry", f));
  b.CreateRet(placed);
  return write_module(module, *machine, llvm::CodeGenFileType::ObjectFile);
}

}  // namespace sator::codegen
