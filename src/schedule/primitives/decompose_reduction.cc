#include <algorithm>
#include <set>

#include "arith/iter_map.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// Why the init cannot read what it reads in front of the loop: another block below the loop writes it.
MaybeReason init_reads_ahead(const Schedule& s, int block_site, int loop_site) {
  const Sites& sites = s.sites();
  const Block& block = *sites[block_site].realize()->block;
  std::set<const Buffer*> read;
  if (block.init) walk(block.init, [&](const BufferLoad& l) { read.insert(l.buffer.get()); });
  for (int i = loop_site; i < sites.count() && !read.empty(); ++i) {
    const BlockRealize* other = sites[i].realize();
    if (!other || i == block_site || !sites.is_above(loop_site, i)) continue;
    for (const BufferRegionRef& w : other->block->writes) {
      if (!read.count(w->buffer.get())) continue;
      return Reason{.what = text("the init of block ",
                                 string_literal(block.name->text),
                                 " reads ",
                                 w->buffer->name,
                                 ", which block ",
                                 string_literal(other->block->name->text),
                                 " writes below loop ",
                                 sites[loop_site].loop()->var->name),
                    .needs = "an init that reads nothing that is written below the loop",
                    .hint = "decompose at a loop further in, around this block alone",
                    .at = {{sites[i].stmt, text("writes ", w->buffer->name)}, {sites[block_site].stmt, "this block"}}};
    }
  }
  return {};
}

/// Why the init of a block cannot be moved in front of a loop; nothing if it can.
MaybeReason cannot_decompose(const Schedule& s, const BlockHandle& block, const Loop& loop) {
  int block_site = s.site(block), loop_site = s.site(loop);
  const Sites& sites = s.sites();
  std::vector<int> loops = sites.loops_above(block_site);
  if (std::find(loops.begin(), loops.end(), loop_site) == loops.end())
    return Reason{.what = text("loop ", loop->name, " is not around block ", string_literal(block->text)),
                  .needs = "a loop above the block",
                  .hint = "take one of get_loops(block)",
                  .at = {{sites[loop_site].stmt, "this loop"}, {sites[block_site].stmt, "this block"}}};
  if (MaybeReason r = ScopeAnalysis(s, sites[block_site].scope).not_reduction(block_site)) return r;
  const BlockRealize& realize = *sites[block_site].realize();
  for (int l : loops) {
    if (l == loop_site) break;
    const Loop& var = sites[l].loop()->var;
    for (size_t i = 0; i < realize.values.size(); ++i) {
      if (realize.block->iter_vars[i]->kind != IterKind::spatial && uses_var(realize.values[i], *var))
        return Reason{.what = text("loop ", loop->name, " is below loop ", var->name, ", which carries a reduction"),
                      .needs = "a loop above all loops of the reduction axes",
                      .hint = text("decompose at ", var->name),
                      .at = {{sites[l].stmt, "feeds a reduction axis"}, {sites[loop_site].stmt, "too low"}}};
    }
  }
  // Instances that run twice below the loop would accumulate twice on one init.
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, sites[loop_site].parent);
  arith::RangeMap inner = loop_domain(sites, sites[block_site].parent, sites[loop_site].parent);
  const Expr predicate = realize.block->annotations.contains(kInitFollows) ? bool_imm(true) : realize.predicate;
  arith::IterMap map =
      arith::detect_iter_map(realize.values, inner, predicate, arith::IterMapLevel::bijective, analyzer);
  if (!map.ok())
    return Reason{.what = text("block ",
                               string_literal(block->text),
                               " may run an instance twice under loop ",
                               loop->name,
                               ": ",
                               map.error),
                  .needs = "a loop under which each instance of the block runs once",
                  .hint = "decompose at a loop further in",
                  .at = {{sites[loop_site].stmt, "repeats the reduction"}, {sites[block_site].stmt, "this block"}}};
  return init_reads_ahead(s, block_site, loop_site);
}

/// Splits a reduction block in two: the init becomes a block of its own in front of `loop`, the block itself, called
/// `{name}_update` from then on, only accumulates. Returns the init block, `{name}_init`.
BlockHandle do_decompose_reduction(Schedule& s, BlockHandle block, Loop loop) {
  s.require(cannot_decompose(s, block, loop));
  const Sites& sites = s.sites();
  int block_site = s.site(block), loop_site = s.site(loop);
  const BlockRealize& realize = *sites[block_site].realize();
  Attrs annotations = realize.block->annotations;
  const bool for_all = annotations.erase(kInitFollows) != 0;  // parts without any term are initialised too
  const BlockRef without_note = with(realize.block, &Block::annotations, std::move(annotations));
  const Block& old = *without_note;

  // The init block keeps the spatial axes; it runs where the others are at their first value.
  VarMap iters;
  std::vector<IterVarRef> iter_vars;
  std::vector<Expr> values;
  for (size_t i = 0; i < old.iter_vars.size(); ++i) {
    const IterVar& iter = *old.iter_vars[i];
    if (iter.kind != IterKind::spatial) {
      iters.emplace(iter.var, iter.dom->min);
      continue;
    }
    VarRef var = make_var(iter.var->name, iter.var->dtype);
    iters.emplace(iter.var, var);
    iter_vars.push_back(make<IterVar>(iter.dom, var, iter.kind));
    values.push_back(realize.values[i]);
  }
  std::vector<BufferRegionRef> writes;
  for (const BufferRegionRef& w : old.writes) writes.push_back(substitute(w, iters));
  BlockHandle init_name = block_name(block->text + "_init");
  BlockRef init = make<Block>(std::move(iter_vars),
                              std::vector<BufferRef>{},
                              std::vector<MatchBufferRef>{},
                              std::vector<BufferRegionRef>{},
                              std::move(writes),
                              init_name,
                              old.annotations,
                              Stmt(),
                              substitute(old.init, iters));
  init = with_detected_regions(init, buffers_of(*s.func()), true, false);

  // Of the loops from `loop` down, those that feed a spatial axis are copied around it.
  std::vector<const For*> copied;
  std::vector<const For*> dropped;
  for (int l : sites.loops_above(block_site)) {
    if (sites[l].depth < sites[loop_site].depth) continue;
    const For* f = sites[l].loop();
    bool used = false;
    for (const Expr& v : values) used |= uses_var(v, *f->var);
    if (used)
      copied.push_back(f);
    else
      dropped.push_back(f);
  }
  const Expr predicate =
      for_all ? conjuncts_without(realize.predicate, dropped) : in_first_iterations(realize.predicate, dropped);
  Stmt nest = make<BlockRealize>(values, predicate, init);
  VarMap loop_vars;
  for (size_t i = copied.size(); i-- > 0;) {
    const For& f = *copied[i];
    VarRef var = make_var(f.var->name + "_init", f.var->dtype);
    loop_vars.emplace(f.var, var);
    nest = make<For>(var, f.min, f.extent, f.kind, f.thread, Attrs{}, nest);
  }
  // Only uses are substituted: the copies' own variables are fresh already.
  nest = substitute(nest, loop_vars);

  // The update block reads what it accumulates into.
  std::vector<BufferRegionRef> reads;
  for (const BufferRegionRef& w : old.writes) {
    bool listed = false;
    for (const BufferRegionRef& r : old.reads) listed |= r->buffer == w->buffer;
    if (!listed) reads.push_back(w);
  }
  reads.insert(reads.end(), old.reads.begin(), old.reads.end());
  BlockHandle update_name = block_name(block->text + "_update");
  BlockRef update = with(with(with(old, &Block::init, Stmt()), &Block::reads, reads), &Block::name, update_name);
  s.replace(Stmt(&realize), Stmt(with(realize, &BlockRealize::block, update)));
  Stmt updated_loop = s.sites()[s.site(loop)].stmt;
  s.replace(updated_loop, seq({nest, updated_loop}));
  s.forward(block, update_name);
  return init_name;
}

}  // namespace

const Primitive<BlockHandle(BlockHandle, Loop)> decompose_reduction{
    "decompose_reduction", do_decompose_reduction, {"block", "loop"}, "makes a reduction's init a block of its own"};

}  // namespace sator::schedule
