#include "arith/modular.h"

#include "arith/analyzer.h"
#include "arith/kind.h"

namespace sator::arith {

Modular make_modular(__int128 coeff, __int128 base) {
  if (coeff < 0) coeff = -coeff;
  if (coeff != 0) {
    base %= coeff;
    if (base < 0) base += coeff;
  }
  auto c = narrow(coeff), b = narrow(base);
  return c && b ? Modular{*c, *b} : Modular{};
}

namespace {

__int128 gcd128(__int128 a, __int128 b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    __int128 r = a % b;
    a = b;
    b = r;
  }
  return a;
}

Modular unite(Modular a, Modular b) {
  if (a == b) return a;
  return make_modular(gcd128(gcd128(a.coeff, b.coeff), static_cast<__int128>(a.base) - b.base), a.base);
}

Modular product(Modular a, Modular b) {
  // (p x + n)(q y + m) = p q xy + p m x + q n y + n m
  __int128 pq = static_cast<__int128>(a.coeff) * b.coeff, pm = static_cast<__int128>(a.coeff) * b.base,
           qn = static_cast<__int128>(a.base) * b.coeff;
  return make_modular(gcd128(pq, gcd128(pm, qn)), static_cast<__int128>(a.base) * b.base);
}

/// The values in both classes (Chinese remainder); `a` if there are none: what follows is unreachable then.
Modular intersect(Modular a, Modular b) {
  if (a.coeff == 0) return a;
  if (b.coeff == 0) return b;
  int64_t g = gcd(a.coeff, b.coeff);
  if ((static_cast<__int128>(b.base) - a.base) % g != 0) return a;
  __int128 lcm = static_cast<__int128>(a.coeff / g) * b.coeff;
  __int128 value = a.base;
  // At most b.coeff / g steps; classes met in programs are small, larger ones keep what is known already.
  if (b.coeff / g > 4096) return a;
  while ((value - b.base) % b.coeff != 0) value += a.coeff;
  return make_modular(lcm, value);
}

}  // namespace

Modular ModularAnalysis::quotient(const Expr& e, int64_t divisor, bool floored) {
  if (divisor == 0) return {};
  Modular a = (*this)(e);
  if (divisor == -1) return make_modular(a.coeff, -static_cast<__int128>(a.base));
  if (a.coeff % divisor != 0) return {};
  if (a.base == 0) return make_modular(a.coeff / divisor, 0);
  if (a.base > 0 && divisor > 0 && (floored || parent_.prove_ge(e, 0)))
    return make_modular(a.coeff / divisor, a.base / divisor);
  return {};
}

Modular ModularAnalysis::remainder(const Expr& e, int64_t divisor) {
  if (divisor == 0) return {};
  Modular a = (*this)(e);
  // Either remainder differs from e by a multiple of the divisor.
  return make_modular(gcd(a.coeff, divisor), a.base);
}

Modular ModularAnalysis::operator()(const Expr& e) {
  Kind kind = kind_of(e);
  if (is_arithmetic(kind)) {
    Operands o = operands(*e, kind);
    switch (kind) {
      case Kind::add:
      case Kind::sub: {
        Modular a = (*this)(o.a), b = (*this)(o.b);
        __int128 base = static_cast<__int128>(a.base) + (kind == Kind::add ? b.base : -static_cast<__int128>(b.base));
        return make_modular(gcd128(a.coeff, b.coeff), base);
      }
      case Kind::mul: return product((*this)(o.a), (*this)(o.b));
      case Kind::min:
      case Kind::max: return unite((*this)(o.a), (*this)(o.b));
      default: break;
    }
    Modular b = (*this)(o.b);
    if (!b.is_constant()) return {};
    bool floored = kind == Kind::floordiv || kind == Kind::floormod;
    if (kind == Kind::div || kind == Kind::floordiv) return quotient(o.a, b.base, floored);
    return remainder(o.a, b.base);
  }
  switch (kind) {
    case Kind::int_imm: return {0, static_cast<const IntImm&>(*e).value};
    case Kind::var: {
      auto at = vars_.find(VarRef(static_cast<const Var*>(e.get())));
      return at == vars_.end() ? Modular{} : at->second;
    }
    case Kind::select: {
      const auto& n = static_cast<const Select&>(*e);
      return unite((*this)(n.true_value), (*this)(n.false_value));
    }
    case Kind::cast: return (*this)(static_cast<const Cast&>(*e).value);
    case Kind::call: return of_call(static_cast<const Call&>(*e));
    case Kind::let: {
      const auto& n = static_cast<const Let&>(*e);
      if (vars_.count(n.var)) return (*this)(n.body);
      vars_[n.var] = (*this)(n.value);
      Modular m = (*this)(n.body);
      vars_.erase(n.var);
      return m;
    }
    default: return {};
  }
}

Modular ModularAnalysis::of_call(const Call& c) {
  if (c.args.size() != 2) return {};
  bool shift = c.op == "tir.shift_right", mask = c.op == "tir.bitwise_and";
  if (!shift && !mask) return {};
  Modular b = (*this)(c.args[1]);
  if (!b.is_constant() || b.base < 0) return {};
  if (shift) return b.base > 62 ? Modular{} : quotient(c.args[0], int64_t{1} << b.base, true);
  // x & (2^k - 1) is x floormod 2^k.
  bool low_bits = b.base < kPosInf && (b.base & (b.base + 1)) == 0;
  return low_bits ? remainder(c.args[0], b.base + 1) : Modular{};
}

void ModularAnalysis::assume(const Expr& condition) {
  for (const Expr& part : conjuncts(condition)) {
    const EQ* eq = part.as<EQ>();
    if (!eq) continue;
    const IntImm* base = eq->b.as<IntImm>();
    Kind kind = kind_of(eq->a);
    if (!base || (kind != Kind::mod && kind != Kind::floormod)) continue;
    Operands o = operands(*eq->a, kind);
    const Var* var = o.a.as<Var>();
    const IntImm* coeff = o.b.as<IntImm>();
    if (!var || !coeff || coeff->value == 0) continue;
    VarRef v(var);
    Modular old = vars_.count(v) ? vars_[v] : Modular{};
    undo_.emplace_back(v, old);
    vars_[v] = intersect(old, make_modular(coeff->value, base->value));
  }
}

void ModularAnalysis::release(size_t mark) {
  while (undo_.size() > mark) {
    vars_[undo_.back().first] = undo_.back().second;
    undo_.pop_back();
  }
}

}  // namespace sator::arith
