#include "schedule/coverage.h"

#include <algorithm>

#include "arith/kind.h"
#include "schedule/loops.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// A store to the buffer, in terms of loops alone.
struct Store {
  std::vector<Expr> indices;
  arith::RangeMap loops;   ///< between the place of the copy and the store
  Expr predicate;          ///< of blocks and branches around it
  bool is_bounded = true;  ///< false under a while loop, or where the condition reads memory
};

/// The stores below a statement.
class StoreFinder {
 public:
  StoreFinder(BufferRef buffer, arith::RangeMap loops) : buffer_(std::move(buffer)), loops_(std::move(loops)) {}

  std::vector<Store> stores;

  void visit(const BlockRealize& realize) {
    auto outer = predicate_;
    predicate_ = logical_and(predicate_, inlined(realize.predicate));
    for (size_t i = 0; i < realize.values.size(); ++i)
      values_[realize.block->iter_vars[i]->var] = inlined(realize.values[i]);
    // The init of an element runs in its first instance.
    if (realize.block->init) visit(realize.block->init);
    visit(realize.block->body);
    predicate_ = outer;
  }

 private:
  Expr inlined(const Expr& e) const { return substitute(e, values_); }

  void visit(const Stmt& stmt) {
    if (const BlockRealize* n = stmt.as<BlockRealize>()) return visit(*n);
    if (const For* n = stmt.as<For>()) {
      loops_[n->var] = make<Range>(inlined(n->min), inlined(n->extent));
      return visit(n->body);
    }
    if (const LetStmt* n = stmt.as<LetStmt>()) {
      values_[n->var] = inlined(n->value);
      return visit(n->body);
    }
    if (const IfThenElse* n = stmt.as<IfThenElse>()) {
      auto outer = predicate_;
      predicate_ = logical_and(outer, inlined(n->condition));
      visit(n->then_case);
      predicate_ = logical_and(outer, logical_not(inlined(n->condition)));
      if (n->else_case) visit(n->else_case);
      predicate_ = outer;
      return;
    }
    if (const BufferStore* n = stmt.as<BufferStore>()) {
      if (n->buffer != buffer_) return;
      Store found{{}, loops_, predicate_, !in_while_};
      for (const Expr& i : n->indices) found.indices.push_back(inlined(i));
      stores.push_back(std::move(found));
      return;
    }
    const bool outer = in_while_;
    in_while_ |= stmt.as<While>() != nullptr;
    stmt->info().each_child(*stmt, [this](const NodeRef& child) {
      if (const StmtNode* inner = child->as<StmtNode>()) visit(ref(*inner));
    });
    in_while_ = outer;
  }

  BufferRef buffer_;
  arith::RangeMap loops_;
  Expr predicate_ = bool_imm(true);
  VarMap values_;
  bool in_while_ = false;
};

arith::Region points(const std::vector<Expr>& indices) {
  arith::Region out;
  for (const Expr& i : indices) out.push_back(make<Range>(i, int_imm(1, i->dtype)));
  return out;
}

/// What the store covers: the exact box under its predicate, or without it where the predicate only says that the element
/// lies in the buffer, or speaks of loops that the element does not depend on and holds in their first iteration.
std::optional<std::vector<arith::IntSet>> covered(const Store& store, const Buffer& buffer,
                                                  const std::vector<Expr>& outside, arith::Analyzer& analyzer) {
  if (!store.is_bounded) return {};
  arith::Region at = points(store.indices);
  if (auto box = arith::estimate_region_lower_bound(at, store.loops, store.predicate, analyzer)) return box;
  auto box = arith::estimate_region_lower_bound(at, store.loops, bool_imm(true), analyzer);
  if (!box) return {};
  Expr inside = bool_imm(true);
  for (size_t d = 0; d < store.indices.size(); ++d) {
    const Expr& i = store.indices[d];
    inside = logical_and(inside, logical_and(ge(i, int_imm(0, i->dtype)), lt(i, buffer.shape[d])));
  }
  VarMap first;
  for (const auto& [var, range] : store.loops) {
    bool used = std::ranges::any_of(store.indices, [&](const Expr& i) { return uses_var(i, *var); });
    if (!used || is_one(range->extent)) first.emplace(var, range->min);
  }
  for (const auto& [var, range] : store.loops) analyzer.bind(var, range);
  for (const Expr& c : outside) inside = logical_and(inside, c);
  auto known = analyzer.with_constraint(inside);
  for (const Expr& part : arith::conjuncts(store.predicate))
    if (!analyzer.prove(substitute(part, first), arith::Strength::symbolic)) return {};
  return box;
}

}  // namespace

std::string leaves_unwritten(const Schedule& s, int block_site, const BufferRef& buffer, int location) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block_site].realize();
  const arith::RangeMap loops = loop_domain(sites, sites[block_site].parent, location, buffer->scope());
  StoreFinder finder(buffer, loops);
  finder.visit(realize);
  if (finder.stores.empty()) return "";
  const std::vector<Expr> outside = conditions_outside(sites, block_site, location);
  std::vector<std::vector<arith::IntSet>> boxes;
  for (const Store& store : finder.stores) {
    arith::Analyzer analyzer;
    s.bind_ranges(analyzer, location);
    if (auto box = covered(store, *buffer, outside, analyzer)) boxes.push_back(std::move(*box));
  }
  const std::string block = string_literal(realize.block->name->text);
  if (boxes.empty()) return text("block ", block, " may leave elements of ", buffer->name, " unwritten");
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, location);
  std::vector<arith::IntSet> written = arith::unite_regions_lower_bound(boxes);
  for (const BufferRegionRef& w : realize.block->writes) {
    if (w->buffer != buffer) continue;
    std::vector<arith::IntSet> spanned = arith::estimate_region_upper_bound(
        substitute_region(w->region, bindings_of(realize)), loops, realize.predicate, analyzer);
    if (!covers(buffer, written, spanned, analyzer))
      return text("block ", block, " may leave elements of ", buffer->name, " unwritten");
  }
  return "";
}

}  // namespace sator::schedule
