#include <algorithm>

#include "arith/iter_map.h"
#include "arith/kind.h"
#include "ir/builtins.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// y[v] = T.if_then_else(predicate, inside, padding)
struct PaddedBlock {
  int site, loop;                 ///< `loop`: the padding goes in front of it
  std::vector<const For*> loops;  ///< around the block in its scope, innermost first
  Expr inside, padding;
  Expr predicate;                ///< of what is not padding, over the loops
  std::vector<RangeRef> region;  ///< the iterators' values there; null: those that the predicate leaves
};

/// The conditions one after the other, without T.likely.
Expr conjunction(const std::vector<Expr>& parts) {
  Expr out = bool_imm(true);
  for (const Expr& p : parts) {
    for (const Expr& c : arith::conjuncts(p)) {
      const Call* likely = c.as<Call>();
      out = logical_and(out, likely && likely->op == "tir.likely" ? likely->args[0] : c);
    }
  }
  return out;
}

void bind_loops(const PaddedBlock& plan, arith::Analyzer& a) {
  for (const For* l : plan.loops) a.bind(l->var, make<Range>(l->min, l->extent));
}

/// Why the block is no padding that can be taken apart; nothing if it is. Completes the plan.
MaybeReason cannot_decompose_padding(const Schedule& s, PaddedBlock& plan, const Loop& loop) {
  const Sites& sites = s.sites();
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return block_refusal(s, plan.site, std::move(what), std::move(needs), std::move(hint));
  };
  if (sites[plan.site].scope < 0)
    return refuse("is the root block", "a block inside of the function", "choose a child block");
  std::vector<int> loops = sites.loops_above(plan.site);
  if (std::ranges::find(loops, plan.loop) == loops.end())
    return refuse(text("is not below loop ", loop->name), "a loop above the block", "take one of get_loops(block)");
  if (MaybeReason r = ScopeAnalysis(s, sites[plan.site].scope).not_complete(plan.site)) return r;
  const BlockRealize& realize = *sites[plan.site].realize();
  const Block& block = *realize.block;
  const BufferStore* write = block.body.as<BufferStore>();
  const Call* choice = write ? write->value.as<Call>() : nullptr;
  if (!choice || choice->op != "tir.if_then_else" || block.init)
    return refuse("does not store a T.if_then_else alone",
                  "a block of the form y[v] = T.if_then_else(inside, x, constant)",
                  "compute the padding in a block of its own");
  plan.inside = choice->args[1];
  plan.padding = choice->args[2];
  if (!plan.padding.as<IntImm>() && !plan.padding.as<FloatImm>())
    return refuse(text("pads with ", plan.padding), "a constant", "put the constant last in T.if_then_else");
  if (has_side_effect(plan.inside))
    return refuse("calls what has an effect", "loads and arithmetic", "take the call out");

  arith::RangeMap ranges, domains;
  for (size_t i = loops.size(); i-- > 0;) {
    const For* l = sites[loops[i]].loop();
    plan.loops.push_back(l);
    ranges[l->var] = make<Range>(l->min, l->extent);
  }
  arith::Analyzer a, of_iters;
  bind_loops(plan, a);
  for (const IterVarRef& i : block.iter_vars) domains[i->var] = i->dom;
  // Two instances at one element: the last one's value stood there.
  if (!arith::detect_iter_map(write->indices, domains, nullptr, arith::IterMapLevel::bijective, of_iters).ok())
    return refuse("may write an element twice", "an element for each instance of the block", "index by the iterators");
  VarMap values;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) values[block.iter_vars[i]->var] = realize.values[i];
  plan.predicate = a.simplify(conjunction({substitute(choice->args[0], values), realize.predicate}));
  if (is_one(plan.predicate))
    return refuse("has no padding: its condition always holds", "a condition that excludes some elements", "leave it");
  arith::IterMap map =
      arith::detect_iter_map(realize.values, ranges, plan.predicate, arith::IterMapLevel::surjective, a);
  if (!map.ok())
    return refuse(text("is not padded around a box: ", map.error),
                  "conditions that bound the iterators one by one",
                  "pad with comparisons of single iterators");
  for (const arith::IterSum& sum : map.indices) {
    if (sum.args.size() > 1 || (!sum.args.empty() && !is_one(sum.args[0].scale)))
      return refuse("steps over elements", "iterators that take every value of a range", "decompose before split");
    // A loop outside of the scope, as around a part of loop_partition, cannot be named in the block.
    const bool follows = std::ranges::any_of(vars_in(sum.base), [&](const VarRef& v) { return sites.find(v) >= 0; });
    if (follows) {
      plan.region.push_back(nullptr);
      continue;
    }
    plan.region.push_back(make<Range>(sum.base, sum.args.empty() ? int_imm(1, sum.base->dtype) : sum.args[0].extent));
  }
  return {};
}

/// The block that stores the padding in all elements, under copies of the loops up to `plan.loop`.
std::pair<Stmt, BlockHandle> padding_nest(const Schedule& s, const PaddedBlock& plan) {
  const BlockRealize& realize = *s.sites()[plan.site].realize();
  const Block& block = *realize.block;
  const BufferStore& write = *block.body.as<BufferStore>();
  arith::Analyzer a;
  bind_loops(plan, a);
  VarMap map;
  std::vector<IterVarRef> iters;
  for (const IterVarRef& i : block.iter_vars) {
    VarRef v(new Var(*i->var));
    map[i->var] = v;
    iters.push_back(make<IterVar>(i->dom, v, IterKind::spatial));
  }
  std::vector<const For*> copied;
  for (const For* l : plan.loops) {
    copied.push_back(l);
    if (l == s.sites()[plan.loop].loop()) break;
  }
  for (const For* l : copied) map[l->var] = VarRef(new Var(*l->var));
  auto rewritten = [&](const Expr& e) { return a.simplify(substitute(e, map)); };
  std::vector<Expr> indices, values;
  for (const Expr& i : write.indices) indices.push_back(rewritten(i));
  for (const Expr& v : realize.values) values.push_back(rewritten(v));
  BlockHandle name = block_name(block.name->text + "_pad_const");
  BlockRef fill = make<Block>(std::move(iters),
                              std::vector<BufferRef>{},
                              std::vector<MatchBufferRef>{},
                              std::vector<BufferRegionRef>{},
                              std::vector<BufferRegionRef>{point_region(write.buffer, indices)},
                              name,
                              Attrs{},
                              Stmt(),
                              store(write.buffer, plan.padding, indices));
  Stmt nest = make<BlockRealize>(std::move(values), rewritten(realize.predicate), fill);
  for (const For* l : copied)
    nest = make<For>(cast<Var>(map.at(l->var)), l->min, l->extent, LoopKind::serial, "", Attrs{}, nest);
  return {nest, name};
}

/// What is not padding, from `top` down (null: the block alone): where a loop is an iterator itself it runs over that alone, else under a predicate.
Stmt inside_nest(const Schedule& s, const PaddedBlock& plan, const For* top) {
  const BlockRealize& realize = *s.sites()[plan.site].realize();
  const Block& block = *realize.block;
  const BufferStore& write = *block.body.as<BufferStore>();
  arith::Analyzer a;
  bind_loops(plan, a);
  std::vector<const For*> loops;
  arith::RangeMap ranges;
  for (const For* l : plan.loops) {
    if (!top) break;
    loops.push_back(l);
    ranges[l->var] = make<Range>(l->min, l->extent);
    if (l == top) break;
  }
  VarMap map;
  std::vector<IterVarRef> iters;
  std::vector<Expr> values;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    VarRef v(new Var(*block.iter_vars[i]->var));
    if (!plan.region[i]) {
      iters.push_back(make<IterVar>(block.iter_vars[i]->dom, v, IterKind::spatial));
      map[block.iter_vars[i]->var] = v;
      values.push_back(realize.values[i]);
      continue;
    }
    const Expr begin = cast_to(v->dtype, plan.region[i]->min);
    RangeRef range = range_of(cast_to(v->dtype, plan.region[i]->extent));
    iters.push_back(make<IterVar>(range, v, IterKind::spatial));
    map[block.iter_vars[i]->var] = v + begin;
    VarRef loop = cast<Var>(realize.values[i]);
    if (loop && ranges.contains(loop)) {
      ranges[loop] = range;
      values.push_back(loop);
      map[loop] = loop + cast_to(loop->dtype, begin);
      a.bind(loop, range);
    } else {
      values.push_back(a.simplify(realize.values[i] - begin));
    }
  }
  auto rewritten = [&](const Expr& e) { return a.simplify(substitute(e, map)); };
  auto regions = [&](const std::vector<BufferRegionRef>& all) {
    std::vector<BufferRegionRef> out;
    for (const BufferRegionRef& r : all) {
      std::vector<RangeRef> box;
      for (const RangeRef& d : r->region) box.push_back(make<Range>(rewritten(d->min), rewritten(d->extent)));
      out.push_back(make<BufferRegion>(r->buffer, std::move(box)));
    }
    return out;
  };
  std::vector<Expr> indices;
  for (const Expr& i : write.indices) indices.push_back(rewritten(i));
  Block rest = block;
  rest.iter_vars = std::move(iters);
  rest.reads = regions(block.reads);
  rest.writes = regions(block.writes);
  rest.body = store(write.buffer, rewritten(plan.inside), indices);
  Stmt nest = make<BlockRealize>(std::move(values), rewritten(plan.predicate), BlockRef(new Block(std::move(rest))));
  for (const For* l : loops) {
    For copy = *l;
    copy.min = ranges.at(l->var)->min;
    copy.extent = ranges.at(l->var)->extent;
    copy.body = nest;
    nest = Stmt(new For(std::move(copy)));
  }
  return nest;
}

/// Takes a padded copy apart: a block {block}_pad_const in front of the loop stores the padding everywhere, then the block
/// itself, without condition, stores what is not padding. Returns the former.
///   for i in range(12): y[i] = T.if_then_else(2 <= i and i < 10, x[i - 2], 0)
///     =>   for i in range(12): y[i] = 0;  for i in range(8): y[i + 2] = x[i]
BlockHandle do_decompose_padding(Schedule& s, BlockHandle block, Loop loop) {
  PaddedBlock plan{.site = s.site(block),
                   .loop = s.site(loop),
                   .loops = {},
                   .inside = {},
                   .padding = {},
                   .predicate = {},
                   .region = {}};
  s.require(cannot_decompose_padding(s, plan, loop));
  const For* fill_before = s.sites()[plan.loop].loop();
  // The highest loop at or below `loop` that has nothing but the block.
  const Stmt& alone = s.sites()[plan.site].stmt;
  const For* top = nullptr;
  for (const For* l : plan.loops) {
    if (l->body.get() != (top ? static_cast<const StmtNode*>(top) : alone.get())) break;
    top = l;
    if (top == fill_before) break;
  }
  auto [padding, name] = padding_nest(s, plan);
  Stmt inside = inside_nest(s, plan, top);
  const NodeRef old = top ? NodeRef(top) : NodeRef(alone);
  Stmt updated = top == fill_before ? inside : replaced(Stmt(fill_before), NodeMap{{old, inside}});
  s.replace(Stmt(fill_before), seq({padding, updated}));
  return name;
}

}  // namespace

const Primitive<BlockHandle(BlockHandle, Loop)> decompose_padding{
    "decompose_padding", do_decompose_padding, {"block", "loop"}, "stores padding first, and then what is not padding"};

}  // namespace sator::schedule
