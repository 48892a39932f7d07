// A program that returns a number gets a parameter for it: machine code returns nothing.
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

const Call* returned(const Stmt& s) {
  const Evaluate* e = s.as<Evaluate>();
  const Call* call = e ? e->value.as<Call>() : nullptr;
  return call && call->op == "tir.ret" && call->args.size() == 1 ? call : nullptr;
}

bool returns_inside(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Call& c) { found |= c.op == "tir.ret"; });
  return found;
}

/// The statement with its last `return e` as `result[0] = e`.
Stmt stored(const Stmt& s, const BufferRef& result) {
  auto inner = [&](const auto& n, auto field) { return with(n, field, stored(n.*field, result)); };
  if (const Call* call = returned(s)) return store(result, cast_to(result->dtype, call->args[0]), {int_imm(0, i32)});
  if (const Seq* n = s.as<Seq>()) {
    std::vector<Stmt> items = n->stmts;
    items.back() = stored(items.back(), result);
    return seq(std::move(items));
  }
  if (const IfThenElse* n = s.as<IfThenElse>()) {
    Stmt out = inner(*n, &IfThenElse::then_case);
    const auto& chosen = *out.as<IfThenElse>();
    return n->else_case ? inner(chosen, &IfThenElse::else_case) : out;
  }
  if (const LetStmt* n = s.as<LetStmt>()) return inner(*n, &LetStmt::body);
  if (const Allocate* n = s.as<Allocate>()) return inner(*n, &Allocate::body);
  if (const DeclBuffer* n = s.as<DeclBuffer>()) return inner(*n, &DeclBuffer::body);
  if (const AttrStmt* n = s.as<AttrStmt>()) return inner(*n, &AttrStmt::body);
  if (const BlockRealize* n = s.as<BlockRealize>(); n && n->values.empty())
    return with(*n, &BlockRealize::block, with(n->block, &Block::body, stored(n->block->body, result)));
  return s;
}

}  // namespace

PrimFuncRef return_by_store(const PrimFuncRef& func, const LowerOptions&) {
  const Call* first = nullptr;
  walk(func->body, [&](const Call& c) {
    if (!first && c.op == "tir.ret" && c.args.size() == 1) first = &c;
  });
  if (!first) return func;
  const DType dtype = func->ret_dtype.is_void() ? first->args[0]->dtype : func->ret_dtype;
  BufferRef result = make_buffer("result", {int_imm(1, i32)}, dtype);
  Stmt body = stored(func->body, result);
  if (returns_inside(body))
    fail({.what = "a return that is not the last statement of its function",
          .needs = "a return at the end, or at the end of both branches of a condition there",
          .hint = "choose the value first: T.if_then_else, T.Select"});
  std::vector<VarRef> params = func->params;
  params.push_back(make_var("var_result", DType::Handle()));
  auto buffers = func->buffer_map;
  buffers.emplace_back(params.back(), result);
  Attrs attrs = func->attrs;
  attrs[kReturnsByStore] = string_imm(dtype.name());
  return make<PrimFunc>(std::move(params), std::move(buffers), DType::Void(), std::move(attrs), std::move(body));
}

}  // namespace sator::passes
