// A[i, j] of a buffer [n, m]   =>   A[i * m + j] of a buffer [n * m]
// Asked for, the axis separators of a buffer divide its dimensions into groups, of which each becomes one dimension.
#include "arith/analyzer.h"
#include "passes/lower/lower.h"

namespace sator::passes {

using namespace tir;

namespace {

/// Index arithmetic in 64 bits where 32 may not be enough for the number of elements.
bool needs_wide_index(const Buffer& b) {
  int64_t size = 1, last = 0;  // the last element that shape and strides reach
  for (size_t d = b.shape.size(); d-- > 0;) {
    auto extent = as_int(b.shape[d]), stride = b.strides.empty() ? size : as_int(b.strides[d]);
    int64_t reach = 0;
    if (!extent || !stride || __builtin_mul_overflow(*extent - 1, *stride, &reach) ||
        __builtin_add_overflow(last, reach, &last) || __builtin_mul_overflow(size, *extent, &size))
      return true;
  }
  return last >= INT32_MAX;
}

class Flattener {
 public:
  explicit Flattener(bool keep_separators) : keep_separators_(keep_separators) {}

  BufferRef flat(const BufferRef& b) {
    if (is_flat(*b)) return b;
    auto [at, fresh] = flat_.try_emplace(b);
    if (fresh) {
      std::vector<int> separators;
      for (size_t g = 1; g < groups(*b).size(); ++g) separators.push_back(static_cast<int>(g));
      at->second = make<Buffer>(b->data,
                                b->dtype,
                                flat_shape(*b, needs_wide_index(*b) ? i64 : i32),
                                std::vector<Expr>{},
                                b->elem_offset,
                                b->name,
                                int{b->data_alignment},
                                int{b->offset_factor},
                                std::move(separators));
    }
    return at->second;
  }

  std::vector<Expr> index(const Buffer& b, const std::vector<Expr>& indices) {
    if (is_flat(b)) return indices;
    DType wide = needs_wide_index(b) ? i64 : i32;
    for (const Expr& i : indices)
      if (i->dtype.bits == 64) wide = i64;
    auto widened = [&](const Expr& x) { return cast_to(wide.with_lanes(x->dtype.all_lanes()), x); };
    std::vector<Expr> out;
    for (const auto& [begin, end] : groups(b)) {
      Expr sum = int_imm(0, wide);
      for (size_t d = begin; d < end; ++d) {
        if (b.strides.empty()) {
          sum = sum * (d > begin ? widened(b.shape[d]) : int_imm(0, wide)) + widened(indices[d]);
        } else {
          sum = sum + widened(indices[d]) * widened(b.strides[d]);
        }
      }
      out.push_back(sum);
    }
    return out;
  }

  /// From the first element of the region to its last.
  BufferRegionRef region(const BufferRegion& r) {
    if (is_flat(*r.buffer)) return ref(r);
    std::vector<Expr> first, last;
    for (const RangeRef& range : r.region) {
      first.push_back(range->min);
      last.push_back(range->min + range->extent - 1);
    }
    first = index(*r.buffer, first);
    last = index(*r.buffer, last);
    std::vector<RangeRef> out;
    for (size_t g = 0; g < first.size(); ++g)
      out.push_back(make<Range>(first[g], analyzer_.simplify(last[g] + 1 - first[g])));
    return make<BufferRegion>(flat(r.buffer), std::move(out));
  }

  Stmt block(const Block& b) {
    Block out = b;
    for (const MatchBufferRef& m : b.match_buffers) {
      if (is_flat(*m->buffer) && is_flat(*m->source->buffer)) continue;
      fail({.what = text("FlattenBuffer is given the matched buffer ", m->buffer->name),
            .needs = "buffers that are matched nowhere",
            .hint = "run LowerMatchBuffer before",
            .at = {{ref(b), "matches a buffer"}}});
    }
    for (BufferRef& x : out.alloc_buffers) x = flat(x);
    for (BufferRegionRef& x : out.reads) x = region(*x);
    for (BufferRegionRef& x : out.writes) x = region(*x);
    if (out.alloc_buffers == b.alloc_buffers && out.reads == b.reads && out.writes == b.writes) return ref(b);
    return Stmt(new Block(std::move(out)));
  }

  /// A buffer with axis separators that names memory of these extents: the memory is divided likewise.
  void separate(const BufferRef& b) {
    if (groups(*b).size() > 1) separated_[b->data.get()] = b;
  }
  Stmt allocation(const Allocate& n) {
    auto at = separated_.find(n.data.get());
    std::vector<Expr> extents;
    if (at != separated_.end() && at->second->shape.size() == n.extents.size()) {
      extents = flat_shape(*at->second, i64);
    } else {
      Expr size = int_imm(1, i64);
      for (const Expr& x : n.extents) size = size * cast_to(i64, x);
      extents = {size};
    }
    return extents.size() == n.extents.size() ? Stmt(ref(n)) : with(n, &Allocate::extents, std::move(extents));
  }

 private:
  /// Dimensions [begin, end) that become one.
  std::vector<std::pair<size_t, size_t>> groups(const Buffer& b) const {
    std::vector<std::pair<size_t, size_t>> out;
    size_t begin = 0;
    for (int separator : keep_separators_ ? b.axis_separators : std::vector<int>{}) {
      out.emplace_back(begin, static_cast<size_t>(separator));
      begin = static_cast<size_t>(separator);
    }
    out.emplace_back(begin, b.shape.size());
    return out;
  }

  bool is_flat(const Buffer& b) const {
    return b.strides.empty() && b.shape.size() == groups(b).size() && (keep_separators_ || b.axis_separators.empty());
  }

  std::vector<Expr> flat_shape(const Buffer& b, DType dtype) const {
    std::vector<Expr> out;
    for (const auto& [begin, end] : groups(b)) {
      Expr size = int_imm(1, dtype);
      if (b.strides.empty()) {
        for (size_t d = begin; d < end; ++d) size = size * cast_to(dtype, b.shape[d]);
      } else if (begin < end) {  // the outermost stride times its extent covers the rest
        size = cast_to(dtype, b.shape[begin]) * cast_to(dtype, b.strides[begin]);
      }
      out.push_back(size);
    }
    return out;
  }

  bool keep_separators_;
  std::unordered_map<BufferRef, BufferRef> flat_;
  std::unordered_map<const Var*, BufferRef> separated_;
  arith::Analyzer analyzer_;
};

}  // namespace

PrimFuncRef flatten_buffer(const PrimFuncRef& func, const LowerOptions& options) {
  Flattener f(option(options, "FlattenBuffer.keep_axis_separators", 0) != 0);
  walk(func->body, [&](const Buffer& b) { f.separate(ref(b)); });
  Stmt body = transform(
      func->body,
      [&](const BufferLoad& n) -> Expr { return make<BufferLoad>(f.flat(n.buffer), f.index(*n.buffer, n.indices)); },
      [&](const BufferStore& n) -> Stmt {
        return make<BufferStore>(f.flat(n.buffer), n.value, f.index(*n.buffer, n.indices));
      },
      [&](const DeclBuffer& n) -> Stmt { return with(n, &DeclBuffer::buffer, f.flat(n.buffer)); },
      [&](const Allocate& n) -> Stmt { return f.allocation(n); },
      [&](const Block& n) -> Stmt { return f.block(n); });
  if (body == func->body) return func;
  // In the root block where there is one: around it, the text would read back with a second root.
  const BlockRealize* root = body.as<BlockRealize>();
  const BlockRealizeRef realize = root && root->block->iter_vars.empty() ? ref(*root) : nullptr;
  if (realize) body = realize->block->body;
  for (size_t i = func->buffer_map.size(); i-- > 0;) {
    const BufferRef& b = func->buffer_map[i].second;
    if (BufferRef flat = f.flat(b); flat != b) body = make<DeclBuffer>(flat, body);
  }
  if (realize) body = with(*realize, &BlockRealize::block, with(realize->block, &Block::body, std::move(body)));
  return with_body(func, body);
}

}  // namespace sator::passes
