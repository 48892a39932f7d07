// Memory of a kernel: small buffers of constant size on the stack, where LLVM turns what is indexed by constants into
// registers; the rest from the worker's scratch memory; constants in the object's read-only data.
#include <llvm/IR/Constants.h>

#include "codegen/emit/emit.h"

namespace sator::codegen {

namespace {

/// One buffer on the stack; a thread's stack of 8 MB holds hundreds.
constexpr int64_t kMaxStackBytes = 16 << 10;
constexpr uint64_t kAlign = 64;
/// Behind each: a vector whose last lanes are masked is loaded and stored as a whole, so that it can stay in registers.
constexpr int64_t kSlackBytes = 256;

std::optional<int64_t> constant_size(const std::vector<Expr>& extents) {
  int64_t size = 1;
  for (const Expr& x : extents) {
    auto value = as_int(x);
    if (!value || *value < 0 || __builtin_mul_overflow(size, *value, &size)) return {};
  }
  return size;
}

void on_stack(Emit& e, const tir::Allocate& n, int64_t elements) {
  llvm::IRBuilder<> entry(&e.function->getEntryBlock(), e.function->getEntryBlock().begin());
  const int64_t slack = kSlackBytes / n.dtype.element_bytes();
  llvm::Type* type = llvm::ArrayType::get(memory_type(e, n.dtype), static_cast<uint64_t>(elements + slack));
  llvm::AllocaInst* slot = entry.CreateAlloca(type, nullptr, n.data->name);
  slot->setAlignment(llvm::Align(kAlign));
  e.memory[n.data.get()] = {.base = slot, .align = llvm::Align(kAlign), .is_stack = true};
  // Its contents begin anew with each run of the statement.
  llvm::ConstantInt* bytes = e.b.getInt64(static_cast<uint64_t>((elements + slack) * n.dtype.element_bytes()));
  e.b.CreateLifetimeStart(slot, bytes);
  run(e, n.body);
  e.b.CreateLifetimeEnd(slot, bytes);
}

}  // namespace

void emit_allocate(Emit& e, const tir::Allocate& n) {
  auto elements = constant_size(n.extents);
  if (elements) *elements *= n.dtype.lanes;
  if (elements && *elements * n.dtype.element_bytes() <= kMaxStackBytes)
    return on_stack(e, n, std::max<int64_t>(1, *elements));
  llvm::Type *i64 = e.b.getInt64Ty(), *ptr = e.b.getPtrTy();
  llvm::Value* bytes = e.b.getInt64(static_cast<uint64_t>(n.dtype.bytes()));
  for (const Expr& x : n.extents) bytes = e.b.CreateMul(bytes, wide_index_of(e, x), "", false, true);
  llvm::Value* memory = call_context(e, 8, llvm::FunctionType::get(ptr, {ptr, i64}, false), {e.ctx, bytes});
  fail_if(e, e.b.CreateIsNull(memory), text("scratch memory for ", n.data->name, " is out"));
  auto scope = e.scope_of.find(n.data.get());
  e.memory[n.data.get()] = {
      .base = memory, .align = llvm::Align(kAlign), .scope = scope == e.scope_of.end() ? nullptr : scope->second};
  e.b.CreateAlignmentAssumption(e.module.getDataLayout(), memory, kAlign);
  e.pushed.push_back(memory);
  run(e, n.body);
  e.pushed.pop_back();
  call_context(e, 9, llvm::FunctionType::get(e.b.getVoidTy(), {ptr, ptr}, false), {e.ctx, memory});
}

void emit_allocate_const(Emit& e, const tir::AllocateConst& n) {
  auto* data = llvm::ConstantDataArray::getString(e.llvm, n.bytes, false);
  auto* global =
      new llvm::GlobalVariable(e.module, data->getType(), true, llvm::GlobalValue::PrivateLinkage, data, n.data->name);
  global->setAlignment(llvm::Align(kAlign));
  auto scope = e.scope_of.find(n.data.get());
  e.memory[n.data.get()] = {
      .base = global, .align = llvm::Align(kAlign), .scope = scope == e.scope_of.end() ? nullptr : scope->second};
  run(e, n.body);
}

}  // namespace sator::codegen
