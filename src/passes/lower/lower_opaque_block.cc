// Blocks go: a predicate becomes an `if`, owned buffers become allocations, loops of one iteration become their body.
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Annotations of blocks and loops that later passes read from an AttrStmt.
bool is_pragma(const std::string& key) { return key.starts_with("pragma_") || key == "nontemporal_store"; }

Expr annotation_value(const NodeRef& value) {
  const ExprNode* e = value->as<ExprNode>();
  return e ? Expr(e) : int_imm(1);
}

Stmt lowered(const BlockRealize& realize) {
  const Block& block = *realize.block;
  if (!block.iter_vars.empty()) internal_error("lower_opaque_block: a block has iterators");
  Stmt body = block.body;
  for (const auto& [key, value] : block.annotations) {
    if (!is_pragma(key)) continue;
    NodeRef subject;  // of a buffer's pragma: what the block writes
    if (!block.writes.empty()) subject = block.writes[0]->buffer->data;
    body = make<AttrStmt>(subject, key, annotation_value(value), body);
  }
  if (realize.predicate && !is_one(realize.predicate)) body = make<IfThenElse>(realize.predicate, body, Stmt());
  for (size_t i = block.alloc_buffers.size(); i-- > 0;) {
    const BufferRef& b = block.alloc_buffers[i];
    std::vector<Expr> extents = b->shape;
    if (!b->strides.empty() && !b->shape.empty()) extents = {cast_to(i64, b->shape[0]) * cast_to(i64, b->strides[0])};
    body = make<Allocate>(b->data, b->dtype, extents, bool_imm(true), Attrs{}, make<DeclBuffer>(b, body));
  }
  return body;
}

}  // namespace

PrimFuncRef lower_opaque_block(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(
      func->body,
      [](const BlockRealize& n) -> Stmt { return lowered(n); },
      [](const For& n) -> Stmt {
        if (!is_one(n.extent) || n.kind == LoopKind::thread_binding) return ref(n);
        return substitute(n.body, {{n.var, n.min}});
      });
  return with_body(func, body);
}

}  // namespace sator::passes
