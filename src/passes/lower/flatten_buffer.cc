// A[i, j] of a buffer [n, m]   =>   A[i * m + j] of a buffer [n * m]
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
  BufferRef flat(const BufferRef& b) {
    if (b->rank() == 1 && b->strides.empty()) return b;
    auto [at, fresh] = flat_.try_emplace(b);
    if (fresh) {
      Expr size = int_imm(1, needs_wide_index(*b) ? i64 : i32);
      if (b->strides.empty()) {
        for (const Expr& x : b->shape) size = size * cast_to(size->dtype, x);
      } else if (b->rank() > 0) {  // the outermost stride times its extent covers the rest
        size = cast_to(size->dtype, b->shape[0]) * cast_to(size->dtype, b->strides[0]);
      }
      at->second = make<Buffer>(b->data,
                                b->dtype,
                                std::vector<Expr>{size},
                                std::vector<Expr>{},
                                b->elem_offset,
                                b->name,
                                int{b->data_alignment},
                                int{b->offset_factor},
                                std::vector<int>{});
    }
    return at->second;
  }

  std::vector<Expr> index(const Buffer& b, const std::vector<Expr>& indices) {
    if (b.rank() == 1 && b.strides.empty()) return indices;
    DType wide = needs_wide_index(b) ? i64 : i32;
    for (const Expr& i : indices)
      if (i->dtype.bits == 64) wide = i64;
    auto widened = [&](const Expr& x) { return cast_to(wide.with_lanes(x->dtype.lanes), x); };
    Expr sum = int_imm(0, wide);
    for (size_t d = 0; d < indices.size(); ++d) {
      if (b.strides.empty()) {
        sum = sum * (d ? widened(b.shape[d]) : int_imm(0, wide)) + widened(indices[d]);
      } else {
        sum = sum + widened(indices[d]) * widened(b.strides[d]);
      }
    }
    return {sum};
  }

 private:
  std::unordered_map<BufferRef, BufferRef> flat_;
};

}  // namespace

PrimFuncRef flatten_buffer(const PrimFuncRef& func, const LowerOptions&) {
  Flattener f;
  Stmt body = transform(
      func->body,
      [&](const BufferLoad& n) -> Expr { return make<BufferLoad>(f.flat(n.buffer), f.index(*n.buffer, n.indices)); },
      [&](const BufferStore& n) -> Stmt {
        return make<BufferStore>(f.flat(n.buffer), n.value, f.index(*n.buffer, n.indices));
      },
      [&](const DeclBuffer& n) -> Stmt { return with(n, &DeclBuffer::buffer, f.flat(n.buffer)); },
      [&](const Allocate& n) -> Stmt {
        if (n.extents.size() == 1) return ref(n);
        Expr size = int_imm(1, i64);
        for (const Expr& x : n.extents) size = size * cast_to(i64, x);
        return with(n, &Allocate::extents, std::vector<Expr>{size});
      });
  if (body == func->body) return func;
  for (size_t i = func->buffer_map.size(); i-- > 0;) {
    const BufferRef& b = func->buffer_map[i].second;
    if (BufferRef flat = f.flat(b); flat != b) body = make<DeclBuffer>(flat, body);
  }
  return with_body(func, body);
}

}  // namespace sator::passes
