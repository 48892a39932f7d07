// The innermost loop of four over products of 8-bit integers becomes one dot4, which CPUs have as an instruction:
//   for k in 0..4: C[x] = C[x] + int32(A[a + k]) * int32(B[b + k])   =>   C[x] = dot4(C[x], A[ramp(a, 1, 4)], B[ramp(b, 1, 4)])
// Sums of 32-bit integers wrap, so their order does not matter.
// Four codes in a row of one 32-bit word are taken out together:
//   for k in 0..4: ... int32(uint8(W >> (s + 8 * k) & m))     =>   ... reinterpret("uint8x4", W >> s & m * 0x01010101)
//   for k in 0..4: ... int32(uint8(W >> (s + 4 * k) & 15))    =>   the same, after the nibbles are moved apart
// The innermost loop of two over products of bfloat16 becomes one dot2 where its schedule says that the order in which a pair is
// summed does not matter: floats round.
//   for k in 0..2: C[x] = C[x] + float32(A[a + k]) * float32(B[b + k])  =>  C[x] = dot2(C[x], A[ramp(a, 1, 2)], B[ramp(b, 1, 2)])
#include "arith/analyzer.h"
#include "ir/builtins.h"
#include "passes/lower/lower.h"
#include "passes/lower/vectorizer.h"

namespace sator::passes {

using namespace tir;

namespace {

constexpr int kGroup = 4;

/// The 8-bit integer that was widened to 32 bits; null if e is something else.
Expr narrow_integer(const Expr& e) {
  const Cast* c = e.as<Cast>();
  bool is_byte =
      c && c->dtype == i32 && c->value->dtype.lanes == 1 && c->value->dtype.is_integer() && c->value->dtype.bits == 8;
  if (is_byte) return c->value;
  // int32(int16(x)): wider steps change nothing.
  const Cast* inner = c ? c->value.as<Cast>() : nullptr;
  if (inner && c->dtype == i32 && inner->dtype.is_int() && inner->dtype.bits >= 16)
    return narrow_integer(make<Cast>(i32, inner->value));
  return nullptr;
}

/// The bfloat16 that was widened to float32; null if e is something else.
Expr narrow_float(const Expr& e) {
  const Cast* c = e.as<Cast>();
  return c && c->dtype == f32 && c->value->dtype == bf16 ? c->value : nullptr;
}

/// A dot product that CPUs have as an instruction.
struct DotProduct {
  const char* op;
  int group;                    ///< products of one
  DType sum;                    ///< of what
  Expr (*narrow)(const Expr&);  ///< the factor that was widened to the sum's dtype; null if it was not
  bool where_asked;             ///< only in loops annotated kSumsPairs
};
const DotProduct kDotProducts[] = {{"tir.dot4", kGroup, i32, narrow_integer, false},
                                   {"tir.dot2", 2, f32, narrow_float, true}};

const DotProduct* dot_product_of(const For& loop, DType sum) {
  for (const DotProduct& d : kDotProducts)
    if (is_int(loop.extent, d.group) && d.sum == sum && (!d.where_asked || loop.annotations.count(kSumsPairs) > 0))
      return &d;
  return nullptr;
}

struct Product {
  Expr a, b;
};
std::optional<Product> product_of(const Expr& e, const DotProduct& dot) {
  const Mul* m = e.as<Mul>();
  if (!m || e->dtype != dot.sum) return {};
  Expr a = dot.narrow(m->a), b = dot.narrow(m->b);
  if (!a || !b) return {};
  return Product{a, b};
}

bool loads_place(const Expr& e, const BufferStore& s) {
  const BufferLoad* n = e.as<BufferLoad>();
  return n && n->buffer == s.buffer && n->indices.size() == s.indices.size() &&
         std::equal(n->indices.begin(), n->indices.end(), s.indices.begin(), [](const Expr& x, const Expr& y) {
           return equal(x, y);
         });
}

/// The loads of e that follow the loop are side by side, or every second element.
bool is_near(const Expr& e) {
  bool yes = true;
  walk(e, [&](const BufferLoad& n) {
    const Ramp* r = n.indices.back().as<Ramp>();
    if (n.indices.back()->dtype.lanes > 1 && (!r || !(is_one(r->stride) || is_int(r->stride, 2)))) yes = false;
  });
  return yes;
}

Expr word_call(const char* op, const Expr& a, const Expr& b) { return call(u32, op, {a, b}); }
Expr word_and(const Expr& a, int64_t mask) { return word_call("tir.bitwise_and", a, int_imm(mask, u32)); }

/// The four bytes that the iterations of the loop take out of one word; null if e is something else.
Expr bytes_of_word(const Expr& e, const For& loop, arith::Analyzer& analyzer) {
  const Cast* byte = e.as<Cast>();
  const Call* low = byte ? byte->value.as<Call>() : nullptr;
  if (!low || byte->dtype != u8 || low->dtype != u32 || low->op != "tir.bitwise_and") return nullptr;
  auto mask = as_int(low->args[1]);
  const Call* shifted = low->args[0].as<Call>();
  if (!mask || *mask < 1 || *mask > 255 || !shifted || shifted->op != "tir.shift_right") return nullptr;
  const Expr &word = shifted->args[0], &shift = shifted->args[1];
  if (uses_var(word, *loop.var)) return nullptr;
  // The shift as an index, and by how much it grows with the loop.
  Expr index = shift;
  while (const Cast* c = index.as<Cast>()) index = c->value;
  auto shift_at = [&](int64_t i) {
    return analyzer.simplify(substitute(index, {{loop.var, loop.min + int_imm(i, loop.var->dtype)}}));
  };
  Expr first = shift_at(0);
  auto step = as_int(analyzer.simplify(shift_at(1) - first));
  for (int64_t i = 1; step && i < kGroup; ++i)
    if (!is_int(analyzer.simplify(shift_at(i) - first), i * *step)) return nullptr;
  if (step != 8 && !(step == 4 && *mask == 15)) return nullptr;
  Expr four = is_zero(first) ? word : word_call("tir.shift_right", word, cast_to(u32, first));
  if (step == 4) {
    // 0x....dcba -> 0x00dc00ba -> 0x0d0c0b0a
    auto apart = [&](const Expr& x, int64_t by, int64_t kept) {
      return word_and(word_call("tir.bitwise_or", x, word_call("tir.shift_left", x, int_imm(by, u32))), kept);
    };
    four = apart(apart(word_and(four, 0xffff), 8, 0x00ff00ff), 4, 0x0f0f0f0f);
  } else if (*mask != 255) {
    four = word_and(four, *mask * 0x01010101);
  }
  return call(u8.with_lanes(kGroup), "tir.reinterpret", {four});
}

}  // namespace

PrimFuncRef lower_dot_products(const PrimFuncRef& func, const LowerOptions&) {
  arith::Analyzer analyzer;
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    bool plain = loop.kind == LoopKind::serial || loop.kind == LoopKind::unrolled;
    const BufferStore* s = plain ? loop.body.as<BufferStore>() : nullptr;
    const Add* sum = s ? s->value.as<Add>() : nullptr;
    const DotProduct* dot = sum ? dot_product_of(loop, s->buffer->dtype) : nullptr;
    if (!dot) return ref(loop);
    for (const Expr& i : s->indices)
      if (uses_var(i, *loop.var)) return ref(loop);
    bool left = loads_place(sum->a, *s);
    if (!left && !loads_place(sum->b, *s)) return ref(loop);
    auto product = product_of(left ? sum->b : sum->a, *dot);
    if (!product) return ref(loop);
    auto group = [&](const Expr& factor) -> Expr {
      if (Expr bytes = bytes_of_word(factor, loop, analyzer)) return bytes;
      auto v = vectorized(factor, loop, dot->group);
      return v && is_near(*v) ? *v : nullptr;
    };
    Expr a = group(product->a), b = group(product->b);
    if (!a || !b) return ref(loop);
    return store(s->buffer, call_builtin(dot->op, {left ? sum->a : sum->b, a, b}), s->indices);
  });
  return with_body(func, body);
}

}  // namespace sator::passes
