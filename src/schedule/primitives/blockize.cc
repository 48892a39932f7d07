#include "schedule/blockize.h"

#include <algorithm>

#include "arith/iter_map.h"
#include "arith/kind.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The division where each binding lies wholly outside or wholly inside, whatever its form.
arith::SubspaceDivision trivial_division(const BlockRealize& realize, const std::vector<VarRef>& outer,
                                         const std::vector<VarRef>& inner) {
  arith::SubspaceDivision out;
  auto uses = [](const Expr& e, const std::vector<VarRef>& vars) {
    return std::any_of(vars.begin(), vars.end(), [&](const VarRef& v) { return uses_var(e, *v); });
  };
  if (!is_one(realize.predicate)) out.error = "the block runs under a predicate";
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const Expr& value = realize.values[i];
    const Expr& extent = realize.block->iter_vars[i]->dom->extent;
    Expr zero = int_imm(0, value->dtype), one = int_imm(1, extent->dtype);
    bool in_outer = uses(value, outer), in_inner = uses(value, inner);
    if (in_outer && in_inner) out.error = "a binding mixes loops outside and inside";
    if (in_inner)
      out.bindings.push_back({zero, one, value, extent});
    else
      out.bindings.push_back({in_outer ? value : zero, in_outer ? extent : one, zero, one});
  }
  out.outer_predicate = out.inner_predicate = bool_imm(true);
  return out;
}

/// Completes the division's predicates with those conjuncts of the block's that they do not imply. False where one mixes
/// loops outside and inside.
bool divide_predicate(const Expr& predicate, const arith::RangeMap& domain, const std::vector<VarRef>& outer,
                      const std::vector<VarRef>& inner, arith::SubspaceDivision& division) {
  arith::Analyzer analyzer;
  for (const auto& [var, range] : domain) analyzer.bind(var, range);
  for (const Expr& c : arith::conjuncts(predicate)) {
    if (is_one(c)) continue;
    auto uses = [&](const std::vector<VarRef>& vars) {
      return std::any_of(vars.begin(), vars.end(), [&](const VarRef& v) { return uses_var(c, *v); });
    };
    {
      auto known = analyzer.with_constraint(logical_and(division.outer_predicate, division.inner_predicate));
      if (analyzer.prove(c)) continue;
    }
    bool in_outer = uses(outer), in_inner = uses(inner);
    if (in_outer && in_inner) return false;
    Expr& side = in_inner ? division.inner_predicate : division.outer_predicate;
    side = logical_and(side, c);
  }
  return true;
}

/// Old iterators in terms of outer and inner ones.
struct Iterators {
  std::vector<IterVarRef> outer, inner;
  std::vector<Expr> outer_values, inner_values;
  VarMap old_to_new;
};

/// The new iterators count from 0; where the loops make an old one begin elsewhere, that is added inside.
///   first  each loop's first value
Iterators divide_iterators(const Block& block, const arith::SubspaceDivision& division, const VarMap& first,
                           bool preserve_unit_iters) {
  Iterators out;
  arith::Analyzer analyzer;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = *block.iter_vars[i];
    const arith::Division& d = division.bindings[i];
    DType dtype = iter.var->dtype;
    Expr outer_begin = analyzer.simplify(substitute(d.outer, first));
    Expr inner_begin = analyzer.simplify(substitute(d.inner, first));
    auto from_zero = [&](const Expr& e, const Expr& begin) {
      return is_zero(begin) ? e : analyzer.simplify(e - begin);
    };
    Expr inner_extent = cast_to(dtype, d.inner_extent);
    VarRef outer = make_var(iter.var->name + "_o", dtype);
    out.outer.push_back(make<IterVar>(range_of(cast_to(dtype, d.outer_extent)), outer, iter.kind));
    out.outer_values.push_back(cast_to(dtype, from_zero(d.outer, outer_begin)));
    Expr value = outer;
    if (!is_one(inner_extent)) {
      VarRef inner = make_var(iter.var->name + "_i", dtype);
      out.inner.push_back(make<IterVar>(range_of(inner_extent), inner, iter.kind));
      out.inner_values.push_back(cast_to(dtype, from_zero(d.inner, inner_begin)));
      value = is_one(d.outer_extent) ? Expr(inner) : outer * inner_extent + inner;
    } else if (is_one(d.outer_extent) && !preserve_unit_iters) {
      value = int_imm(0, dtype);
    }
    Expr begin = analyzer.simplify(outer_begin * inner_extent + inner_begin);
    out.old_to_new.emplace(iter.var, is_zero(begin) ? value : value + cast_to(dtype, begin));
  }
  return out;
}

/// The program with variables replaced; expressions that change are simplified.
class Substitution {
 public:
  Substitution(const VarMap& map, arith::Analyzer& analyzer) : map_(map), analyzer_(analyzer) {}
  NodeRef operator()(const NodeRef& n) {
    if (VarRef v = cast<Var>(n)) {
      auto at = map_.find(v);
      return at == map_.end() ? n : NodeRef(at->second);
    }
    if (n->info().has_identity) return n;
    NodeRef out = n->info().map_children(*n, [this](const NodeRef& child) { return (*this)(child); });
    if (out == n) return n;
    Expr e = cast<ExprNode>(out);
    return e ? NodeRef(analyzer_.simplify(e)) : out;
  }

 private:
  const VarMap& map_;
  arith::Analyzer& analyzer_;
};

std::vector<BufferRegionRef> relaxed(const std::vector<BufferRegionRef>& regions, const arith::SetMap& domains) {
  std::vector<BufferRegionRef> out;
  for (const BufferRegionRef& r : regions) {
    std::vector<arith::IntSet> sets = arith::eval_set(r->region, domains);
    std::vector<RangeRef> region;
    for (size_t d = 0; d < sets.size(); ++d) region.push_back(sets[d].cover_range(range_of(r->buffer->shape[d])));
    out.push_back(make<BufferRegion>(r->buffer, std::move(region)));
  }
  return out;
}

/// `body` under the loops, innermost first.
Stmt nest(const std::vector<const For*>& loops, Stmt body) {
  for (const For* loop : loops) body = with(*loop, &For::body, body);
  return body;
}

/// The init of the outer block: a block `{name}_init` over the inner spatial iterators that the init uses.
Stmt outer_init(const Schedule& s, const BlockRealize& inner, const Stmt& init, const std::vector<const For*>& loops) {
  VarMap map;
  std::vector<IterVarRef> iters;
  std::vector<Expr> values;
  for (size_t i = 0; i < inner.values.size(); ++i) {
    const IterVar& iter = *inner.block->iter_vars[i];
    if (!uses_var(init, *iter.var)) continue;
    if (iter.kind != IterKind::spatial) {  // where the init runs, it has its first value
      map.emplace(iter.var, iter.dom->min);
      continue;
    }
    VarRef fresh = make_var(iter.var->name + "_init", iter.var->dtype);
    map.emplace(iter.var, fresh);
    iters.push_back(make<IterVar>(iter.dom, fresh, iter.kind));
    values.push_back(inner.values[i]);
  }
  std::vector<BufferRegionRef> writes;
  for (const BufferRegionRef& w : inner.block->writes) writes.push_back(substitute(w, map));
  BlockRef block = make<Block>(iters,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{},
                               std::move(writes),
                               block_name(inner.block->name->text + "_init"),
                               Attrs{},
                               Stmt(),
                               substitute(init, map));
  block = with_detected_regions(block, buffers_of(*s.func()), true, false);
  VarMap fresh_loops;
  std::vector<const For*> copied;
  std::vector<const For*> dropped;
  for (const For* loop : loops) {
    bool used = std::any_of(values.begin(), values.end(), [&](const Expr& v) { return uses_var(v, *loop->var); });
    if (used)
      copied.push_back(loop);
    else
      dropped.push_back(loop);
  }
  Stmt stmt = make<BlockRealize>(values, in_first_iterations(inner.predicate, dropped), block);
  for (const For* loop : copied) {
    VarRef fresh = make_var(loop->var->name, loop->var->dtype);
    fresh_loops.emplace(loop->var, fresh);
    stmt = make<For>(fresh, loop->min, loop->extent, loop->kind, loop->thread, loop->annotations, stmt);
  }
  // Only uses are replaced: the loops' own variables are fresh already.
  return substitute(stmt, fresh_loops);
}

}  // namespace

MaybeReason cannot_blockize(const Schedule& s, const Loop& loop, bool preserve_unit_iters, Blockized& out) {
  const Sites& sites = s.sites();
  int loop_site = s.site(loop);
  std::vector<int> below = sites.blocks_under(loop_site);
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return Reason{.what = text("loop ", loop->name, " ", what),
                  .needs = std::move(needs),
                  .hint = std::move(hint),
                  .at = {{sites[loop_site].stmt, what}}};
  };
  if (below.size() != 1)
    return refuse(text("has ", below.size(), " blocks under it"),
                  "exactly one block under the loop",
                  "blockize before compute_at");
  const BlockRealize& realize = *sites[below[0]].realize();
  const Block& block = *realize.block;
  std::vector<const For*> inner_loops;  // innermost first
  std::vector<VarRef> inner, outer;
  arith::RangeMap domain;
  for (int i = sites[below[0]].parent; i >= 0 && sites[i].loop(); i = sites[i].parent) {
    const For* f = sites[i].loop();
    bool is_inner = sites.is_above(loop_site, i);
    if (is_inner) inner_loops.push_back(f);
    (is_inner ? inner : outer).push_back(f->var);
    domain.emplace(f->var, make<Range>(f->min, f->extent));
  }
  for (const For* f : inner_loops) {
    for (const VarRef& v : outer)
      if (uses_var(f->min, *v) || uses_var(f->extent, *v))
        return refuse(text("holds loop ", f->var->name, ", whose range depends on loop ", v->name, " outside of it"),
                      "loops whose ranges depend on nothing outside: a block uses no loop around it",
                      "blockize further out");
  }
  arith::Analyzer analyzer;
  arith::SubspaceDivision division = arith::subspace_divide(realize.values,
                                                            domain,
                                                            inner,
                                                            realize.predicate,
                                                            arith::IterMapLevel::surjective,
                                                            analyzer,
                                                            !preserve_unit_iters);
  if (!division.ok()) {
    std::string why = division.error;
    division = trivial_division(realize, outer, inner);
    if (!division.ok())
      return refuse(text("does not divide the bindings of block ", string_literal(block.name->text), ": ", why),
                    "bindings that are outer * n + inner, the inner part over the loops below",
                    "split the loops so that they tile the iterators");
  }
  if (!divide_predicate(realize.predicate, domain, outer, inner, division))
    return refuse(text("does not divide the predicate of block ", string_literal(block.name->text)),
                  "a predicate of which each part speaks of the loops outside, or of those inside",
                  "split by factors that divide the extent");
  VarMap first;
  for (const auto& [var, range] : domain) first.emplace(var, range->min);
  Iterators iters = divide_iterators(block, division, first, preserve_unit_iters);
  arith::SetMap inner_domain;
  for (const IterVarRef& i : iters.inner) {
    inner_domain.emplace(i->var, arith::IntSet::from_range(*i->dom));
    analyzer.bind(i->var, i->dom);
  }
  BlockRef moved = with(block, &Block::iter_vars, std::vector<IterVarRef>{});
  moved = cast<Block>(Substitution(iters.old_to_new, analyzer)(moved));
  bool accumulates = moved->init && std::any_of(iters.outer.begin(), iters.outer.end(), [](const IterVarRef& i) {
                       return i->kind == IterKind::reduce;
                     });
  Stmt init = moved->init;
  BlockRef inner_block = with(with(moved, &Block::iter_vars, iters.inner), &Block::init, Stmt());
  if (accumulates) {
    std::vector<BufferRegionRef> reads = moved->writes;
    reads.insert(reads.end(), moved->reads.begin(), moved->reads.end());
    inner_block = with(inner_block, &Block::reads, std::move(reads));
  }
  BlockRealizeRef inner_realize = make<BlockRealize>(iters.inner_values, division.inner_predicate, inner_block);
  out.name = block_name(block.name->text + "_o");
  BlockRef outer_block = make<Block>(iters.outer,
                                     std::vector<BufferRef>{},
                                     std::vector<MatchBufferRef>{},
                                     relaxed(moved->reads, inner_domain),
                                     relaxed(moved->writes, inner_domain),
                                     out.name,
                                     Attrs{},
                                     init ? outer_init(s, *inner_realize, init, inner_loops) : Stmt(),
                                     nest(inner_loops, inner_realize));
  out.outer = make<BlockRealize>(iters.outer_values, division.outer_predicate, outer_block);
  return {};
}

/// Puts a loop and those below it into a block of its own, which from then on is moved as a whole.
///   for i0: for i1 in range(16): B(vi = i0 * 16 + i1)
///   =>   for i0: B_o(vi_o = i0): for i1 in range(16): B(vi_i = i1), over vi_o * 16 + vi_i
/// An init moves to the outer block. Returns the outer block, {block}_o.
static BlockHandle do_blockize(Schedule& s, Loop target, bool preserve_unit_iters) {
  Blockized blockized;
  s.require(cannot_blockize(s, target, preserve_unit_iters, blockized));
  s.replace(s.get(target), blockized.outer);
  return blockized.name;
}

const Primitive<BlockHandle(Loop, bool)> blockize{
    "blockize", do_blockize, {"target", {"preserve_unit_iters", true}}, "makes a loop nest a block"};

}  // namespace sator::schedule
