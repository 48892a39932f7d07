// What primitives state about the memory behind a buffer.
#include <algorithm>

#include "schedule/analysis.h"
#include "schedule/buffers.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

static MaybeReason not_allocated(const Schedule& s, const BufferRef& buffer, const BlockHandle& block) {
  if (is_allocated(s, buffer)) return {};
  return Reason{.what = text("buffer ", buffer->name, " is a parameter of the function"),
                .needs = "a buffer that a block of the function allocates",
                .hint = text("cache_read or cache_write ", buffer->name, " first"),
                .at = {{Stmt(&s.realize(block)), "touches it"}}};
}

/// Moves an allocated buffer to another storage scope.
static void do_set_scope(Schedule& s, BlockHandle block, BufferSelector which, std::string scope) {
  require_scope(s, scope);
  BufferRef old = selected_buffer(s, block, which, true);
  s.require(not_allocated(s, old, block));
  if (old->scope() == scope) return;
  Stmt body = s.func()->body;
  std::vector<BufferRef> moved = {old};
  walk(body, [&](const MatchBuffer& m) {  // names for parts of it move too
    if (std::find(moved.begin(), moved.end(), m.source->buffer) != moved.end()) moved.push_back(m.buffer);
  });
  for (const BufferRef& b : moved)
    body = replace_buffer(body, b, with(b, &Buffer::data, make_pointer(b->data->name, b->dtype, scope)));
  s.replace_body(body);
}

/// States at which axes the indices of a buffer are cut when it becomes flat: memory of one dimension per part (the
/// images of some GPUs). The parts of it that blocks match are cut at the same axes.
static void do_set_axis_separator(Schedule& s, BlockHandle block, BufferSelector which,
                                  std::vector<int64_t> separators) {
  BufferRef old = selected_buffer(s, block, which, true);
  std::vector<int> cuts;
  for (int64_t at : separators) {
    const int64_t low = cuts.empty() ? 0 : cuts.back();
    if (at < low || at > old->rank())
      s.fail({.what = text("separator ", at, " does not fit ", old->name, ", which has ", old->rank(), " dimensions"),
              .needs = "ascending numbers of axes, 0 <= separator <= rank",
              .hint = "a separator k cuts in front of axis k"});
    cuts.push_back(static_cast<int>(at));
  }
  PrimFuncRef f = s.func();
  bool is_part = false;
  std::vector<BufferRef> cut = {old};
  walk(f->body, [&](const MatchBuffer& m) {
    is_part |= m.buffer == old;
    if (std::find(cut.begin(), cut.end(), m.source->buffer) != cut.end()) cut.push_back(m.buffer);
  });
  if (is_part)
    s.fail({.what = text(old->name, " stands for a part of another buffer"),
            .needs = "a parameter, or a buffer that a block allocates",
            .hint = "set the separators of the whole buffer"});
  NodeMap map;
  auto buffer_map = f->buffer_map;
  for (const BufferRef& b : cut) {
    BufferRef fresh = with(
        with(b, &Buffer::axis_separators, cuts), &Buffer::data, make_pointer(b->data->name, b->dtype, b->data->scope));
    map.emplace(b, fresh);
    map.emplace(b->data, fresh->data);
    for (auto& [param, buffer] : buffer_map) {
      if (buffer == b) buffer = fresh;
    }
  }
  s.replace_func(with(with(f, &PrimFunc::body, replaced(f->body, map)), &PrimFunc::buffer_map, std::move(buffer_map)));
}

/// Rows along `axis` of what a block writes are aligned: stride = k * factor + offset. Recorded as the annotation
/// `buffer_dim_align`, which the lowering of allocations obeys.
static void do_storage_align(Schedule& s, BlockHandle block, BufferSelector which, int axis, int factor, int offset) {
  BufferRef buffer = selected_buffer(s, block, which, true);
  s.require(not_allocated(s, buffer, block));
  int rank = static_cast<int>(buffer->rank());
  if (axis < -rank || axis >= rank)
    s.fail({.what = text("axis ", axis, " is outside of ", buffer->name, ", which has ", rank, " dimensions"),
            .needs = "-rank <= axis < rank",
            .hint = text("use an axis from ", -rank, " to ", rank - 1)});
  if (factor <= 0)
    s.fail({.what = text("factor ", factor, " is not positive"),
            .needs = "factor >= 1, in elements",
            .hint = "pass the alignment in elements"});
  if (axis < 0) axis += rank;
  const Block& b = s.get(block);
  int64_t index = -1;
  for (size_t i = 0; i < b.writes.size(); ++i) {
    if (b.writes[i]->buffer == buffer) index = static_cast<int64_t>(i);
  }
  std::vector<NodeRef> entries;
  if (auto at = b.annotations.find("buffer_dim_align"); at != b.annotations.end()) {
    if (const Array* old = at->second.as<Array>()) {
      for (const NodeRef& e : old->items) {
        const Array* row = e.as<Array>();
        bool same = row && row->items.size() == 4 && is_int(cast<ExprNode>(row->items[0]), index) &&
                    is_int(cast<ExprNode>(row->items[1]), axis);
        if (!same) entries.push_back(e);
      }
    }
  }
  entries.push_back(make<Array>(std::vector<NodeRef>{int_imm(index), int_imm(axis), int_imm(factor), int_imm(offset)}));
  Attrs annotations = b.annotations;
  annotations["buffer_dim_align"] = make<Array>(std::move(entries));
  const BlockRealize& realize = s.realize(block);
  s.replace(Stmt(&realize), with(realize, &BlockRealize::block, with(realize.block, &Block::annotations, annotations)));
}

const Primitive<void(BlockHandle, BufferSelector, std::string)> set_scope{
    "set_scope", do_set_scope, {"block", "buffer_index", "storage_scope"}, "moves a buffer to another storage scope"};
const Primitive<void(BlockHandle, BufferSelector, int, int, int)> storage_align{
    "storage_align",
    do_storage_align,
    {"block", "buffer_index", "axis", "factor", "offset"},
    "pads the rows of a buffer to an alignment"};
const Primitive<void(BlockHandle, BufferSelector, std::vector<int64_t>)> set_axis_separator{
    "set_axis_separator",
    do_set_axis_separator,
    {"block", "buffer", "axis_separators"},
    "cuts the indices of a buffer for memory of several dimensions"};

}  // namespace sator::schedule
