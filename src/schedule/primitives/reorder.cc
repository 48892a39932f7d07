#include <algorithm>

#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The single-branch chain of loops that holds all of `loops`, outermost first; empty if there is none.
std::vector<int> chain_of(const Schedule& s, const std::vector<Loop>& loops) {
  int bottom = s.site(loops.front());
  for (const Loop& l : loops) {
    if (s.sites()[s.site(l)].depth > s.sites()[bottom].depth) bottom = s.site(l);
  }
  std::vector<int> chain;
  size_t left = loops.size();
  for (int i = bottom; left > 0; i = s.sites()[i].parent) {
    if (i < 0 || !s.sites()[i].loop()) return {};
    if (!chain.empty() && s.sites()[i].loop()->body != s.sites()[chain.back()].stmt) return {};
    chain.push_back(i);
    for (const Loop& l : loops) left -= s.site(l) == i;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

/// The chain's loops in their new order: positions of the reordered loops are filled in the order given.
std::vector<int> new_order(const Schedule& s, const std::vector<int>& chain, const std::vector<Loop>& loops) {
  std::vector<int> order;
  size_t next = 0;
  for (int i : chain) {
    bool moved = std::find(loops.begin(), loops.end(), s.sites()[i].loop()->var) != loops.end();
    order.push_back(moved ? s.site(loops[next++]) : i);
  }
  return order;
}

/// Why the loops cannot change places; nothing if they can.
MaybeReason cannot_reorder(const Schedule& s, const std::vector<Loop>& loops) {
  if (loops.empty())
    return Reason{
        .what = "no loop is given", .needs = "one or more loops", .hint = "pass the loops in their new order"};
  for (size_t k = 0; k < loops.size(); ++k) {
    if (std::find(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(k), loops[k]) !=
        loops.begin() + static_cast<std::ptrdiff_t>(k))
      return Reason{.what = text("loop ", loops[k]->name, " is given twice"),
                    .needs = "each loop once",
                    .hint = "leave the second one out",
                    .at = {{Stmt(&s.get(loops[k])), "given twice"}}};
  }
  std::vector<int> chain = chain_of(s, loops);
  if (chain.empty()) {
    std::vector<At> at;
    for (const Loop& l : loops) at.push_back({Stmt(&s.get(l)), "not on one chain with the others"});
    return Reason{.what = "the loops do not lie on one chain",
                  .needs = "loops nested in each other with nothing between",
                  .hint = "reorder before compute_at puts blocks between them",
                  .at = std::move(at)};
  }
  std::vector<int> order = new_order(s, chain, loops);
  for (size_t outer = 0; outer < order.size(); ++outer) {
    const For& loop = *s.sites()[order[outer]].loop();
    for (size_t inner = outer + 1; inner < order.size(); ++inner) {
      const Loop& below = s.sites()[order[inner]].loop()->var;
      if (uses_var(loop.min, *below) || uses_var(loop.extent, *below))
        return Reason{.what = text("the range of loop ", loop.var->name, " depends on loop ", below->name),
                      .needs = "a loop stays inside of the loops its range depends on",
                      .hint = "keep their order",
                      .at = {{Stmt(&loop), "dependent range"}}};
    }
  }
  for (int b : s.sites().blocks_under(chain.front())) {
    const Block& block = *s.sites()[b].realize()->block;
    for (const IterVarRef& iter : block.iter_vars) {
      if (iter->kind != IterKind::spatial && iter->kind != IterKind::reduce)
        return Reason{.what = text("axis ",
                                   iter->var->name,
                                   " of block ",
                                   string_literal(block.name->text),
                                   " is neither spatial nor a reduction"),
                      .needs = "axes whose instances may run in any order",
                      .hint = "leave the loop where it is",
                      .at = {{s.sites()[b].stmt, "ordered axis"}}};
    }
    // An init runs where all reduction axes are at their first value, which must stay the first instance of its element.
    const BlockRealize& realize = *s.sites()[b].realize();
    for (const Loop& l : loops) {
      bool spatial = false, reduction = false;
      for (size_t i = 0; i < realize.values.size(); ++i) {
        if (uses_var(realize.values[i], *l))
          (block.iter_vars[i]->kind == IterKind::reduce ? reduction : spatial) = true;
      }
      if (block.init && spatial && reduction && loops.size() > 1)
        return Reason{
            .what = text(
                "loop ", l->name, " feeds a spatial and a reduction axis of block ", string_literal(block.name->text)),
            .needs = "loops that feed axes of one kind, where the block has an init",
            .hint = "decompose_reduction first, or do not fuse spatial with reduction loops",
            .at = {{Stmt(&s.get(l)), "feeds both"}, {s.sites()[b].stmt, "this block"}}};
    }
    if (!has_affine_binding(s, b) && !has_affine_binding(s, b, chain.front()))
      return Reason{.what = text("the bindings of block ", string_literal(block.name->text), " are not quasi-affine"),
                    .needs = "affine bindings of all blocks under the loops",
                    .hint = "reorder before fusing unevenly",
                    .at = {{s.sites()[b].stmt, "not affine"}}};
  }
  return {};
}

/// Puts loops of one chain into the order given; loops between them keep their places.
///   for i, j: S   =>   for j, i: S
void do_reorder(Schedule& s, std::vector<Loop> loops) {
  s.require(cannot_reorder(s, loops));
  std::vector<int> chain = chain_of(s, loops);
  std::vector<int> order = new_order(s, chain, loops);
  const Sites& sites = s.sites();
  Stmt nest = sites[chain.back()].loop()->body;
  for (size_t k = order.size(); k-- > 0;) nest = with(*sites[order[k]].loop(), &For::body, nest);
  s.replace(sites[chain.front()].stmt, nest);
}

}  // namespace

const Primitive<void(std::vector<Loop>)> reorder{
    "reorder", do_reorder, {"loops"}, "puts nested loops into another order"};

}  // namespace sator::schedule
