// Copies from global to shared memory under the attribute "async_scope" become cp.async of PTX, which goes on while the thread
// runs further: 4, 8 or 16 bytes each.
//   S[i : i + 8] = A[j : j + 8]   =>   ptx_cp_async("float16", S.data, i, A.data, j, 16)
// Source: PTX ISA 8.5, section 9.7.8.24.
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// The first element and the number of elements of a flat place; nothing if they do not lie in a row.
std::optional<std::pair<Expr, int>> row_of(const std::vector<Expr>& indices) {
  if (indices.size() != 1) return {};
  if (indices[0]->dtype.lanes == 1) return std::pair(indices[0], 1);
  const Ramp* ramp = indices[0].as<Ramp>();
  if (!ramp || ramp->lanes.scalable || !is_one(ramp->stride) || ramp->base->dtype.lanes != 1) return {};
  return std::pair(ramp->base, ramp->lanes.count);
}

bool is_zero_value(const Expr& e) {
  if (const Broadcast* n = e.as<Broadcast>()) return is_zero_value(n->value);
  const FloatImm* f = e.as<FloatImm>();
  return is_zero(e) || (f && f->value == 0);
}

/// The copy as a call; null if it is none, or has another size.
Stmt async_copy(const BufferStore& n) {
  const BufferLoad* from = n.value.as<BufferLoad>();
  Expr predicate;
  // What the predicate excludes is filled with zeros.
  if (const Call* choice = n.value.as<Call>(); choice && choice->op == "tir.if_then_else" &&
                                               is_zero_value(choice->args[2]) && choice->args[0]->dtype.lanes == 1) {
    from = choice->args[1].as<BufferLoad>();
    predicate = choice->args[0];
  }
  if (!from || from->buffer->scope() != "global" || !n.buffer->scope().starts_with("shared")) return nullptr;
  auto to_row = row_of(n.indices), from_row = row_of(from->indices);
  if (!to_row || !from_row || to_row->second != from_row->second || n.buffer->dtype != from->buffer->dtype)
    return nullptr;
  const int64_t bytes = int64_t{to_row->second} * n.buffer->dtype.bytes();
  if (bytes != 4 && bytes != 8 && bytes != 16) return nullptr;
  std::vector<Expr> args = {n.buffer->data, to_row->first, from->buffer->data, from_row->first, int_imm(bytes)};
  if (predicate) args.push_back(predicate);
  return make<Evaluate>(call(n.buffer->dtype, "tir.ptx_cp_async", std::move(args)));
}

Stmt rewritten(const Stmt& stmt, bool async) {
  const AttrStmt* scope = stmt.as<AttrStmt>();
  if (scope && scope->key == "async_scope") return rewritten(scope->body, true);
  if (const BufferStore* n = stmt.as<BufferStore>(); n && async) {
    Stmt copy = async_copy(*n);
    return copy ? copy : stmt;
  }
  NodeRef out = stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    const StmtNode* s = child->as<StmtNode>();
    return s ? NodeRef(rewritten(ref(*s), async)) : child;
  });
  return cast<StmtNode>(out);
}

}  // namespace

PrimFuncRef inject_ptx_async_copy(const PrimFuncRef& func, const LowerOptions&) {
  return with_body(func, rewritten(func->body, false));
}

}  // namespace sator::passes
