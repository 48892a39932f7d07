// Stores whose elements a later statement of the same sequence writes before anything reads them, and stores into memory of
// the function's own that nothing reads any more.
#include <algorithm>

#include "arith/analyzer.h"
#include "arith/kind.h"
#include "arith/linear.h"
#include "passes/lower/contents.h"
#include "passes/lower/useless_stores.h"

namespace sator::passes {

using namespace tir;

namespace {

/// A store with what runs it below a statement: loops and conditions.
struct Write {
  const BufferStore* store;
  std::vector<std::pair<VarRef, RangeRef>> loops;
  Expr where;
};

/// The stores below a statement that surely run where the loops and conditions say so.
void writes_of(const Stmt& stmt, Write around, std::vector<Write>& out) {
  if (const BufferStore* n = stmt.as<BufferStore>()) {
    around.store = n;
    out.push_back(around);
  } else if (const For* n = stmt.as<For>(); n && reads_nothing(n->min) && reads_nothing(n->extent)) {
    around.loops.emplace_back(n->var, make<Range>(n->min, n->extent));
    writes_of(n->body, std::move(around), out);
  } else if (const IfThenElse* n = stmt.as<IfThenElse>();
             n && reads_nothing(n->condition) && n->condition->dtype.lanes == 1) {
    Write otherwise = around;
    around.where = logical_and(around.where, n->condition);
    writes_of(n->then_case, std::move(around), out);
    if (!n->else_case) return;
    otherwise.where = logical_and(otherwise.where, logical_not(n->condition));
    writes_of(n->else_case, std::move(otherwise), out);
  } else if (const AttrStmt* n = stmt.as<AttrStmt>(); n && !n->node.as<ThreadAxis>()) {
    writes_of(n->body, std::move(around), out);
  } else if (const Seq* n = stmt.as<Seq>()) {
    for (const Stmt& s : n->stmts) writes_of(s, around, out);
  }
}

/// Whether the statement may read the memory: a load, a region, or its pointer.
bool reads(const Stmt& stmt, const VarRef& data) {
  bool found = false;
  walk(
      stmt,
      [&](const BufferLoad& n) { found |= n.buffer->data == data; },
      [&](const BufferRegion& n) { found |= n.buffer->data == data; },
      [&](const Call& n) {
        for (const Expr& a : n.args) found |= a.get() == data.get();
      },
      [&](const LetStmt& n) { found |= uses_var(n.value, *data); },
      [&](const AttrStmt& n) { found |= n.node && uses_var(n.node, *data); },
      [&](const While&) { found = true; });
  return found;
}

bool loads_of_value(const BufferStore& n, const VarRef& data) {
  bool found = false;
  auto look = [&](const Expr& e) { walk(e, [&](const BufferLoad& l) { found |= l.buffer->data == data; }); };
  look(n.value);
  for (const Expr& i : n.indices) look(i);
  return found;
}

/// Every element that `a` writes, `b` writes too.
bool covers(const Write& b, const Write& a) {
  if (a.store->buffer != b.store->buffer || a.store->value->dtype.lanes != 1 || b.store->value->dtype.lanes != 1)
    return false;
  arith::Analyzer analyzer;
  for (const auto& [var, range] : a.loops) analyzer.bind(var, range);
  auto inside = analyzer.with_constraint(a.where);
  VarMap found;
  for (const auto& [var, range] : b.loops) {
    for (size_t k = 0; k < b.store->indices.size() && !found.contains(var); ++k) {
      const Expr& index = b.store->indices[k];
      if (!reads_nothing(index) || !reads_nothing(a.store->indices[k])) return false;
      auto linear =
          uses_var(index, *var) && arith::is_index(index->dtype) ? arith::detect_linear(index, {var}) : std::nullopt;
      if (!linear || !is_one(linear->coefficients[0])) continue;
      bool alone = std::ranges::none_of(b.loops, [&](const auto& l) { return uses_var(linear->base, *l.first); });
      if (alone && a.store->indices[k]->dtype == var->dtype) found[var] = a.store->indices[k] - linear->base;
    }
    if (!found.contains(var)) return false;
  }
  for (const auto& [var, range] : b.loops) {
    Expr min = substitute(range->min, found), extent = substitute(range->extent, found);
    if (!analyzer.prove(le(min, found[var])) || !analyzer.prove(lt(found[var], min + extent))) return false;
  }
  if (!analyzer.prove(substitute(b.where, found))) return false;
  for (size_t k = 0; k < b.store->indices.size(); ++k) {
    if (!reads_nothing(b.store->indices[k]) || !reads_nothing(a.store->indices[k]) ||
        !analyzer.prove_equal(substitute(b.store->indices[k], found), a.store->indices[k]))
      return false;
  }
  return true;
}

/// The stores of `stmts[at]` that a later statement overwrites.
void find_overwritten(const std::vector<Stmt>& stmts, size_t at, std::unordered_set<const BufferStore*>& out) {
  std::vector<Write> early;
  writes_of(stmts[at], {nullptr, {}, bool_imm(true)}, early);
  for (const Write& a : early) {
    const VarRef& data = a.store->buffer->data;
    // Iterations of its own statement may read it, except where the statement is the store alone.
    if (stmts[at].get() == a.store ? false : reads(stmts[at], data)) continue;
    for (size_t later = at + 1; later < stmts.size(); ++later) {
      if (const BufferStore* alone = stmts[later].as<BufferStore>()) {
        if (loads_of_value(*alone, data)) break;
      } else if (reads(stmts[later], data)) {
        break;
      }
      std::vector<Write> over;
      writes_of(stmts[later], {nullptr, {}, bool_imm(true)}, over);
      if (std::ranges::any_of(over, [&](const Write& b) { return covers(b, a); })) {
        out.insert(a.store);
        break;
      }
    }
  }
}

Stmt without(const Stmt& body, std::unordered_set<const BufferStore*> stores) {
  if (stores.empty()) return body;
  // A node that stands in several places was looked at in one of them.
  std::unordered_map<const BufferStore*, int> places;
  walk(body, [&](const BufferStore& n) { ++places[&n]; });
  std::erase_if(stores, [&](const BufferStore* n) { return places[n] != 1; });
  return transform(body, [&](const BufferStore& n) -> Stmt { return stores.contains(&n) ? effects_of(n) : Stmt(&n); });
}

}  // namespace

Stmt without_overwritten_stores(const Stmt& body) {
  std::unordered_set<const BufferStore*> gone;
  walk(body, [&](const Seq& n) {
    for (size_t i = 0; i + 1 < n.stmts.size(); ++i) find_overwritten(n.stmts, i, gone);
  });
  return without(body, gone);
}

Stmt without_unread_stores(const Stmt& body) {
  std::unordered_set<const BufferStore*> gone;
  auto ends = [&](const VarRef& data, const Stmt& scope) {
    const Seq* n = scope.as<Seq>();
    if (!n) return;
    for (size_t i = n->stmts.size(); i-- > 0 && !reads(n->stmts[i], data);)
      walk(n->stmts[i], [&](const BufferStore& s) {
        if (s.buffer->data == data) gone.insert(&s);
      });
  };
  std::unordered_set<const Var*> allocated;
  walk(body, [&](const Allocate& n) { allocated.insert(n.data.get()); });
  // The scope of a memory, through the declarations directly below it.
  walk(body, [&](const Allocate& n) {
    Stmt scope = n.body;
    while (true) {
      if (const DeclBuffer* d = scope.as<DeclBuffer>())
        scope = d->body;
      else if (const Allocate* a = scope.as<Allocate>())
        scope = a->body;
      else
        break;
    }
    ends(n.data, scope);
  });
  return without(body, gone);
}

}  // namespace sator::passes
