#include "codegen/emit/kernel.h"

#include <llvm/IR/Constants.h>

#include "codegen/emit/emit.h"
#include "codegen/signature.h"
#include "passes/lower/lower.h"

namespace sator::codegen {

namespace {

/// TVM's promise that a function's buffers do not overlap.
bool buffers_are_distinct(const tir::PrimFunc& func) { return int_attr(func.attrs, "tir.noalias").value_or(0) != 0; }

void add_alias_scopes(Emit& e, const tir::PrimFunc& func, const std::vector<const Var*>& params) {
  if (buffers_are_distinct(func)) {
    for (const Var* data : params) e.scope_of[data] = e.aliases.add(data->name);
  } else {
    llvm::MDNode* shared = e.aliases.add("buffers");
    for (const Var* data : params) e.scope_of[data] = shared;
  }
  walk(
      func.body,
      [&](const tir::Allocate& n) { e.scope_of[n.data.get()] = e.aliases.add(n.data->name); },
      [&](const tir::AllocateConst& n) { e.scope_of[n.data.get()] = e.aliases.add(n.data->name); });
}

/// A scalar parameter from its 64 bits: an integer, or the bits of a double.
llvm::Value* scalar(Emit& e, llvm::Value* word, DType d) {
  if (d.is_integer()) return e.b.CreateTruncOrBitCast(word, type_of(e, d));
  if (d.is_bool()) return e.b.CreateICmpNE(word, e.b.getInt64(0));
  if (d.is_handle()) return e.b.CreateIntToPtr(word, type_of(e, d));
  return convert(e, e.b.CreateBitCast(word, e.b.getDoubleTy()), f64, d);
}

/// What is read as a place in memory has no type of LLVM's that would be refused on the way.
void refuse_scalable_vectors(const tir::PrimFunc& func) {
  for (const auto& [param, buffer] : func.buffer_map) need_fixed_lanes(buffer->dtype);
  walk(
      func.body,
      [](const Buffer& b) { need_fixed_lanes(b.dtype); },
      [](const Var& v) { need_fixed_lanes(v.dtype); },
      [](const Call& n) { need_fixed_lanes(n.dtype); },
      [](const Ramp& n) { need_fixed_lanes(n.dtype); },
      [](const Broadcast& n) { need_fixed_lanes(n.dtype); });
}

}  // namespace

void emit_kernel(llvm::Module& module, const tir::PrimFunc& func, const std::string& symbol,
                 const target::CpuLevel& level) {
  refuse_scalable_vectors(func);
  AliasScopes aliases(module.getContext(), symbol);
  Emit e(module, level, aliases);
  llvm::Type* ptr = e.b.getPtrTy();
  auto* type = llvm::FunctionType::get(e.b.getInt32Ty(), {ptr, ptr, ptr}, false);
  e.function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module);
  e.function->setVisibility(llvm::GlobalValue::HiddenVisibility);
  set_level(e.function, level);
  for (unsigned i : {0u, 1u, 2u}) e.function->addParamAttr(i, llvm::Attribute::NoAlias);
  for (unsigned i : {0u, 1u}) e.function->addParamAttr(i, llvm::Attribute::ReadOnly);
  e.ctx = e.function->getArg(2);
  e.b.SetInsertPoint(llvm::BasicBlock::Create(e.llvm, "entry", e.function));

  KernelArguments arguments = kernel_arguments(func);
  std::vector<const Var*> pointers;
  for (const VarRef& data : arguments.buffers) pointers.push_back(data.get());
  add_alias_scopes(e, func, pointers);
  auto invariant = [&](llvm::LoadInst* load) {
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.llvm, {}));
    return load;
  };
  for (size_t i = 0; i < pointers.size(); ++i) {
    llvm::Value* at = e.b.CreateConstInBoundsGEP1_64(ptr, e.function->getArg(0), i);
    e.memory[pointers[i]] = {.base = invariant(e.b.CreateLoad(ptr, at, pointers[i]->name)),
                             .scope = e.scope_of[pointers[i]]};
  }
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    const VarRef& v = arguments.values[i];
    llvm::Value* at = e.b.CreateConstInBoundsGEP1_64(e.b.getInt64Ty(), e.function->getArg(1), i);
    e.values[v.get()] = scalar(e, invariant(e.b.CreateLoad(e.b.getInt64Ty(), at, v->name)), v->dtype);
    if (v->is_size) e.b.CreateAssumption(e.b.CreateICmpSGE(e.values[v.get()], integer(e, 0, v->dtype)));
  }
  e.trusts_indices = func.attrs.count(passes::kTrustedIndices) != 0;
  e.casts_are_finite = func.attrs.count(passes::kFiniteCasts) != 0;
  for (const VarRef& v : arguments.offsets) e.values[v.get()] = integer(e, 0, v->dtype);
  for (const auto& [v, stride] : arguments.strides) e.values[v.get()] = value_of(e, stride);
  run(e, func.body);
  e.b.CreateRet(e.b.getInt32(0));
  release_tiles(e);
}

}  // namespace sator::codegen
