#include "schedule/loops.h"

#include "arith/iter_map.h"
#include "arith/kind.h"

namespace sator::schedule {

using namespace tir;

MaybeReason not_a_plain_loop(const Schedule& s, const Loop& loop, const std::string& verb) {
  const For& node = s.get(loop);
  if (node.kind == LoopKind::thread_binding || !node.annotations.empty())
    return Reason{.what = text("loop ", loop->name, node.annotations.empty() ? " is bound" : " is annotated"),
                  .needs = "a loop that is not bound and has no annotations",
                  .hint = text(verb, " before bind and annotate"),
                  .at = {{Stmt(&node), "bound or annotated"}}};
  if (is_zero(node.min)) return {};
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, s.site(loop));
  if (!analyzer.prove_equal(node.min, int_imm(0, node.min->dtype)))
    return Reason{.what = text("loop ", loop->name, " does not start at 0"),
                  .needs = "a loop from 0",
                  .hint = "shift the loop first",
                  .at = {{Stmt(&node), "starts elsewhere"}}};
  return {};
}

namespace {

class BindingSimplifier {
 public:
  BindingSimplifier(arith::RangeMap domain, arith::Analyzer& analyzer, bool preserve_unit_iters)
      : domain_(std::move(domain)), analyzer_(analyzer), preserve_unit_iters_(preserve_unit_iters) {}

  Stmt operator()(const Stmt& stmt) {
    if (const For* loop = stmt.as<For>()) {
      bool fresh = domain_.emplace(loop->var, make<Range>(loop->min, loop->extent)).second;
      analyzer_.bind(loop->var, make<Range>(loop->min, loop->extent));
      Stmt body = (*this)(loop->body);
      if (fresh) domain_.erase(loop->var);
      return body == loop->body ? stmt : Stmt(with(*loop, &For::body, body));
    }
    if (const BlockRealize* realize = stmt.as<BlockRealize>()) {
      if (realize->values.empty()) return simplify_inside(*realize);
      std::vector<Expr> values = arith::iter_map_simplify(realize->values,
                                                          domain_,
                                                          realize->predicate,
                                                          arith::IterMapLevel::surjective,
                                                          analyzer_,
                                                          !preserve_unit_iters_);
      return values == realize->values ? stmt : Stmt(with(*realize, &BlockRealize::values, values));
    }
    return children(stmt);
  }

 private:
  /// A block without iterators (an opaque block) does not hide the loops around it.
  Stmt simplify_inside(const BlockRealize& realize) {
    Stmt body = (*this)(realize.block->body);
    if (body == realize.block->body) return Stmt(&realize);
    return with(realize, &BlockRealize::block, with(realize.block, &Block::body, body));
  }
  Stmt children(const Stmt& stmt) {
    return cast<StmtNode>(stmt->info().map_children(*stmt, [this](const NodeRef& child) -> NodeRef {
      Stmt inner = cast<StmtNode>(child);
      return inner ? NodeRef((*this)(inner)) : child;
    }));
  }
  arith::RangeMap domain_;
  arith::Analyzer& analyzer_;
  bool preserve_unit_iters_;
};

}  // namespace

Stmt simplify_bindings(const Schedule& s, Stmt nest, int outer_site, bool preserve_unit_iters) {
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, outer_site);
  arith::RangeMap domain;
  for (int i = outer_site; i >= 0 && s.sites()[i].loop(); i = s.sites()[i].parent) {
    const For* loop = s.sites()[i].loop();
    domain.emplace(loop->var, make<Range>(loop->min, loop->extent));
  }
  return BindingSimplifier(std::move(domain), analyzer, preserve_unit_iters)(nest);
}

Stmt with_predicate(const Stmt& stmt, const Expr& predicate) {
  if (const BlockRealize* realize = stmt.as<BlockRealize>())
    return with(*realize, &BlockRealize::predicate, logical_and(realize->predicate, predicate));
  return cast<StmtNode>(stmt->info().map_children(*stmt, [&](const NodeRef& child) -> NodeRef {
    Stmt inner = cast<StmtNode>(child);
    return inner ? NodeRef(with_predicate(inner, predicate)) : child;
  }));
}

std::vector<Expr> conditions_outside(const Sites& sites, int block_site, int outer) {
  std::vector<const For*> inside;
  for (int i = sites[block_site].parent; i >= 0 && i != outer && sites[i].loop(); i = sites[i].parent)
    inside.push_back(sites[i].loop());
  std::vector<Expr> out = arith::conjuncts(conjuncts_without(sites[block_site].realize()->predicate, inside));
  std::erase_if(out, [](const Expr& c) { return is_one(c); });
  return out;
}

Expr in_first_iterations(const Expr& predicate, const std::vector<const For*>& loops) {
  VarMap first;
  Expr none = bool_imm(false), all_run = bool_imm(true);
  arith::Analyzer analyzer;
  for (const For* loop : loops) {
    Expr extent = substitute(loop->extent, first);
    first.emplace(loop->var, substitute(loop->min, first));
    if (analyzer.prove_ge(extent, 1)) continue;
    const Expr zero = int_imm(0, extent->dtype);
    none = logical_or(none, le(extent, zero));
    all_run = logical_and(all_run, analyzer.simplify(gt(extent, zero)));  // in terms of the sizes
  }
  auto inside = analyzer.with_constraint(all_run);
  Expr out = bool_imm(true);
  for (const Expr& c : arith::conjuncts(predicate)) {
    Expr at_first = substitute(c, first);
    if (at_first == c)
      out = logical_and(out, c);
    else if (!analyzer.prove(at_first))
      out = logical_and(out, logical_or(none, analyzer.simplify(at_first)));
  }
  return out;
}

Expr conjuncts_without(const Expr& predicate, const std::vector<const For*>& dropped) {
  if (const And* both = predicate.as<And>())
    return logical_and(conjuncts_without(both->a, dropped), conjuncts_without(both->b, dropped));
  VarMap once;
  for (const For* loop : dropped) {
    if (is_one(loop->extent))
      once.emplace(loop->var, loop->min);
    else if (uses_var(predicate, *loop->var))
      return bool_imm(true);
  }
  Expr kept = substitute(predicate, once);
  arith::Analyzer analyzer;
  return kept == predicate ? predicate : analyzer.simplify(kept);
}

}  // namespace sator::schedule
