// The inverse trigonometric and hyperbolic functions; method and errors as in elementary.h.
#include <limits>
#include <numbers>

#include "codegen/emit/elementary.h"
#include "codegen/emit/elementary_f64.h"
#include "codegen/emit/lane_math.h"

namespace sator::codegen::elementary {

namespace {

constexpr double kTanPiEighth = 0.414213562;

/// pi/2 in two parts.
struct PiHalf {
  double high, low;
};
PiHalf pi_half(Lane x) {
  return x.is_f64() ? PiHalf{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54} : PiHalf{1.57079637, -4.37113883e-08};
}

/// atan(z) for |z| <= tan(pi/8).
Lane small_atan(Lane z) {
  if (z.is_f64()) return small_atan_f64(z);
  static constexpr double c[] = {-0.333333164, 0.199985281, -0.142443925, 0.105991915, -0.0609013885};
  Lane square = z * z;
  return fma(square * z, polynomial(square, c), z);
}

/// The angle in [0, pi/2] of the point (b, a), for a, b >= 0: near pi/4 and pi/2 by what is left to them.
Lane first_quadrant(Lane a, Lane b) {
  // A quarter of each, so that huge numbers have a sum.
  const double most = a.is_f64() ? 0x1p1021 : 0x1p125;
  Lane huge = a > most || b > most;
  a = select(huge, a * 0x1p-2, a);
  b = select(huge, b * 0x1p-2, b);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Lane both_infinite = (a == infinity) && (b == infinity);
  Lane steep = a > b * (1 / kTanPiEighth), flat = !(a > b * kTanPiEighth || both_infinite);
  Lane numerator = select(steep, -b, select(flat, a, a - b));
  Lane denominator = select(steep, a, select(flat, b, a + b));
  Lane z = numerator / denominator;
  z = select((a == 0.0) || both_infinite, 0.0, z);
  Lane share = select(steep, 1.0, select(flat, a.number(0.0), a.number(0.5)));
  const PiHalf turn = pi_half(a);
  return fma(share, turn.high, fma(share, turn.low, small_atan(z)));
}

/// asin(x) for |x| <= 1/2.
Lane small_asin(Lane x) {
  if (x.is_f64()) return small_asin_f64(x);
  static constexpr double c[] = {0.166666597, 0.0750052184, 0.0445133746, 0.0318390802, 0.0143149393, 0.0376966447};
  Lane square = x * x;
  return fma(square * x, polynomial(square, c), x);
}

/// acos(a) for 1/2 <= a <= 1; NaN above 1.
Lane large_acos(Lane a) { return small_asin(sqrt((1.0 - a) * 0.5)) * 2.0; }

/// From here on 1 is lost beside the square.
double much(Lane x) { return x.is_f64() ? 0x1p27 : 0x1p12; }

Lane log1p_of(Lane x) { return x.of(log1p(*x.e, x.v)); }

}  // namespace

llvm::Value* atan(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane angle = copysign(first_quadrant(fabs(x), x.number(1.0)), x);
  return select(is_nan(x), x, angle).v;
}

llvm::Value* atan2(Emit& e, llvm::Value* up, llvm::Value* along) {
  Lane y{&e, up}, x{&e, along};
  Lane angle = first_quadrant(fabs(y), fabs(x));
  const PiHalf turn = pi_half(x);
  angle = select(has_minus(x), 2 * turn.high - (angle - 2 * turn.low), angle);
  return select(is_nan(x) || is_nan(y), x + y, copysign(angle, y)).v;
}

llvm::Value* asin(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane a = fabs(x);
  const PiHalf turn = pi_half(x);
  Lane large = (turn.low - large_acos(a)) + turn.high;
  return select(a < 0.5, small_asin(x), copysign(large, x)).v;
}

llvm::Value* acos(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane a = fabs(x);
  const PiHalf turn = pi_half(x);
  Lane small = turn.high - (small_asin(x) - turn.low);
  Lane large = large_acos(a);
  large = select(x < 0.0, 2 * turn.high - (large - 2 * turn.low), large);
  return select(a < 0.5, small, large).v;
}

llvm::Value* asinh(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane a = fabs(x);
  // log(a + sqrt(a^2 + 1)), from what it has above 1; from there on log(2 a).
  Lane small = log1p_of(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
  Lane large = x.of(log(e, a.v)) + std::numbers::ln2;
  return select(is_nan(x), x, copysign(select(a < much(a), small, large), x)).v;
}

llvm::Value* acosh(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane above = x - 1.0;
  Lane small = log1p_of(above + sqrt(above * (above + 2.0)));
  Lane large = x.of(log(e, value)) + std::numbers::ln2;
  Lane out = select(x < much(x), small, large);
  return select(x < 1.0, std::numeric_limits<double>::quiet_NaN(), out).v;
}

llvm::Value* atanh(Emit& e, llvm::Value* value) {
  Lane x{&e, value};
  Lane a = fabs(x);
  return (copysign(log1p_of(a * 2.0 / (1.0 - a)) * 0.5, x)).v;
}

}  // namespace sator::codegen::elementary
