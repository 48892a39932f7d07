#include "tir/nodes.h"

namespace sator::tir {

Ref<const PrimFunc> without_symbol(const Ref<const PrimFunc>& func) {
  Attrs attrs = func->attrs;
  return attrs.erase("global_symbol") == 0 ? func : with(func, &PrimFunc::attrs, std::move(attrs));
}

BufferRef PrimFunc::buffer_of(const VarRef& param) const {
  for (const auto& [var, buffer] : buffer_map) {
    if (var == param) return buffer;
  }
  return nullptr;
}

void Seq::finish() {
  std::vector<Stmt> flat;
  for (Stmt& s : stmts) {
    if (const Seq* inner = s.as<Seq>()) {
      flat.insert(flat.end(), inner->stmts.begin(), inner->stmts.end());
    } else if (s) {
      flat.push_back(std::move(s));
    }
  }
  stmts = std::move(flat);
}

Stmt seq(std::vector<Stmt> stmts) {
  Ref<const Seq> all = make<Seq>(std::move(stmts));
  if (all->stmts.size() == 1) return all->stmts.front();
  return all;
}

Stmt for_loop(VarRef var, Expr extent, Stmt body, LoopKind kind) {
  Expr zero = int_imm(0, var->dtype);
  return make<For>(std::move(var), zero, std::move(extent), kind, std::string(), Attrs{}, std::move(body));
}

BufferRegionRef full_region(const BufferRef& buffer) {
  std::vector<RangeRef> region;
  for (const Expr& extent : buffer->shape) region.push_back(range_of(extent));
  return make<BufferRegion>(buffer, std::move(region));
}

BufferRegionRef point_region(const BufferRef& buffer, const std::vector<Expr>& indices) {
  std::vector<RangeRef> region;
  for (const Expr& i : indices) region.push_back(make<Range>(i, int_imm(1, i->dtype)));
  return make<BufferRegion>(buffer, std::move(region));
}

BlockRealizeRef root_of(const PrimFunc& func) {
  const BlockRealize* realize = func.body.as<BlockRealize>();
  if (!realize || !realize->block->iter_vars.empty()) return nullptr;
  return ref(*realize);
}

}  // namespace sator::tir

namespace sator {

template class Node<tir::IterVar>;
template class Node<tir::BufferRegion>;
template class Node<tir::MatchBuffer>;
template class Node<tir::BlockName>;
template class Node<tir::Block, tir::StmtNode>;
template class Node<tir::BlockRealize, tir::StmtNode>;
template class Node<tir::For, tir::StmtNode>;
template class Node<tir::Seq, tir::StmtNode>;
template class Node<tir::BufferStore, tir::StmtNode>;
template class Node<tir::IfThenElse, tir::StmtNode>;
template class Node<tir::While, tir::StmtNode>;
template class Node<tir::LetStmt, tir::StmtNode>;
template class Node<tir::ThreadAxis>;
template class Node<tir::CommReducer>;
template class Node<tir::AttrStmt, tir::StmtNode>;
template class Node<tir::AssertStmt, tir::StmtNode>;
template class Node<tir::Evaluate, tir::StmtNode>;
template class Node<tir::Allocate, tir::StmtNode>;
template class Node<tir::AllocateConst, tir::StmtNode>;
template class Node<tir::DeclBuffer, tir::StmtNode>;
template class Node<tir::PrimFunc, FuncNode>;

}  // namespace sator
