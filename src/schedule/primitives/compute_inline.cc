#include <algorithm>

#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

const BufferStore* only_store(const Block& block) { return block.body.as<BufferStore>(); }

bool runs_once(const IterVar& iter) { return is_one(iter.dom->extent); }

/// The iterator that index d of the store tells: the index itself, or, of a constant index, one in the same place that has no other
/// value; null of other indices.
VarRef iterator_told(const Block& block, const BufferStore& store, size_t d) {
  VarRef v = cast<Var>(store.indices[d]);
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& iter = *block.iter_vars[i];
    if (iter.var == v) return v;
    if (i == d && block.iter_vars.size() == store.indices.size() && runs_once(iter) && as_int(store.indices[d]) &&
        as_int(store.indices[d]) == as_int(iter.dom->min))
      return iter.var;
  }
  return nullptr;
}

MaybeReason not_inlinable(const Schedule& s, int site) {
  const Block& block = *s.sites()[site].realize()->block;
  if (MaybeReason r = is_only_block(s, site)) return r;
  if (MaybeReason r = ScopeAnalysis(s, s.sites()[site].scope).not_complete(site)) return r;
  if (block.init)
    return block_refusal(s, site, "has an init", "a block without T.init()", "decompose its reduction first");
  if (!only_store(block))
    return block_refusal(
        s, site, "does more than one store", "a body of the form B[v0, v1, ...] = value", "split it in two");
  if (block.writes.size() != 1)
    return block_refusal(s, site, "writes several buffers", "one written buffer", "inline another block");
  return {};
}

}  // namespace

MaybeReason cannot_compute_inline(const Schedule& s, const BlockHandle& handle) {
  int site = s.site(handle);
  if (MaybeReason r = not_inlinable(s, site)) return r;
  const Block& block = *s.sites()[site].realize()->block;
  const BufferStore* st = only_store(block);
  if (is_output_block(s, site))
    return block_refusal(s,
                         site,
                         "is an output block",
                         "a block whose result stays inside of its scope",
                         "its result has to be written anyway");
  std::vector<VarRef> told;
  for (size_t d = 0; d < st->indices.size(); ++d) {
    VarRef v = iterator_told(block, *st, d);
    if (!v && as_int(st->indices[d])) continue;
    if (!v || std::find(told.begin(), told.end(), v) != told.end())
      return block_refusal(s,
                           site,
                           "does not store at its plain iterators",
                           "indices that are different iterators of the block",
                           "transform_layout can bring it to that form");
    told.push_back(v);
  }
  for (const IterVarRef& i : block.iter_vars) {
    if (runs_once(*i) || !uses_var(st->value, *i->var) || std::find(told.begin(), told.end(), i->var) != told.end())
      continue;
    return block_refusal(s,
                         site,
                         "computes with an iterator that its result is not indexed by",
                         "every iterator as an index",
                         "the value of an element must follow from where it is");
  }
  const BlockRealize& scope = *s.sites()[s.sites()[site].scope].realize();
  if (is_used_opaquely(scope.block->body, st->buffer))
    return block_refusal(
        s, site, "writes a buffer that is used through its pointer", "loads and stores only", "inline another block");
  return {};
}

namespace {

/// Replaces loads of one buffer by the value that its producer would have stored, and reads off anew what the blocks
/// read that it touched.
class Inliner {
 public:
  Inliner(const Block& block, std::vector<BufferRef> visible)
      : block_(block), store_(*only_store(block)), visible_(std::move(visible)) {}

  NodeRef operator()(const NodeRef& n) {
    NodeRef out = n->info().map_children(*n, [this](const NodeRef& child) {
      if (child->info().has_identity) return child;  // variables and buffers hold no loads of ours
      return (*this)(child);
    });
    if (const BufferLoad* l = out.as<BufferLoad>(); l && l->buffer == store_.buffer) {
      VarMap map;
      for (size_t d = 0; d < l->indices.size(); ++d) {
        if (VarRef v = iterator_told(block_, store_, d)) map.emplace(v, cast_to(v->dtype, l->indices[d]));
      }
      for (const IterVarRef& i : block_.iter_vars) {
        if (runs_once(*i)) map.emplace(i->var, cast_to(i->var->dtype, i->dom->min));
      }
      return substitute(store_.value, map);
    }
    if (const Block* before = n.as<Block>()) {
      bool reads_it = std::any_of(before->reads.begin(), before->reads.end(), [&](const BufferRegionRef& r) {
        return r->buffer == store_.buffer;
      });
      if (reads_it) return with_detected_regions(cast<Block>(out), visible_, true, false);
    }
    return out;
  }

 private:
  const Block& block_;
  const BufferStore& store_;
  std::vector<BufferRef> visible_;
};

/// Puts a producer into its consumers: each load of its buffer becomes the value that was stored there.
///   B[vi] = A[vi] * 2; C[vi] = B[vi] + 1   =>   C[vi] = A[vi] * 2 + 1
void do_compute_inline(Schedule& s, BlockHandle block) {
  s.require(cannot_compute_inline(s, block));
  int site = s.site(block), scope_site = s.sites()[site].scope;
  const BlockRef producer = s.sites()[site].realize()->block;
  const BufferStore* st = only_store(*producer);
  const BlockRealize& scope = *s.sites()[scope_site].realize();
  Stmt rest = without(scope.block->body, s.sites()[lone_nest(s, site)].stmt);
  Inliner inliner(*producer, buffers_of(*s.func()));
  Stmt body = cast<StmtNode>(inliner(rest));
  std::vector<BufferRef> allocations = scope.block->alloc_buffers;
  allocations.erase(std::remove(allocations.begin(), allocations.end(), st->buffer), allocations.end());
  replace_scope(s, scope_site, std::move(body), std::move(allocations));
}

}  // namespace

const Primitive<void(BlockHandle)> compute_inline{
    "compute_inline", do_compute_inline, {"block"}, "puts a producer into its consumers"};

}  // namespace sator::schedule
