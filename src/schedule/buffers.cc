#include "schedule/buffers.h"

#include <algorithm>

namespace sator::schedule {

using namespace tir;

BufferRef selected_buffer(const Schedule& s, const BlockHandle& block, const BufferSelector& which, bool write_side) {
  const Block& b = s.get(block);
  bool write = which.is_write.value_or(write_side);
  auto pick = [&](const std::vector<BufferRegionRef>& regions) -> BufferRef {
    if (auto* i = std::get_if<int64_t>(&which.which)) {
      if (*i >= 0 && *i < static_cast<int64_t>(regions.size())) return regions[static_cast<size_t>(*i)]->buffer;
      s.fail({.what = text("block ",
                           string_literal(block->text),
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
  s.fail({.what = text("block ", string_literal(block->text), " does not touch that buffer"),
          .needs = "a buffer that the block reads or writes",
          .hint = text("it touches: ", join(names, ", ")),
          .at = {{Stmt(&s.realize(block)), "this block"}}});
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
  s.fail({.what = text(string_literal(scope), " is not a storage scope"),
          .needs = text("one of ", join(scopes(), ", ")),
          .hint = text("the nearest is ", join(nearest_names(scope, scopes()), ", "))});
}

Stmt replace_buffer(const Stmt& body, const BufferRef& old, const BufferRef& fresh) {
  return replaced(body, NodeMap{{old, fresh}, {old->data, fresh->data}});
}

bool is_used_opaquely(const Stmt& scope, const BufferRef& buffer) {
  bool opaque = false;
  walk(
      scope,
      [&](const Buffer&) { return false; },
      [&](const MatchBuffer& m) { opaque |= m.source->buffer == buffer || m.buffer == buffer; },
      [&](const Call& c) {
        const BufferLoad* element = c.op == "tir.address_of" ? c.args[0].as<BufferLoad>() : nullptr;
        opaque |= element && element->buffer == buffer;
      },
      [&](const Var& v) { opaque |= &v == buffer->data.get(); });
  return opaque;
}

}  // namespace sator::schedule
