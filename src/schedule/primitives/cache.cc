#include <algorithm>

#include "schedule/buffers.h"
#include "schedule/coverage.h"
#include "schedule/edit.h"
#include "schedule/loops.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// Where a copying block goes and what it copies.
struct Stage {
  BufferRef original, cache;
  std::vector<RangeRef> region;  ///< of the original
  bool whole = false;            ///< the cache has the original's shape; else the region's, shifted to 0
  int location = -1;             ///< a loop, or the scope block
  int writer = -1;               ///< the block that writes what is copied; -1: none in the scope
  Stmt anchor;                   ///< the stage goes in front of it; null: to the front or the end of the scope
  bool before = true;            ///< to the front
};

std::vector<RangeRef> region_of(const std::vector<BufferRegionRef>& regions, const BufferRef& buffer) {
  for (const BufferRegionRef& r : regions) {
    if (r->buffer == buffer) return r->region;
  }
  internal_error("cache: the block does not list the buffer");
}

/// In front of the first related block below the lowest place that has it and the writer; else at the end of the scope.
void locate(const Schedule& s, int writer, const std::vector<int>& related, Stage& stage) {
  CopyPlace place = copy_place(s, writer, related);
  stage.location = place.location;
  stage.anchor = place.anchor;
  stage.before = place.anchor != nullptr;
}

/// Of two scopes the one that fewer threads share.
const std::string& narrower(const std::string& a, const std::string& b) {
  auto rank = [](const std::string& scope) {
    return scope.empty() || scope == "global"               ? 0
           : scope.starts_with("shared") || scope == "sram" ? 1
           : scope == "warp"                                ? 2
                                                            : 3;
  };
  return rank(a) >= rank(b) ? a : b;
}

/// What the block writes of the buffer in one iteration of `location`, together with the threads that share both the buffer
/// and its copy in `scope`.
std::vector<RangeRef> relaxed(const Schedule& s, int block, const std::vector<RangeRef>& region,
                              const BufferRef& buffer, const std::string& scope, int location) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[block].realize();
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, location);
  return arith::relax_region(substitute_region(region, bindings_of(realize)),
                             loop_domain(sites, sites[block].parent, location, narrower(buffer->scope(), scope)),
                             realize.predicate,
                             buffer->shape,
                             analyzer);
}

/// Why the copy between buffer and cache would copy elements that nothing has written; nothing if it does not.
MaybeReason copies_unwritten(const Schedule& s, const Stage& stage) {
  std::string why = leaves_unwritten(s, stage.writer, stage.original, stage.location);
  if (why.empty()) return {};
  return Reason{.what = text(why, ", and the copy is of the whole box"),
                .needs = "a block that writes all of the box of the buffer that it writes to",
                .hint = "let the block write every element of the box, or leave its buffer where it is",
                .at = {{s.sites()[stage.writer].stmt, "writes a part"}}};
}

/// Whether the region moves with a loop, as that of a block without iterators does: a copying block inside could not name it.
bool follows_loops(const Schedule& s, const BufferRegion& r) {
  bool follows = false;
  walk(s.func()->body, [&](const For& loop) {
    for (const RangeRef& range : r.region)
      follows |= uses_var(range->min, *loop.var) || uses_var(range->extent, *loop.var);
  });
  return follows;
}

void shape_cache(const Schedule& s, const std::string& scope, const std::vector<int>& readers, Stage& stage) {
  const Sites& sites = s.sites();
  stage.whole = sites[stage.location].loop() != nullptr ||
                !std::all_of(readers.begin(), readers.end(), [&](int r) { return sites.is_above(stage.location, r); });
  if (!stage.whole && follows_loops(s, *make<BufferRegion>(stage.original, stage.region)))
    s.fail({.what =
                text("what is used of ", stage.original->name, " moves with a loop around the block that holds it all"),
            .needs = "a scope block whose iterators say where it is",
            .hint = "cache it before loop_partition"});
  std::vector<Expr> shape;
  for (size_t d = 0; d < stage.region.size(); ++d)
    shape.push_back(stage.whole ? stage.original->shape[d] : stage.region[d]->extent);
  std::string suffix = scope;
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  stage.cache = make_buffer(stage.original->name + "_" + suffix, std::move(shape), stage.original->dtype, scope);
}

/// The block that copies between original and cache, under loops ax0, ax1, ... over the region.
/// Where the loops around it run beyond the buffer, or under a predicate of the block that writes, so does it.
std::pair<Stmt, BlockHandle> copy_stage(const Schedule& s, const Stage& stage, bool to_cache,
                                        const std::string& scope) {
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, stage.location);
  Expr predicate = bool_imm(true);
  CopyNest nest("ax");
  std::vector<Expr> at_original, at_cache;
  for (size_t d = 0; d < stage.region.size(); ++d) {
    const RangeRef& range = stage.region[d];
    DType dtype = range->extent->dtype;
    RangeRef dom = range_of(stage.whole ? cast_to(dtype, stage.original->shape[d]) : range->extent);
    VarRef v = nest.add(range_of(range->extent), dom, stage.whole ? range->min : Expr());
    at_original.push_back(stage.whole ? Expr(v) : range->min + v);
    at_cache.push_back(v);
    analyzer.bind(nest.last_loop(), range_of(range->extent));
    Expr at = range->min + nest.last_loop();
    for (const Expr& inside : {ge(at, int_imm(0, at->dtype)), lt(at, stage.original->shape[d])}) {
      if (!analyzer.prove(inside, arith::Strength::symbolic)) predicate = logical_and(predicate, inside);
    }
  }
  if (stage.writer >= 0) {
    for (const Expr& c : conditions_outside(s.sites(), stage.writer, stage.location)) {
      auto known = analyzer.with_constraint(predicate);
      if (!analyzer.prove(c)) predicate = logical_and(predicate, c);
    }
  }
  BlockHandle name = block_name(stage.original->name + "_" + scope);
  return {to_cache ? nest.build(name, stage.original, at_original, stage.cache, at_cache, predicate)
                   : nest.build(name, stage.cache, at_cache, stage.original, at_original, predicate),
          name};
}

/// Loads, stores and regions of the original become those of the cache.
class Redirect {
 public:
  explicit Redirect(const Stage& stage) : stage_(stage) {}

  NodeRef operator()(const NodeRef& n) const {
    NodeRef out = n->info().map_children(*n, [this](const NodeRef& child) -> NodeRef {
      if (child == stage_.original->data) return stage_.cache->data;  // used as a pointer
      return child->info().has_identity ? child : (*this)(child);
    });
    if (const BufferLoad* l = out.as<BufferLoad>(); l && l->buffer == stage_.original)
      return load(stage_.cache, shifted(l->indices));
    if (const BufferStore* st = out.as<BufferStore>(); st && st->buffer == stage_.original)
      return store(stage_.cache, st->value, shifted(st->indices));
    if (const BufferRegion* r = out.as<BufferRegion>(); r && r->buffer == stage_.original) {
      std::vector<Expr> mins;
      for (const RangeRef& range : r->region) mins.push_back(range->min);
      mins = shifted(mins);
      std::vector<RangeRef> region;
      for (size_t d = 0; d < mins.size(); ++d) region.push_back(make<Range>(mins[d], r->region[d]->extent));
      return make<BufferRegion>(stage_.cache, std::move(region));
    }
    return out;
  }

 private:
  static Expr minus(const Expr& a, const Expr& b) {
    arith::Analyzer analyzer;
    return analyzer.simplify(is_zero(b) ? a : a - b);
  }
  std::vector<Expr> shifted(const std::vector<Expr>& indices) const {
    if (stage_.whole) return indices;
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d) out.push_back(minus(indices[d], stage_.region[d]->min));
    return out;
  }
  const Stage& stage_;
};

/// `body` with a statement before (or after) it, within the declarations of buffers that it begins with.
Stmt beside(const Stmt& body, const Stmt& stmt, bool before) {
  if (const AllocateConst* a = body.as<AllocateConst>())
    return with(*a, &AllocateConst::body, beside(a->body, stmt, before));
  if (const DeclBuffer* d = body.as<DeclBuffer>()) return with(*d, &DeclBuffer::body, beside(d->body, stmt, before));
  return before ? seq({stmt, body}) : seq({body, stmt});
}

/// Puts the stage into the scope and redirects the blocks at `users`.
BlockHandle apply(Schedule& s, int scope_site, const Stage& stage, bool to_cache, const std::string& scope,
                  const std::vector<int>& users) {
  const Sites& sites = s.sites();
  Redirect redirect(stage);
  NodeMap map;
  for (int u : users) {
    const BlockRealize& realize = *sites[u].realize();
    map.emplace(realize.block, redirect(realize.block));
  }
  const BlockRealize& scope_realize = *sites[scope_site].realize();
  auto [nest, name] = copy_stage(s, stage, to_cache, scope);
  Stmt body = scope_realize.block->body;
  if (stage.anchor) {
    // The anchor may hold users too: they are redirected, then the stage goes in front of what the anchor has become.
    Stmt both = seq({nest, replaced(stage.anchor, map)});
    map.emplace(stage.anchor, both);
    body = replaced(body, map);
  } else {
    body = beside(replaced(body, map), nest, stage.before);
  }
  std::vector<BufferRef> allocations = scope_realize.block->alloc_buffers;
  allocations.push_back(stage.cache);
  replace_scope(s, scope_site, std::move(body), std::move(allocations));
  return name;
}

/// The blocks of the scope that read the buffer; those named, if some are.
std::vector<int> readers_of(const Schedule& s, int scope_site, const BufferRef& buffer,
                            const std::vector<BlockHandle>& named) {
  std::vector<int> readers;
  for (int b : s.sites().child_blocks(scope_site)) {
    const Block& block = *s.sites()[b].realize()->block;
    bool reads = std::any_of(
        block.reads.begin(), block.reads.end(), [&](const BufferRegionRef& r) { return r->buffer == buffer; });
    bool wanted =
        named.empty() || std::any_of(named.begin(), named.end(), [&](const BlockHandle& h) { return s.site(h) == b; });
    if (reads && wanted) readers.push_back(b);
  }
  return readers;
}

/// Why the buffer cannot be cached: several blocks write it; nothing if it can.
MaybeReason several_writers(const Schedule& s, int scope_site, const BufferRef& buffer) {
  ScopeAnalysis scope(s, scope_site);
  const std::vector<int>& writers = scope.writers(buffer);
  if (writers.size() <= 1) return {};
  Reason r{.what = text(writers.size(), " blocks write ", buffer->name),
           .needs = "at most one block of the scope writes it",
           .hint = "cache it where one block writes it"};
  for (int w : writers) r.at.push_back({s.sites()[w].stmt, "writes it"});
  return r;
}

/// Whether a loop runs the two blocks more than once.
bool repeats_together(const Schedule& s, int a, int b, int scope_site) {
  const Sites& sites = s.sites();
  for (int i = sites.lowest_common_ancestor(a, b); i != scope_site; i = sites[i].parent)
    if (!is_one(sites[i].loop()->extent)) return true;
  return false;
}

/// A block copies what consumers read of a buffer into memory of another scope, before its first use; they read the
/// copy. Returns the copying block, {buffer}_{scope}; its loops are ax0, ax1, ...
BlockHandle do_cache_read(Schedule& s, BlockHandle block, BufferSelector which, std::string scope,
                          std::vector<BlockHandle> consumers) {
  require_scope(s, scope);
  if (!which.is_write) which.is_write = false;
  Stage stage{.original = selected_buffer(s, block, which, false)};
  int scope_site = s.sites()[s.site(block)].scope;
  s.require(several_writers(s, scope_site, stage.original));
  ScopeAnalysis analysis(s, scope_site);
  for (int b : analysis.blocks()) {
    const Block& reader = *s.sites()[b].realize()->block;
    bool reads = std::any_of(reader.reads.begin(), reader.reads.end(), [&](const BufferRegionRef& r) {
      return r->buffer == stage.original;
    });
    if (reads && !has_region_cover(s, analysis, b, stage.original))
      s.fail({.what = text("block ",
                           string_literal(reader.name->text),
                           " reads more of ",
                           stage.original->name,
                           " than was written"),
              .needs = "region cover: all that is read has been written before",
              .hint = "check T.reads and T.writes",
              .at = {{s.sites()[b].stmt, "reads it"}}});
  }
  std::vector<int> readers = readers_of(s, scope_site, stage.original, consumers);
  const std::vector<int>& writers = analysis.writers(stage.original);
  auto comes_first = [&](int r) { return r < writers.front() && !repeats_together(s, r, writers.front(), scope_site); };
  if (!writers.empty() && std::erase(readers, writers.front()) > 0 && readers.empty())  // what it reads is its own
    s.fail(block_refusal(s,
                         writers.front(),
                         text("alone reads ", stage.original->name, ", and writes it"),
                         "another block that reads the buffer",
                         "cache what others read; an accumulator is kept elsewhere by cache_write, or cache_inplace"));
  // What is written only after it has been read is an input as well.
  const bool is_input = writers.empty() || std::ranges::all_of(readers, comes_first);
  if (!is_input) {
    for (int r : readers) {
      if (comes_first(r))
        s.fail(
            block_refusal(s,
                          r,
                          text("reads ", stage.original->name, " before it is written, and other blocks behind that"),
                          "readers that all come before the writer, or all behind it",
                          "name the consumers that are to read the copy"));
    }
  }
  if (!is_input) stage.writer = writers.front();
  if (is_input) {
    stage.location = scope_site;
    const Block& scope_block = *s.sites()[scope_site].realize()->block;
    stage.region = full_region(stage.original)->region;
    for (const BufferRegionRef& r : scope_block.reads) {
      if (r->buffer == stage.original && !follows_loops(s, *r)) stage.region = r->region;
    }
  } else {
    locate(s, writers.front(), readers, stage);
    s.require(copies_unwritten(s, stage));
    stage.region = relaxed(s,
                           writers.front(),
                           region_of(s.sites()[writers.front()].realize()->block->writes, stage.original),
                           stage.original,
                           scope,
                           stage.location);
  }
  shape_cache(s, scope, readers_of(s, scope_site, stage.original, {}), stage);
  return apply(s, scope_site, stage, true, scope, readers);
}

/// The block reads the buffer before it has written it.
bool reads_first(const Schedule& s, int site, const BufferRef& buffer) {
  const Block& block = *s.sites()[site].realize()->block;
  auto lists = [&](const Block& b, const std::vector<BufferRegionRef> Block::* side) {
    return std::any_of(
        (b.*side).begin(), (b.*side).end(), [&](const BufferRegionRef& r) { return r->buffer == buffer; });
  };
  if (block.init) return false;
  for (int child : s.sites().child_blocks(site)) {
    const Block& inner = *s.sites()[child].realize()->block;
    if (lists(inner, &Block::reads) || lists(inner, &Block::writes)) return reads_first(s, child, buffer);
  }
  return lists(block, &Block::reads);
}

/// A block writes into memory of another scope, and a copying block brings it to the buffer. Returns the copying block,
/// {buffer}_{scope}. Consumers named read the cache, the others the buffer.
BlockHandle do_cache_write(Schedule& s, BlockHandle block, BufferSelector which, std::string scope,
                           std::vector<BlockHandle> consumers) {
  require_scope(s, scope);
  if (!which.is_write) which.is_write = true;
  Stage stage{.original = selected_buffer(s, block, which, true)};
  int site = s.site(block), scope_site = s.sites()[site].scope;
  stage.writer = site;
  s.require(several_writers(s, scope_site, stage.original));
  const Block& writer = s.get(block);
  if (reads_first(s, site, stage.original))
    s.fail({.what = text("block ",
                         string_literal(writer.name->text),
                         " reads what it writes in ",
                         stage.original->name,
                         ", which the cache would not hold yet"),
            .needs = "a block that writes what it reads first: one without such a read, or with its init",
            .hint = "cache_write before decompose_reduction and blockize",
            .at = {{s.sites()[site].stmt, "accumulates"}}});
  std::vector<int> redirected = {site}, related;
  if (!consumers.empty()) {
    for (int r : readers_of(s, scope_site, stage.original, consumers)) {
      if (r != site) redirected.push_back(r);
    }
  }
  for (int r : readers_of(s, scope_site, stage.original, {})) {
    if (std::find(redirected.begin(), redirected.end(), r) == redirected.end()) related.push_back(r);
  }
  locate(s, site, related, stage);
  s.require(copies_unwritten(s, stage));
  stage.region =
      relaxed(s, site, region_of(s.get(block).writes, stage.original), stage.original, scope, stage.location);
  shape_cache(s, scope, readers_of(s, scope_site, stage.original, {}), stage);
  return apply(s, scope_site, stage, false, scope, redirected);
}

/// A block works on a copy in memory of another scope, filled before it and brought back after it, under the loops around.
/// Returns the two copying blocks, {buffer}_{scope} both.
///   for i: F(B)   =>   for i: B_local[...] = B[...]; F(B_local); B[...] = B_local[...]
std::vector<BlockHandle> do_cache_inplace(Schedule& s, BlockHandle block, BufferSelector which, std::string scope) {
  require_scope(s, scope);
  if (!which.is_write) which.is_write = false;
  Stage stage{.original = selected_buffer(s, block, which, false)};
  const int site = s.site(block);
  const BlockRealize& realize = *s.sites()[site].realize();
  auto of = [&](const std::vector<BufferRegionRef>& regions) {
    const bool lists = std::ranges::any_of(regions, [&](const auto& r) { return r->buffer == stage.original; });
    if (!lists)
      s.fail({.what = text("block ",
                           string_literal(realize.block->name->text),
                           " does not both read and write ",
                           stage.original->name),
              .needs = "a block that reads and writes the buffer",
              .hint = "use cache_read or cache_write",
              .at = {{s.sites()[site].stmt, "uses it one way"}}});
    return substitute_region(region_of(regions, stage.original), bindings_of(realize));
  };
  const std::vector<RangeRef> read = of(realize.block->reads), written = of(realize.block->writes);
  stage.location = s.sites()[site].parent;
  stage.writer = site;
  stage.whole = true;
  // What is not written within the written box comes back as it was.
  const std::vector<arith::IntSet> both =
      arith::unite_regions({arith::eval_set(read, {}), arith::eval_set(written, {})});
  for (size_t d = 0; d < both.size(); ++d)
    stage.region.push_back(both[d].cover_range(range_of(stage.original->shape[d])));
  std::string suffix = scope;
  std::replace(suffix.begin(), suffix.end(), '.', '_');
  stage.cache = make_buffer(stage.original->name + "_" + suffix, stage.original->shape, stage.original->dtype, scope);
  auto [fill, filled] = copy_stage(s, stage, true, scope);
  stage.region = written;
  auto [back, brought_back] = copy_stage(s, stage, false, scope);

  const int scope_site = s.sites()[site].scope;
  const Block& scope_block = *s.sites()[scope_site].realize()->block;
  const Stmt old = s.sites()[site].stmt;
  const Stmt inside = with(realize, &BlockRealize::block, cast<Block>(Redirect(stage)(realize.block)));
  std::vector<BufferRef> allocations = scope_block.alloc_buffers;
  allocations.push_back(stage.cache);
  replace_scope(
      s, scope_site, replaced(scope_block.body, NodeMap{{old, seq({fill, inside, back})}}), std::move(allocations));
  return {filled, brought_back};
}

}  // namespace

const Primitive<std::vector<BlockHandle>(BlockHandle, BufferSelector, std::string)> cache_inplace{
    "cache_inplace",
    do_cache_inplace,
    {"block", "read_buffer_index", "storage_scope"},
    "lets a block work on a copy in another memory"};
const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, std::vector<BlockHandle>)> cache_read{
    "cache_read",
    do_cache_read,
    {"block", "read_buffer_index", "storage_scope", {"consumer_blocks", Value()}},
    "copies what a block reads into another memory"};
const Primitive<BlockHandle(BlockHandle, BufferSelector, std::string, std::vector<BlockHandle>)> cache_write{
    "cache_write",
    do_cache_write,
    {"block", "write_buffer_index", "storage_scope", {"consumer_blocks", Value()}},
    "writes into another memory first"};

}  // namespace sator::schedule
