#include <algorithm>

#include "arith/iter_map.h"
#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/index_maps.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The element of a buffer that an instance of a block uses, and where the cache keeps it.
struct ReindexPlan {
  int block = -1;
  bool write = false;
  BufferRef buffer;
  std::vector<Expr> at, cached_at;
  std::vector<IterVarRef> iters;  ///< of the block, in these indices
  std::vector<Expr> values;       ///< of the iterators
  std::vector<Expr> shape;        ///< of the cache
  CopyPlace place{-1, nullptr};
};

const BufferRegion* region_in(const std::vector<BufferRegionRef>& regions, const BufferRef& buffer) {
  auto at = std::ranges::find(regions, buffer, [](const BufferRegionRef& r) { return r->buffer; });
  return at == regions.end() ? nullptr : at->get();
}

/// Why the block does not use one element of the buffer in each instance; "" if it does.
std::string not_one_element(const Block& block, const ReindexPlan& plan) {
  const BufferRegion* region = region_in(plan.write ? block.writes : block.reads, plan.buffer);
  if (!region) return text("does not ", plan.write ? "write " : "read ", plan.buffer->name);
  for (const RangeRef& r : region->region) {
    if (!is_one(r->extent)) return text(plan.write ? "writes" : "reads", " a box of ", plan.buffer->name);
  }
  std::string why;
  bool conditional = false;
  auto check = [&](const BufferRef& b, const std::vector<Expr>& indices) {
    arith::Analyzer a;
    for (size_t d = 0; b == plan.buffer && d < indices.size(); ++d) {
      if (!a.prove_equal(indices[d], region->region[d]->min))
        why = text("uses several elements of ", plan.buffer->name);
    }
  };
  walk(
      ref(block),
      [&](const BufferLoad& n) { check(n.buffer, n.indices); },
      [&](const BufferStore& n) { check(n.buffer, n.indices); },
      [&](const IfThenElse&) { conditional = true; },
      [&](const Call& n) {
        for (const Expr& arg : n.args) {
          if (arg == Expr(plan.buffer->data)) why = text("uses ", plan.buffer->name, " through its pointer");
        }
      },
      [&](const Buffer&) { return false; });
  if (why.empty() && plan.write && conditional) return text("may leave elements of ", plan.buffer->name, " unwritten");
  return why;
}

/// Why the buffer cannot be cached so; nothing if it can. Completes the plan.
MaybeReason cannot_cache(const Schedule& s, ReindexPlan& plan, const IndexMapRef& given) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  const Block& block = *realize.block;
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return block_refusal(s, plan.block, std::move(what), std::move(needs), std::move(hint));
  };
  const int scope = sites[plan.block].scope;
  if (scope < 0) return refuse("is the root block", "a block inside of the function", "choose a child block");
  if (MaybeReason r = not_stage_pipeline(s, scope)) return r;
  ScopeAnalysis analysis(s, scope);
  const std::vector<int>& writers = analysis.writers(plan.buffer);
  if (writers.size() > 1)
    return refuse(text("shares ", plan.buffer->name, " with other writers"),
                  "at most one block of the scope that writes it",
                  "cache it where one block writes it");
  if (std::string why = not_one_element(block, plan); !why.empty())
    return refuse(why, "one element of the buffer in each instance, always", "cache_read and cache_write copy boxes");
  if (!is_one(realize.predicate))
    return refuse(
        "runs under a predicate", "a block that has all instances of its iterators", "reindex before padding");
  if (!plan.write && region_in(block.writes, plan.buffer))
    return refuse(
        text("writes ", plan.buffer->name, ", which it reads"), "a buffer that it only reads", "cache what it writes");
  if (plan.write && !block.init && region_in(block.reads, plan.buffer))
    return refuse(text("reads what it writes in ", plan.buffer->name, " and has no init"),
                  "a block that writes every element before it reads it",
                  "reindex before decompose_reduction");
  if (!plan.write && !writers.empty() && !has_region_cover(s, analysis, plan.block, plan.buffer))
    return refuse(text("reads more of ", plan.buffer->name, " than was written"),
                  "region cover: all that is read has been written before",
                  "check T.reads and T.writes");

  arith::Analyzer a;
  arith::RangeMap domains;
  std::vector<Expr> iters;
  for (const IterVarRef& i : block.iter_vars) {
    a.bind(i->var, i->dom);
    iters.push_back(i->var);
  }
  const IndexMapRef map = in_dtype(given, iters.empty() ? i32 : iters[0]->dtype);
  if (map->initial_indices.size() != iters.size())
    return refuse(text("has ", iters.size(), " iterators, the index map ", map->initial_indices.size(), " inputs"),
                  "one input for each iterator of the block",
                  "name them all, also those that the map does not use");
  plan.cached_at = mapped_access(*map, iters, a);
  for (const RangeRef& r : region_in(plan.write ? block.writes : block.reads, plan.buffer)->region)
    plan.at.push_back(r->min);
  for (size_t k = 0; k < block.iter_vars.size(); ++k) {
    const IterVarRef& i = block.iter_vars[k];
    auto uses = [&](const std::vector<Expr>& indices) {
      return std::ranges::any_of(indices, [&](const Expr& e) { return uses_var(e, *i->var); });
    };
    if (uses(plan.at) != uses(plan.cached_at))
      return refuse(text("has the iterator ",
                         i->var->name,
                         " in the index of ",
                         uses(plan.at) ? "the buffer" : "the cache",
                         " alone"),
                    "the same iterators in both indices",
                    "let the index map use the iterators that the buffer's index uses");
    if (!uses(plan.at)) continue;
    if (!as_int(i->dom->extent))
      return refuse(text("has the iterator ", i->var->name, " of the symbolic extent ", i->dom->extent),
                    "iterators of constant extents in the buffer's index: the cache's size is a number",
                    "cache_read and cache_write keep boxes of symbolic size");
    plan.iters.push_back(i);
    plan.values.push_back(realize.values[k]);
    domains[i->var] = i->dom;
  }
  if (!domains.empty() &&
      !arith::detect_iter_map(plan.cached_at, domains, nullptr, arith::IterMapLevel::bijective, a).ok())
    return refuse("would keep several elements at one place of the cache",
                  "an index map that gives each value of the iterators a place of its own",
                  "map with //, % and * so that all iterators can be told from the result");
  for (size_t d = 0; d < plan.at.size(); ++d) {
    if (!a.prove_ge(plan.at[d], 0) || !a.prove(lt(plan.at[d], plan.buffer->shape[d]), arith::Strength::symbolic))
      return refuse(text("may use index ", d, " outside of ", plan.buffer->name),
                    "an access inside of the buffer for all values of the iterators",
                    "compute the padding in a block of its own");
  }
  for (const Expr& e : plan.cached_at) {
    const arith::Bounds b = a.bounds(e);
    if (b.min < 0 || b.max >= max_int(e->dtype))
      return refuse(text("would be cached at ", e, ", which may lie anywhere"),
                    "constant bounds from 0 on",
                    "shift the index map");
    plan.shape.push_back(int_imm(b.max + 1, e->dtype));
  }

  std::vector<int> readers;
  for (int b : sites.child_blocks(scope)) {
    if (region_in(sites[b].realize()->block->reads, plan.buffer)) readers.push_back(b);
  }
  if (plan.write) {
    std::erase(readers, plan.block);
    plan.place = copy_place(s, plan.block, readers);
  } else if (writers.empty()) {
    plan.place = {scope, sites[child_towards(sites, scope, plan.block)].stmt};
  } else {
    plan.place = copy_place(s, writers.front(), {plan.block});
  }
  return {};
}

/// The block that copies, under the loops of the block that are below the place and that its indices depend on.
std::pair<Stmt, BlockHandle> copy_nest(const Schedule& s, const ReindexPlan& plan, const BufferRef& cache) {
  const Sites& sites = s.sites();
  std::vector<const For*> loops;
  for (int site = sites[plan.block].parent; site != plan.place.location; site = sites[site].parent) {
    const For* loop = sites[site].loop();
    if (loop && std::ranges::any_of(plan.values, [&](const Expr& v) { return uses_var(v, *loop->var); }))
      loops.push_back(loop);
  }
  VarMap fresh;
  for (const For* loop : loops) fresh[loop->var] = VarRef(new Var(*loop->var));
  VarMap iters;
  std::vector<IterVarRef> iter_vars;
  std::vector<Expr> values;
  for (size_t i = 0; i < plan.iters.size(); ++i) {
    VarRef v(new Var(*plan.iters[i]->var));
    iters[plan.iters[i]->var] = v;
    iter_vars.push_back(make<IterVar>(plan.iters[i]->dom, v, IterKind::spatial));
    values.push_back(substitute(plan.values[i], fresh));
  }
  std::vector<Expr> at, cached_at;
  for (const Expr& e : plan.at) at.push_back(substitute(e, iters));
  for (const Expr& e : plan.cached_at) cached_at.push_back(substitute(e, iters));
  const BufferRef& from = plan.write ? cache : plan.buffer;
  const BufferRef& to = plan.write ? plan.buffer : cache;
  const std::vector<Expr>& from_at = plan.write ? cached_at : at;
  const std::vector<Expr>& to_at = plan.write ? at : cached_at;
  BlockHandle name = block_name(cache->name);
  BlockRef block = make<Block>(std::move(iter_vars),
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{point_region(from, from_at)},
                               std::vector<BufferRegionRef>{point_region(to, to_at)},
                               name,
                               Attrs{},
                               Stmt(),
                               store(to, load(from, from_at), to_at));
  Stmt nest = make<BlockRealize>(std::move(values), bool_imm(true), block);
  for (const For* loop : loops)
    nest = make<For>(cast<Var>(fresh.at(loop->var)),
                     loop->min,
                     substitute(loop->extent, fresh),
                     LoopKind::serial,
                     std::string(),
                     Attrs{},
                     nest);
  return {nest, name};
}

BlockHandle reindexed(Schedule& s, BlockHandle handle, BufferSelector which, std::string scope, IndexMapRef map,
                      bool write) {
  require_scope(s, scope);
  if (!which.is_write) which.is_write = write;
  ReindexPlan plan{.block = s.site(handle), .write = write, .buffer = selected_buffer(s, handle, which, write)};
  s.require(cannot_cache(s, plan, map));
  std::string suffix = scope;
  std::ranges::replace(suffix, '.', '_');
  BufferRef cache = make_buffer(plan.buffer->name + "_" + suffix, plan.shape, plan.buffer->dtype, scope);
  const Block& block = *s.sites()[plan.block].realize()->block;
  BlockRef redirected = transform(
      ref(block),
      [&](const BufferLoad& n) -> NodeRef {
        return n.buffer == plan.buffer ? NodeRef(load(cache, plan.cached_at)) : ref(n);
      },
      [&](const BufferStore& n) -> NodeRef {
        return n.buffer == plan.buffer ? NodeRef(store(cache, n.value, plan.cached_at)) : ref(n);
      },
      [&](const BufferRegion& n) -> NodeRef {
        return n.buffer == plan.buffer ? NodeRef(point_region(cache, plan.cached_at)) : ref(n);
      });
  auto [nest, name] = copy_nest(s, plan, cache);
  const int scope_site = s.sites()[plan.block].scope;
  const Block& around = *s.sites()[scope_site].realize()->block;
  NodeMap changes = {{ref(block), redirected}};
  Stmt body = around.body;
  if (plan.place.anchor) {
    changes.emplace(plan.place.anchor, seq({nest, replaced(plan.place.anchor, changes)}));
    body = replaced(body, changes);
  } else {
    body = seq({replaced(body, changes), nest});
  }
  body = transform(body, [](const Seq& n) -> Stmt { return seq(n.stmts); });  // flat again
  std::vector<BufferRef> allocations = around.alloc_buffers;
  allocations.push_back(cache);
  replace_scope(s, scope_site, std::move(body), std::move(allocations));
  return name;
}

/// A block copies the element that each instance of a block reads into a buffer of another scope, at the place that the index
/// map makes of the block's iterators; the block reads the copy. Returns the copying block, {buffer}_{scope}.
///   C[vi] = A[vi], map (i // 32, i % 32)   =>   A_shared[vi // 32, vi % 32] = A[vi]; C[vi] = A_shared[vi // 32, vi % 32]
BlockHandle do_reindex_cache_read(Schedule& s, BlockHandle block, BufferSelector which, std::string scope,
                                  IndexMapRef map) {
  return reindexed(s, block, which, std::move(scope), std::move(map), false);
}
/// The same of what a block writes: it writes the cache, and the copy is brought back before its first reader.
BlockHandle do_reindex_cache_write(Schedule& s, BlockHandle block, BufferSelector which, std::string scope,
                                   IndexMapRef map) {
  return reindexed(s, block, which, std::move(scope), std::move(map), true);
}

}  // namespace

const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, IndexMapRef)> reindex_cache_read{
    "reindex_cache_read",
    do_reindex_cache_read,
    {"block", "read_buffer_index", "storage_scope", "index_map"},
    "copies what a block reads to places that an index map gives"};
const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, IndexMapRef)> reindex_cache_write{
    "reindex_cache_write",
    do_reindex_cache_write,
    {"block", "write_buffer_index", "storage_scope", "index_map"},
    "writes to places that an index map gives first"};

}  // namespace sator::schedule
