// A parallel loop becomes a function of one chunk of it, called through the context on every worker.
#include <llvm/IR/Constants.h>

#include <cstddef>

#include "codegen/emit/emit.h"
#include "runtime/abi.h"

namespace sator::codegen {

// The fields of SatorContext in order; the indices are used with call_context.
llvm::StructType* context_type(llvm::LLVMContext& llvm) {
  static_assert(offsetof(SatorContext, stream) == 24 && offsetof(SatorContext, parallel_for) == 32 &&
                offsetof(SatorContext, workspace_push) == 40 && offsetof(SatorContext, workspace_pop) == 48 &&
                offsetof(SatorContext, set_error) == 56);
  llvm::Type *i32 = llvm::Type::getInt32Ty(llvm), *ptr = llvm::PointerType::getUnqual(llvm);
  return llvm::StructType::get(llvm, {i32, i32, i32, i32, i32, i32, ptr, ptr, ptr, ptr, ptr});
}

llvm::Value* call_context(Emit& e, unsigned field, llvm::FunctionType* type, std::vector<llvm::Value*> args) {
  llvm::Value* at = e.b.CreateStructGEP(context_type(e.llvm), e.ctx, field);
  llvm::LoadInst* f = e.b.CreateAlignedLoad(e.b.getPtrTy(), at, llvm::Align(8));
  f->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.llvm, {}));
  return e.b.CreateCall(type, f, args);
}

void emit_parallel(Emit& e, const tir::For& loop) {
  if (e.mask) unsupported("a parallel loop under a lane mask");
  // What the body uses of the enclosing function travels in a closure on the caller's stack.
  std::vector<const Var*> captured;
  std::vector<llvm::Type*> types;
  std::vector<llvm::Value*> outer_values;
  for (const VarRef& v : vars_in(loop.body)) {
    auto value = e.values.find(v.get());
    auto memory = e.memory.find(v.get());
    if (value == e.values.end() && memory == e.memory.end()) continue;
    captured.push_back(v.get());
    auto wide = e.wide_values.find(v.get());
    outer_values.push_back(memory != e.memory.end()      ? memory->second.base
                           : wide != e.wide_values.end() ? wide->second
                                                         : value->second);
    types.push_back(outer_values.back()->getType());
  }
  llvm::Value* begin = wide_index_of(e, loop.min);
  captured.push_back(loop.var.get());  // carries the loop's first value
  outer_values.push_back(begin);
  types.push_back(begin->getType());
  auto* closure_type = llvm::StructType::get(e.llvm, types);

  llvm::Type *i32 = e.b.getInt32Ty(), *i64 = e.b.getInt64Ty(), *ptr = e.b.getPtrTy();
  auto* chunk_type = llvm::FunctionType::get(i32, {ptr, i64, i64, ptr}, false);
  auto* chunk = llvm::Function::Create(
      chunk_type, llvm::Function::InternalLinkage, e.function->getName() + ".parallel." + loop.var->name, e.module);
  set_level(chunk, e.level);
  for (unsigned i : {0u, 3u}) chunk->addParamAttr(i, llvm::Attribute::NoAlias);
  chunk->addParamAttr(0, llvm::Attribute::ReadOnly);

  Emit inner(e.module, e.level, e.aliases);
  inner.function = chunk;
  inner.ctx = chunk->getArg(3);
  inner.in_chunk = true;
  inner.scope_of = e.scope_of;
  inner.streaming = e.streaming;
  inner.data = e.data;
  inner.trusts_indices = e.trusts_indices;
  inner.casts_are_finite = e.casts_are_finite;
  inner.b.SetInsertPoint(llvm::BasicBlock::Create(e.llvm, "entry", chunk));
  llvm::Value* first = nullptr;
  for (size_t i = 0; i < captured.size(); ++i) {
    llvm::Value* at = inner.b.CreateStructGEP(closure_type, chunk->getArg(0), static_cast<unsigned>(i));
    llvm::LoadInst* v = inner.b.CreateLoad(types[i], at, captured[i]->name);
    v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(e.llvm, {}));
    if (captured[i] == loop.var.get()) {
      first = v;
    } else if (auto memory = e.memory.find(captured[i]); memory != e.memory.end()) {
      Memory copy = memory->second;
      copy.base = v;
      copy.is_stack = false;  // the workers share it
      inner.memory[captured[i]] = copy;
    } else if (e.wide_values.count(captured[i])) {
      set_loop_value(inner, *captured[i], v);
    } else {
      inner.values[captured[i]] = v;
    }
  }
  emit_loop(inner, chunk->getArg(1), chunk->getArg(2), [&](llvm::Value* i) {
    set_loop_value(inner, *loop.var, is_zero(loop.min) ? i : inner.b.CreateNSWAdd(i, first));
    run(inner, loop.body);
  });
  inner.b.CreateRet(inner.b.getInt32(0));
  release_tiles(inner);

  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  llvm::Value* closure = entry.CreateAlloca(closure_type);
  for (size_t i = 0; i < captured.size(); ++i)
    e.b.CreateStore(outer_values[i], e.b.CreateStructGEP(closure_type, closure, static_cast<unsigned>(i)));
  llvm::Value* n = wide_index_of(e, loop.extent);
  auto* type = llvm::FunctionType::get(i32, {ptr, i64, ptr, ptr}, false);
  llvm::Value* status = call_context(e, 7, type, {e.ctx, n, chunk, closure});
  return_if(e, e.b.CreateICmpNE(status, e.b.getInt32(0)), status);
}

}  // namespace sator::codegen
