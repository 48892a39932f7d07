#include "dataflow/programs/tir_views.h"

#include <algorithm>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "dataflow/programs/tir_places.h"
#include "ir/visit.h"

namespace sator::dataflow {

namespace {

/// The buffers over one pointer.
struct PointerBuffers {
  BufferRef own;  // the parameter, or what a block allocates; null for a pointer of neither
  bool is_param = false;
  std::vector<BufferRef> used;  // by loads and stores, each once
  bool is_matched = false;      // boxes of it have buffers of their own
  BufferRef flat;               // stands for all that are used; null: the one that is used does
};

Expr wide(const Expr& e) { return cast_to(i64, e); }

/// The number of an element, from the pointer on.
Expr offset_of(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr offset = buffer.elem_offset ? wide(buffer.elem_offset) : int_imm(0, i64);
  Expr stride = int_imm(1, i64);
  for (size_t d = indices.size(); d-- > 0;) {
    offset = offset + wide(indices[d]) * (buffer.strides.empty() ? stride : wide(buffer.strides[d]));
    stride = stride * wide(buffer.shape[d]);
  }
  return offset;
}

class ViewReader {
 public:
  ViewReader(const tir::PrimFunc& func, const std::string& name, std::vector<std::string>& notes)
      : func_(func), name_(name), notes_(notes) {
    for (const auto& [param, buffer] : func.buffer_map)
      memories_[buffer->data] = {.own = buffer, .is_param = true, .used = {}, .flat = {}};
    auto use = [&](const BufferRef& buffer) {
      std::vector<BufferRef>& used = memories_[buffer->data].used;
      if (std::find(used.begin(), used.end(), buffer) == used.end()) used.push_back(buffer);
    };
    walk(
        func.body,
        [&](const BufferLoad& load) { use(load.buffer); },
        [&](const tir::BufferStore& store) { use(store.buffer); },
        [&](const tir::Block& block) {
          for (const BufferRef& b : block.alloc_buffers) memories_[b->data].own = b;
          for (const tir::MatchBufferRef& m : block.match_buffers) {
            use(m->source->buffer);
            memories_[m->source->buffer->data].is_matched = true;
          }
        });
  }

  tir::PrimFuncRef run() {
    bool changes = false;
    for (auto& [pointer, memory] : memories_) changes |= take(memory);
    if (!changes) return ref(func_);
    tir::PrimFunc out = func_;
    for (auto& [param, buffer] : out.buffer_map)
      if (const PointerBuffers& memory = memories_.at(buffer->data); memory.flat)
        buffer = memory.flat;
      else if (memory.used.size() == 1)
        buffer = memory.used[0];
    out.body = transform(
        func_.body,
        [&](const BufferLoad& load) -> NodeRef {
          const BufferRef& flat = memories_.at(load.buffer->data).flat;
          return flat ? NodeRef(make<BufferLoad>(flat, std::vector<Expr>{offset_of(*load.buffer, load.indices)}))
                      : NodeRef(&load);
        },
        [&](const tir::BufferStore& store) -> NodeRef {
          const BufferRef& flat = memories_.at(store.buffer->data).flat;
          return flat ? NodeRef(tir::store(flat, store.value, {offset_of(*store.buffer, store.indices)}))
                      : NodeRef(&store);
        });
    return tir::PrimFuncRef(new tir::PrimFunc(out));
  }

 private:
  /// The function's own memory that holds several tensors, in turn or side by side: nothing of it is outside.
  bool leave(const std::vector<BufferRef>& all) const {
    notes_.push_back(text(all[0]->name, " and ", all[1]->name, ", in one memory, are taken as tensors of their own"));
    return false;
  }

  /// Whether another buffer than its own stands for the memory.
  bool take(PointerBuffers& memory) const {
    std::vector<BufferRef> all = memory.used;
    if (memory.own && std::find(all.begin(), all.end(), memory.own) == all.end()) all.push_back(memory.own);
    if (all.size() < 2) return false;
    const bool several = memory.used.size() > 1;
    for (const BufferRef& b : all) {
      if (several ? b->dtype == all[0]->dtype : b->dtype.bytes() == all[0]->dtype.bytes()) continue;
      if (!memory.is_param) return leave(all);
      refuse_work(name_,
                  text(all[0]->name, " of ", all[0]->dtype, " and ", b->name, " of ", b->dtype, " are one memory"),
                  "one dtype for what lies in the memory of a parameter",
                  "name a function that states the work with buffers of one dtype");
    }
    if (several && memory.is_matched) {
      if (!memory.is_param) return leave(all);
      refuse_work(name_,
                  text("a box is matched of ", all[0]->name, ", which is one memory with ", all[1]->name),
                  "boxes of parameters that one buffer stands for",
                  "lower the matched buffers first: opt --passes LowerMatchBuffer");
    }
    if (!several) return true;
    const Buffer& whole = memory.own ? *memory.own : *all[0];
    Expr extent = int_imm(1, i64);
    for (const Expr& e : whole.shape) extent = extent * wide(e);
    Buffer flat = whole;
    flat.shape = {extent};
    flat.strides.clear();
    flat.axis_separators.clear();
    flat.elem_offset = nullptr;
    memory.flat = BufferRef(new Buffer(flat));
    return true;
  }

  const tir::PrimFunc& func_;
  const std::string& name_;
  std::vector<std::string>& notes_;
  std::map<VarRef, PointerBuffers> memories_;
};

}  // namespace

tir::PrimFuncRef with_one_view_per_memory(const tir::PrimFunc& func, const std::string& name,
                                          std::vector<std::string>& notes) {
  return ViewReader(func, name, notes).run();
}

}  // namespace sator::dataflow
