#include <algorithm>

#include "arith/iter_map.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"
#include "schedule/reducers.h"

namespace sator::schedule {

using namespace tir;

namespace {

struct Factoring {
  int block = -1, loop = -1;
  std::vector<int> loops;  ///< around the block, outermost first
  size_t axis = 0;         ///< of the new buffer: where the loop becomes a dimension
  Reduction reduction;
};

/// Whether an iterator of the given kind is bound to an expression of the loop.
bool feeds(const BlockRealize& realize, const Loop& loop, bool reduction) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if ((realize.block->iter_vars[i]->kind == IterKind::reduce) == reduction && uses_var(realize.values[i], *loop))
      return true;
  }
  return false;
}

MaybeReason unfit_loops(const Schedule& s, const Factoring& plan) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  auto refuse = [&](int loop, std::string what, std::string needs, std::string hint) -> MaybeReason {
    return Reason{.what = text("loop ", sites[loop].loop()->var->name, " ", what),
                  .needs = std::move(needs),
                  .hint = std::move(hint),
                  .at = {{sites[loop].stmt, what}, {sites[plan.block].stmt, "the reduction"}}};
  };
  if (sites.blocks_under(plan.loops.front()).front() != plan.block)
    return refuse(plan.loops.front(),
                  "has another block first",
                  "the reduction is the first block in its loops",
                  "move the other block out, or choose it");
  bool in_reduction = false;
  for (int l : plan.loops) {
    const For& loop = *sites[l].loop();
    bool spatial = feeds(realize, loop.var, false), reduction = feeds(realize, loop.var, true);
    if (spatial && reduction)
      return refuse(
          l, "feeds a spatial and a reduction axis", "each loop feeds axes of one kind", "split the loop first");
    if (spatial && l == plan.loop)
      return refuse(l, "feeds a spatial axis", "a loop that feeds reduction axes only", "choose a reduction loop");
    if (reduction && !in_reduction) {
      in_reduction = true;
      if (sites.blocks_under(l).size() != 1)
        return refuse(l,
                      "has other blocks beside the reduction",
                      "the reduction is alone in its reduction loops",
                      "move the other blocks out");
    }
    if (!spatial && !reduction && in_reduction && !is_one(loop.extent))
      return refuse(l,
                    "feeds no axis and is below a reduction loop",
                    "loops below a reduction loop feed an axis",
                    "reorder it to the outside");
  }
  return {};
}

/// Why some part might have another number of instances than the others, or none; nothing if all have the same.
MaybeReason unequal_parts(const Schedule& s, const Factoring& plan) {
  const Sites& sites = s.sites();
  for (int l : plan.loops) {
    const For& loop = *sites[l].loop();
    if (!feeds(*sites[plan.block].realize(), loop.var, true)) continue;
    for (int other : plan.loops) {
      const Loop& outer = sites[other].loop()->var;
      if (uses_var(loop.min, *outer) || uses_var(loop.extent, *outer))
        return refusal_at(s,
                          l,
                          text("the range of loop ", loop.var->name, " depends on loop ", outer->name),
                          "reduction loops with the same range in every iteration of the others",
                          "factor a reduction over a box");
    }
  }
  return {};
}

/// Why the loops might take a term of the sum twice, which the parts would then hold both times; nothing if they take each once.
MaybeReason repeated_terms(const Schedule& s, const Factoring& plan) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  arith::RangeMap loops;
  for (int l : plan.loops) {
    const For& loop = *sites[l].loop();
    if (l == plan.loop || feeds(realize, loop.var, true)) loops.emplace(loop.var, make<Range>(loop.min, loop.extent));
  }
  std::vector<Expr> terms;
  for (size_t i = 0; i < realize.values.size(); ++i)
    if (realize.block->iter_vars[i]->kind == IterKind::reduce) terms.push_back(realize.values[i]);
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, plan.block);
  // Terms that all differ still do under a predicate.
  for (const Expr& predicate : {Expr(bool_imm(true)), realize.predicate})
    if (arith::detect_iter_map(terms, loops, predicate, arith::IterMapLevel::bijective, analyzer).ok()) return {};
  return refusal_at(s,
                    plan.loop,
                    text("loop ", sites[plan.loop].loop()->var->name, " may repeat terms of the reduction"),
                    "reduction loops that take each value of the reduction axes once",
                    "choose a loop that feeds a reduction axis, below those that repeat it");
}

/// The predicate depends on loops that are summed.
bool depends_on_sum(const Schedule& s, const Factoring& plan) {
  const BlockRealize& realize = *s.sites()[plan.block].realize();
  return std::ranges::any_of(plan.loops, [&](int l) {
    const Loop& loop = s.sites()[l].loop()->var;
    return feeds(realize, loop, true) && uses_var(realize.predicate, *loop);
  });
}

/// Why the reduction cannot be factored at this loop; nothing if it can. Fills `plan`.
MaybeReason cannot_rfactor(const Schedule& s, const Loop& loop, int factor_axis, bool init_follows, Factoring& plan) {
  const Sites& sites = s.sites();
  plan.loop = s.site(loop);
  std::vector<int> below = sites.blocks_under(plan.loop);
  if (below.size() != 1)
    return Reason{.what = text(below.size(), " blocks are under loop ", loop->name),
                  .needs = "exactly one block under the loop",
                  .hint = "choose a loop of the reduction alone",
                  .at = {{sites[plan.loop].stmt, "this loop"}}};
  plan.block = below.front();
  plan.loops = sites.loops_above(plan.block);
  const BlockRealize& realize = *sites[plan.block].realize();
  if (MaybeReason r = not_stage_pipeline(s, sites[plan.block].scope)) return r;
  if (MaybeReason r = ScopeAnalysis(s, sites[plan.block].scope).not_reduction(plan.block)) return r;
  const For& node = *sites[plan.loop].loop();
  if (node.kind != LoopKind::serial)
    return Reason{.what = text("loop ", loop->name, " is not serial"),
                  .needs = "a serial loop",
                  .hint = "rfactor before parallel, vectorize, unroll and bind",
                  .at = {{sites[plan.loop].stmt, "this loop"}}};
  if (MaybeReason r = unfit_loops(s, plan)) return r;
  if (MaybeReason r = unequal_parts(s, plan)) return r;
  if (MaybeReason r = repeated_terms(s, plan)) return r;
  if (!init_follows && depends_on_sum(s, plan))
    return Reason{
        .what = text(
            "the predicate of block ", string_literal(realize.block->name->text), " depends on its reduction loops"),
        .needs = "reduction loops without a predicate: a part without any instance would not be initialised",
        .hint =
            "split the reduction by a factor that divides it, or say init_follows=True and decompose_reduction next",
        .at = {{sites[plan.block].stmt, "this block"}}};
  if (MaybeReason r = not_a_known_reduction(s, plan.block, plan.reduction)) return r;
  auto rank = plan.reduction.buffers[0]->rank();
  if (factor_axis < -rank - 1 || factor_axis > rank)
    return Reason{.what = text("factor_axis ", factor_axis, " is outside of a buffer of rank ", rank + 1),
                  .needs = text(-rank - 1, " <= factor_axis <= ", rank),
                  .hint = "0 puts the new dimension first",
                  .at = {{sites[plan.block].stmt, "the reduction"}}};
  plan.axis = static_cast<size_t>(factor_axis < 0 ? factor_axis + rank + 1 : factor_axis);
  return {};
}

/// A block's iterators while they are collected.
struct NewIterators {
  std::vector<IterVarRef> vars;
  std::vector<Expr> values;
  VarMap old_to_new;

  VarRef add(const For& loop, IterKind kind) {
    VarRef v = make_var("v" + loop.var->name, loop.var->dtype);
    vars.push_back(make<IterVar>(make<Range>(loop.min, loop.extent), v, kind));
    values.push_back(loop.var);
    return v;
  }
  void add_copy(const IterVarRef& iter, const Expr& value) {
    VarRef v = make_var(iter->var->name, iter->var->dtype);
    vars.push_back(make<IterVar>(iter->dom, v, iter->kind));
    values.push_back(value);
    old_to_new.emplace(iter->var, v);
  }
  bool reduce() const {
    return std::any_of(vars.begin(), vars.end(), [](const IterVarRef& i) { return i->kind == IterKind::reduce; });
  }
};

std::vector<Expr> substituted(const std::vector<Expr>& list, const VarMap& map) {
  std::vector<Expr> out;
  for (const Expr& e : list) out.push_back(substitute(e, map));
  return out;
}

/// The place of one of the loop's iterations among its parts, which are counted from 0.
Expr from_zero(const VarRef& iteration, const For& loop) {
  return is_zero(loop.min) ? iteration : iteration - loop.min;
}

/// The block that combines `operands` into `buffers`; without a reduction axis it just stores them.
BlockRef combining_block(const Factoring& plan, NewIterators iters, const std::vector<BufferRef>& buffers,
                         const std::vector<Expr>& indices, const std::vector<Expr>& operands,
                         std::vector<BufferRegionRef> reads, BlockHandle name, const Attrs& annotations) {
  std::vector<BufferRegionRef> writes;
  std::vector<Stmt> inits, stores;
  for (size_t k = 0; k < buffers.size(); ++k) {
    writes.push_back(point_region(buffers[k], indices));
    inits.push_back(store(buffers[k], plan.reduction.identity[k], indices));
    stores.push_back(store(buffers[k], operands[k], indices));
  }
  bool reduce = iters.reduce();
  Stmt body = reduce ? reduction_update(*plan.reduction.reducer, buffers, indices, operands) : seq(std::move(stores));
  return make<Block>(std::move(iters.vars),
                     std::vector<BufferRef>{},
                     std::vector<MatchBufferRef>{},
                     std::move(reads),
                     std::move(writes),
                     std::move(name),
                     annotations,
                     reduce ? seq(std::move(inits)) : Stmt(),
                     body);
}

/// Makes a reduction loop a dimension: a first block reduces for each of its iterations apart, into a new buffer with one
/// more dimension, and a second one, under the old name, reduces these parts.
///   for k0, k1: C += A[k0 * 4 + k1]
///   =>   for k0, k1: C_rf[k1] += A[k0 * 4 + k1];   for k1: C += C_rf[k1]      (of loop k1)
/// `factor_axis` is the place of the new dimension; negative ones count from the end. Returns the first block, {block}_rf.
/// A floating sum is then added in another order. With `init_follows`, the predicate may depend on the loops that are summed: the
/// first block is annotated so (kInitFollows) until decompose_reduction takes its init out, for all parts.
BlockHandle do_rfactor(Schedule& s, Loop loop, int factor_axis, bool init_follows) {
  Factoring plan;
  s.require(cannot_rfactor(s, loop, factor_axis, init_follows, plan));
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  const Block& old = *realize.block;
  const For& rf_loop = *sites[plan.loop].loop();
  auto axis = static_cast<std::ptrdiff_t>(plan.axis);

  std::vector<BufferRef> parts;
  for (const BufferRef& b : plan.reduction.buffers) {
    std::vector<Expr> shape = b->shape;
    shape.insert(shape.begin() + axis, rf_loop.extent);
    parts.push_back(make_buffer(b->name + "_rf", std::move(shape), b->dtype, b->scope()));
  }

  // The first block: reduction axes of the loop are taken apart into the loops they are made of.
  NewIterators first;
  VarMap loop_to_iter;
  VarRef part = first.add(rf_loop, IterKind::spatial);
  loop_to_iter.emplace(loop, part);
  for (size_t i = 0; i < old.iter_vars.size(); ++i) {
    const IterVarRef& iter = old.iter_vars[i];
    if (iter->kind == IterKind::spatial || !uses_var(realize.values[i], *loop)) {
      first.add_copy(iter, realize.values[i]);
      continue;
    }
    for (const VarRef& v : vars_in(realize.values[i])) {
      int at = sites.find(v);
      if (at >= 0 && !loop_to_iter.count(v)) loop_to_iter.emplace(v, first.add(*sites[at].loop(), IterKind::reduce));
    }
    first.old_to_new.emplace(iter->var, substitute(realize.values[i], loop_to_iter));
  }
  std::vector<Expr> part_at = substituted(plan.reduction.indices, first.old_to_new);
  part_at.insert(part_at.begin() + axis, from_zero(part, rf_loop));
  std::vector<BufferRegionRef> reads;
  for (const BufferRegionRef& r : old.reads) reads.push_back(substitute(r, first.old_to_new));
  BlockHandle first_name = block_name(old.name->text + "_rf");
  std::vector<Expr> first_values = first.values;
  Attrs first_annotations = old.annotations;
  if (depends_on_sum(s, plan)) first_annotations[kInitFollows] = bool_imm(true);
  BlockRef first_block = combining_block(plan,
                                         first,
                                         parts,
                                         part_at,
                                         substituted(plan.reduction.operands, first.old_to_new),
                                         std::move(reads),
                                         first_name,
                                         first_annotations);

  // The second block keeps the spatial axes; the loop is its reduction axis.
  NewIterators second;
  VarRef which = second.add(rf_loop, IterKind::reduce);
  for (size_t i = 0; i < old.iter_vars.size(); ++i) {
    if (old.iter_vars[i]->kind == IterKind::spatial) second.add_copy(old.iter_vars[i], realize.values[i]);
  }
  std::vector<Expr> at = substituted(plan.reduction.indices, second.old_to_new), from = at;
  from.insert(from.begin() + axis, from_zero(which, rf_loop));
  std::vector<Expr> operands;
  std::vector<BufferRegionRef> second_reads;
  for (const BufferRef& b : parts) {
    operands.push_back(load(b, from));
    second_reads.push_back(point_region(b, from));
  }
  std::vector<Expr> second_values = second.values;
  BlockRef second_block = combining_block(
      plan, second, plan.reduction.buffers, at, operands, std::move(second_reads), old.name, old.annotations);

  // The first block gets loops of its own; around the second, the other reduction loops go.
  VarMap fresh;
  for (int l : plan.loops)
    fresh.emplace(sites[l].loop()->var, make_var(sites[l].loop()->var->name, sites[l].loop()->var->dtype));
  Stmt first_nest =
      make<BlockRealize>(substituted(first_values, fresh), substitute(realize.predicate, fresh), first_block);
  // Which terms there are is the first block's business.
  std::vector<const For*> summed;
  for (int l : plan.loops) {
    if (feeds(realize, sites[l].loop()->var, true)) summed.push_back(sites[l].loop());
  }
  Stmt second_nest = make<BlockRealize>(second_values, conjuncts_without(realize.predicate, summed), second_block);
  Stmt below = Stmt(&realize);
  for (size_t i = plan.loops.size(); i-- > 0;) {
    const For& f = *sites[plan.loops[i]].loop();
    first_nest = make<For>(cast<Var>(fresh.at(f.var)),
                           substitute(f.min, fresh),
                           substitute(f.extent, fresh),
                           f.kind,
                           f.thread,
                           f.annotations,
                           first_nest);
    Stmt body = replaced(f.body, NodeMap{{below, second_nest}});
    bool gone = feeds(realize, f.var, true) && &f != &rf_loop;
    second_nest = gone ? body : Stmt(with(f, &For::body, body));
    below = Stmt(&f);
  }
  int scope_site = sites[plan.block].scope;
  const Block& scope = *sites[scope_site].realize()->block;
  std::vector<BufferRef> allocations = scope.alloc_buffers;
  allocations.insert(allocations.end(), parts.begin(), parts.end());
  replace_scope(
      s, scope_site, replaced(scope.body, NodeMap{{below, seq({first_nest, second_nest})}}), std::move(allocations));
  return first_name;
}

}  // namespace

const Primitive<BlockHandle(Loop, int, bool)> rfactor{"rfactor",
                                                      do_rfactor,
                                                      {"loop", "factor_axis", Parameter::own("init_follows")},
                                                      "makes a reduction loop a dimension of partial results"};

}  // namespace sator::schedule
