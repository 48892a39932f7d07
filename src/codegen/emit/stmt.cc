// Statements: loops, branches, bindings, and how a function fails.
#include <llvm/IR/Constants.h>

#include "codegen/emit/emit.h"
#include "ir/builtins.h"

namespace sator::codegen {

namespace {

/// A promise of the schedule that stores to the buffer need not stay in the caches: each vector stored there is aligned
/// to its own size as long as the buffer's data is aligned to 64 bytes.
constexpr std::string_view kStreamingStores = "nontemporal_store";

void emit_if(Emit& e, const tir::IfThenElse& n) {
  if (const Call* asks = n.condition.as<Call>(); asks && asks->op == "tir.has_matrix_tiles") {
    // The other statement may have no code at this level.
    if (e.level.tiles)
      run(e, n.then_case);
    else if (n.else_case)
      run(e, n.else_case);
    return;
  }
  llvm::Value* condition = value_of(e, n.condition);
  if (n.condition->dtype.lanes > 1) {  // per lane
    llvm::Value* outer = e.mask;
    const int lanes = n.condition->dtype.lanes;
    e.mask = mask_where(e, condition, lanes);
    run(e, n.then_case);
    e.mask = outer;
    if (n.else_case) {
      e.mask = mask_where(e, e.b.CreateNot(condition), lanes);
      run(e, n.else_case);
    }
    e.mask = outer;
    return;
  }
  auto* then = llvm::BasicBlock::Create(e.llvm, "then", e.function);
  auto* otherwise = n.else_case ? llvm::BasicBlock::Create(e.llvm, "else", e.function) : nullptr;
  auto* done = llvm::BasicBlock::Create(e.llvm, "endif", e.function);
  e.b.CreateCondBr(condition, then, otherwise ? otherwise : done);
  e.b.SetInsertPoint(then);
  run(e, n.then_case);
  e.b.CreateBr(done);
  if (otherwise) {
    e.b.SetInsertPoint(otherwise);
    run(e, n.else_case);
    e.b.CreateBr(done);
  }
  e.b.SetInsertPoint(done);
}

void emit_while(Emit& e, const tir::While& n) {
  auto* head = llvm::BasicBlock::Create(e.llvm, "while", e.function);
  auto* body = llvm::BasicBlock::Create(e.llvm, "do", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "endwhile", e.function);
  e.b.CreateBr(head);
  e.b.SetInsertPoint(head);
  e.b.CreateCondBr(value_of(e, n.condition), body, done);
  e.b.SetInsertPoint(body);
  run(e, n.body);
  e.b.CreateBr(head);
  e.b.SetInsertPoint(done);
}

/// The stores of an iteration, those of inner loops of constant extents as often as they run.
int64_t stores_of(const tir::Stmt& body) {
  constexpr int64_t kMany = 1 << 20;
  if (const tir::For* loop = body.as<tir::For>())
    return std::min(kMany, stores_of(loop->body) * std::clamp<int64_t>(as_int(loop->extent).value_or(1), 0, kMany));
  if (body.as<tir::BufferStore>()) return 1;
  int64_t all = 0;
  body->info().each_child(*body, [&](const NodeRef& child) {
    if (const tir::StmtNode* inner = child->as<tir::StmtNode>()) all += stores_of(ref(*inner));
  });
  return std::min(kMany, all);
}

/// The stores of the text of an iteration.
int64_t written_stores(const tir::Stmt& body) {
  int64_t all = 0;
  walk(body, [&](const tir::BufferStore&) { ++all; });
  return all;
}

/// What LLVM is told to leave alone, if anything: it would see that it does not pay, but only after a look that takes most of the time of
/// compilation.
/// - Vectors of statements. Where LLVM writes out the loops inside, it would make them over this loop, element by element. Time grows with
///   more than the square of the stores: of bytes with a division, 20 took 3 s, 60 took 54 s. Schedules say what is to be a vector.
/// - Copies of long iterations. LLVM evaluates each instruction of up to ten iterations before it finds a loop too long to write out:
///   77 % of the time for a product with 32 codes of 5 bits and 7 rows in an iteration. 64 stores with what they store are
///   far beyond what it writes out.
llvm::MDNode* hints_for(Emit& e, const tir::Stmt& body) {
  constexpr int64_t kMostStores = 8, kMostWritten = 64;
  std::vector<llvm::Metadata*> hints = {nullptr};
  if (stores_of(body) > kMostStores)
    hints.push_back(llvm::MDNode::get(e.llvm,
                                      {llvm::MDString::get(e.llvm, "llvm.loop.vectorize.enable"),
                                       llvm::ConstantAsMetadata::get(llvm::ConstantInt::getFalse(e.llvm))}));
  if (written_stores(body) > kMostWritten)
    hints.push_back(llvm::MDNode::get(e.llvm, {llvm::MDString::get(e.llvm, "llvm.loop.unroll.disable")}));
  if (hints.size() == 1) return nullptr;
  llvm::MDNode* all = llvm::MDNode::getDistinct(e.llvm, hints);
  all->replaceOperandWith(0, all);
  return all;
}

void emit_for(Emit& e, const tir::For& n) {
  if (n.kind == tir::LoopKind::parallel && !e.in_chunk) return emit_parallel(e, n);
  if (n.kind == tir::LoopKind::thread_binding)
    fail({.what = text("loop ", n.var->name, " is bound to ", n.thread, " in a kernel for a CPU"),
          .needs = "loops without thread bindings",
          .hint = "use a CPU schedule for this target"});
  llvm::Value* begin = wide_index_of(e, n.min);
  llvm::Value* end = does_not_wrap(n.min->dtype) ? wide_index_of(e, n.min + cast_to(n.min->dtype, n.extent))
                                                 : e.b.CreateNSWAdd(begin, wide_index_of(e, n.extent));
  auto body = [&](llvm::Value* i) {
    set_loop_value(e, *n.var, i);
    run(e, n.body);
  };
  emit_loop(e, begin, end, body, hints_for(e, n.body));
}

/// Volatile memory is accessed as often as the program says: a masked access may touch the lanes that it leaves out.
void refuse_masked(const tir::Stmt& body, const Var& memory) {
  auto refuse = [&](const std::string& what) {
    fail({.what = text("a predicated ", what, " of the volatile memory ", memory.name),
          .needs = "accesses of all their lanes",
          .hint = "put the access under an 'if', or leave volatile_scope out"});
  };
  walk(body, [&](const tir::IfThenElse& n) {
    if (n.condition->dtype.lanes == 1) return;
    walk(n.then_case, [&](const tir::BufferStore& s) {
      if (s.buffer->data.get() == &memory) refuse("store");
    });
  });
  walk(body, [&](const Call& n) {
    const BufferLoad* load = as_predicated_load(n).first;
    if (load && load->buffer->data.get() == &memory) refuse("load");
  });
}

void emit_attr(Emit& e, const tir::AttrStmt& n) {
  if (const tir::ThreadAxis* axis = n.node.as<tir::ThreadAxis>(); axis && n.key != "pipeline_scope")
    fail({.what = text("the axis ", axis->tag, " is launched in a kernel for a CPU"),
          .needs = "loops without thread bindings",
          .hint = "use a CPU schedule for this target"});
  const Var* buffer = n.node.as<Var>();
  if (n.key == "volatile_scope" && buffer) refuse_masked(n.body, *buffer);
  if (n.key != kStreamingStores || !buffer) return run(e, n.body);
  e.streaming.push_back(buffer);
  run(e, n.body);
  e.streaming.pop_back();
}

void emit_assert(Emit& e, const tir::AssertStmt& n) {
  const StringImm* message = n.message.as<StringImm>();
  fail_if(e,
          e.b.CreateNot(value_of(e, n.condition)),
          message ? message->value : "an assertion of the kernel does not hold");
  run(e, n.body);
}

}  // namespace

void set_loop_value(Emit& e, const Var& var, llvm::Value* wide) {
  e.wide_values[&var] = wide;
  e.values[&var] = e.b.CreateSExtOrTrunc(wide, type_of(e, var.dtype));
}

void emit_loop(Emit& e, llvm::Value* begin, llvm::Value* end, FunctionRef<void(llvm::Value*)> body,
               llvm::MDNode* hints) {
  auto* preheader = e.b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(e.llvm, "loop", e.function);
  auto* done = llvm::BasicBlock::Create(e.llvm, "endloop", e.function);
  e.b.CreateCondBr(e.b.CreateICmpSLT(begin, end), loop, done);
  e.b.SetInsertPoint(loop);
  llvm::PHINode* i = e.b.CreatePHI(begin->getType(), 2);
  i->addIncoming(begin, preheader);
  body(i);
  llvm::Value* next = e.b.CreateAdd(i, llvm::ConstantInt::get(i->getType(), 1), "", false, true);
  i->addIncoming(next, e.b.GetInsertBlock());
  llvm::Instruction* back = e.b.CreateCondBr(e.b.CreateICmpSLT(next, end), loop, done);
  if (hints) back->setMetadata(llvm::LLVMContext::MD_loop, hints);
  e.b.SetInsertPoint(done);
}

void run(Emit& e, const tir::Stmt& stmt) {
  struct Nothing {};
  using namespace tir;
  auto block = [](const char* name) { internal_error(text("a ", name, " that was not lowered")); };
  match(
      stmt,
      [&](const BufferStore& n) { emit_store(e, n); },
      [&](const For& n) { emit_for(e, n); },
      [&](const Seq& n) {
        for (const Stmt& s : n.stmts) run(e, s);
      },
      [&](const IfThenElse& n) { emit_if(e, n); },
      [&](const While& n) { emit_while(e, n); },
      [&](const LetStmt& n) {
        if (has_data(e, n.value)) e.data.insert(n.var.get());
        e.values[n.var.get()] = value_of(e, n.value);
        if (n.var->dtype.is_handle()) e.memory[n.var.get()] = {.base = e.values[n.var.get()]};
        run(e, n.body);
      },
      [&](const AttrStmt& n) { emit_attr(e, n); },
      [&](const AssertStmt& n) { emit_assert(e, n); },
      [&](const Evaluate& n) {
        if (has_side_effect(n.value)) value_of(e, n.value);
      },
      [&](const Allocate& n) { emit_allocate(e, n); },
      [&](const AllocateConst& n) { emit_allocate_const(e, n); },
      [&](const DeclBuffer& n) { run(e, n.body); },
      [&](const Block&) { block("block"); },
      [&](const BlockRealize&) { block("block"); });
}

void return_if(Emit& e, llvm::Value* failed, llvm::Value* status) {
  auto* leave = llvm::BasicBlock::Create(e.llvm, "fail", e.function);
  auto* go_on = llvm::BasicBlock::Create(e.llvm, "ok", e.function);
  e.b.CreateCondBr(failed, leave, go_on, llvm::MDBuilder(e.llvm).createBranchWeights(1, 1000000));
  e.b.SetInsertPoint(leave);
  for (size_t i = e.pushed.size(); i-- > 0;)
    call_context(
        e, 9, llvm::FunctionType::get(e.b.getVoidTy(), {e.b.getPtrTy(), e.b.getPtrTy()}, false), {e.ctx, e.pushed[i]});
  e.b.CreateRet(status);
  e.b.SetInsertPoint(go_on);
}

void fail_if(Emit& e, llvm::Value* failed, const std::string& message) {
  auto* leave = llvm::BasicBlock::Create(e.llvm, "fail", e.function);
  auto* go_on = llvm::BasicBlock::Create(e.llvm, "ok", e.function);
  e.b.CreateCondBr(failed, leave, go_on, llvm::MDBuilder(e.llvm).createBranchWeights(1, 1000000));
  e.b.SetInsertPoint(leave);
  auto* type = llvm::FunctionType::get(e.b.getVoidTy(), {e.b.getPtrTy(), e.b.getPtrTy()}, false);
  call_context(e, 10, type, {e.ctx, e.b.CreateGlobalString(message, "message")});
  for (size_t i = e.pushed.size(); i-- > 0;) call_context(e, 9, type, {e.ctx, e.pushed[i]});
  e.b.CreateRet(e.b.getInt32(1));
  e.b.SetInsertPoint(go_on);
}

}  // namespace sator::codegen
