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
  std::reverse(dropped.begin(), dropped.end());
  Stmt stmt = make<BlockRealize>(values, in_first_iterations(inner.predicate, dropped), block);
  for (const For* loop : copied) {
    VarRef fresh = make_var(loop->var->name, loop->var->dtype);
    fresh_loops.emplace(loop->var, fresh);
    stmt = make<For>(fresh, loop->min, loop->extent, loop->kind, loop->thread, loop->annotations, stmt);
  }
  // Only uses are replaced: the loops' own variables are fresh already.
  return substitute(stmt, fresh_loops);
}

/// Whether the inner iterators take each of their values once. Else the init, which runs in front of the inner loops, would run
/// less often than the sum that it begins.
///   inner_loops  innermost first
bool is_passed_once(const std::vector<const For*>& inner_loops, const arith::SubspaceDivision& division,
                    arith::Analyzer& analyzer) {
  std::vector<Expr> values;
  arith::RangeMap domain;
  for (const arith::Division& d : division.bindings) values.push_back(d.inner);
  for (const For* f : inner_loops) domain.emplace(f->var, make<Range>(f->min, f->extent));
  if (arith::detect_iter_map(values, domain, division.inner_predicate, arith::IterMapLevel::bijective, analyzer).ok())
    return true;
  // Ranges that depend on each other make no such map.
  return std::ranges::all_of(inner_loops, [&](const For* f) {
    return is_one(f->extent) || std::ranges::find(values, Expr(f->var)) != values.end();
  });
}

/// A block cut in an outer and an inner one.
struct DividedBlock {
  std::vector<const For*> inner_loops;  ///< innermost first
  arith::SubspaceDivision division;
  Iterators iters;
  BlockRealizeRef inner;
  Stmt init;                                   ///< of the block, over the new iterators
  std::vector<BufferRegionRef> reads, writes;  ///< of the inner block in all of its instances
};

using Refuse = FunctionRef<MaybeReason(std::string what, std::string needs, std::string hint)>;

/// Why the block cannot be cut; nothing if it can, and `out` is filled.
///   is_inner  whether the loop at a site goes inside
MaybeReason cannot_divide(const Schedule& s, int block_site, FunctionRef<bool(int)> is_inner, bool preserve_unit_iters,
                          Refuse refuse, DividedBlock& out) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block_site].realize();
  const Block& block = *realize.block;
  std::vector<VarRef> inner, outer;
  arith::RangeMap domain;
  for (int i = sites[block_site].parent; i >= 0 && sites[i].loop(); i = sites[i].parent) {
    const For* f = sites[i].loop();
    if (is_inner(i)) out.inner_loops.push_back(f);
    (is_inner(i) ? inner : outer).push_back(f->var);
    domain.emplace(f->var, make<Range>(f->min, f->extent));
  }
  for (const Expr& value : realize.values) {
    for (const VarRef& v : vars_in(value))
      if (!domain.contains(v) && sites.find(v) >= 0)
        return refuse(text("holds a block whose iterators follow loop ", v->name, ", outside of its scope"),
                      "iterators that follow loops of the block's own scope",
                      "blockize before loop_partition");
  }
  for (const For* f : out.inner_loops) {
    for (const VarRef& v : outer)
      if (uses_var(f->min, *v) || uses_var(f->extent, *v))
        return refuse(text("holds loop ", f->var->name, ", whose range depends on loop ", v->name, " outside of it"),
                      "loops whose ranges depend on nothing outside: a block uses no loop around it",
                      "blockize further out");
  }
  arith::Analyzer analyzer;
  out.division = arith::subspace_divide(realize.values,
                                        domain,
                                        inner,
                                        realize.predicate,
                                        arith::IterMapLevel::surjective,
                                        analyzer,
                                        !preserve_unit_iters);
  if (!out.division.ok()) {
    std::string why = out.division.error;
    out.division = trivial_division(realize, outer, inner);
    if (!out.division.ok())
      return refuse(text("does not divide the bindings of block ", string_literal(block.name->text), ": ", why),
                    "bindings that are outer * n + inner, the inner part over the loops below",
                    "split the loops so that they tile the iterators");
  }
  if (!divide_predicate(realize.predicate, domain, outer, inner, out.division))
    return refuse(text("does not divide the predicate of block ", string_literal(block.name->text)),
                  "a predicate of which each part speaks of the loops outside, or of those inside",
                  "split by factors that divide the extent");
  if (block.init && !is_passed_once(out.inner_loops, out.division, analyzer))
    return refuse(text("holds loops that begin the reduction of block ", string_literal(block.name->text), " again"),
                  "inner loops that take each value of the inner iterators once: the init runs once in front of them",
                  "blockize further in, or decompose_reduction first");
  VarMap first;
  for (const auto& [var, range] : domain) first.emplace(var, range->min);
  out.iters = divide_iterators(block, out.division, first, preserve_unit_iters);
  // A block without iterators, as loop_partition makes it, names the loops themselves.
  arith::SetMap inner_domain;
  for (const For* f : out.inner_loops)
    inner_domain.emplace(f->var, arith::IntSet::from_range(*make<Range>(f->min, f->extent)));
  for (const IterVarRef& i : out.iters.inner) {
    inner_domain.emplace(i->var, arith::IntSet::from_range(*i->dom));
    analyzer.bind(i->var, i->dom);
  }
  BlockRef moved = with(block, &Block::iter_vars, std::vector<IterVarRef>{});
  moved = cast<Block>(Substitution(out.iters.old_to_new, analyzer)(moved));
  out.init = moved->init;
  out.reads = relaxed(moved->reads, inner_domain);
  out.writes = relaxed(moved->writes, inner_domain);
  out.inner = make<BlockRealize>(
      out.iters.inner_values, out.division.inner_predicate, with(moved, &Block::iter_vars, out.iters.inner));
  return {};
}

bool has_outer_reduction(const DividedBlock& d) {
  return std::ranges::any_of(d.iters.outer, [](const IterVarRef& i) { return i->kind == IterKind::reduce; });
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
                  "blockize before compute_at, or give the blocks");
  DividedBlock d;
  auto is_inner = [&](int site) { return sites.is_above(loop_site, site); };
  if (MaybeReason why = cannot_divide(s, below[0], is_inner, preserve_unit_iters, refuse, d)) return why;
  BlockRef inner_block = with(d.inner->block, &Block::init, Stmt());
  if (d.init && has_outer_reduction(d)) {
    std::vector<BufferRegionRef> reads = inner_block->writes;
    reads.insert(reads.end(), inner_block->reads.begin(), inner_block->reads.end());
    inner_block = with(inner_block, &Block::reads, std::move(reads));
  }
  BlockRealizeRef inner_realize = with(d.inner, &BlockRealize::block, inner_block);
  out.name = block_name(inner_block->name->text + "_o");
  BlockRef outer_block = make<Block>(d.iters.outer,
                                     std::vector<BufferRef>{},
                                     std::vector<MatchBufferRef>{},
                                     d.reads,
                                     d.writes,
                                     out.name,
                                     Attrs{},
                                     d.init ? outer_init(s, *inner_realize, d.init, d.inner_loops) : Stmt(),
                                     nest(d.inner_loops, inner_realize));
  out.outer = make<BlockRealize>(d.iters.outer_values, d.division.outer_predicate, outer_block);
  return {};
}

namespace {

/// Regions of one buffer become one that covers them all.
std::vector<BufferRegionRef> joined(const std::vector<BufferRegionRef>& regions) {
  std::vector<BufferRegionRef> out;
  for (const BufferRegionRef& r : regions) {
    auto at = std::ranges::find(out, r->buffer, [](const BufferRegionRef& o) { return o->buffer; });
    if (at == out.end()) {
      out.push_back(r);
      continue;
    }
    std::vector<RangeRef> region;
    arith::Analyzer analyzer;
    for (size_t d = 0; d < r->region.size(); ++d) {
      const RangeRef &a = (*at)->region[d], &b = r->region[d];
      const Expr begin = min(a->min, b->min), end = max(a->min + a->extent, b->min + b->extent);
      region.push_back(make<Range>(analyzer.simplify(begin), analyzer.simplify(end - begin)));
    }
    *at = make<BufferRegion>(r->buffer, std::move(region));
  }
  return out;
}

/// Where the nests of several blocks stand: below one loop (or scope block), one after the other.
struct Nests {
  int parent = -1;
  std::vector<Stmt> stmts;  ///< the topmost statement of each, in program order
};

std::vector<Stmt> statements_of(const Stmt& body) {
  const Seq* seq = body.as<Seq>();
  return seq ? seq->stmts : std::vector<Stmt>{body};
}

MaybeReason cannot_find_nests(const Schedule& s, std::vector<int>& blocks, Nests& out) {
  const Sites& sites = s.sites();
  std::ranges::sort(blocks);
  out.parent = sites[blocks[0]].parent;
  for (size_t i = 1; i < blocks.size(); ++i)
    out.parent = sites.lowest_common_ancestor(out.parent, sites[blocks[i]].parent);
  for (int b : blocks) {
    if (sites[b].scope != sites[blocks[0]].scope)
      return block_refusal(s, b, "is in another scope", "blocks of one scope block", "give blocks beside each other");
    const int child = child_towards(sites, out.parent, b);
    if (sites.blocks_under(child).size() != 1)
      return block_refusal(
          s, b, "shares its loops with another block", "blocks under loops of their own", "give the loop around them");
    out.stmts.push_back(sites[child].stmt);
  }
  const Stmt body =
      sites[out.parent].loop() ? sites[out.parent].loop()->body : sites[out.parent].realize()->block->body;
  const std::vector<Stmt> all = statements_of(body);
  const auto begin = std::ranges::find(all, out.stmts[0]);
  if (static_cast<size_t>(all.end() - begin) < out.stmts.size() ||
      !std::equal(out.stmts.begin(), out.stmts.end(), begin))
    return block_refusal(s,
                         blocks[0],
                         "and the others do not follow each other",
                         "nests one after the other, with nothing between",
                         "reorder what stands between them");
  return {};
}

}  // namespace

/// Why the nests of these blocks cannot become one block; nothing if they can.
MaybeReason cannot_blockize(const Schedule& s, const std::vector<BlockHandle>& blocks, bool preserve_unit_iters,
                            Nests& nests, Blockized& out) {
  const Sites& sites = s.sites();
  std::vector<int> at;
  for (const BlockHandle& b : blocks) at.push_back(s.site(b));
  if (MaybeReason why = cannot_find_nests(s, at, nests)) return why;
  auto is_inner = [&](int site) { return site != nests.parent && sites.is_above(nests.parent, site); };
  std::vector<Stmt> bodies;
  std::vector<BufferRegionRef> reads, writes;
  DividedBlock first;
  std::string name = "outer_";
  for (size_t i = 0; i < at.size(); ++i) {
    const std::string& own = sites[at[i]].realize()->block->name->text;
    auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
      return block_refusal(s, at[i], std::move(what), std::move(needs), std::move(hint));
    };
    DividedBlock d;
    if (MaybeReason why = cannot_divide(s, at[i], is_inner, preserve_unit_iters, refuse, d)) return why;
    if (d.init && has_outer_reduction(d))
      return refuse("begins a sum that goes on outside of the new block",
                    "reductions that lie inside of it",
                    "decompose_reduction first");
    NodeMap shared;
    if (i == 0) {
      first = d;
    } else {
      auto equal_lists = [](const auto& a, const auto& b) {
        return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return equal(x, y); });
      };
      const bool same =
          equal_lists(d.iters.outer_values, first.iters.outer_values) &&
          equal(d.division.outer_predicate, first.division.outer_predicate) &&
          std::ranges::equal(d.iters.outer, first.iters.outer, [](const IterVarRef& x, const IterVarRef& y) {
            return x->kind == y->kind && equal(x->dom, y->dom);
          });
      if (!same)
        return refuse("takes other values from the loops around than the first block",
                      "the same iterators outside in all blocks",
                      "blockize each alone");
      for (size_t k = 0; k < d.iters.outer.size(); ++k)
        shared.emplace(d.iters.outer[k]->var, first.iters.outer[k]->var);
    }
    bodies.push_back(replaced(nest(d.inner_loops, d.inner), shared));
    for (const BufferRegionRef& r : d.reads) reads.push_back(replaced(r, shared));
    for (const BufferRegionRef& w : d.writes) writes.push_back(replaced(w, shared));
    name += own + "_";
  }
  out.name = block_name(name);
  BlockRef outer = make<Block>(first.iters.outer,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               joined(reads),
                               joined(writes),
                               out.name,
                               Attrs{},
                               Stmt(),
                               seq(std::move(bodies)));
  out.outer = make<BlockRealize>(first.iters.outer_values, first.division.outer_predicate, outer);
  return {};
}

/// Puts a loop and those below it into a block of its own, which from then on is moved as a whole.
///   for i0: for i1 in range(16): B(vi = i0 * 16 + i1)
///   =>   for i0: B_o(vi_o = i0): for i1 in range(16): B(vi_i = i1), over vi_o * 16 + vi_i
/// An init moves to the outer block. Returns the outer block, {block}_o.
/// Of several blocks whose nests follow each other it makes one, outer_{block}_..., with the loops around all of them outside:
///   for m: for i: A(vm = m, vi = i); for j: B(vm = m, vj = j)
///   =>   for m: outer_A_B_(vm_o = m): for i: A(vi_i = i); for j: B(vj_i = j)
static BlockHandle do_blockize(Schedule& s, Value target, bool preserve_unit_iters) {
  Blockized blockized;
  if (!target.get_if<List>()) {
    const Loop loop = value_to_loop(s, target, "target");
    s.require(cannot_blockize(s, loop, preserve_unit_iters, blockized));
    s.replace(s.get(loop), blockized.outer);
    return blockized.name;
  }
  const auto blocks = from_value<std::vector<BlockHandle>>(s, target, "target");
  if (blocks.empty()) wrong_argument("target", target, "a loop, or a list of blocks");
  Nests nests;
  s.require(cannot_blockize(s, blocks, preserve_unit_iters, nests, blockized));
  const Sites& sites = s.sites();
  const Stmt parent = sites[nests.parent].stmt;
  auto with_block = [&](const Stmt& body) -> Stmt {
    std::vector<Stmt> stmts;
    for (const Stmt& stmt : statements_of(body)) {
      if (stmt == nests.stmts.front()) stmts.push_back(blockized.outer);
      if (std::ranges::find(nests.stmts, stmt) == nests.stmts.end()) stmts.push_back(stmt);
    }
    return seq(std::move(stmts));
  };
  if (const For* loop = parent.as<For>()) {
    s.replace(*loop, with(*loop, &For::body, with_block(loop->body)));
  } else {
    const BlockRealize& realize = *parent.as<BlockRealize>();
    s.replace(parent,
              with(realize, &BlockRealize::block, with(realize.block, &Block::body, with_block(realize.block->body))));
  }
  return blockized.name;
}

const Primitive<BlockHandle(Value, bool)> blockize{"blockize",
                                                   do_blockize,
                                                   {"target", {"preserve_unit_iters", true}},
                                                   "makes a loop nest, or those of several blocks, a block"};

}  // namespace sator::schedule
