// The innermost loop of four over products of 8-bit integers becomes one dot4, which CPUs have as an instruction:
//   for k in 0..4: C[x] = C[x] + int32(A[a + k]) * int32(B[b + k])   =>   C[x] = dot4(C[x], A[ramp(a, 1, 4)], B[ramp(b, 1, 4)])
// Sums of 32-bit integers wrap, so their order does not matter.
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/vectorizer.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr int kGroup = 4;

/// The 8-bit integer that was widened to 32 bits; null if e is something else.
Expr narrow_operand(const Expr& e) {
  const Cast* c = e.as<Cast>();
  bool is_byte = c && c->dtype == i32 && c->value->dtype.lanes == 1 && c->value->dtype.is_integer() && c->value->dtype.bits == 8;
  if (is_byte) return c->value;
  // int32(int16(x)): wider steps change nothing.
  const Cast* inner = c ? c->value.as<Cast>() : nullptr;
  if (inner && c->dtype == i32 && inner->dtype.is_int() && inner->dtype.bits >= 16) return narrow_operand(make<Cast>(i32, inner->value));
  return nullptr;
}

struct Product {
  Expr a, b;
};
std::optional<Product> product_of(const Expr& e) {
  const Mul* m = e.as<Mul>();
  if (!m || e->dtype != i32) return {};
  Expr a = narrow_operand(m->a), b = narrow_operand(m->b);
  if (!a || !b) return {};
  return Product{a, b};
}

bool loads_place(const Expr& e, const BufferStore& s) {
  const BufferLoad* n = e.as<BufferLoad>();
  return n && n->buffer == s.buffer && n->indices.size() == s.indices.size() &&
         std::equal(n->indices.begin(), n->indices.end(), s.indices.begin(), [](const Expr& x, const Expr& y) { return equal(x, y); });
}

/// The loads of e that follow the loop are contiguous.
bool is_contiguous(const Expr& e) {
  bool yes = true;
  walk(e, [&](const BufferLoad& n) {
    const Ramp* r = n.indices.back().as<Ramp>();
    if (n.indices.back()->dtype.lanes > 1 && (!r || !is_one(r->stride))) yes = false;
  });
  return yes;
}

}  // namespace

PrimFuncRef lower_integer_dot(const PrimFuncRef& func, const LowerOptions&) {
  Stmt body = transform(func->body, [](const For& loop) -> Stmt {
    bool plain = loop.kind == LoopKind::serial || loop.kind == LoopKind::unrolled;
    if (!plain || !is_int(loop.extent, kGroup)) return ref(loop);
    const BufferStore* s = loop.body.as<BufferStore>();
    const Add* sum = s ? s->value.as<Add>() : nullptr;
    if (!sum || s->buffer->dtype != i32) return ref(loop);
    for (const Expr& i : s->indices)
      if (uses_var(i, *loop.var)) return ref(loop);
    bool left = loads_place(sum->a, *s);
    if (!left && !loads_place(sum->b, *s)) return ref(loop);
    auto product = product_of(left ? sum->b : sum->a);
    if (!product) return ref(loop);
    auto a = vectorized(product->a, loop, kGroup), b = vectorized(product->b, loop, kGroup);
    if (!a || !b || !is_contiguous(*a) || !is_contiguous(*b)) return ref(loop);
    return store(s->buffer, call_builtin("tir.dot4", {left ? sum->a : sum->b, *a, *b}), s->indices);
  });
  return with_body(func, body);
}

}  // namespace sator::passes
