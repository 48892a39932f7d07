// Blocks go: a predicate becomes an `if`, owned buffers become allocations, loops of one iteration without annotations become their body.
#include <algorithm>

#include "arith/analyzer.h"
#include "passes/lower/contents.h"
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

/// Extents of the memory of a buffer: those of a strided dimension are what its stride holds of the next one's.
std::vector<Expr> allocated_extents(const Buffer& b) {
  if (b.strides.empty() || b.shape.empty()) return b.shape;
  const std::vector<Expr> whole{cast_to(i64, b.shape[0]) * cast_to(i64, b.strides[0])};
  if (!is_one(b.strides.back())) return whole;
  std::vector<Expr> out = b.shape;
  for (size_t d = 1; d < b.strides.size(); ++d) {
    arith::Analyzer analyzer;
    Expr outer = b.strides[d - 1], inner = b.strides[d];
    if (!analyzer.prove_equal(floormod(outer, inner), int_imm(0, outer->dtype))) return whole;
    out[d] = analyzer.simplify(floordiv(outer, inner));
  }
  return out;
}

Stmt lowered(const BlockRealize& realize) {
  const Block& block = *realize.block;
  if (!block.iter_vars.empty()) internal_error("lower_opaque_block: a block has iterators");
  Stmt body = block.body;
  NodeRef subject;  // of a buffer's pragma: what the block writes
  if (!block.writes.empty()) subject = block.writes[0]->buffer->data;
  for (auto at = block.annotations.rbegin(); at != block.annotations.rend(); ++at) {
    if (is_pragma(at->first)) body = make<AttrStmt>(subject, at->first, annotation_value(at->second), body);
  }
  // A size that is read from memory is read where the predicate holds: elsewhere it may lie outside of what it is read from.
  auto allocate = [&](bool is_read) {
    for (size_t i = block.alloc_buffers.size(); i-- > 0;) {
      const BufferRef& b = block.alloc_buffers[i];
      const std::vector<Expr> extents = allocated_extents(*b);
      if (std::ranges::all_of(extents, reads_nothing) == is_read) continue;
      body = make<Allocate>(b->data, b->dtype, extents, bool_imm(true), Attrs{}, make<DeclBuffer>(b, body));
    }
  };
  allocate(true);
  if (realize.predicate && !is_one(realize.predicate)) body = make<IfThenElse>(realize.predicate, body, Stmt());
  allocate(false);
  return body;
}

}  // namespace

PrimFuncRef lower_opaque_block(const PrimFuncRef& func, const LowerOptions&) {
  walk(func->body, [](const Block& n) {
    if (n.match_buffers.empty()) return;
    fail({.what = text("LowerOpaqueBlock is given the matched buffer ", n.match_buffers[0]->buffer->name),
          .needs = "buffers that are matched nowhere",
          .hint = "run LowerMatchBuffer before",
          .at = {{ref(n), "matches a buffer"}}});
  });
  Stmt body = transform(
      func->body,
      [](const BlockRealize& n) -> Stmt { return lowered(n); },
      [](const For& n) -> Stmt {
        if (!is_one(n.extent) || n.kind == LoopKind::thread_binding || !n.annotations.empty()) return ref(n);
        return substitute(n.body, {{n.var, n.min}});
      });
  return with_body(func, body);
}

}  // namespace sator::passes
