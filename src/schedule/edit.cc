#include "schedule/edit.h"

#include "tir/regions.h"

namespace sator::schedule {

using namespace tir;

int lone_nest(const Schedule& s, int block_site) {
  const Sites& sites = s.sites();
  int at = block_site;
  while (sites[at].parent >= 0 && sites[sites[at].parent].loop() &&
         sites[sites[at].parent].loop()->body == sites[at].stmt)
    at = sites[at].parent;
  return at;
}

Reason refusal_at(const Schedule& s, int site, std::string what, std::string needs, std::string hint) {
  return {.what = what, .needs = std::move(needs), .hint = std::move(hint), .at = {{s.sites()[site].stmt, what}}};
}

Reason block_refusal(const Schedule& s, int block_site, std::string what, std::string needs, std::string hint) {
  return {.what = text("block ", string_literal(s.sites()[block_site].realize()->block->name->text), " ", what),
          .needs = std::move(needs),
          .hint = std::move(hint),
          .at = {{s.sites()[block_site].stmt, what}}};
}

MaybeReason is_only_block(const Schedule& s, int block_site) {
  int scope = s.sites()[block_site].scope;
  if (scope < 0)
    return Reason{.what = "the root block cannot be taken out",
                  .needs = "a block inside of the function",
                  .hint = "choose a child block"};
  if (s.sites().child_blocks(scope).size() == 1)
    return Reason{.what = text("block ",
                               string_literal(s.sites()[block_site].realize()->block->name->text),
                               " is all that its scope does"),
                  .needs = "another block beside it",
                  .hint = "there is nothing to inline it into",
                  .at = {{s.sites()[block_site].stmt, "the only block"}}};
  return {};
}

namespace {

/// A statement around a body, such as an allocation, without `target` in it; null where nothing is left.
template <class Around>
Stmt around_without(const Around& node, const Stmt& target) {
  Stmt body = without(node.body, target);
  if (!body) return nullptr;
  return body == node.body ? Stmt(&node) : Stmt(with(node, &Around::body, body));
}

}  // namespace

Stmt without(const Stmt& root, const Stmt& target) {
  if (root == target) return nullptr;
  if (const Seq* seq = root.as<Seq>()) {
    std::vector<Stmt> kept;
    for (const Stmt& stmt : seq->stmts) {
      if (Stmt k = without(stmt, target)) kept.push_back(k);
    }
    if (kept.empty()) return nullptr;
    return kept == seq->stmts ? root : sator::tir::seq(std::move(kept));
  }
  return match(
      root,
      [&](const For& loop) { return around_without(loop, target); },
      [&](const Allocate& a) { return around_without(a, target); },
      [&](const AllocateConst& a) { return around_without(a, target); },
      [&](const DeclBuffer& d) { return around_without(d, target); },
      [&](const AttrStmt& a) { return around_without(a, target); },
      [&](const LetStmt& l) { return around_without(l, target); },
      [&](const AssertStmt& a) {  // it is still to hold
        Stmt left = around_without(a, target);
        return left ? left : Stmt(with(a, &AssertStmt::body, Stmt(make<Evaluate>(int_imm(0)))));
      },
      [&](const StmtNode&) { return root; });
}

void replace_scope(Schedule& s, int scope_site, Stmt body, std::vector<BufferRef> allocations) {
  const BlockRealize& scope = *s.sites()[scope_site].realize();
  BlockRef block =
      with(with(scope.block, &Block::body, std::move(body)), &Block::alloc_buffers, std::move(allocations));
  s.replace(Stmt(&scope), Stmt(with(scope, &BlockRealize::block, block)));
}

int child_towards(const Sites& sites, int ancestor, int site) {
  while (sites[site].parent != ancestor) site = sites[site].parent;
  return site;
}

CopyPlace copy_place(const Schedule& s, int writer, const std::vector<int>& related) {
  const Sites& sites = s.sites();
  CopyPlace place{sites[writer].scope, nullptr};
  int first = -1;
  for (int r : related) {
    int lca = sites.lowest_common_ancestor(writer, r);
    if (sites[lca].depth > sites[place.location].depth) {
      place.location = lca;
      first = -1;
    }
    if (lca == place.location && r > writer && (first < 0 || r < first)) first = r;
  }
  if (first >= 0) place.anchor = sites[child_towards(sites, place.location, first)].stmt;
  return place;
}

BlockRef with_detected_regions(const BlockRef& block, const std::vector<BufferRef>& visible, bool reads, bool writes) {
  VisibleBuffers by_pointer;
  for (const BufferRef& b : visible) by_pointer.emplace(b->data, b);
  for (const BufferRef& own : block->alloc_buffers) by_pointer.erase(own->data);
  BlockRegions found = block_regions(*block, by_pointer);
  BlockRef out = block;
  if (reads) out = with(out, &Block::reads, found.reads);
  if (writes) out = with(out, &Block::writes, found.writes);
  return out;
}

std::vector<BufferRef> buffers_of(const PrimFunc& func) {
  std::vector<BufferRef> all;
  for (const auto& [param, buffer] : func.buffer_map) all.push_back(buffer);
  walk(func.body, [&](const Block& block) {
    all.insert(all.end(), block.alloc_buffers.begin(), block.alloc_buffers.end());
    for (const MatchBufferRef& m : block.match_buffers) all.push_back(m->buffer);
  });
  return all;
}

VarRef CopyNest::add(const RangeRef& range, const RangeRef& dom, const Expr& offset) {
  const size_t d = loops_.size();
  DType dtype = range->extent->dtype;
  VarRef iter = make_var(text("v", d), dtype);
  loops_.push_back(make_var(text(prefix_, d), dtype));
  ranges_.push_back(range);
  iters_.push_back(make<IterVar>(dom, iter, IterKind::spatial));
  values_.push_back(offset ? offset + loops_.back() : Expr(loops_.back()));
  return iter;
}

Stmt CopyNest::build(BlockHandle name, const BufferRef& from, const std::vector<Expr>& from_at, const BufferRef& to,
                     const std::vector<Expr>& to_at, Expr predicate, Expr value) const {
  if (!value) value = load(from, from_at);
  BlockRef block = make<Block>(iters_,
                               std::vector<BufferRef>{},
                               std::vector<MatchBufferRef>{},
                               std::vector<BufferRegionRef>{point_region(from, from_at)},
                               std::vector<BufferRegionRef>{point_region(to, to_at)},
                               std::move(name),
                               Attrs{},
                               Stmt(),
                               store(to, std::move(value), to_at));
  Stmt nest = make<BlockRealize>(values_, std::move(predicate), block);
  for (size_t d = loops_.size(); d-- > 0;)
    nest = make<For>(
        loops_[d], ranges_[d]->min, ranges_[d]->extent, LoopKind::serial, std::string(), Attrs{}, std::move(nest));
  return nest;
}

Stmt inserted(const Stmt& root, const Stmt& anchor, const Stmt& stmt, bool before) {
  return replaced(root, NodeMap{{anchor, before ? seq({stmt, anchor}) : seq({anchor, stmt})}});
}

}  // namespace sator::schedule
