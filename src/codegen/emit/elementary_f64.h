// The parts of elementary functions whose constants and polynomials are those of f64; method as in elementary.h.
#pragma once

#include "codegen/emit/lane_math.h"

namespace sator::codegen::elementary {

/// p * 2^n for whole |n| < 254 (f32) or 2046 (f64), rounded once also where the result is subnormal.
Lane scale(Lane p, Rounded n);

/// x = 2^k * (1 + f) with f in [sqrt(1/2) - 1, sqrt(2) - 1]; x > 0 and finite.
struct Split {
  Lane k, f;
};

// Of f64 lanes.
/// e^x * 2^-halvings.
Lane exp_f64(Lane x, int halvings = 0);
Lane exp2_f64(Lane x);
Lane exp10_f64(Lane x);
/// e^a - 1 for 0 <= a <= 44.
Lane expm1_f64(Lane a);
/// The exponent k of a positive, normal x = 2^k * (1 + f).
Lane exponent_f64(Lane x);
Split split_f64(Lane x);
/// log(1 + f) - f for f as in Split.
Lane log1p_tail_f64(Lane f);
Lane sin_f64(Lane x);
Lane cos_f64(Lane x);
Lane tan_f64(Lane x);
/// sinh(x) for |x| <= 1, asin(x) for |x| <= 1/2, atan(x) for |x| <= tan(pi/8).
Lane small_sinh_f64(Lane x);
Lane small_asin_f64(Lane x);
Lane small_atan_f64(Lane x);
/// a^y for a >= 0, without what pow says of 1, -1, 0 and NaN.
Lane pow_f64(Lane a, Lane y);

}  // namespace sator::codegen::elementary
