// A block's init runs where all its reduction iterators are at their first value:
//   init: X; body: Y   =>   if k == 0: X;  Y
// Where the reduction's loops may have no iterations, it also runs in front of them: tir/empty_reductions.h.
#include "passes/lower/lower.h"
#include "schedule/analysis.h"
#include "tir/empty_reductions.h"

namespace sator::passes {

using namespace tir;

PrimFuncRef lower_init_block(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(with_empty_reductions(func->body), [](const Block& block) -> Stmt {
    if (!block.init) return ref(block);
    if (block.annotations.contains(schedule::kInitFollows))
      fail({.what = text("the init of block ", string_literal(block.name->text), " was to be taken out of its sum"),
            .needs = "after rfactor with init_follows=True, decompose_reduction of the block that it made",
            .hint = text("decompose_reduction(\"", block.name->text, "\", LOOP)")});
    Expr first = bool_imm(true);
    for (const IterVarRef& iter : block.iter_vars)
      if (iter->kind == IterKind::reduce) first = logical_and(first, eq(iter->var, iter->dom->min));
    Stmt init = first.as<IntImm>() ? block.init : Stmt(make<IfThenElse>(first, block.init, Stmt()));
    return with(*with(block, &Block::init, Stmt()), &Block::body, seq({init, block.body}));
  });
  return with_body(func, body);
}

}  // namespace sator::passes
