#include <algorithm>

#include "schedule/buffers.h"
#include "schedule/layout_padding.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

namespace {

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

/// The pad value as a function of the new indices. Errors: another dtype than the buffer's; several values; a value that
/// is read from memory.
IndexMapRef padding_value(const Schedule& s, const BufferRef& buffer, const IndexMapRef& inverse, const Value& given) {
  auto refuse = [&](std::string what) {
    s.fail({.what = text("the padding of ", buffer->name, " cannot be filled: ", what),
            .needs = text("pad_value: one ", buffer->dtype, ", or a lambda of the new indices that computes one"),
            .hint = buffer->dtype.is_float() ? "pass a number, as pad_value=0.0" : "pass a number, as pad_value=0"});
  };
  IndexMapRef map;
  if (auto* lambda = given.get_if<IndexMapRef>()) {
    map = *lambda;
    if (map->initial_indices.size() != inverse->initial_indices.size())
      refuse(text("the lambda takes ", map->initial_indices.size(), " indices"));
    if (map->final_indices.size() != 1) refuse(text("there are ", map->final_indices.size(), " values"));
  } else {
    Expr value = value_to_expr(given, "pad_value");
    const bool is_number = !given.get_if<Expr>() && !given.get_if<NodeRef>();
    if (is_number && value->dtype.is_float() == buffer->dtype.is_float())
      value = cast<FloatImm>(value) ? constant(cast<FloatImm>(value)->value, buffer->dtype)
                                    : constant(static_cast<double>(*as_int(value)), buffer->dtype);
    map = make<arith::IndexMap>(inverse->initial_indices, std::vector<Expr>{value}, nullptr);
  }
  const Expr& value = map->final_indices[0];
  if (value->dtype != buffer->dtype) refuse(text(value, " is ", value->dtype));
  bool loads = false;
  walk(value, [&](const BufferLoad&) { loads = true; });
  if (loads) refuse(text(value, " reads memory"));
  return map;
}

/// A size in the shape of `old` that the function's arguments do not give any more; null if they give all.
VarRef unbound_size(const PrimFunc& func, const std::vector<std::pair<VarRef, BufferRef>>& buffer_map,
                    const Buffer& old) {
  auto is_given = [&](const VarRef& v) {
    if (std::ranges::find(func.params, v) != func.params.end()) return true;
    return std::ranges::any_of(buffer_map, [&](const auto& entry) {
      return std::ranges::find(entry.second->shape, Expr(v)) != entry.second->shape.end();
    });
  };
  for (const Expr& extent : old.shape)
    for (const VarRef& v : vars_in(extent))
      if (!is_given(v)) return v;
  return nullptr;
}

/// Stores a buffer in another layout: its shape and every access go through the map.
///   A[i, j], lambda i, j: (i // 32, j, i % 32)   =>   A[i // 32, j, i % 32] of shape [n / 32, m, 32]
/// A map that introduces padding needs a pad value: a number, or a lambda of the new indices. Stores fill the padding with
/// it; of a parameter that is only read it is assumed, by a block buffer_A_assumptions in front of all others.
///   assume_injective_transform  the caller answers for a map that cannot be undone, and for what stands in the padding
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
  bool is_identity = map->final_indices.size() == map->initial_indices.size();
  for (size_t d = 0; is_identity && d < map->final_indices.size(); ++d)
    is_identity = map->final_indices[d] == Expr(map->initial_indices[d]);
  if (is_identity) return;
  if (is_used_opaquely(s.func()->body, old))
    s.fail({.what = text("what ", old->name, " is used for is unknown: through its pointer, or as a part of a buffer"),
            .needs = "a buffer that is accessed by loads and stores only",
            .hint = "transform the layout before tensorize"});
  int bits = 0;
  for (const Expr& extent : old->shape) bits = std::max<int>(bits, extent->dtype.bits);
  if (bits > 0) map = in_dtype(map, DType::Int(bits));
  arith::Analyzer analyzer;
  for (const Expr& extent : old->shape) {
    if (!as_int(extent)) analyzer.assume_size(extent);
  }
  arith::InverseMap inverse;
  if (!assume_injective) {
    arith::Region box;
    for (const Expr& extent : old->shape) box.push_back(range_of(extent));
    inverse = arith::non_surjective_inverse(*map, box, analyzer);
    if (!inverse.ok())
      s.fail(
          {.what = text("the map cannot be undone: ", inverse.error),
           .needs = "a map that keeps different elements apart",
           .hint =
               "add outputs for what is lost, as in i // 4, i % 4; or pass assume_injective_transform=True if you know "
               "that nothing is"});
  }
  Expr padding = assume_injective ? bool_imm(false) : analyzer.simplify(inverse.padding_predicate);
  if (!is_zero(padding) && pad_value.is_none())
    s.fail({.what = text("the map introduces padding where ", padding),
            .needs = "a pad_value, or a map without padding",
            .hint = "pass pad_value=0"});
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
  Stmt body = f->body;
  if (!is_zero(padding))
    body = with_padding(body, {old, fresh, inverse.map, padding, padding_value(s, old, inverse.map, pad_value)});
  LayoutRewriter rewrite(old, fresh, *map);
  body = replaced(cast<StmtNode>(rewrite(body)), NodeMap{{old, fresh}});
  auto buffer_map = f->buffer_map;
  for (auto& [param, buffer] : buffer_map) {
    if (buffer == old) buffer = fresh;
  }
  if (VarRef lost = unbound_size(*f, buffer_map, *old))
    s.fail({.what = text(
                "in the new layout no parameter has the extent ", lost->name, " by itself, so that it is not known"),
            .needs = "each symbolic size is a scalar parameter, or an extent of a parameter's buffer by itself",
            .hint = text("add ", lost->name, " to the parameters, or cache_read ", old->name, " first")});
  s.replace_func(with(with(f, &PrimFunc::body, body), &PrimFunc::buffer_map, std::move(buffer_map)));
}

}  // namespace

const Primitive<void(BlockHandle, BufferSelector, IndexMapRef, Value, bool)> transform_layout{
    "transform_layout",
    do_transform_layout,
    {"block", "buffer", "index_map", {"pad_value", Value()}, {"assume_injective_transform", false}},
    "stores a buffer in another layout"};

}  // namespace sator::schedule
