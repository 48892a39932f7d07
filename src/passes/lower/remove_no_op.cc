// Statements that do nothing go: loops over nothing, branches to nothing, constants evaluated for their effect.
#include "ir/builtins.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_nothing(const Stmt& s) {
  if (!s) return true;
  if (const Evaluate* n = s.as<Evaluate>()) return !has_side_effect(n->value);
  const Seq* n = s.as<Seq>();
  return n && n->stmts.empty();
}
Stmt nothing() { return make<Evaluate>(int_imm(0)); }

}  // namespace

PrimFuncRef remove_no_op(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(
      func->body,
      [](const Seq& n) -> Stmt {
        std::vector<Stmt> kept;
        for (const Stmt& s : n.stmts)
          if (!is_nothing(s)) kept.push_back(s);
        if (kept.size() == n.stmts.size()) return ref(n);
        return kept.empty() ? nothing() : seq(std::move(kept));
      },
      [](const For& n) -> Stmt { return is_nothing(n.body) || is_zero(n.extent) ? nothing() : Stmt(&n); },
      [](const IfThenElse& n) -> Stmt {
        if (is_nothing(n.then_case) && is_nothing(n.else_case) && !has_side_effect(n.condition)) return nothing();
        if (!n.else_case || !is_nothing(n.else_case)) return ref(n);
        return make<IfThenElse>(n.condition, n.then_case, Stmt());
      },
      [](const LetStmt& n) -> Stmt { return is_nothing(n.body) && !has_side_effect(n.value) ? nothing() : Stmt(&n); },
      [](const Allocate& n) -> Stmt { return is_nothing(n.body) ? nothing() : Stmt(&n); },
      [](const DeclBuffer& n) -> Stmt { return is_nothing(n.body) ? nothing() : Stmt(&n); },
      [](const AttrStmt& n) -> Stmt { return is_nothing(n.body) ? nothing() : Stmt(&n); });
  return with_body(func, body);
}

}  // namespace sator::passes
