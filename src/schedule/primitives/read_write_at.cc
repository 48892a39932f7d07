// read_at, write_at: a tile of a buffer in another memory, under a loop, copied by one block.
#include <algorithm>

#include "arith/analyzer.h"
#include "schedule/analysis.h"
#include "schedule/buffers.h"
#include "schedule/coverage.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The box of a buffer that a block touches in one iteration of a loop, with the threads that share the copy.
struct Tile {
  BufferRef original, cache;
  int loop = -1, block = -1;
  std::vector<RangeRef> region;  ///< begins at a multiple of its extent, which divides the buffer's
  Expr condition;                ///< where the block runs below the loop
};

std::string suffix_of(std::string scope) {
  std::replace(scope.begin(), scope.end(), '.', '_');
  return scope;
}

/// Why the box is no tile: tiles of its size must cover the buffer, and it must be one of them.
MaybeReason no_tile(const Schedule& s, const Tile& tile) {
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, tile.loop);
  auto inside = analyzer.with_constraint(analyzer.simplify(tile.condition));
  for (size_t d = 0; d < tile.region.size(); ++d) {
    const RangeRef& r = tile.region[d];
    const Expr zero = int_imm(0, r->min->dtype), extent = cast_to(r->min->dtype, r->extent);
    const Expr size = cast_to(r->min->dtype, tile.original->shape[d]);
    bool reads_memory = false;
    walk(r->min, [&](const BufferLoad&) { reads_memory = true; });
    const bool is_tile = !reads_memory && analyzer.prove(gt(extent, zero)) &&
                         analyzer.prove_equal(floormod(r->min, extent), zero) &&
                         analyzer.prove_equal(floormod(size, extent), zero) && analyzer.prove(ge(r->min, zero)) &&
                         analyzer.prove(le(r->min + extent, size), arith::Strength::symbolic);
    if (!is_tile)
      return Reason{.what = text("dimension ",
                                 d,
                                 " of ",
                                 tile.original->name,
                                 " is used from ",
                                 r->min,
                                 " on, ",
                                 r->extent,
                                 " of ",
                                 tile.original->shape[d],
                                 " elements"),
                    .needs =
                        "a tile inside of the buffer: a first element that is a multiple of their number, which "
                        "divides the extent",
                    .hint = "split the loops by factors that divide their extents",
                    .at = {{s.sites()[tile.block].stmt, "uses it"}}};
  }
  return {};
}

/// Whether the loop feeds a reduction axis of the block.
bool carries_reduction(const BlockRealize& realize, const Var& loop) {
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (realize.block->iter_vars[i]->kind == IterKind::reduce && uses_var(realize.values[i], loop)) return true;
  }
  return false;
}

/// Errors: the loop is not around the block; another block below the loop has to do with the buffer.
Tile tile_of(Schedule& s, const Loop& loop, const BlockHandle& block, const BufferSelector& which,
             const std::string& scope, bool is_write) {
  require_scope(s, scope);
  Tile tile{.original = selected_buffer(s, block, which, is_write), .loop = s.site(loop), .block = s.site(block)};
  const Sites& sites = s.sites();
  if (!sites.is_above(tile.loop, tile.block) || sites[tile.loop].scope != sites[tile.block].scope)
    s.fail(block_refusal(s,
                         tile.block,
                         text("is not below loop ", loop->name),
                         "a loop around the block, in its scope",
                         "get_loops(block) lists them"));
  for (int b : sites.blocks_under(tile.loop)) {
    const Block& other = *sites[b].realize()->block;
    const bool conflicts = lists(other.writes, tile.original) || (is_write && lists(other.reads, tile.original));
    if (conflicts && !(is_write && b == tile.block))
      s.fail(block_refusal(
          s,
          b,
          text(is_write ? "uses " : "writes ", tile.original->name, " below the loop too"),
          is_write ? "one block below the loop that uses the buffer" : "a buffer that nothing below the loop writes",
          "take a loop further in"));
  }
  const BlockRealize& realize = *sites[tile.block].realize();
  const std::vector<BufferRegionRef>& regions = is_write ? realize.block->writes : realize.block->reads;
  const auto own = std::ranges::find(regions, tile.original, [](const BufferRegionRef& r) { return r->buffer; });
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, tile.loop);
  const arith::RangeMap loops = loop_domain(sites, sites[tile.block].parent, tile.loop, scope);
  const auto at_loops = substitute_region((*own)->region, bindings_of(realize));
  tile.region = arith::relax_region(at_loops, loops, realize.predicate, tile.original->shape, analyzer);
  tile.condition = bool_imm(true);
  for (const Expr& c : conditions_outside(sites, tile.block, tile.loop)) {
    if (!analyzer.prove(c)) tile.condition = logical_and(tile.condition, c);
  }
  s.require(no_tile(s, tile));
  if (is_write) {
    for (int above : sites.loops_above(tile.block)) {
      const For& around = *sites[above].loop();
      if ((above == tile.loop || sites.is_above(above, tile.loop)) && carries_reduction(realize, *around.var) &&
          !analyzer.prove_ge(around.extent, 1))
        s.fail(block_refusal(
            s,
            tile.block,
            text("gives its init where loop ", around.var->name, " has no iteration, which copies nothing"),
            "a loop around the reduction, or one that has an iteration for all sizes",
            "take a loop of the block's spatial axes"));
      const Loop& thread = sites[above].loop()->var;
      auto range = loops.find(thread);
      if (range != loops.end() && sites.is_above(above, tile.loop) && !is_one(range->second->extent))
        s.fail(block_refusal(s,
                             tile.block,
                             text("fills its tile of ", tile.original->name, " together with the threads of ", thread),
                             "a tile of which one thread's iteration of the loop writes all that it copies",
                             "cache_write and reverse_compute_at give each thread its part of the copy"));
    }
    if (realize.block->init == nullptr && lists(realize.block->reads, tile.original))
      s.fail(block_refusal(s,
                           tile.block,
                           text("reads what it writes in ", tile.original->name),
                           "a block that writes what it reads first: one without such a read, or with its init",
                           "write_at before decompose_reduction"));
    if (!arith::estimate_region_strict_bound(at_loops, loops, realize.predicate, analyzer) ||
        !leaves_unwritten(s, tile.block, tile.original, tile.loop).empty())
      s.fail(block_refusal(s,
                           tile.block,
                           text("writes a part of its tile of ", tile.original->name),
                           "a block that writes all of the tile, which is copied as a whole",
                           "take a loop below which the tile is complete"));
  }
  tile.cache =
      make_buffer(tile.original->name + "_" + suffix_of(scope), tile.original->shape, tile.original->dtype, scope);
  return tile;
}

/// The block that copies the tile: its iterators count tiles, its loops ax0, ax1, ... the elements of one. It runs where the
/// block does.
BlockRealizeRef copying_block(const Tile& tile, const BufferRef& from, const BufferRef& to, const BlockHandle& name) {
  arith::Analyzer analyzer;
  std::vector<IterVarRef> iters;
  std::vector<Expr> values, at;
  std::vector<RangeRef> region;
  std::vector<std::pair<VarRef, Expr>> loops;
  for (size_t d = 0; d < tile.region.size(); ++d) {
    const DType dtype = tile.region[d]->min->dtype;
    const Expr extent = cast_to(dtype, tile.region[d]->extent), size = cast_to(dtype, tile.original->shape[d]);
    VarRef v = make_var(text("v", d), dtype), ax = make_var(text("ax", d), dtype);
    iters.push_back(make<IterVar>(range_of(analyzer.simplify(floordiv(size, extent))), v, IterKind::spatial));
    values.push_back(analyzer.simplify(floordiv(tile.region[d]->min, extent)));
    const Expr begin = is_one(extent) ? Expr(v) : v * extent;
    region.push_back(make<Range>(begin, extent));
    at.push_back(begin + ax);
    loops.emplace_back(ax, extent);
  }
  Stmt body = store(to, load(from, at), at);
  for (size_t d = loops.size(); d-- > 0;)
    body = make<For>(loops[d].first,
                     int_imm(0, loops[d].first->dtype),
                     loops[d].second,
                     LoopKind::serial,
                     std::string(),
                     Attrs(),
                     body);
  BlockRef block = make<Block>(iters,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{make<BufferRegion>(from, region)},
                               std::vector<BufferRegionRef>{make<BufferRegion>(to, region)},
                               name,
                               Attrs{{"auto_copy", int_imm(1)}},
                               Stmt(),
                               body);
  return make<BlockRealize>(values, tile.condition, block);
}

/// The block uses the cache; the copy goes in front of (or behind) the statement of the loop's body that holds the block.
BlockHandle apply(Schedule& s, const Tile& tile, bool is_write) {
  const Sites& sites = s.sites();
  const BlockHandle name = block_name(tile.cache->name);
  const Stmt copy = is_write ? copying_block(tile, tile.cache, tile.original, name)
                             : copying_block(tile, tile.original, tile.cache, name);
  const Stmt anchor = sites[child_towards(sites, tile.loop, tile.block)].stmt;
  const Stmt used = sites[tile.block].stmt;
  const Stmt moved = replaced(anchor, NodeMap{{used, replace_buffer(used, tile.original, tile.cache)}});
  const int scope_site = sites[tile.block].scope;
  const Block& scope_block = *sites[scope_site].realize()->block;
  const Stmt both = is_write ? seq({moved, copy}) : seq({copy, moved});
  std::vector<BufferRef> allocations = scope_block.alloc_buffers;
  allocations.push_back(tile.cache);
  replace_scope(s, scope_site, replaced(scope_block.body, NodeMap{{anchor, both}}), std::move(allocations));
  return name;
}

/// A block copies the tile of a buffer that `block` reads in one iteration of the loop into memory of another scope, where
/// the block reads it. Returns the copying block, {buffer}_{scope}.
BlockHandle do_read_at(Schedule& s, Loop loop, BlockHandle block, BufferSelector which, std::string scope) {
  if (!which.is_write) which.is_write = false;
  return apply(s, tile_of(s, loop, block, which, scope, false), false);
}

/// The block writes its tile of a buffer into memory of another scope; a block at the end of the loop's body copies it to
/// the buffer. Returns the copying block, {buffer}_{scope}.
BlockHandle do_write_at(Schedule& s, Loop loop, BlockHandle block, BufferSelector which, std::string scope) {
  if (!which.is_write) which.is_write = true;
  return apply(s, tile_of(s, loop, block, which, scope, true), true);
}

}  // namespace

const Primitive<BlockHandle(Loop, BlockHandle, BufferSelector, std::string)> read_at{
    "read_at",
    do_read_at,
    {"loop", "block", "read_buffer_index", "storage_scope"},
    "copies the tile that a block reads below a loop into another memory"};
const Primitive<BlockHandle(Loop, BlockHandle, BufferSelector, std::string)> write_at{
    "write_at",
    do_write_at,
    {"loop", "block", "write_buffer_index", "storage_scope"},
    "writes a tile below a loop into another memory first"};

}  // namespace sator::schedule
