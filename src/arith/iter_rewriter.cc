#include "arith/iter_rewriter.h"

#include "arith/fold.h"
#include "arith/interval_eval.h"
#include "arith/kind.h"
#include "arith/normal_product.h"
#include "arith/numbers.h"

namespace sator::arith {

IterMark::IterMark(Expr expr, Expr extent) : expr(std::move(expr)), extent(std::move(extent)) {}
IterMark::IterMark(IterSum sum, Expr extent) : sum(std::move(sum)), extent(std::move(extent)) {}
IterMark::~IterMark() = default;
DType IterMark::dtype() const { return expr ? expr->dtype : sum.base->dtype; }

Expr iadd(const Expr& a, const Expr& b) { return combine_exprs(Kind::add, a, b); }
Expr isub(const Expr& a, const Expr& b) { return combine_exprs(Kind::sub, a, b); }
Expr imul(const Expr& a, const Expr& b) { return combine_exprs(Kind::mul, a, b); }
Expr ifloordiv(const Expr& a, const Expr& b) { return combine_exprs(Kind::floordiv, a, b); }
Expr ifloormod(const Expr& a, const Expr& b) { return combine_exprs(Kind::floormod, a, b); }
Expr iceildiv(const Expr& a, const Expr& b) { return ifloordiv(iadd(a, isub(b, one_of(b->dtype))), b); }
Expr imul_normal(const Expr& a, const Expr& b) { return a->dtype == b->dtype ? multiply_normal(a, b) : imul(a, b); }

IterSplit whole(const IterMarkRef& mark) {
  Expr one = one_of(mark->dtype());
  return {mark, one, mark->extent, one};
}

bool same_split(const IterSplit& a, const IterSplit& b, bool with_scale) {
  return a.source == b.source && same(a.lower_factor, b.lower_factor) && (!with_scale || same(a.scale, b.scale)) &&
         same(a.extent, b.extent);
}

bool same_sum(const IterSum& a, const IterSum& b) {
  if (a.args.size() != b.args.size() || !same(a.base, b.base)) return false;
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!same_split(a.args[i], b.args[i])) return false;
  return true;
}

bool same_mark(const IterMarkRef& a, const IterMarkRef& b) {
  if (a == b) return true;
  if (a->is_sum() != b->is_sum() || !same(a->extent, b->extent)) return false;
  if (!a->is_sum()) return same(a->expr, b->expr);
  if (a->sum.args.size() != b->sum.args.size() || !same(a->sum.base, b->sum.base)) return false;
  for (size_t i = 0; i < a->sum.args.size(); ++i) {
    const IterSplit &x = a->sum.args[i], &y = b->sum.args[i];
    if (!same_mark(x.source, y.source) || !same(x.lower_factor, y.lower_factor) || !same(x.extent, y.extent) ||
        !same(x.scale, y.scale))
      return false;
  }
  return true;
}

bool proves_divisible(const Expr& a, const Expr& b, Analyzer& analyzer) {
  auto x = as_int(a), y = as_int(b);
  if (y && *y == 0) return false;
  if (x && y) return *y == -1 || *x % *y == 0;
  if (analyzer.prove_equal(a, b)) return true;
  Expr remainder = ifloormod(a, b);
  return analyzer.prove(combine_exprs(Kind::eq, remainder, zero_of(remainder->dtype)));
}

IterRewriter::IterRewriter(Analyzer& analyzer, const RangeMap& iters, IterMapLevel level,
                           bool simplify_trivial_iterators)
    : analyzer_(analyzer), level_(level) {
  for (const auto& [var, range] : iters) {
    if (simplify_trivial_iterators && is_one(range->extent)) {
      vars_[var] = IterSum{{}, range->min};
    } else if (is_zero(range->min)) {
      IterMarkRef mark(new IterMark(Expr(var), range->extent));
      vars_[var] = whole(mark);
      inputs_.push_back(mark);
    } else {
      IterMarkRef mark(new IterMark(isub(var, range->min), range->extent));
      vars_[var] = IterSum{{whole(mark)}, range->min};
      inputs_.push_back(mark);
    }
  }
}

IterSum IterRewriter::rewrite(const Expr& index) {
  IterSum sum = as_sum(value_of(index));
  if (sum.args.empty()) return sum;
  if (auto fused = fuse(sum, true)) return *fused;
  note_error("the iterators of an index do not fit into one: their scales and extents do not follow each other");
  return sum;
}

IterSum IterRewriter::rewrite_and_pad(const Expr& index) {
  padding_round_ = true;
  IterSum sum = rewrite(index);
  padding_round_ = false;
  return sum;
}

IterSum IterRewriter::rewrite_to_sum(const Expr& index) { return normalized(as_sum(value_of(index))); }

bool IterRewriter::uses_iters(const Expr& e) const {
  bool found = false;
  walk(e, [&](const Var& v) { found |= vars_.count(VarRef(&v)) > 0; });
  return found;
}

IterSum IterRewriter::as_sum(const Value& v) {
  if (const IterSum* s = std::get_if<IterSum>(&v)) return *s;
  if (const IterSplit* s = std::get_if<IterSplit>(&v)) return {{*s}, zero_of(s->source->dtype())};
  return {{}, std::get<Expr>(v)};
}

bool IterRewriter::keeps_values(const Value& v, const Expr& inner, DType dtype) {
  const Bounds b = analyzer_.bounds(inner);
  if (!is_inf(b.min) && !is_inf(b.max) && fits(b.min, dtype) && fits(b.max, dtype)) return true;
  // One digit of iterators that were fused, as those of symbolic sizes are: it runs to its own extent.
  const IterSplit* s = std::get_if<IterSplit>(&v);
  if (!s || !is_one(s->scale)) return false;
  const Bounds extent = analyzer_.bounds(s->extent);
  return !is_inf(extent.max) && fits(extent.max, dtype);
}

IterRewriter::Value IterRewriter::value_of(const Expr& e) {
  Kind kind = kind_of(e);
  if (kind == Kind::var) {
    auto at = vars_.find(VarRef(static_cast<const Var*>(e.get())));
    return at == vars_.end() ? Value(e) : at->second;
  }
  if (is_index(e->dtype)) {
    switch (kind) {
      case Kind::add: return of_sum(e, false);
      case Kind::sub: return of_sum(e, true);
      case Kind::mul: return of_product(e);
      case Kind::floordiv: return of_division(e, true);
      case Kind::floormod: return of_division(e, false);
      case Kind::cast: {
        const Expr& inner = static_cast<const Cast*>(e.get())->value;
        if (!is_index(inner->dtype)) break;
        Value v = value_of(inner);
        if (!keeps_values(v, inner, e->dtype)) break;
        if (const Expr* constant = std::get_if<Expr>(&v)) return cast_to(e->dtype, *constant);
        if (IterSum* sum = std::get_if<IterSum>(&v)) sum->base = cast_to(e->dtype, sum->base);
        return v;
      }
      default: break;
    }
  }
  if (uses_iters(e)) note_error(text("an iterator stands under ", e->info().name, ", which is not quasi-affine"));
  return e;
}

void IterRewriter::add(IterSum& to, const IterSplit& split, bool subtract) {
  for (IterSplit& arg : to.args) {
    if (!same_split(arg, split, false)) continue;
    arg.scale = subtract ? isub(arg.scale, split.scale) : iadd(arg.scale, split.scale);
    return;
  }
  to.args.push_back(split);
  if (subtract) to.args.back().scale = isub(zero_of(split.scale->dtype), split.scale);
}

IterRewriter::Value IterRewriter::of_sum(const Expr& e, bool subtract) {
  Kind kind = subtract ? Kind::sub : Kind::add;
  Operands o = operands(*e, kind);
  Value a = value_of(o.a), b = value_of(o.b);
  const Expr *x = std::get_if<Expr>(&a), *y = std::get_if<Expr>(&b);
  if (x && y) return *x == o.a && *y == o.b ? e : fold(kind, *x, *y);
  if (x && !subtract && is_zero(*x)) return b;
  if (y && is_zero(*y)) return a;
  IterSum sum = as_sum(a), other = as_sum(b);
  for (const IterSplit& s : other.args) add(sum, s, subtract);
  sum.base = subtract ? isub(sum.base, other.base) : iadd(sum.base, other.base);
  return sum;
}

IterRewriter::Value IterRewriter::of_product(const Expr& e) {
  Operands o = operands(*e, Kind::mul);
  Value a = value_of(o.a), b = value_of(o.b);
  const Expr *x = std::get_if<Expr>(&a), *y = std::get_if<Expr>(&b);
  if (x && y) return *x == o.a && *y == o.b ? e : fold(Kind::mul, *x, *y);
  if (!x && !y) {
    note_error("two iterators are multiplied");
    return e;
  }
  const Expr factor = x ? *x : *y;
  Value& iter = x ? b : a;
  if (is_zero(factor)) return factor;
  if (is_one(factor)) return iter;
  if (IterSplit* s = std::get_if<IterSplit>(&iter)) {
    s->scale = imul(s->scale, factor);
    return *s;
  }
  IterSum sum = std::get<IterSum>(iter);
  for (IterSplit& s : sum.args) s.scale = imul(s.scale, factor);
  sum.base = imul(sum.base, factor);
  return sum;
}

/// The dividend as base + one split; nothing, with or without an error, if it is not.
std::optional<IterSum> IterRewriter::one_split(const Value& dividend, const Expr& original) {
  IterSum sum = as_sum(dividend);
  if (sum.args.size() == 1) return sum;
  if (sum.args.empty()) return {};
  if (auto fused = fuse(sum, true)) return fused;
  note_error(text("a dividend of several iterators does not fuse into one (in a ", original->info().name, ")"));
  return {};
}

IterRewriter::Value IterRewriter::of_division(const Expr& e, bool quotient) {
  Kind kind = quotient ? Kind::floordiv : Kind::floormod;
  Operands o = operands(*e, kind);
  Value a = value_of(o.a), b = value_of(o.b);
  const Expr *x = std::get_if<Expr>(&a), *divisor = std::get_if<Expr>(&b);
  if (x && divisor) return *x == o.a && *divisor == o.b ? e : fold(kind, *x, *divisor);
  if (!divisor) {
    note_error("the divisor holds an iterator");
    return e;
  }
  if (is_one(*divisor)) return quotient ? a : Value(zero_of(e->dtype));
  if (is_zero(*divisor)) {
    note_error("the divisor is 0");
    return e;
  }
  auto dividend = one_split(a, e);
  if (!dividend) return e;
  auto result = quotient ? split_quotient(dividend->args[0], dividend->base, *divisor)
                         : split_remainder(dividend->args[0], dividend->base, *divisor);
  return result ? *result : Value(e);
}

/// (lhs + base) // divisor
std::optional<IterRewriter::Value> IterRewriter::split_quotient(IterSplit lhs, Expr base, Expr divisor) {
  if (is_one(divisor)) return is_zero(base) ? Value(lhs) : Value(IterSum{{lhs}, base});
  auto divides = [&](const Expr& d, const Expr& n) { return proves_divisible(n, d, analyzer_); };
  if (!is_one(lhs.scale)) {
    if (divides(divisor, lhs.scale) && (is_zero(base) || divides(divisor, base))) {
      lhs.scale = ifloordiv(lhs.scale, divisor);
      return is_zero(base) ? Value(lhs) : Value(IterSum{{lhs}, ifloordiv(base, divisor)});
    }
    if (!divides(lhs.scale, divisor) || !(is_zero(base) || divides(lhs.scale, base))) {
      note_error("a scaled iterator is divided by what its scale neither divides nor is divided by");
      return {};
    }
    base = is_zero(base) ? base : ifloordiv(base, lhs.scale);
    divisor = ifloordiv(divisor, lhs.scale);
    lhs.scale = one_of(divisor->dtype);
  }
  auto padded = pad_to_divisor(lhs, base, divisor);
  if (!padded) return {};
  auto& [split, left] = *padded;
  // ((i // l) % e) // c is (i // (l * c)) % (e / c) where c divides e.
  IterSplit result;
  if (divides(divisor, split.extent)) {
    result = {split.source,
              imul(split.lower_factor, divisor),
              analyzer_.simplify(ifloordiv(split.extent, divisor)),
              split.scale,
              split.shift};
  } else if (is_one(split.lower_factor) && analyzer_.prove_equal(split.extent, split.source->extent)) {
    result = {split.source, divisor, analyzer_.simplify(iceildiv(split.extent, divisor)), split.scale, split.shift};
  } else {
    auto* mark = new IterMark(IterSum{{split}, zero_of(split.source->dtype())}, split.extent);
    mark->of_split = true;
    result = {IterMarkRef(mark), divisor, analyzer_.simplify(iceildiv(split.extent, divisor)), one_of(divisor->dtype)};
  }
  Expr rest = analyzer_.simplify(ifloordiv(isub(base, left), divisor), 6);
  return is_zero(rest) ? Value(result) : Value(IterSum{{result}, rest});
}

/// (lhs + base) % divisor
std::optional<IterRewriter::Value> IterRewriter::split_remainder(IterSplit lhs, Expr base, Expr divisor) {
  if (is_one(divisor)) return Value(zero_of(divisor->dtype));
  auto divides = [&](const Expr& d, const Expr& n) { return proves_divisible(n, d, analyzer_); };
  if (!is_one(lhs.scale)) {
    if (divides(divisor, lhs.scale) && divides(divisor, base)) return Value(zero_of(divisor->dtype));
    if (!divides(lhs.scale, divisor) || !(is_zero(base) || divides(lhs.scale, base))) {
      note_error("the remainder of a scaled iterator is taken by what its scale does not divide");
      return {};
    }
    base = is_zero(base) ? base : ifloordiv(base, lhs.scale);
    divisor = ifloordiv(divisor, lhs.scale);
  }
  auto padded = pad_to_divisor(lhs, base, divisor);
  if (!padded) return {};
  IterSplit& split = padded->first;
  // ((i // l) % e) % c is (i // l) % c where c divides e, or where i // l is below e anyway; the scale came through.
  bool highest = analyzer_.prove_equal(imul(split.lower_factor, split.extent), split.source->extent);
  if (!padding_round_ && !highest && !divides(divisor, split.extent)) {
    note_error("the remainder of a digit is taken by what does not divide its extent");
    return {};
  }
  return Value(IterSplit{split.source, split.lower_factor, divisor, split.scale, split.shift});
}

namespace {

/// A common multiple: of a factor and of a constant, each the least that can be told.
Expr common_multiple(const Expr& a, const Expr& b, Analyzer& analyzer) {
  struct Scaled {
    Expr symbol;
    int64_t constant;
  };
  auto split = [](const Expr& e) -> Scaled {
    if (auto v = as_int(e)) return {one_of(e->dtype), *v};
    if (const Mul* m = e.as<Mul>()) {
      if (auto v = as_int(m->b)) return {m->a, *v};
      if (auto v = as_int(m->a)) return {m->b, *v};
    }
    return {e, 1};
  };
  Scaled x = split(a), y = split(b);
  int64_t g = gcd(x.constant, y.constant);
  auto lcm = g ? checked_mul(x.constant / g, y.constant) : std::nullopt;
  if (!lcm) return imul(a, b);
  Expr constant = int_imm(std::abs(*lcm), a->dtype);
  auto divides = [&](const Expr& d, const Expr& n) {
    Expr r = ifloormod(n, d);
    return analyzer.prove_equal(r, zero_of(r->dtype));
  };
  if (analyzer.prove_equal(x.symbol, y.symbol) || divides(y.symbol, x.symbol)) return imul(x.symbol, constant);
  if (divides(x.symbol, y.symbol)) return imul(y.symbol, constant);
  return imul(imul(x.symbol, y.symbol), constant);
}

}  // namespace

IterRewriter::Padding* IterRewriter::find_padding(const IterMarkRef& mark) {
  for (Padding& p : paddings_)
    if (same_mark(p.mark, mark)) return &p;
  return nullptr;
}

const IterRewriter::Padding* IterRewriter::made_by_padding(const IterMarkRef& padded) const {
  for (const Padding& p : paddings_)
    if (p.padded && same_mark(p.padded, padded)) return &p;
  return nullptr;
}

/// A split that stands for split + base, of an extent that `divisor` divides, and how far its first point moved.
///
/// All divisions of one iterator must pad it alike: [(i - 1) % 8, ((i - 1) // 8) % 4, (i - 1) // 32] pad i by 31 on the
/// left. So there are two rounds: the first collects the factor and the left padding of each mark, the second uses them.
std::optional<std::pair<IterSplit, Expr>> IterRewriter::pad_to_divisor(IterSplit split, const Expr& base,
                                                                       const Expr& divisor) {
  DType dtype = split.source->dtype();
  Expr left = analyzer_.simplify(ifloormod(base, divisor));
  Expr right_edge = iadd(left, split.extent);
  Expr right = proves_divisible(right_edge, divisor, analyzer_)
                   ? zero_of(dtype)
                   : analyzer_.simplify(ifloormod(isub(zero_of(dtype), right_edge), divisor));
  if (padding_round_) {
    Padding* padding = find_padding(split.source);
    if (!padding) {
      paddings_.push_back({split.source, one_of(dtype), zero_of(dtype), nullptr});
      padding = &paddings_.back();
    }
    padding->factor = common_multiple(padding->factor, imul(divisor, split.lower_factor), analyzer_);
    if (is_zero(left) && is_zero(right)) return std::pair(split, zero_of(dtype));
    requires_padding_ = true;
    Expr shift = imul(left, split.lower_factor);
    split.shift = split.shift ? iadd(split.shift, shift) : shift;
    padding->left = combine_exprs(Kind::max, padding->left, split.shift);
    split.extent = analyzer_.simplify(iadd(right_edge, right));
    return std::pair(split, left);
  }
  Padding* padding = find_padding(split.source);
  bool unpadded =
      !padding || (is_zero(padding->left) && proves_divisible(split.source->extent, padding->factor, analyzer_));
  if (unpadded) {
    if (is_zero(left)) return std::pair(split, left);
    note_error("an iterator plus an offset is divided by what does not divide the offset");
    return {};
  }
  if (!proves_divisible(padding->factor, split.lower_factor, analyzer_) ||
      !proves_divisible(padding->factor, divisor, analyzer_)) {
    note_error("an iterator is padded to a factor that one of its divisors does not divide");
    return {};
  }
  if (!analyzer_.prove_equal(imul(split.lower_factor, split.extent), split.source->extent)) {
    note_error("a digit that is not the highest of its iterator is padded");
    return {};
  }
  // The padding of the whole mark, seen from this split; it must bring this division, too, to a multiple.
  bool own = analyzer_.prove_equal(padding->left, imul(left, split.lower_factor));
  if (!own) {
    bool aligned = proves_divisible(padding->left, split.lower_factor, analyzer_);
    if (aligned) left = ifloordiv(padding->left, split.lower_factor);
    if (!aligned || !proves_divisible(analyzer_.simplify(isub(base, left)), divisor, analyzer_)) {
      note_error("two divisions of one iterator ask for different padding on its left");
      return {};
    }
  }
  if (!padding->padded) pad_mark(*padding, split.source);
  split.source = padding->padded;
  split.extent = ifloordiv(padding->padded->extent, split.lower_factor);
  return std::pair(split, left);
}

void IterRewriter::pad_mark(Padding& padding, const IterMarkRef& mark) {
  DType dtype = mark->dtype();
  Expr right_edge = iadd(mark->extent, padding.left);
  Expr right = proves_divisible(right_edge, padding.factor, analyzer_)
                   ? zero_of(dtype)
                   : ifloormod(isub(zero_of(dtype), right_edge), padding.factor);
  Expr extent = analyzer_.simplify(iadd(right_edge, right));
  IterSum shifted{{whole(mark)}, padding.left};
  Expr position = to_expr(shifted, analyzer_);
  padding.padded = IterMarkRef(new IterMark(std::move(shifted), extent));
  // Where the padded iterator is left of the first point or right of the last, said by its digits in base `factor`.
  Expr high = ifloordiv(position, padding.factor), low = ifloormod(position, padding.factor);
  Expr none = zero_of(dtype);
  auto both = [](const Expr& a, const Expr& b) { return fold(Kind::logical_and, a, b); };
  Expr on_left = both(combine_exprs(Kind::ne, padding.left, none),
                      both(combine_exprs(Kind::eq, high, none), combine_exprs(Kind::lt, low, padding.left)));
  Expr on_right = both(combine_exprs(Kind::ne, right, none),
                       both(combine_exprs(Kind::eq, high, ifloordiv(right_edge, padding.factor)),
                            combine_exprs(Kind::ge, low, ifloormod(right_edge, padding.factor))));
  padding_predicate_ = fold(Kind::logical_or, padding_predicate_, fold(Kind::logical_or, on_left, on_right));
}

}  // namespace sator::arith
