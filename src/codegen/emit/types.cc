#include <llvm/IR/Constants.h>
#include <llvm/IR/DerivedTypes.h>

#include "base/float16.h"
#include "base/float8.h"
#include "codegen/emit/emit.h"

namespace sator::codegen {

void unsupported(const std::string& what) {
  fail({.what = text("machine code has no form for ", what),
        .needs = "a program that a kernel for a CPU can do (docs/passes.md: the stage machine)",
        .hint = "write it in another way"});
}

void need_fixed_lanes(DType d) {
  if (d.is_scalable)
    fail({.what = text("a vector of dtype ", d, ", whose number of lanes the machine decides"),
          .needs = "vectors of a constant number of lanes: scalable ones are Arm's SVE's",
          .hint = "split the loop by a constant factor, and vectorize the inner loop"});
}

static llvm::Type* element_type(Emit& e, DType d) {
  switch (d.code) {
    case DType::Code::int_:
    case DType::Code::uint: return llvm::Type::getIntNTy(e.llvm, d.bits);
    case DType::Code::bool_: return llvm::Type::getInt1Ty(e.llvm);
    case DType::Code::e4m3:
    case DType::Code::e5m2: return llvm::Type::getInt8Ty(e.llvm);
    case DType::Code::bfloat: return llvm::Type::getInt16Ty(e.llvm);
    case DType::Code::handle: return llvm::PointerType::getUnqual(e.llvm);
    case DType::Code::float_:
      if (d.bits == 16) return llvm::Type::getHalfTy(e.llvm);
      if (d.bits == 32) return llvm::Type::getFloatTy(e.llvm);
      if (d.bits == 64) return llvm::Type::getDoubleTy(e.llvm);
      break;
    case DType::Code::none: break;
  }
  unsupported(text("a value of dtype ", d));
}

llvm::Type* type_of(Emit& e, DType d) {
  need_fixed_lanes(d);
  llvm::Type* element = element_type(e, d);
  return d.lanes == 1 ? element : llvm::FixedVectorType::get(element, d.lanes);
}

llvm::Type* memory_type(Emit& e, DType element) {
  if (element.is_bool()) return llvm::Type::getInt8Ty(e.llvm);
  if (element.is_integer()) return llvm::Type::getIntNTy(e.llvm, static_cast<unsigned>(element.element_bytes()) * 8);
  return element_type(e, element.element());
}

llvm::Value* splat(Emit& e, llvm::Value* value, int lanes) {
  return lanes == 1 ? value : e.b.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

llvm::Value* number(Emit& e, double value, DType d) {
  if (!d.is_float()) return integer(e, static_cast<int64_t>(value), d);
  llvm::Type* type = type_of(e, d);
  if (d.is_float8()) return llvm::ConstantInt::get(type, f32_to_f8(static_cast<float>(value), d.code));
  if (d.is_bfloat()) return llvm::ConstantInt::get(type, f32_to_bf16(static_cast<float>(value)));
  if (d.bits == 16) {  // the nearest half, from the bits: APFloat would round the double a second time
    llvm::APFloat half(llvm::APFloat::IEEEhalf(), llvm::APInt(16, f32_to_f16(static_cast<float>(value))));
    return llvm::ConstantFP::get(type, half);
  }
  return llvm::ConstantFP::get(type, value);
}

llvm::Value* integer(Emit& e, int64_t value, DType d) {
  return llvm::ConstantInt::get(type_of(e, d), static_cast<uint64_t>(value), d.is_int());
}

AliasScopes::AliasScopes(llvm::LLVMContext& llvm, const std::string& kernel)
    : llvm_(llvm), builder_(llvm), domain_(builder_.createAnonymousAliasScopeDomain(kernel)) {}

llvm::MDNode* AliasScopes::add(const std::string& name) {
  scopes_.push_back(builder_.createAnonymousAliasScope(domain_, name));
  return scopes_.back();
}

void AliasScopes::mark(llvm::Instruction* access, const Memory& memory) {
  if (!memory.scope) return;
  auto& [own, others] = lists_[memory.scope];
  if (!own) {
    std::vector<llvm::Metadata*> rest;
    for (llvm::MDNode* scope : scopes_)
      if (scope != memory.scope) rest.push_back(scope);
    own = llvm::MDNode::get(llvm_, {memory.scope});
    others = llvm::MDNode::get(llvm_, rest);
  }
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, own);
  access->setMetadata(llvm::LLVMContext::MD_noalias, others);
}

void set_level(llvm::Function* f, const target::CpuLevel& level) {
  f->addFnAttr("target-cpu", level.cpu);
  f->addFnAttr("tune-cpu", level.tune);
  if (!level.features.empty()) f->addFnAttr("target-features", level.features);
  // 512-bit registers are worth it in kernels: LLVM's own preference of 256 bits guards code that uses them rarely.
  f->addFnAttr("prefer-vector-width", text(level.vector_bits));
  f->addFnAttr("min-legal-vector-width", text(level.vector_bits));
  f->addFnAttr(llvm::Attribute::NoUnwind);
  // Stack frames hold register tiles and small buffers, well below a guard page's reach of the thread's stack.
  f->addFnAttr("no-stack-arg-probe");
}

}  // namespace sator::codegen
