#include <algorithm>

#include "schedule/analysis.h"
#include "schedule/buffers.h"
#include "schedule/primitives.h"

namespace sator::schedule {

using namespace tir;

static void set_annotations(Schedule& s, const Value& of, const Attrs& annotations) {
  if (auto* loop = of.get_if<Loop>()) {
    const For& node = s.get(*loop);
    s.replace(node, with(node, &For::annotations, annotations));
  } else {
    const BlockRealize& realize = s.realize(value_to_block(s, of, "block_or_loop"));
    s.replace(Stmt(&realize),
              with(realize, &BlockRealize::block, with(realize.block, &Block::annotations, annotations)));
  }
}

static const Attrs& annotations_of(const Schedule& s, const Value& of) {
  if (auto* loop = of.get_if<Loop>()) return s.get(*loop).annotations;
  return s.get(value_to_block(s, of, "block_or_loop")).annotations;
}

/// Attaches `key: value` to a loop or block; a key that is there keeps the value it has only if they are equal.
static void do_annotate(Schedule& s, Value of, std::string key, Value value) {
  Attrs annotations = annotations_of(s, of);
  annotations[key] = value_to_node(value, "ann_val");
  set_annotations(s, of, annotations);
}

/// Takes `key` off a loop or block.
static void do_unannotate(Schedule& s, Value of, std::string key) {
  Attrs annotations = annotations_of(s, of);
  if (!annotations.erase(key)) {
    std::vector<std::string> keys;
    for (const auto& [k, v] : annotations) keys.push_back(k);
    s.fail({.what = text("there is no annotation ", quoted(key)),
            .needs = "an annotation that is there",
            .hint = keys.empty() ? std::string("nothing is annotated here") : text("there are: ", join(keys, ", "))});
  }
  set_annotations(s, of, annotations);
}

BufferRef selected_buffer(const Schedule& s, const BlockHandle& block, const BufferSelector& which, bool write_side) {
  const Block& b = s.get(block);
  bool write = which.is_write.value_or(write_side);
  auto pick = [&](const std::vector<BufferRegionRef>& regions) -> BufferRef {
    if (auto* i = std::get_if<int64_t>(&which.which)) {
      if (*i >= 0 && *i < static_cast<int64_t>(regions.size())) return regions[static_cast<size_t>(*i)]->buffer;
      s.fail({.what = text("block ",
                           quoted(block->text),
                           " has ",
                           regions.size(),
                           write ? " written" : " read",
                           " buffers, and no number ",
                           *i),
              .needs = text("0 <= index < ", regions.size()),
              .hint = "count the entries of T.reads or T.writes",
              .at = {{Stmt(&s.realize(block)), "this block"}}});
    }
    for (const BufferRegionRef& r : regions) {
      if (auto* name = std::get_if<std::string>(&which.which)) {
        if (r->buffer->name == *name) return r->buffer;
      } else if (r->buffer == std::get<BufferRef>(which.which)) {
        return r->buffer;
      }
    }
    return nullptr;
  };
  if (BufferRef found = pick(write ? b.writes : b.reads)) return found;
  if (!which.is_write) {
    if (BufferRef found = pick(write ? b.reads : b.writes)) return found;
  }
  std::vector<std::string> names;
  for (const auto& r : b.reads) names.push_back(r->buffer->name);
  for (const auto& r : b.writes) names.push_back(r->buffer->name);
  s.fail({.what = text("block ", quoted(block->text), " does not touch that buffer"),
          .needs = "a buffer that the block reads or writes",
          .hint = text("it touches: ", join(names, ", ")),
          .at = {{Stmt(&s.realize(block)), "this block"}}});
}

static MaybeReason not_allocated(const Schedule& s, const BufferRef& buffer, const BlockHandle& block) {
  if (is_allocated(s, buffer)) return {};
  return Reason{.what = text("buffer ", buffer->name, " is a parameter of the function"),
                .needs = "a buffer that a block of the function allocates",
                .hint = text("cache_read or cache_write ", buffer->name, " first"),
                .at = {{Stmt(&s.realize(block)), "touches it"}}};
}

static const std::vector<std::string>& scopes() {
  static const std::vector<std::string> all = {"global",
                                               "shared",
                                               "shared.dyn",
                                               "local",
                                               "warp",
                                               "wmma.matrix_a",
                                               "wmma.matrix_b",
                                               "wmma.accumulator",
                                               "m16n8k8.matrixA",
                                               "m16n8k8.matrixB",
                                               "m16n8k8.matrixC",
                                               "texture",
                                               "global.texture",
                                               "global.vtcm",
                                               "metal.simdgroup",
                                               "dram",
                                               "sram",
                                               "pe"};
  return all;
}

void require_scope(const Schedule& s, const std::string& scope) {
  if (std::find(scopes().begin(), scopes().end(), scope) != scopes().end()) return;
  s.fail({.what = text(quoted(scope), " is not a storage scope"),
          .needs = text("one of ", join(scopes(), ", ")),
          .hint = text("the nearest is ", join(nearest_names(scope, scopes()), ", "))});
}

/// The program with one buffer replaced everywhere (in loads, stores, regions and its allocation).
Stmt replace_buffer(const Stmt& body, const BufferRef& old, const BufferRef& fresh) {
  return replaced(body, NodeMap{{old, fresh}, {old->data, fresh->data}});
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
  set_annotations(s, block, annotations);
}

const Primitive<void(Value, std::string, Value)> annotate{
    "annotate", do_annotate, {"block_or_loop", "ann_key", "ann_val"}, "attaches a key and value to a loop or block"};
const Primitive<void(Value, std::string)> unannotate{
    "unannotate", do_unannotate, {"block_or_loop", "ann_key"}, "takes an annotation off a loop or block"};
const Primitive<void(BlockHandle, BufferSelector, std::string)> set_scope{
    "set_scope", do_set_scope, {"block", "buffer_index", "storage_scope"}, "moves a buffer to another storage scope"};
const Primitive<void(BlockHandle, BufferSelector, int, int, int)> storage_align{
    "storage_align",
    do_storage_align,
    {"block", "buffer_index", "axis", "factor", "offset"},
    "pads the rows of a buffer to an alignment"};

}  // namespace sator::schedule
