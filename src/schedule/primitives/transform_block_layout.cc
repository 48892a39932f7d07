#include <algorithm>

#include "schedule/edit.h"
#include "schedule/index_maps.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

/// The kind of an iterator that is computed from old ones; nothing if it mixes kinds.
std::optional<IterKind> kind_of(const Expr& index, const Block& block) {
  std::optional<IterKind> kind;
  for (const IterVarRef& i : block.iter_vars) {
    if (!uses_var(index, *i->var)) continue;
    if (kind && *kind != i->kind) return {};
    kind = i->kind;
  }
  return kind.value_or(IterKind::spatial);
}

/// Why loops over the iterators' domains would run other instances than the loops that are there; nothing if they would run
/// the same: each iterator has a loop to itself that passes over its domain, and no loop repeats them.
MaybeReason other_instances(const Schedule& s, int site, const std::vector<Loop>& own_loops) {
  const BlockRealize& realize = *s.sites()[site].realize();
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, site);
  auto refuse = [&](std::string what) -> MaybeReason {
    return refusal_at(s,
                      site,
                      std::move(what),
                      "trivial bindings: each iterator is one loop over the iterator's domain",
                      "transform the block before splitting and moving it");
  };
  for (const Loop& loop : own_loops) {
    auto uses = std::ranges::count(realize.values, Expr(loop));
    if (uses > 1) return refuse(text("loop ", loop->name, " is bound to several iterators"));
    if (uses == 0 && !is_one(s.get(loop).extent))
      return refuse(text("loop ", loop->name, " is bound to no iterator, and repeats the block"));
  }
  for (size_t i = 0; i < realize.values.size(); ++i) {
    const IterVar& iter = *realize.block->iter_vars[i];
    VarRef loop = cast<Var>(realize.values[i]);
    Expr min = realize.values[i], extent = int_imm(1, iter.dom->extent->dtype);
    if (loop) {
      min = s.get(loop).min;
      extent = s.get(loop).extent;
    }
    if (!analyzer.prove_equal(min, iter.dom->min) || !analyzer.prove_equal(extent, iter.dom->extent))
      return refuse(text("iterator ", iter.var->name, " does not take all values of its domain"));
  }
  return {};
}

/// Remainders of quotients that stay below the divisor anyway: v // n % c is v // n, where v runs over n * c values from 0.
Expr without_idle_remainders(const Expr& e, const std::vector<IterVarRef>& iters, arith::Analyzer& analyzer) {
  return transform(e, [&](const FloorMod& m) -> NodeRef {
    const FloorDiv* quotient = m.a.as<FloorDiv>();
    for (const IterVarRef& i : iters) {
      if (quotient && quotient->a == i->var && is_zero(i->dom->min) &&
          analyzer.prove_equal(i->dom->extent, quotient->b * m.b))
        return m.a;
    }
    return NodeRef(&m);
  });
}

/// Gives a block other iterators, by a bijective map of the old ones; its loops become ax0, ax1, ... over them.
void do_transform_block_layout(Schedule& s, BlockHandle handle, IndexMapRef map) {
  int site = s.site(handle);
  const BlockRealize& realize = *s.sites()[site].realize();
  const Block& block = *realize.block;
  int nest_site = lone_nest(s, site);
  std::vector<Loop> own_loops;
  for (int i = site; i != nest_site; i = s.sites()[i].parent)
    own_loops.push_back(s.sites()[s.sites()[i].parent].loop()->var);
  if (map->initial_indices.size() != block.iter_vars.size())
    s.fail(refusal_at(s,
                      site,
                      text("the map takes ",
                           map->initial_indices.size(),
                           " indices, and the block has ",
                           block.iter_vars.size(),
                           " iterators"),
                      "one index per iterator",
                      "give the lambda as many parameters"));
  for (size_t i = 0; i < realize.values.size(); ++i) {
    VarRef loop = cast<Var>(realize.values[i]);
    bool own = loop && std::find(own_loops.begin(), own_loops.end(), loop) != own_loops.end();
    if (!own && !as_int(realize.values[i]))
      s.fail(refusal_at(s,
                        site,
                        text("iterator ", block.iter_vars[i]->var->name, " is not bound to a loop of its own"),
                        "trivial bindings: each iterator is a loop that is around this block alone",
                        "transform the block before splitting and moving it"));
  }
  s.require(other_instances(s, site, own_loops));
  for (const IterVarRef& i : block.iter_vars)
    for (const Loop& loop : own_loops)
      if (uses_var(i->dom->extent, *loop) || uses_var(i->dom->min, *loop))
        s.fail(refusal_at(s,
                          site,
                          text("the domain of iterator ", i->var->name, " depends on loop ", loop->name),
                          "domains that are the same in every iteration",
                          "leave the block's iterators as they are"));
  for (const Loop& loop : own_loops) {
    bool bound = std::find(realize.values.begin(), realize.values.end(), Expr(loop)) != realize.values.end();
    if (!bound && uses_var(realize.predicate, *loop))
      s.fail(refusal_at(s,
                        site,
                        text("the predicate depends on loop ", loop->name, ", to which no iterator is bound"),
                        "a predicate over loops that are iterators",
                        "transform the block before splitting its loops"));
  }
  int bits = 0;
  for (const IterVarRef& i : block.iter_vars) bits = std::max<int>(bits, i->var->dtype.bits);
  if (bits > 0) map = in_dtype(map, DType::Int(bits));
  std::vector<Expr> old_vars;
  arith::Region domain;
  arith::Analyzer analyzer;
  s.bind_ranges(analyzer, s.sites()[site].scope);
  for (const IterVarRef& i : block.iter_vars) {
    old_vars.push_back(i->var);
    domain.push_back(i->dom);
    analyzer.bind(i->var, i->dom);
  }
  arith::InverseMap inverse = arith::inverse(*map, domain, analyzer);
  if (!inverse.ok())
    s.fail(refusal_at(s,
                      site,
                      text("the map of iterators is not bijective: ", inverse.error),
                      "a bijective affine map",
                      "keep every instance of the block exactly once"));
  // Not simplified: an iterator of extent 1 tells the kind of what is made of it.
  VarMap input_to_old;
  for (size_t i = 0; i < old_vars.size(); ++i) input_to_old.emplace(map->initial_indices[i], old_vars[i]);
  std::vector<Expr> image;
  for (const Expr& e : map->final_indices) image.push_back(arith::substitute_promoting(e, input_to_old));
  arith::Region ranges = arith::map_ranges(*map, domain, analyzer);
  std::vector<IterVarRef> iters;
  std::vector<Loop> loops;
  std::vector<Expr> fresh;
  for (size_t d = 0; d < image.size(); ++d) {
    std::optional<IterKind> kind = kind_of(image[d], block);
    if (!kind)
      s.fail(refusal_at(s,
                        site,
                        text("new iterator ", d, " mixes spatial and reduction iterators"),
                        "each new iterator is made of iterators of one kind",
                        "map them apart"));
    // An iterator that is a constant keeps the constant's dtype.
    const DType dtype = as_int(image[d]) ? image[d]->dtype : ranges[d]->extent->dtype;
    ranges[d] = make<Range>(cast_to(dtype, ranges[d]->min), cast_to(dtype, ranges[d]->extent));
    VarRef v = make_var(text("v", d), dtype);
    iters.push_back(make<IterVar>(ranges[d], v, *kind));
    loops.push_back(make_var(text("ax", d), dtype));
    fresh.push_back(v);
  }
  arith::Analyzer inner;
  s.bind_ranges(inner, s.sites()[site].scope);
  for (const IterVarRef& i : iters) inner.bind(i->var, i->dom);
  std::vector<Expr> back = mapped_access(*inverse.map, fresh, inner);
  for (Expr& e : back) e = without_idle_remainders(e, iters, inner);
  // The init runs where all reduction iterators are at their first value: what it reads there must stay that.
  VarMap first;
  for (const IterVarRef& i : iters)
    if (i->kind == IterKind::reduce) first.emplace(i->var, cast_to(i->var->dtype, i->dom->min));
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const IterVar& old = *block.iter_vars[i];
    if (old.kind != IterKind::reduce || !block.init || !uses_var(block.init, *old.var)) continue;
    const Expr begin = arith::substitute_promoting(back[i], first);
    if (!inner.prove(eq(begin, cast_to(begin->dtype, old.dom->min))))
      s.fail(refusal_at(
          s,
          site,
          text("the init reads iterator ", old.var->name, ", whose first value would no longer be ", old.dom->min),
          "a map under which the reduction begins where it did",
          "decompose_reduction takes the init out of the block first"));
  }
  VarMap old_to_new;  // which may be narrower
  for (size_t i = 0; i < block.iter_vars.size(); ++i) {
    const VarRef& old = block.iter_vars[i]->var;
    old_to_new.emplace(old, cast_to(old->dtype, back[i]));
  }
  BlockRef body = with(block, &Block::iter_vars, std::vector<IterVarRef>{});
  body = substitute(body, old_to_new);
  body = with(body, &Block::iter_vars, std::move(iters));
  auto index = [&](const Expr& e) {  // which may be wider than it was
    Expr simple = simple_index(e, inner);
    const Cast* c = simple.as<Cast>();
    return c && arith::is_index(c->value->dtype) && c->value->dtype.bits > c->dtype.bits ? c->value : simple;
  };
  auto simple = [&](std::vector<Expr> indices) {
    for (Expr& e : indices) e = index(e);
    return indices;
  };
  body = transform(
      body,
      [&](const Range& r) -> NodeRef {
        Expr min = index(r.min);
        Expr extent = cast_to(min->dtype, simple_index(r.extent, inner));
        return min == r.min && extent == r.extent ? ref(r) : make<Range>(min, extent);
      },
      [&](const BufferLoad& l) -> NodeRef { return load(l.buffer, simple(l.indices)); },
      [&](const BufferStore& st) -> NodeRef { return store(st.buffer, st.value, simple(st.indices)); });
  std::vector<Expr> values(loops.begin(), loops.end());
  // The predicate speaks of the old loops, which are the old iterators.
  VarMap iter_to_loop, old_loops;
  for (size_t d = 0; d < loops.size(); ++d) iter_to_loop.emplace(body->iter_vars[d]->var, loops[d]);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (VarRef loop = cast<Var>(realize.values[i]))
      old_loops.emplace(loop, cast_to(loop->dtype, substitute(back[i], iter_to_loop)));
  }
  Stmt nest = make<BlockRealize>(values, substitute(realize.predicate, old_loops), body);
  for (size_t d = loops.size(); d-- > 0;)
    nest = make<For>(loops[d], ranges[d]->min, ranges[d]->extent, LoopKind::serial, std::string(), Attrs{}, nest);
  s.replace(s.sites()[nest_site].stmt, nest);
}

}  // namespace

const Primitive<void(BlockHandle, IndexMapRef)> transform_block_layout{
    "transform_block_layout", do_transform_block_layout, {"block", "index_map"}, "gives a block other iterators"};

}  // namespace sator::schedule
