#include "tir/linear.h"

#include <algorithm>

namespace sator::tir {

namespace {

// Wrapping, as machine arithmetic: hostile constants are not undefined behaviour.
int64_t wrap_add(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t wrap_mul(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b)); }

}  // namespace

LinearSum::LinearSum(const Expr& e) : dtype(e->dtype) { add(e); }

void LinearSum::add(const Expr& e, int64_t scale) {
  if (const IntImm* i = e.as<IntImm>()) {
    constant = wrap_add(constant, wrap_mul(i->value, scale));
    return;
  }
  if (const Add* n = e.as<Add>()) {
    add(n->a, scale);
    add(n->b, scale);
    return;
  }
  if (const Sub* n = e.as<Sub>()) {
    add(n->a, scale);
    add(n->b, wrap_mul(scale, -1));
    return;
  }
  if (const Mul* n = e.as<Mul>()) {
    if (auto c = as_int(n->b)) return add(n->a, wrap_mul(scale, *c));
    if (auto c = as_int(n->a)) return add(n->b, wrap_mul(scale, *c));
  }
  auto same = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return equal(t.first, e); });
  if (same == terms.end()) {
    terms.emplace_back(e, scale);
  } else if ((same->second = wrap_add(same->second, scale)) == 0) {
    terms.erase(same);
  }
}

Expr LinearSum::to_expr() const {
  Expr sum;
  // Positive terms first, so that a difference reads n - i rather than -1 * i + n.
  for (bool positive : {true, false}) {
    for (const auto& [term, c] : terms) {
      if ((c > 0) != positive) continue;
      if (!sum) sum = term * int_imm(c, term->dtype);
      else if (c > 0) sum = sum + term * int_imm(c, term->dtype);
      else sum = sum - term * int_imm(-c, term->dtype);
    }
  }
  if (!sum) return int_imm(constant, dtype);
  if (constant > 0) return sum + int_imm(constant, dtype);
  if (constant < 0) return sum - int_imm(-constant, dtype);
  return sum;
}

std::optional<int64_t> constant_difference(const Expr& a, const Expr& b) {
  LinearSum d(a);
  d.add(b, -1);
  return d.is_constant() ? std::optional(d.constant) : std::nullopt;
}

Expr difference(const Expr& a, const Expr& b) {
  LinearSum d(a);
  d.add(b, -1);
  if (b->dtype.bits > d.dtype.bits) d.dtype = b->dtype;
  return d.to_expr();
}

bool always_le(const Expr& a, const Expr& b) {
  auto d = constant_difference(b, a);
  return d && *d >= 0;
}

}  // namespace sator::tir
