// Statements that do nothing go: loops over nothing, branches to nothing, constants evaluated for their effect, elements
// stored where they lie, bindings and temporaries that nobody reads.
#include "ir/builtins.h"
#include "passes/lower/useless_stores.h"

namespace sator::passes {

using namespace tir;

namespace {

bool is_nothing(const Stmt& s) {
  if (!s) return true;
  if (const Evaluate* n = s.as<Evaluate>()) return !has_side_effect(n->value);
  const Seq* n = s.as<Seq>();
  return n && n->stmts.empty();
}

bool stores_itself(const BufferStore& n) {
  const BufferLoad* load = n.value.as<BufferLoad>();
  if (!load || load->buffer != n.buffer) return false;
  for (const Expr& i : n.indices) {
    if (!is_pure(i)) return false;
  }
  return std::ranges::equal(load->indices, n.indices, [](const Expr& a, const Expr& b) { return equal(a, b); });
}

/// The memory that is allocated, written, and neither read nor named otherwise.
std::unordered_set<const Var*> unread(const Stmt& body) {
  std::unordered_set<const Var*> out;
  walk(body, [&](const Allocate& n) { out.insert(n.data.get()); });
  if (out.empty()) return out;
  walk(
      body,
      [&](const BufferLoad& n) { out.erase(n.buffer->data.get()); },
      [&](const Block& n) {  // what a block matches has another name inside
        for (const auto& m : n.match_buffers) out.erase(m->source->buffer->data.get());
      },
      // A pointer on its own. The pointer of an allocation, a declaration or a store is no use.
      [&](const Call& n) {
        for (const Expr& a : n.args)
          if (const Var* v = a.as<Var>()) out.erase(v);
      },
      [&](const LetStmt& n) {
        for (const VarRef& v : vars_in(n.value)) out.erase(v.get());
      },
      [&](const Let& n) {
        for (const VarRef& v : vars_in(n.value)) out.erase(v.get());
      },
      [&](const AttrStmt& n) {
        if (n.node) {
          for (const VarRef& v : vars_in(n.node)) out.erase(v.get());
        }
      });
  return out;
}

Stmt once(const Stmt& stmt) {
  std::unordered_set<const Var*> dead = unread(stmt);
  auto is_dead = [&](const Buffer& b) { return dead.contains(b.data.get()); };
  return transform(
      stmt,
      [&](const BufferStore& n) -> Stmt { return is_dead(*n.buffer) || stores_itself(n) ? effects_of(n) : Stmt(&n); },
      [](const Seq& n) -> Stmt {
        std::vector<Stmt> kept;
        for (const Stmt& s : n.stmts)
          if (!is_nothing(s)) kept.push_back(s);
        if (kept.size() == n.stmts.size()) return ref(n);
        return kept.empty() ? nothing() : seq(std::move(kept));
      },
      [](const For& n) -> Stmt { return is_nothing(n.body) || is_zero(n.extent) ? nothing() : Stmt(&n); },
      [](const IfThenElse& n) -> Stmt {
        bool no_then = is_nothing(n.then_case), no_else = is_nothing(n.else_case);
        if (no_then && no_else) return effects_of({n.condition});
        if (no_then && n.condition->dtype.is_bool())
          return make<IfThenElse>(make<Not>(n.condition), n.else_case, Stmt());
        if (!n.else_case || !no_else) return ref(n);
        return make<IfThenElse>(n.condition, n.then_case, Stmt());
      },
      [](const LetStmt& n) -> Stmt {
        if (!is_nothing(n.body) && uses_var(n.body, *n.var)) return ref(n);
        if (!has_side_effect(n.value)) return n.body;
        return is_nothing(n.body) ? make<Evaluate>(n.value) : seq({make<Evaluate>(n.value), n.body});
      },
      [&](const Allocate& n) -> Stmt { return is_nothing(n.body) || dead.contains(n.data.get()) ? n.body : Stmt(&n); },
      [&](const DeclBuffer& n) -> Stmt { return is_nothing(n.body) || is_dead(*n.buffer) ? n.body : Stmt(&n); },
      [](const AttrStmt& n) -> Stmt { return is_nothing(n.body) ? nothing() : Stmt(&n); });
}

}  // namespace

PrimFuncRef remove_no_op(const PrimFuncRef& func, const LowerOptions& options) {
  bool follow = option(options, "tir.RemoveNoOp.use_dataflow_analysis", 0) != 0;
  Stmt body = without_unread_stores(without_known_stores(func->body, follow));
  if (follow) body = without_overwritten_stores(body);
  // What goes may have been the only reader of something else.
  for (Stmt before; before != body;) {
    before = body;
    body = once(body);
  }
  return with_body(func, body);
}

}  // namespace sator::passes
