#include <algorithm>

#include "schedule/edit.h"
#include "schedule/primitives.h"
#include "schedule/reducers.h"

namespace sator::schedule {

using namespace tir;

namespace {

struct EinsumPadding {
  int block = -1;
  Stmt nest;                                   ///< the block with all its loops
  VarMap grown;                                ///< iterators and loops that are padded -> their new extents
  std::vector<BufferRegionRef> reads, writes;  ///< those that need a padded buffer
};

bool is_padded(const EinsumPadding& plan, const Expr& index) {
  VarRef v = cast<Var>(index);
  return v && plan.grown.count(v);
}

/// Whether the value is zero where the loads indexed by `iter` are: a product with such a factor.
bool vanishes(const Expr& value, const VarRef& iter) {
  if (const Mul* m = value.as<Mul>()) return vanishes(m->a, iter) || vanishes(m->b, iter);
  if (const Cast* c = value.as<Cast>()) return vanishes(c->value, iter);
  const BufferLoad* l = value.as<BufferLoad>();
  return l && std::find(l->indices.begin(), l->indices.end(), Expr(iter)) != l->indices.end();
}

/// Why the accesses are no einsum that can be padded; nothing if they are. Fills the plan's reads and writes.
MaybeReason unfit_accesses(const Schedule& s, EinsumPadding& plan) {
  const Block& block = *s.sites()[plan.block].realize()->block;
  auto refuse = [&](std::string what, std::string hint) -> MaybeReason {
    return Reason{
        .what = text("block ", string_literal(block.name->text), " ", what),
        .needs = "an einsum: each buffer once, its padded indices plain iterators that run over the whole dimension",
        .hint = std::move(hint),
        .at = {{s.sites()[plan.block].stmt, what}}};
  };
  arith::Analyzer a;
  s.bind_ranges(a, s.sites()[plan.block].scope);
  for (const BufferRegionRef& w : block.writes) {
    for (const IterVarRef& i : block.iter_vars) {
      bool used =
          std::any_of(w->region.begin(), w->region.end(), [&](const RangeRef& r) { return r->min == Expr(i->var); });
      if (i->kind == IterKind::spatial && plan.grown.count(i->var) && !used)
        return refuse(text("would write ", w->buffer->name, " again for the new values of iterator ", i->var->name),
                      "leave that iterator with padding 1");
    }
  }
  std::vector<BufferRef> seen;
  for (const auto* side : {&block.reads, &block.writes}) {
    for (const BufferRegionRef& access : *side) {
      const BufferRef& buffer = access->buffer;
      if (std::find(seen.begin(), seen.end(), buffer) != seen.end())
        return refuse(text("accesses ", buffer->name, " in two ways"), "pad before decompose_reduction");
      seen.push_back(buffer);
      bool padded = false;
      for (const RangeRef& r : access->region) {
        // An index in which nothing grows stays as it is: `k[vh // 4, vj]` is padded along vj.
        const bool stays = side == &block.reads && std::ranges::none_of(vars_in(r->min), [&](const VarRef& v) {
                             return plan.grown.count(v) > 0;
                           });
        if (!is_one(r->extent) || !(is_zero(r->min) || cast<Var>(r->min) || stays))
          return refuse(text("accesses ", buffer->name, " at a computed index"), "reindex gives it plain indices");
        padded |= is_padded(plan, r->min);
      }
      if (!padded) continue;
      for (size_t d = 0; d < access->region.size(); ++d) {
        const Expr& index = access->region[d]->min;
        auto iter = std::find_if(
            block.iter_vars.begin(), block.iter_vars.end(), [&](const IterVarRef& i) { return Expr(i->var) == index; });
        bool whole = iter == block.iter_vars.end() ? is_zero(index) && is_one(buffer->shape[d])
                                                   : a.prove_equal((*iter)->dom->extent, buffer->shape[d]);
        if (!whole && (is_padded(plan, index) || side == &block.writes))
          return refuse(text("covers only a part of dimension ", d, " of ", buffer->name),
                        "cache_read that part first");
      }
      (side == &block.reads ? plan.reads : plan.writes).push_back(access);
    }
  }
  return {};
}

/// Why the block cannot be padded; nothing if it can. Fills `plan`.
MaybeReason cannot_pad(const Schedule& s, const std::vector<int64_t>& padding, EinsumPadding& plan) {
  const Sites& sites = s.sites();
  const BlockRealize& realize = *sites[plan.block].realize();
  const Block& block = *realize.block;
  auto refuse = [&](std::string what, std::string needs, std::string hint) -> MaybeReason {
    return Reason{.what = text("block ", string_literal(block.name->text), " ", what),
                  .needs = std::move(needs),
                  .hint = std::move(hint),
                  .at = {{sites[plan.block].stmt, what}}};
  };
  int scope = sites[plan.block].scope;
  if (scope < 0) return refuse("is the root block", "a block inside of the function", "choose a child block");
  if (MaybeReason r = not_stage_pipeline(s, scope)) return r;
  if (padding.size() != block.iter_vars.size() ||
      std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p <= 0; }))
    return refuse(text("has ", block.iter_vars.size(), " iterators; the padding is not as many positive numbers"),
                  "one number >= 1 per iterator: its extent becomes a multiple of it",
                  "1 leaves an iterator as it is");
  int nest = lone_nest(s, plan.block);
  if (sites[nest].parent != scope)
    return refuse(
        "shares its loops with other blocks", "a block that is alone in all its loops", "pad before compute_at");
  plan.nest = sites[nest].stmt;

  if (std::string why = misses_values(s, plan.block); !why.empty())
    return refuse(text("leaves instances out: ", why),
                  "a block that has all instances of its iterators, which the copies have too",
                  "pad before blocks run under predicates");

  arith::Analyzer a;
  s.bind_ranges(a, scope);
  Reduction reduction;
  for (size_t i = 0; i < padding.size(); ++i) {
    const IterVar& iter = *block.iter_vars[i];
    const Expr& extent = iter.dom->extent;
    Expr grown = a.simplify(ceildiv(extent, int_imm(padding[i], extent->dtype)) * padding[i]);
    if (a.prove_equal(grown, extent)) continue;
    VarRef loop = cast<Var>(realize.values[i]);
    int at = loop ? sites.find(loop) : -1;
    if (at < 0 || !is_zero(iter.dom->min) || !is_zero(sites[at].loop()->min) ||
        !a.prove_equal(sites[at].loop()->extent, extent) || !is_one(realize.predicate))
      return refuse(text("does not bind iterator ", iter.var->name, " to a loop of its own"),
                    "trivial bindings: the iterator is a loop from 0 over the same extent, without a predicate",
                    "pad before split and fuse");
    if (iter.kind == IterKind::reduce) {
      if (!reduction.reducer) {
        if (MaybeReason r = not_a_known_reduction(s, plan.block, reduction)) return r;
      }
      bool zero = reduction.reducer->name == "sum" && vanishes(reduction.operands[0], iter.var);
      if (!zero)
        return refuse(text("does not stay the same when zeros are added along iterator ", iter.var->name),
                      "a sum of products of which one factor is padded with zeros",
                      "pad only its spatial iterators");
    } else if (iter.kind != IterKind::spatial) {
      return refuse(text("has an iterator ", iter.var->name, " that is neither spatial nor a reduction"),
                    "spatial and reduction iterators",
                    "leave it with padding 1");
    }
    plan.grown.emplace(iter.var, grown);
    plan.grown.emplace(loop, grown);
  }
  return unfit_accesses(s, plan);
}

BufferRef padded_buffer(const EinsumPadding& plan, const BufferRegion& access) {
  std::vector<Expr> shape;
  for (size_t d = 0; d < access.region.size(); ++d) {
    const Expr& index = access.region[d]->min;
    if (is_padded(plan, index))
      shape.push_back(plan.grown.at(cast<Var>(index)));
    else
      shape.push_back(is_zero(index) ? int_imm(1, index->dtype) : access.buffer->shape[d]);
  }
  return make_buffer(access.buffer->name + "_pad", std::move(shape), access.buffer->dtype, access.buffer->scope());
}

/// The block that fills `padded` from the buffer, zeros beyond it, or brings it back, under loops i0, i1, ...
Stmt copy_block(const BufferRef& buffer, const BufferRef& padded, bool fill) {
  const std::vector<Expr>& shape = fill ? padded->shape : buffer->shape;
  CopyNest nest("i");
  std::vector<Expr> at;
  Expr inside = bool_imm(true);
  for (size_t d = 0; d < shape.size(); ++d) {
    at.push_back(nest.add(range_of(shape[d]), range_of(shape[d])));
    if (!equal(buffer->shape[d], padded->shape[d]) && !is_one(padded->shape[d]))
      inside = logical_and(inside, lt(at.back(), buffer->shape[d]));
  }
  BlockHandle name = block_name(padded->name);
  if (!fill) return nest.build(name, padded, at, buffer, at);
  Expr value = load(buffer, at);
  value = call(value->dtype, "tir.if_then_else", {inside, value, constant(0, value->dtype)});
  return nest.build(name, buffer, at, padded, at, bool_imm(true), value);
}

/// Rounds the extents of a block's iterators up to multiples, so that it can be tiled without tails: what it reads is
/// copied to buffers padded with zeros before it, what it writes copied back behind it.
///   for j in range(n): C[vj] = B[vj] * s; pad_einsum("C", [32])
///   =>   B_pad[j] = if_then_else(j < n, B[j], 0);   C_pad[vj] = B_pad[vj] * s, for (n + 31) // 32 * 32;   C[j] = C_pad[j]
///   padding  one number per iterator; its extent becomes a multiple of it
void do_pad_einsum(Schedule& s, BlockHandle handle, std::vector<int64_t> padding) {
  EinsumPadding plan;
  plan.block = s.site(handle);
  s.require(cannot_pad(s, padding, plan));
  int scope_site = s.sites()[plan.block].scope;
  const Block& scope = *s.sites()[scope_site].realize()->block;
  std::vector<BufferRef> allocations = scope.alloc_buffers;
  BufferMap fresh;
  std::vector<Stmt> before, after;
  for (const auto* side : {&plan.reads, &plan.writes}) {
    bool fill = side == &plan.reads;
    for (const BufferRegionRef& access : *side) {
      BufferRef padded = padded_buffer(plan, *access);
      fresh.emplace(access->buffer, padded);
      allocations.push_back(padded);
      (fill ? before : after).push_back(copy_block(access->buffer, padded, fill));
    }
  }
  auto redirected = [&](const BufferRef& b) {
    auto at = fresh.find(b);
    return at == fresh.end() ? b : at->second;
  };
  Stmt grown = transform(
      plan.nest,
      [&](const BufferLoad& l) -> NodeRef { return load(redirected(l.buffer), l.indices); },
      [&](const BufferStore& st) -> NodeRef { return store(redirected(st.buffer), st.value, st.indices); },
      [&](const BufferRegion& r) -> NodeRef { return make<BufferRegion>(redirected(r.buffer), r.region); },
      [&](const IterVar& i) -> NodeRef {
        auto at = plan.grown.find(i.var);
        return at == plan.grown.end() ? ref(i) : with(i, &IterVar::dom, range_of(at->second));
      },
      [&](const For& loop) -> NodeRef {
        auto at = plan.grown.find(loop.var);
        return at == plan.grown.end() ? ref(loop) : with(loop, &For::extent, at->second);
      });
  before.push_back(grown);
  before.insert(before.end(), after.begin(), after.end());
  replace_scope(
      s, scope_site, replaced(scope.body, NodeMap{{plan.nest, seq(std::move(before))}}), std::move(allocations));
}

}  // namespace

const Primitive<void(BlockHandle, std::vector<int64_t>)> pad_einsum{
    "pad_einsum", do_pad_einsum, {"block", "padding"}, "rounds a block's extents up, with buffers padded by zeros"};

}  // namespace sator::schedule
