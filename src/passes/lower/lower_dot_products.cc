// The innermost loop of four over products of 8-bit integers becomes one dot4, which CPUs have as an instruction:
//   for k in 0..4: C[x] = C[x] + int32(A[a + k]) * int32(B[b + k])   =>   C[x] = dot4(C[x], A[ramp(a, 1, 4)], B[ramp(b, 1, 4)])
// Sums of 32-bit integers wrap, so their order does not matter.
// Four codes in a row of 32-bit words are taken out together:
//   for k in 0..4: ... int32(uint8(W >> (s + 8 * k) & m))     =>   ... reinterpret("uint8x4", W >> s & m * 0x01010101)
//   for k in 0..4: ... int32(uint8(W >> (s + b * k) & 2^b-1)) =>   the same, after the codes of b bits are moved apart
// Codes may go on in the next word: its lowest bits stand above the first word's highest then.
// They may be stored side by side, as a panel of an operand is:
//   for k in 0..4: B[b + k] = uint8(W >> (s + b * k) & 2^b-1) =>   B[ramp(b, 1, 4)] = ...
// also less a constant, as int8.
// The innermost loop of two over products of bfloat16 becomes one dot2 where its schedule says that the order in which a pair is
// summed does not matter: floats round.
//   for k in 0..2: C[x] = C[x] + float32(A[a + k]) * float32(B[b + k])  =>  C[x] = dot2(C[x], A[ramp(a, 1, 2)], B[ramp(b, 1, 2)])
#include <bit>
#include <map>

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

/// The call of such an op of words; null if e is something else.
const Call* as_word_call(const Expr& e, const char* op) {
  const Call* c = e.as<Call>();
  return c && c->dtype == u32 && c->op == op ? c : nullptr;
}

/// A shift as an index.
Expr index_of(Expr shift) {
  while (const Cast* c = shift.as<Cast>()) shift = c->value;
  return shift;
}

/// What every iteration of the loop takes out of words.
struct Codes {
  int64_t mask;
  Expr low, low_shift;               ///< W >> s
  const BufferLoad* high = nullptr;  ///< W' << 1 << (31 - s), or-ed to it; null: the code lies in one word
};
std::optional<Codes> codes_of(const Expr& e) {
  const Cast* byte = e.as<Cast>();
  const Call* masked = byte && byte->dtype == u8 ? as_word_call(byte->value, "tir.bitwise_and") : nullptr;
  const auto mask = masked ? as_int(masked->args[1]) : std::nullopt;
  if (!mask || *mask < 1 || *mask > 255) return {};
  Expr low = masked->args[0];
  Codes codes{.mask = *mask, .low = nullptr, .low_shift = nullptr};
  const Call* joined = as_word_call(low, "tir.bitwise_or");
  if (joined) {
    low = joined->args[0];
    const Call* up = as_word_call(joined->args[1], "tir.shift_left");
    const Call* by_one = up ? as_word_call(up->args[0], "tir.shift_left") : nullptr;
    const Sub* rest = up ? up->args[1].as<Sub>() : nullptr;
    codes.high = by_one && is_one(by_one->args[1]) ? by_one->args[0].as<BufferLoad>() : nullptr;
    if (!codes.high || !rest || !is_int(rest->a, 31)) return {};
    const Call* down = as_word_call(low, "tir.shift_right");
    if (!down || !equal(down->args[1], rest->b)) return {};
  }
  const Call* down = as_word_call(low, "tir.shift_right");
  if (!down) return {};
  codes.low = down->args[0];
  codes.low_shift = down->args[1];
  return codes;
}

/// Codes of `bits` bits, one above the other, to a byte each: 0x....dcba -> 0x00dc00ba -> 0x0d0c0b0a.
Expr apart(const Expr& word, int64_t bits) {
  // The upper half of each pair goes up. Where a half is no wider than that, what else goes up lies outside of the halves.
  auto pairs = [&](const Expr& x, int64_t half, int64_t by, int64_t repeated) {
    const int64_t kept = ((int64_t{1} << half) - 1) * repeated;
    const Expr up = word_call("tir.shift_left", x, int_imm(by, u32));
    if (half <= by) return word_and(word_call("tir.bitwise_or", x, up), kept * (1 + (int64_t{1} << (half + by))));
    return word_call("tir.bitwise_or", word_and(x, kept), word_and(up, kept << (half + by)));
  };
  const Expr four = word_and(word, (int64_t{1} << 4 * bits) - 1);
  return pairs(pairs(four, 2 * bits, 16 - 2 * bits, 1), bits, 8 - bits, 0x00010001);
}

class ByteTaker {
 public:
  explicit ByteTaker(const PrimFunc& func) {
    walk(func.body, [&](const For& loop) { loops_.emplace(loop.var, ref(loop)); });
  }

  /// The four bytes that the iterations of the loop take out of words, or look up by those; null if e is something else.
  Expr bytes(const Expr& e, const For& loop) {
    if (const Call* lookup = e.as<Call>(); lookup && lookup->op == "tir.lookup16") {
      const Expr index = bytes(lookup->args[0], loop);
      if (!index) return nullptr;
      std::vector<Expr> args = {index};
      for (size_t i = 1; i < lookup->args.size(); ++i) args.push_back(make<Broadcast>(lookup->args[i], kGroup));
      return call_builtin(lookup->op, std::move(args));
    }
    if (const Sub* less = e.as<Sub>(); less && e->dtype == i8 && as_int(less->b)) {
      const Cast* code = less->a.as<Cast>();
      const Expr four = code ? bytes(code->value, loop) : nullptr;
      return four ? cast_to(i8.with_lanes(kGroup), four) - make<Broadcast>(less->b, kGroup) : nullptr;
    }
    const std::optional<Codes> codes = codes_of(e);
    if (!codes) return nullptr;
    const Expr four = codes->high ? of_two_words(*codes, loop) : of_one_word(*codes, loop);
    return four ? call(u8.with_lanes(kGroup), "tir.reinterpret", {four}) : nullptr;
  }

 private:
  Expr at(const Expr& e, const For& loop, int64_t i) {
    return analyzer_.simplify(substitute(e, {{loop.var, loop.min + int_imm(i, loop.var->dtype)}}));
  }

  Expr of_one_word(const Codes& codes, const For& loop) {
    if (uses_var(codes.low, *loop.var)) return nullptr;
    // By how much the shift grows with the loop.
    const Expr index = index_of(codes.low_shift), first = at(index, loop, 0);
    const auto step = as_int(analyzer_.simplify(at(index, loop, 1) - first));
    for (int64_t i = 1; step && i < kGroup; ++i)
      if (!is_int(analyzer_.simplify(at(index, loop, i) - first), i * *step)) return nullptr;
    if (!step || *step < 1 || *step > 8 || (*step < 8 && codes.mask != (1 << *step) - 1)) return nullptr;
    const Expr four = is_zero(first) ? codes.low : word_call("tir.shift_right", codes.low, cast_to(u32, first));
    if (*step < 8) return apart(four, *step);
    return codes.mask == 255 ? four : word_and(four, codes.mask * 0x01010101);
  }

  /// Where each code begins is looked at for all iterations of the loops that it depends on, which are few: those that are written out.
  Expr of_two_words(const Codes& codes, const For& loop) {
    constexpr int64_t kMostPlaces = 64;
    const BufferLoad* low = codes.low.as<BufferLoad>();
    const int64_t bits = std::popcount(static_cast<uint64_t>(codes.mask));
    if (!low || low->buffer != codes.high->buffer || codes.mask != (1 << bits) - 1 || bits > 7) return nullptr;
    if (low->indices.size() != 1 || codes.high->indices.size() != 1) return nullptr;
    std::vector<const For*> others;
    for (const VarRef& v : vars_in(codes.low_shift)) {
      const auto known = loops_.find(v);
      if (known == loops_.end()) return nullptr;
      if (v != loop.var) others.push_back(known->second.get());
    }
    int64_t places = 1;
    for (const For* other : others) {
      const auto extent = as_int(other->extent);
      if (!extent || !is_zero(other->min) || *extent > kMostPlaces / places) return nullptr;
      places *= *extent;
    }
    for (int64_t place = 0; place < places; ++place) {
      VarMap here;
      int64_t rest = place;
      for (const For* other : others) {
        const int64_t extent = *as_int(other->extent);
        here.emplace(other->var, int_imm(rest % extent, other->var->dtype));
        rest /= extent;
      }
      if (!lie_in_a_row(codes, *low, loop, here, bits)) return nullptr;
    }
    const Expr shift = cast_to(u32, at(index_of(codes.low_shift), loop, 0));
    const Expr first = load(low->buffer, {at(low->indices[0], loop, 0)});
    const Expr last = load(low->buffer, {at(codes.high->indices[0], loop, kGroup - 1)});
    const Expr above =
        word_call("tir.shift_left", word_call("tir.shift_left", last, int_imm(1, u32)), int_imm(31, u32) - shift);
    return apart(word_call("tir.bitwise_or", word_call("tir.shift_right", first, shift), above), bits);
  }

  /// Whether the four codes are one above the other in the first one's low word and the last one's high word.
  bool lie_in_a_row(const Codes& codes, const BufferLoad& low, const For& loop, const VarMap& here, int64_t bits) {
    auto number = [&](const Expr& e, int64_t i) { return at(substitute(e, here), loop, i); };
    auto is_same = [&](const Expr& a, const Expr& b) { return is_zero(analyzer_.simplify(a - b)); };
    const auto begin = as_int(number(index_of(codes.low_shift), 0));
    const Expr first = number(low.indices[0], 0), last = number(codes.high->indices[0], kGroup - 1);
    for (int64_t i = 0; begin && i < kGroup; ++i) {
      const int64_t bit = *begin + i * bits;
      const bool in_first = bit < 32, goes_on = in_first && bit + bits > 32;
      if (!is_int(number(index_of(codes.low_shift), i), bit % 32)) return false;
      if (!is_same(number(low.indices[0], i), in_first ? first : last)) return false;
      if (goes_on && !is_same(number(codes.high->indices[0], i), last)) return false;
    }
    return begin.has_value();
  }

  arith::Analyzer analyzer_;
  std::map<VarRef, Ref<const For>> loops_;
};

/// Four bytes out of words that the iterations store side by side; null if they do something else.
Stmt stored_together(const BufferStore& s, const For& loop, ByteTaker& taker) {
  if ((s.buffer->dtype != u8 && s.buffer->dtype != i8) || s.indices.empty()) return nullptr;
  for (size_t i = 0; i + 1 < s.indices.size(); ++i)
    if (uses_var(s.indices[i], *loop.var)) return nullptr;
  const auto at = vectorized(s.indices.back(), loop, kGroup);
  const Ramp* ramp = at ? at->as<Ramp>() : nullptr;
  const Expr four = ramp && is_one(ramp->stride) ? taker.bytes(s.value, loop) : nullptr;
  if (!four) return nullptr;
  std::vector<Expr> indices = s.indices;
  indices.back() = *at;
  return store(s.buffer, four, std::move(indices));
}

}  // namespace

PrimFuncRef lower_dot_products(const PrimFuncRef& func, const LowerOptions&) {
  ByteTaker taker(*func);
  Stmt body = transform(func->body, [&](const For& loop) -> Stmt {
    bool plain = loop.kind == LoopKind::serial || loop.kind == LoopKind::unrolled;
    // A condition that holds for all iterations or for none goes outside.
    const IfThenElse* branch = plain ? loop.body.as<IfThenElse>() : nullptr;
    if (branch && (branch->else_case || uses_var(branch->condition, *loop.var))) branch = nullptr;
    const BufferStore* s = plain ? (branch ? branch->then_case : loop.body).as<BufferStore>() : nullptr;
    if (Stmt four = s && !branch && is_int(loop.extent, kGroup) ? stored_together(*s, loop, taker) : nullptr)
      return four;
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
      if (Expr bytes = taker.bytes(factor, loop)) return bytes;
      auto v = vectorized(factor, loop, dot->group);
      return v && is_near(*v) ? *v : nullptr;
    };
    Expr a = group(product->a), b = group(product->b);
    if (!a || !b) return ref(loop);
    Stmt done = store(s->buffer, call_builtin(dot->op, {left ? sum->a : sum->b, a, b}), s->indices);
    return branch ? Stmt(make<IfThenElse>(branch->condition, done, Stmt())) : done;
  });
  return with_body(func, body);
}

}  // namespace sator::passes
