#include "arith/normal_product.h"

#include <vector>

#include "arith/fold.h"
#include "arith/numbers.h"

namespace sator::arith {
namespace {

struct Factors {
  std::vector<Expr> symbols;
  std::optional<int64_t> constant = 1;  ///< nothing if it leaves 64 bits
};

void collect(const Expr& e, Factors& out) {
  for_each_operand(e, Kind::mul, [&](const Expr& f) {
    if (auto v = as_int(f))
      out.constant = out.constant ? checked_mul(*out.constant, *v) : std::nullopt;
    else
      out.symbols.push_back(f);
  });
}

Expr product(const std::vector<Expr>& symbols, int64_t constant, DType dtype) {
  Expr e = int_imm(1, dtype);
  for (const Expr& s : symbols)
    if (s) e = fold(Kind::mul, e, s);
  return constant == 1 ? e : fold(Kind::mul, e, int_imm(constant, dtype));
}

}  // namespace

Expr multiply_normal(const Expr& a, const Expr& b) {
  Factors f;
  collect(a, f);
  collect(b, f);
  if (!f.constant || !fits(*f.constant, a->dtype)) return fold(Kind::mul, a, b);
  return product(f.symbols, *f.constant, a->dtype);
}

std::optional<Cancelled> cancel_common_factors(const Expr& a, const Expr& b) {
  if (b.as<IntImm>()) return {};
  Factors fa, fb;
  collect(a, fa);
  collect(b, fb);
  if (!fa.constant || !fb.constant || *fb.constant == 0) return {};
  std::vector<Expr> common;
  for (Expr& factor : fb.symbols) {
    for (Expr& other : fa.symbols) {
      if (!other || !same(factor, other)) continue;
      common.push_back(factor);
      factor = other = nullptr;
      break;
    }
  }
  int64_t g = gcd(*fa.constant, *fb.constant);
  if (common.empty() && g == 1) return {};
  DType dtype = a->dtype;
  return Cancelled{product(fa.symbols, *fa.constant / g, dtype),
                   product(fb.symbols, *fb.constant / g, dtype),
                   product(common, g, dtype)};
}

}  // namespace sator::arith
