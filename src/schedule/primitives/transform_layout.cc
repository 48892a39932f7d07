#include <algorithm>

#include "schedule/buffers.h"
#include "schedule/edit.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;
using IndexMapRef = Ref<const arith::IndexMap>;

namespace {

arith::Region box_of(const std::vector<Expr>& shape) {
  arith::Region box;
  for (const Expr& extent : shape) box.push_back(range_of(extent));
  return box;
}

/// The elements that the new layout has and the old one has not; false where it has none.
Expr padding_of(const arith::IndexMap& map, const std::vector<Expr>& shape, arith::Analyzer& a, std::string& error) {
  arith::InverseMap inverse = arith::non_surjective_inverse(map, box_of(shape), a);
  if (!inverse.ok()) {
    error = inverse.error;
    return bool_imm(false);
  }
  return a.simplify(inverse.padding_predicate);
}

/// The map in the dtype of the shape that it is for: lambdas are written without one.
IndexMapRef in_dtype(const IndexMapRef& map, DType dtype) {
  VarMap wide;
  std::vector<VarRef> inputs;
  for (const VarRef& v : map->initial_indices) {
    inputs.push_back(v->dtype == dtype ? v : make_var(v->name, dtype));
    wide.emplace(v, inputs.back());
  }
  if (inputs == map->initial_indices) return map;
  std::vector<Expr> outputs;
  for (const Expr& e : map->final_indices) {
    Expr widened = transform(arith::substitute_promoting(e, wide), [](const Cast& c) -> NodeRef {
      return c.value->dtype == c.dtype ? NodeRef(c.value) : ref(c);
    });
    outputs.push_back(cast_to(dtype, widened));
  }
  return make<arith::IndexMap>(std::move(inputs), std::move(outputs), nullptr);
}

/// A composed index in its simple form. A variable or constant stays: an iterator of extent 1 keeps its place.
Expr simple_index(const Expr& e, arith::Analyzer& a) { return cast<Var>(e) || as_int(e) ? e : a.simplify(e); }

std::vector<Expr> mapped_access(const arith::IndexMap& map, const std::vector<Expr>& indices, arith::Analyzer& a) {
  VarMap values;
  for (size_t i = 0; i < indices.size(); ++i) values.emplace(map.initial_indices[i], indices[i]);
  std::vector<Expr> out;
  for (const Expr& e : map.final_indices) out.push_back(simple_index(arith::substitute_promoting(e, values), a));
  return out;
}

bool is_written(const Schedule& s, const BufferRef& buffer) {
  bool written = false;
  walk(s.func()->body, [&](const BufferStore& st) { written |= st.buffer == buffer; });
  return written;
}

bool is_matched(const Schedule& s, const BufferRef& buffer) {
  bool matched = false;
  walk(s.func()->body, [&](const MatchBuffer& m) { matched |= m.source->buffer == buffer || m.buffer == buffer; });
  return matched;
}

/// Every access of `old` as one of `fresh` at the mapped indices.
class LayoutRewriter {
 public:
  LayoutRewriter(BufferRef old, BufferRef fresh, const arith::IndexMap& map)
      : old_(std::move(old)), fresh_(std::move(fresh)), map_(map) {}

  NodeRef operator()(const NodeRef& n) {
    // Ranges of loops and iterators that are around the access help to simplify its indices.
    if (const For* loop = n.as<For>()) analyzer_.bind(loop->var, make<Range>(loop->min, loop->extent));
    if (const Block* block = n.as<Block>()) {
      for (const IterVarRef& i : block->iter_vars) analyzer_.bind(i->var, i->dom);
    }
    NodeRef out = n->info().map_children(*n, [this](const NodeRef& child) -> NodeRef {
      if (child->info().has_identity) return child;
      return (*this)(child);
    });
    if (const BufferLoad* l = out.as<BufferLoad>(); l && l->buffer == old_)
      return load(fresh_, mapped_access(map_, l->indices, analyzer_));
    if (const BufferStore* st = out.as<BufferStore>(); st && st->buffer == old_)
      return store(fresh_, st->value, mapped_access(map_, st->indices, analyzer_));
    if (const BufferRegion* r = out.as<BufferRegion>(); r && r->buffer == old_) {
      // One element stays one; a box becomes the box around its image.
      std::vector<Expr> point;
      for (const RangeRef& range : r->region) {
        if (is_one(range->extent)) point.push_back(range->min);
      }
      if (point.size() == r->region.size()) return point_region(fresh_, mapped_access(map_, point, analyzer_));
      return make<BufferRegion>(fresh_, arith::map_ranges(map_, r->region, analyzer_));
    }
    if (const Block* block = out.as<Block>()) {
      auto at = std::find(block->alloc_buffers.begin(), block->alloc_buffers.end(), old_);
      if (at != block->alloc_buffers.end()) {
        std::vector<BufferRef> allocations = block->alloc_buffers;
        allocations[static_cast<size_t>(at - block->alloc_buffers.begin())] = fresh_;
        return with(*block, &Block::alloc_buffers, std::move(allocations));
      }
    }
    return out;
  }

 private:
  BufferRef old_, fresh_;
  const arith::IndexMap& map_;
  arith::Analyzer analyzer_;
};

/// Stores a buffer in another layout: its shape and every access go through the map.
///   A[i, j], lambda i, j: (i // 32, j, i % 32)   =>   A[i // 32, j, i % 32] of shape [n / 32, m, 32]
/// A map that introduces padding needs a pad value, and a buffer that the function only reads: the caller puts the value
/// there.
void do_transform_layout(Schedule& s, BlockHandle block, BufferSelector which, IndexMapRef map, Value pad_value,
                         bool assume_injective) {
  BufferRef old = selected_buffer(s, block, which, true);
  if (map->initial_indices.size() != old->shape.size())
    s.fail({.what = text("the map takes ",
                         map->initial_indices.size(),
                         " indices, and ",
                         old->name,
                         " has ",
                         old->shape.size(),
                         " dimensions"),
            .needs = "one index per dimension",
            .hint = "give the lambda as many parameters"});
  if (is_matched(s, old))
    s.fail({.what = text(old->name, " stands for a part of another buffer, or another for a part of it"),
            .needs = "a buffer without match_buffer",
            .hint = "transform the layout before tensorize"});
  if (!old->shape.empty()) map = in_dtype(map, old->shape[0]->dtype);
  arith::Analyzer analyzer;
  for (const Expr& extent : old->shape) {
    if (!as_int(extent)) analyzer.assume_size(extent);
  }
  std::string error;
  Expr padding = padding_of(*map, old->shape, analyzer, error);
  if (!error.empty() && !assume_injective)
    s.fail({.what = text("the map cannot be undone: ", error),
            .needs = "a map that keeps different elements apart",
            .hint = "pass assume_injective_transform=True if you know that it does"});
  if (error.empty() && !is_zero(padding)) {
    if (pad_value.is_none())
      s.fail({.what = text("the map introduces padding where ", padding),
              .needs = "a pad_value, or a map without padding",
              .hint = "pass pad_value=0"});
    if (is_written(s, old))
      s.fail({.what = text("the map introduces padding, and the function writes ", old->name),
              .needs = "padding only in buffers that are read",
              .hint = "pad_einsum pads what a block writes"});
  }
  std::vector<Expr> shape = arith::map_shape(*map, old->shape, analyzer);
  BufferRef fresh = make<Buffer>(make_pointer(old->data->name, old->dtype, old->data->scope),
                                 old->dtype,
                                 shape,
                                 std::vector<Expr>{},
                                 Expr(),
                                 old->name,
                                 old->data_alignment,
                                 old->offset_factor,
                                 std::vector<int>{});
  PrimFuncRef f = s.func();
  LayoutRewriter rewrite(old, fresh, *map);
  Stmt body = replaced(cast<StmtNode>(rewrite(f->body)), NodeMap{{old, fresh}});
  auto buffer_map = f->buffer_map;
  for (auto& [param, buffer] : buffer_map) {
    if (buffer == old) buffer = fresh;
  }
  s.replace_func(with(with(f, &PrimFunc::body, body), &PrimFunc::buffer_map, std::move(buffer_map)));
}

Reason block_refusal(const Schedule& s, int site, std::string what, std::string needs, std::string hint) {
  return {.what = what, .needs = std::move(needs), .hint = std::move(hint), .at = {{s.sites()[site].stmt, what}}};
}

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
    s.fail(block_refusal(s,
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
      s.fail(block_refusal(s,
                           site,
                           text("iterator ", block.iter_vars[i]->var->name, " is not bound to a loop of its own"),
                           "trivial bindings: each iterator is a loop that is around this block alone",
                           "transform the block before splitting and moving it"));
  }
  for (const Loop& loop : own_loops) {
    bool bound = std::find(realize.values.begin(), realize.values.end(), Expr(loop)) != realize.values.end();
    if (!bound && uses_var(realize.predicate, *loop))
      s.fail(block_refusal(s,
                           site,
                           text("the predicate depends on loop ", loop->name, ", to which no iterator is bound"),
                           "a predicate over loops that are iterators",
                           "transform the block before splitting its loops"));
  }
  if (!block.iter_vars.empty()) map = in_dtype(map, block.iter_vars[0]->var->dtype);
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
    s.fail(block_refusal(s,
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
      s.fail(block_refusal(s,
                           site,
                           text("new iterator ", d, " mixes spatial and reduction iterators"),
                           "each new iterator is made of iterators of one kind",
                           "map them apart"));
    DType dtype = ranges[d]->extent->dtype;
    VarRef v = make_var(text("v", d), dtype);
    iters.push_back(make<IterVar>(ranges[d], v, *kind));
    loops.push_back(make_var(text("ax", d), dtype));
    fresh.push_back(v);
  }
  arith::Analyzer inner;
  for (const IterVarRef& i : iters) inner.bind(i->var, i->dom);
  std::vector<Expr> back = mapped_access(*inverse.map, fresh, inner);
  VarMap old_to_new;
  for (size_t i = 0; i < block.iter_vars.size(); ++i) old_to_new.emplace(block.iter_vars[i]->var, back[i]);
  BlockRef body = with(block, &Block::iter_vars, std::vector<IterVarRef>{});
  body = substitute(body, old_to_new);
  body = with(body, &Block::iter_vars, std::move(iters));
  auto simple = [&](std::vector<Expr> indices) {
    for (Expr& e : indices) e = simple_index(e, inner);
    return indices;
  };
  body = transform(
      body,
      [&](const Range& r) -> NodeRef {
        Expr min = simple_index(r.min, inner), extent = simple_index(r.extent, inner);
        return min == r.min && extent == r.extent ? ref(r) : make<Range>(min, extent);
      },
      [&](const BufferLoad& l) -> NodeRef { return load(l.buffer, simple(l.indices)); },
      [&](const BufferStore& st) -> NodeRef { return store(st.buffer, st.value, simple(st.indices)); });
  std::vector<Expr> values(loops.begin(), loops.end());
  // The predicate speaks of the old loops, which are the old iterators.
  VarMap iter_to_loop, old_loops;
  for (size_t d = 0; d < loops.size(); ++d) iter_to_loop.emplace(body->iter_vars[d]->var, loops[d]);
  for (size_t i = 0; i < realize.values.size(); ++i) {
    if (VarRef loop = cast<Var>(realize.values[i])) old_loops.emplace(loop, substitute(back[i], iter_to_loop));
  }
  Stmt nest = make<BlockRealize>(values, substitute(realize.predicate, old_loops), body);
  for (size_t d = loops.size(); d-- > 0;) nest = for_loop(loops[d], ranges[d]->extent, nest);
  s.replace(s.sites()[nest_site].stmt, nest);
}

}  // namespace

const Primitive<void(BlockHandle, BufferSelector, IndexMapRef, Value, bool)> transform_layout{
    "transform_layout",
    do_transform_layout,
    {"block", "buffer", "index_map", {"pad_value", Value()}, {"assume_injective_transform", false}},
    "stores a buffer in another layout"};
const Primitive<void(BlockHandle, IndexMapRef)> transform_block_layout{
    "transform_block_layout", do_transform_block_layout, {"block", "index_map"}, "gives a block other iterators"};

}  // namespace sator::schedule
