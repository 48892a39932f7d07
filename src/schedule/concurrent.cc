#include "schedule/concurrent.h"

#include <algorithm>

#include "ir/builtins.h"
#include "schedule/analysis.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// threadIdx axes may share a reduction (the threads reduce together), and so may the axes of an array of PEs, which pass
/// sums on, and a described chip's cores, which add their parts in a memory that all share; no other parallel kind may.
bool may_reduce_across(const std::string& thread) {
  return thread.starts_with("threadIdx.") || thread.starts_with("pe.") || thread.starts_with("core.");
}

bool uses_any(const Expr& e, const std::vector<VarRef>& vars) {
  bool found = false;
  walk(
      e,
      [&](const Var& v) { found |= std::ranges::find(vars, &v, &VarRef::get) != vars.end(); },
      [&](const NodeBase&) { return !found; });
  return found;
}

/// Each iteration of the loop has its own memory for the buffer. Memory is allocated by the innermost loop around all
/// uses, and outside of the loops over which it accumulates; a thread has what it shares with no other.
bool is_private(const Schedule& s, const BufferRef& buffer, int loop_site, const std::string& thread) {
  if (!is_allocated(s, buffer)) return false;
  if (!thread.empty()) return buffer->scope() != "global" && !is_shared_among(buffer->scope(), thread);
  const Sites& sites = s.sites();
  for (int i = 0; i < sites.count(); ++i) {
    const BlockRealize* realize = sites[i].realize();
    if (!realize) continue;
    const Block& block = *realize->block;
    const bool writes = lists(block.writes, buffer);
    if (!sites.is_above(loop_site, i)) {
      if (writes || lists(block.reads, buffer)) return false;
      continue;
    }
    for (size_t k = 0; writes && k < realize->values.size(); ++k) {
      if (block.iter_vars[k]->kind == IterKind::spatial) continue;
      for (const VarRef& v : vars_in(realize->values[k])) {
        int around = sites.find(v);
        if (around >= 0 && !sites.is_above(loop_site, around)) return false;
      }
    }
  }
  return true;
}

/// The block's predicate holds in one iteration of the loop at most.
bool runs_in_one_iteration(const Schedule& s, int block_site, const For& loop) {
  const BlockRealize& realize = *s.sites()[block_site].realize();
  if (!uses_var(realize.predicate, *loop.var)) return false;
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, s.sites()[block_site].parent);
  const arith::Analyzer::Scope scope = analyzer.with_constraint(analyzer.simplify(realize.predicate));
  return analyzer.prove(le(loop.var, loop.min));
}

/// Why two iterations write different values to one element; nothing if they do not.
MaybeReason writes_in_common(const Schedule& s, int loop_site, const std::string& how, const std::string& thread) {
  const Sites& sites = s.sites();
  const For& loop = *sites[loop_site].loop();
  if (is_one(loop.extent)) return {};
  std::vector<VarRef> follows = {loop.var};  // what differs from one iteration to the next
  std::vector<BufferRef> matched;            // names for parts: the block that matches them writes the whole
  for (int i = loop_site + 1; i < sites.count(); ++i) {
    const BlockRealize* realize = sites[i].realize();
    if (!realize || !sites.is_above(loop_site, i)) continue;
    const Block& block = *realize->block;
    for (const MatchBufferRef& m : block.match_buffers) matched.push_back(m->buffer);
    bool follows_loop = realize->values.empty() && uses_var(block.body, *loop.var), shares_reduction = false;
    for (size_t k = 0; k < realize->values.size(); ++k) {
      if (!uses_any(realize->values[k], follows)) continue;
      follows.push_back(block.iter_vars[k]->var);
      follows_loop = true;
      shares_reduction |= block.iter_vars[k]->kind == IterKind::reduce;
    }
    if (shares_reduction) continue;  // allowed above: threads reduce together
    if (runs_in_one_iteration(s, i, loop)) continue;
    for (const BufferRegionRef& write : block.writes) {
      // A block that does not follow the loop and does not accumulate writes the same values again.
      if (!follows_loop && !block.init && !lists(block.reads, write->buffer)) continue;
      const bool own = std::any_of(
          write->region.begin(), write->region.end(), [&](const RangeRef& r) { return uses_any(r->min, follows); });
      if (own || std::find(matched.begin(), matched.end(), write->buffer) != matched.end() ||
          is_private(s, write->buffer, loop_site, thread))
        continue;
      std::string what = text("writes the same elements of ", write->buffer->name, " in each iteration");
      return Reason{
          .what = text("the iterations of loop ",
                       loop.var->name,
                       " would overwrite each other's results: block ",
                       string_literal(block.name->text),
                       " ",
                       what),
          .needs = text("iterations of a ", how, " loop write different elements, or memory of their own"),
          .hint = text("choose a loop that the block's spatial axes follow, or keep ", loop.var->name, " serial"),
          .at = {{sites[loop_site].stmt, text("cannot be ", how)}, {sites[i].stmt, what}}};
    }
  }
  return {};
}

/// The axis below that is not spatial and takes its values from the loop; nothing if there is none.
MaybeReason carries_ordered_axis(const Schedule& s, int site, const std::string& how, const std::string& thread) {
  const Sites& sites = s.sites();
  const Loop& loop = sites[site].loop()->var;
  for (int i = site; i < sites.count(); ++i) {
    const BlockRealize* realize = sites[i].realize();
    if (!realize || !sites.is_above(site, i)) continue;
    for (size_t k = 0; k < realize->values.size(); ++k) {
      const IterVar& iter = *realize->block->iter_vars[k];
      if (!uses_var(realize->values[k], *loop)) continue;
      if (iter.kind == IterKind::spatial) continue;
      if (iter.kind == IterKind::reduce && may_reduce_across(thread)) continue;
      return Reason{
          .what = text("loop ",
                       loop->name,
                       " carries the ",
                       iter.kind == IterKind::reduce ? "reduction" : "ordered",
                       " axis ",
                       iter.var->name,
                       " of block ",
                       string_literal(realize->block->name->text)),
          .needs = text("a ", how, " loop feeds only spatial axes"),
          .hint = text("choose a spatial loop, or rfactor(", loop->name, ") first"),
          .at = {{sites[site].stmt, text("cannot be ", how)}, {sites[i].stmt, text("reduces over ", iter.var->name)}}};
    }
  }
  return {};
}

/// A statement of the loop that stands in no block: nothing says which of its accesses differ from one iteration to the next.
MaybeReason stores_outside_of_blocks(const Schedule& s, int site, const std::string& how) {
  const For& loop = *s.sites()[site].loop();
  std::string what;
  walk(
      loop.body,
      [](const BlockRealize&) { return false; },
      [&](const BufferStore& n) {
        if (what.empty()) what = text("writes ", n.buffer->name, " outside of all blocks");
      },
      [&](const Evaluate& n) {
        if (what.empty() && has_side_effect(n.value)) what = "makes a call outside of all blocks";
      });
  if (what.empty()) return {};
  return Reason{
      .what = text("loop ", loop.var->name, " ", what),
      .needs = text("a ", how, " loop around blocks alone, whose accesses are known"),
      .hint = text("put the statement into a block with its T.reads and T.writes, or keep ", loop.var->name, " serial"),
      .at = {{s.sites()[site].stmt, what}}};
}

MaybeReason conflicts(const Schedule& s, int site, const std::string& how, const std::string& thread) {
  if (MaybeReason r = carries_ordered_axis(s, site, how, thread)) return r;
  return writes_in_common(s, site, how, thread);
}

/// Nothing if the loop runs in order.
MaybeReason conflicts_of_loop(const Schedule& s, int loop_site) {
  const For& loop = *s.sites()[loop_site].loop();
  switch (loop.kind) {
    case LoopKind::parallel: return conflicts(s, loop_site, "parallel", "");
    case LoopKind::vectorized: return conflicts(s, loop_site, "vectorized", "");
    case LoopKind::thread_binding: return conflicts(s, loop_site, "bound", loop.thread);
    default: return {};
  }
}

}  // namespace

MaybeReason cannot_run_at_once(const Schedule& s, const Loop& loop, const std::string& how, const std::string& thread) {
  int site = s.site(loop);
  if (MaybeReason r = stores_outside_of_blocks(s, site, how)) return r;
  if (MaybeReason r = not_compact_dataflow(s, site)) return r;
  return conflicts(s, site, how, thread);
}

MaybeReason cannot_stay_concurrent(const Schedule& s) {
  for (int site = 0; site < s.sites().count(); ++site) {
    if (!s.sites()[site].loop()) continue;
    if (MaybeReason r = conflicts_of_loop(s, site)) return r;
  }
  return {};
}

}  // namespace sator::schedule
