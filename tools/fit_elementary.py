#!/usr/bin/env python3
"""Coefficients of the polynomials in src/codegen/emit/elementary.cc and elementary_f64.cc.

Each row is a function on an interval, written as `known part + factor(x) * P(t(x))`; P is fitted for the least maximal
relative error of the whole (Lawson's reweighted least squares on a dense grid, 60 digits), its coefficients are rounded
one by one to the working precision, lowest first, and the others are fitted again. Those of f64 are P at Chebyshev's nodes, whose
error is near the least, with coefficients rounded to f64. Prints C++ arrays, lowest first.

    pip install mpmath numpy && tools/fit_elementary.py
"""
import struct
import sys

import mpmath as mp
import numpy as np

mp.mp.dps = 40


def to_f32(v):
    return float(np.float32(float(v)))


def fit(name, f, known, factor, t, lo, hi, degree, rounding=to_f32, points=400):
    """min over P of max |(known + factor * P(t) - f) / f| on [lo, hi]"""
    xs = [mp.mpf(lo) + (mp.mpf(hi) - lo) * (1 - mp.cos(mp.pi * (i + mp.mpf(1) / 2) / points)) / 2 for i in range(points)]
    xs = [x for x in xs if abs(x) > mp.mpf(10) ** -8]
    F = [f(x) for x in xs]
    # In double-double terms this is well conditioned once the target is divided out: solve in long double.
    T = np.array([float(t(x)) for x in xs], dtype=np.longdouble)
    scale = np.array([float(factor(x) / fx) for x, fx in zip(xs, F)], dtype=np.longdouble)
    target = np.array([np.longdouble(mp.nstr((fx - known(x)) / fx, 25)) for x, fx in zip(xs, F)], dtype=np.longdouble)
    fixed = []
    while len(fixed) <= degree:
        base = sum((np.longdouble(c) * T**k for k, c in enumerate(fixed)), np.zeros_like(T))
        powers = range(len(fixed), degree + 1)
        A = np.stack([scale * T**k for k in powers], axis=1)
        y = target - scale * base
        w = np.ones_like(y) / len(y)
        best = None
        for _ in range(60):
            s = np.sqrt(w)[:, None]
            c, *_ = np.linalg.lstsq((A * s).astype(np.float64), (y * s[:, 0]).astype(np.float64), rcond=None)
            # One step of refinement, for the solver works in double.
            r = y - A @ c.astype(np.longdouble)
            d, *_ = np.linalg.lstsq((A * s).astype(np.float64), (r * s[:, 0]).astype(np.float64), rcond=None)
            c = c.astype(np.longdouble) + d
            r = np.abs(y - A @ c)
            if best is None or r.max() < best[0]:
                best = (r.max(), c)
            w = w * (r + 1e-30)
            w /= w.sum()
        fixed.append(rounding(best[1][0]))
    err = np.abs(target - scale * sum(np.longdouble(c) * T**k for k, c in enumerate(fixed))).max()
    digits = 9 if rounding is to_f32 else 17
    values = ", ".join(f"{c:.{digits}g}" for c in fixed)
    print(f"// {name} on [{float(lo):g}, {float(hi):g}]: relative error 2^{float(np.log2(err)):.1f}\n{{{values}}}\n")


def fit_f64(name, p, lo, hi, count):
    """P itself, known in closed form, at Chebyshev's nodes on [lo, hi]; `count` coefficients"""
    tiny = mp.mpf(10) ** -30
    with mp.workdps(110):
        c, err = mp.chebyfit(lambda t: p(t if abs(t) > tiny else tiny), [mp.mpf(lo), mp.mpf(hi)], count, error=True)
    print(f"// {name} on [{float(lo):g}, {float(hi):g}]: error of P 2^{float(mp.log(err, 2)):.1f}")
    print("{" + ", ".join(repr(float(v)) for v in reversed(c)) + "}\n")


def atanh_tail(z):
    return (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z


ln2, log2e = mp.log(2), 1 / mp.log(2)
one = mp.mpf(1)


def two_parts(name, v):
    hi = to_f32(v)
    lo = to_f32(v - mp.mpf(hi))
    lo2 = to_f32(v - mp.mpf(hi) - mp.mpf(lo))
    print(f"// {name} = {hi:.9g} + {lo:.9g} + {lo2:.9g}")


rows = {
    "exp: 1 + r + r^2 P(r)": lambda n: fit(n, mp.exp, lambda x: 1 + x, lambda x: x * x, lambda x: x, -0.3475, 0.3475, 4),
    "exp2: 1 + r P(r)": lambda n: fit(n, lambda x: mp.mpf(2) ** x, lambda x: one, lambda x: x, lambda x: x, -0.5001, 0.5001, 6),
    "exp10: 1 + r P(r)": lambda n: fit(n, lambda x: mp.mpf(10) ** x, lambda x: one, lambda x: x, lambda x: x, -0.1507, 0.1507, 6),
    "log1p: f - f^2/2 + f^3 P(f)": lambda n: fit(n, mp.log1p, lambda x: x - x * x / 2, lambda x: x**3, lambda x: x, mp.sqrt(0.5) - 1, mp.sqrt(2) - 1, 7),
    "tanh: x + x^3 P(x^2)": lambda n: fit(n, mp.tanh, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, 0.6, 4),
    "erf small: x + x P(x^2)": lambda n: fit(n, mp.erf, lambda x: x, lambda x: x, lambda x: x * x, 1e-4, 0.93, 6),
    "erf large: log(erfc(x)) = P(x)": lambda n: fit(n, lambda x: mp.log(mp.erfc(x)), lambda x: mp.mpf(0), lambda x: one, lambda x: x, 0.92, 4.0, 8),
    "sin: r + r^3 P(r^2)": lambda n: fit(n, mp.sin, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, 0.80, 3),
    "cos: 1 - r^2/2 + r^4 P(r^2)": lambda n: fit(n, mp.cos, lambda x: 1 - x * x / 2, lambda x: x**4, lambda x: x * x, 1e-4, 0.80, 3),
    "tan: r + r^3 P(r^2)": lambda n: fit(n, mp.tan, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, 0.80, 6),
    "atan: z + z^3 P(z^2)": lambda n: fit(n, mp.atan, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, mp.sqrt(2) - 1 + 1e-6, 4),
    "asin: x + x^3 P(x^2)": lambda n: fit(n, mp.asin, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, 0.5, 5),
    "sinh: x + x^3 P(x^2)": lambda n: fit(n, mp.sinh, lambda x: x, lambda x: x**3, lambda x: x * x, 1e-4, 1.0, 3),
    "log2 f64: s P(s^2), s = f / (2 + f)": lambda n: fit(n, lambda s: mp.log((1 + s) / (1 - s), 2), lambda s: mp.mpf(0), lambda s: s, lambda s: s * s, 1e-4, 0.1717, 6, float),
    "exp2 f64: P(r)": lambda n: fit(n, lambda x: mp.mpf(2) ** x, lambda x: mp.mpf(0), lambda x: one, lambda x: x, -0.5, 0.5, 8, float),
    "f64 exp: 1 + r + r^2 P(r)": lambda n: fit_f64(n, lambda r: (mp.exp(r) - 1 - r) / r**2, -0.347, 0.347, 11),
    "f64 exp2: 1 + r P(r)": lambda n: fit_f64(n, lambda r: (mp.mpf(2) ** r - 1) / r, -0.5001, 0.5001, 12),
    "f64 exp10: 1 + r P(r)": lambda n: fit_f64(n, lambda r: (mp.mpf(10) ** r - 1) / r, -0.1507, 0.1507, 12),
    "f64 log: 2 s + s^3 P(s^2), s = f / (2 + f)": lambda n: fit_f64(n, atanh_tail, 0, 0.02945, 8),
    "f64 pow: 2 s + 2/3 s^3 + s^5 P(s^2)": lambda n: fit_f64(n, lambda z: (atanh_tail(z) - mp.mpf(2) / 3) / z, 0, 0.02945, 8),
    "f64 sin: r + r^3 P(r^2)": lambda n: fit_f64(n, lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, 0.62, 6),
    "f64 cos: 1 - r^2/2 + r^4 P(r^2)": lambda n: fit_f64(n, lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, 0, 0.62, 6),
    "f64 atan: z + z^3 P(z^2)": lambda n: fit_f64(n, lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, 0.17158, 12),
    "f64 asin: x + x^3 P(x^2)": lambda n: fit_f64(n, lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, 0.25, 13),
    "f64 sinh: x + x^3 P(x^2)": lambda n: fit_f64(n, lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, 1, 8),
}

for name, row in rows.items():
    if len(sys.argv) < 2 or sys.argv[1] in name:
        row(name)
two_parts("ln2", ln2)
two_parts("log10(2)", mp.log(2, 10))
two_parts("log2(e)", log2e)
two_parts("log10(e)", 1 / mp.log(10))
two_parts("pi/2", mp.pi / 2)
mp.mp.dps = 120
digits = int(mp.floor(mp.mpf(2) ** 256 * 2 / mp.pi))
print("// 2/pi, 32 bits each:", ", ".join(hex((digits >> (32 * (7 - i))) & 0xFFFFFFFF) for i in range(8)))
