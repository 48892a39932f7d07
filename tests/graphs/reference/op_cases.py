#!/usr/bin/env python3
"""Writes op_cases.jsonl beside this file: calls of ops with what NumPy makes of them.

    op_cases.py            (needs NumPy; written with 1.24)

One line per case:  {"call": over x0, x1, ..., "in": [[dtype, shape, elements], ...], "out": the same, "tolerance": if not 2e-5}.
Every op has at least five shapes; among them are axes of extent 0 and 1, and NaN where the op takes floats. Each reference is
NumPy's function of that name where there is one, else the op's definition written with NumPy's element-wise functions and
plain loops. Inputs are float32 (or what the op takes); references are computed in float64 and rounded once.
tests/graphs/op_cases_test.cc compares the interpreter and machine code with them.
"""
import itertools
import json
import math
from pathlib import Path

import numpy as np

random = np.random.default_rng(7)
lines = []
counts = {}


def array(shape, low=-2, high=2, dtype="float32", nan=False):
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith(("int", "uint")):
        return random.integers(low, high + 1, shape).astype(dtype)
    a = np.round(random.uniform(low, high, shape), 3).astype(dtype)
    if nan and a.size:
        a.flat[a.size // 2] = np.nan
    return a


def packed(a, digits=6):
    """Outputs with as many digits as tolerances can see; inputs (digits 0) as short as they are exact."""
    a = np.asarray(a)
    def one(scalar):
        v = scalar.item()
        if isinstance(v, bool):
            return int(v)
        if isinstance(v, int):
            return v
        if math.isnan(v):
            return "nan"
        if math.isinf(v):
            return "inf" if v > 0 else "-inf"
        v = float(f"{v:.{digits}g}" if digits else str(scalar))
        return int(v) if v.is_integer() and abs(v) < 1e9 and str(v) != "-0.0" else v
    return [str(a.dtype), list(a.shape), [one(v) for v in a.reshape(-1)]]


def case(op, call, inputs, outputs, dtype=None, tolerance=2e-5):
    """The expected outputs are given `dtype`, by default that of the first input; integers and bools keep theirs."""
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    wanted = dtype or (str(inputs[0].dtype) if inputs else "float32")
    rounded = []
    for o in outputs:
        o = np.asarray(o)
        rounded.append(o.astype(wanted) if o.dtype.kind == "f" or dtype else o)
    lines.append({"call": f"R.{op}({call})", "in": [packed(i, 0) for i in inputs], "out": [packed(o) for o in rounded]})
    if tolerance != 2e-5:
        lines[-1]["tolerance"] = tolerance
    counts[op] = counts.get(op, 0) + 1


def wide(a):
    return a.astype("float64") if a.dtype.kind == "f" else a


SHAPES = [((2, 3), False), ((1,), False), ((0, 3), False), ((4, 1, 2), False), ((5,), True)]

# ---- Element by element ----

erf = np.vectorize(math.erf, otypes=["float64"])
sigmoid = lambda v: 1 / (1 + np.exp(-v))
UNARY = {
    "acos": (np.arccos, -1, 1), "acosh": (np.arccosh, 1, 5), "asin": (np.arcsin, -1, 1), "asinh": (np.arcsinh, -3, 3),
    "atan": (np.arctan, -5, 5), "atanh": (np.arctanh, -0.9, 0.9), "cos": (np.cos, -6, 6), "cosh": (np.cosh, -3, 3),
    "exp": (np.exp, -5, 5), "log": (np.log, 0.01, 9), "rsqrt": (lambda v: 1 / np.sqrt(v), 0.01, 9),
    "sigmoid": (sigmoid, -9, 9), "sin": (np.sin, -6, 6), "sinh": (np.sinh, -3, 3), "sqrt": (np.sqrt, 0, 9),
    "tan": (np.tan, -1.4, 1.4), "tanh": (np.tanh, -3, 3), "ceil": (np.ceil, -3, 3), "floor": (np.floor, -3, 3),
    "abs": (np.abs, -3, 3), "negative": (np.negative, -3, 3), "square": (np.square, -3, 3), "sign": (np.sign, -3, 3),
    "erf": (erf, -3, 3), "nn.relu": (lambda v: np.maximum(v, 0), -3, 3),
    "nn.gelu": (lambda v: v / 2 * (1 + erf(v / np.sqrt(2))), -3, 3),
    "nn.gelu_tanh": (lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v ** 3))), -3, 3),
    "nn.silu": (lambda v: v * sigmoid(v), -5, 5),
}
for op, (f, low, high) in UNARY.items():
    for shape, nan in SHAPES:
        x = array(shape, low, high, nan=nan)
        case(op, "x0", [x], f(wide(x)))
for op in ("abs", "negative", "square", "sign", "ceil", "floor", "round"):
    x = array((2, 3), -5, 5, "int32")
    case(op, "x0", [x], {"ceil": x, "floor": x, "round": x}.get(op) if op in ("ceil", "floor", "round") else UNARY[op][0](x))
for shape, nan in SHAPES:
    x = array(shape, -3, 3, nan=nan)
    case("round", "x0", [x], np.round(wide(x)))  # no halves among these
x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, -0.49999997, 0.49999997], "float32")
case("round", "x0", [x], np.round(wide(x)))  # halves go to even
for op, f in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
    for shape, nan in SHAPES:
        x = array(shape, nan=nan)
        if x.size > 1:
            x.flat[0] = np.inf
            x.flat[1] = -np.inf
        case(op, "x0", [x], f(x))
for shape, _ in SHAPES:
    x = array(shape, -9, 9, "int32")
    case("bitwise_not", "x0", [x], ~x)
    x = array(shape, dtype="bool")
    case("logical_not", "x0", [x], ~x)
x = array((2, 3), -1, 1, "int32")
case("logical_not", "x0", [x], np.logical_not(x))
for (shape, nan), (low, high) in zip(SHAPES, [(-1, 1), (0, 0.5), (0, 1), (-3, -1), (-1, 1)]):
    x = array(shape, -3, 3, nan=nan)
    case("clip", f"x0, {low}, {high}", [x], np.clip(wide(x), low, high))
for (shape, nan), alpha in zip(SHAPES, [0.01, 0.2, 0.1, 2, 0.5]):
    x = array(shape, nan=nan)
    case("nn.leakyrelu", f"x0, alpha={alpha}", [x], np.where(wide(x) > 0, wide(x), alpha * wide(x)))

PAIRS = [((2, 3), (2, 3), False), ((2, 3), (3,), False), ((4, 1), (1, 3), False), ((0, 3), (1, 3), False),
         ((1,), (5,), True)]
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "minimum": np.minimum, "maximum": np.maximum, "equal": np.equal, "not_equal": np.not_equal, "less": np.less,
    "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}
for op, f in BINARY.items():
    for a, b, nan in PAIRS:
        x, y = np.round(array(a) * 2) / 2, np.round(array(b) * 2) / 2 + (0.25 if op == "divide" else 0)
        x, y = x.astype("float32"), y.astype("float32")
        if nan:
            y.flat[2] = np.nan
        case(op, "x0, x1", [x, y], f(wide(x), wide(y)))
    if op != "divide":
        x, y = array((2, 3), -3, 3, "int32"), array((2, 3), -3, 3, "int32")
        case(op, "x0, x1", [x, y], f(x, y))
for a, b, nan in PAIRS:
    x, y = array(a, -4, 4, nan=nan), array(b, 0.5, 3)
    case("floor_divide", "x0, x1", [x, y], np.floor(wide(x) / wide(y)))
    x = array(a, 0.1, 3, nan=nan)
    y = array(b, -2, 2)
    case("power", "x0, x1", [x, y], np.power(wide(x), wide(y)))
    x, y = array(a, dtype="bool"), array(b, dtype="bool")
    case("logical_and", "x0, x1", [x, y], np.logical_and(x, y))
    case("logical_or", "x0, x1", [x, y], np.logical_or(x, y))
    case("logical_xor", "x0, x1", [x, y], np.logical_xor(x, y))
    x, y = array(a, -9, 9, "int32"), array(b, -9, 9, "int32")
    case("bitwise_and", "x0, x1", [x, y], x & y)
    case("bitwise_or", "x0, x1", [x, y], x | y)
    case("bitwise_xor", "x0, x1", [x, y], x ^ y)
x, y = array((3, 3), -9, 9, "int32"), array((3, 3), 1, 4, "int32") * np.where(array((3, 3), dtype="bool"), -1, 1).astype("int32")
case("floor_divide", "x0, x1", [x, y], x // y)
x, y = array((6,), -1, 1, "int32"), array((6,), -1, 1, "int32")
for op, f in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    case(op, "x0, x1", [x * 2, y], f(x * 2, y))
for shape, nan in SHAPES:
    x, y, z = array(shape, nan=nan), array(shape), array(shape)
    case("ewise_fma", "x0, x1, x2", [x, y, z], wide(x) * wide(y) + wide(z))
for c, a, b in [((2, 3), (2, 3), (2, 3)), ((3,), (2, 3), (1,)), ((0, 1), (1, 3), (0, 3)), ((4, 1), (1, 5), (4, 5)), ((6,), (6,), (6,))]:
    k, x, y = array(c, dtype="bool"), array(a, nan=a == (6,)), array(b, nan=True)
    case("where", "x0, x1, x2", [k, x, y], np.where(k, x, y), dtype="float32")

# ---- New tensors ----

for shape in [(2, 3), (1,), (0, 3), (4, 1, 2), ()]:
    t = "(" + "".join(f"{e}, " for e in shape) + ")"
    x = array(shape)
    case("full", f"R.shape({list(shape)}), R.const(2.5, \"float32\")", [], np.full(shape, 2.5))
    case("full", f"R.shape({list(shape)}), R.const(2.5, \"float32\"), dtype=\"int32\"", [], np.full(shape, 2, "int32"))
    case("full_like", "x0, R.const(-1.5, \"float32\")", [x], np.full_like(wide(x), -1.5))
    case("ones", f"R.shape({list(shape)}), dtype=\"float32\"", [], np.ones(shape))
    case("zeros", f"R.shape({list(shape)}), dtype=\"int32\"", [], np.zeros(shape, "int32"))
    case("ones_like", "x0", [x], np.ones_like(wide(x)))
    case("zeros_like", "x0, dtype=\"int32\"", [x], np.zeros(shape, "int32"))
    k = array(shape, -3, 3, nan=False)
    case("astype", "x0, dtype=\"int32\"", [k], k.astype("int32"))
    case("wrap_param", "x0, dtype=\"float32\"", [k.astype("int32")], k.astype("int32").astype("float32"), dtype="float32")
x = np.array([0, 0.25, -3, np.nan, np.inf], "float32")
case("astype", "x0, dtype=\"bool\"", [x], x.astype(bool))
x = array((5,), nan=True)
case("astype", "x0, dtype=\"float16\"", [x], x.astype("float16"), dtype="float16")
for args in [(5,), (1, 7), (0, 7, 2), (7, 0, -3), (3, 3), (5, 1), (-3, 3, 4)]:
    case("arange", ", ".join(map(str, args)), [], np.arange(*args).astype("int64"))
for args in [(0, 1, 0.25), (1, -1, -0.5), (0.5, 0.5, 1)]:
    case("arange", ", ".join(map(str, args)), [], np.arange(*args))
for shape, k in [((3, 3), 0), ((1, 4), 1), ((0, 3), -1), ((2, 4, 2), -2), ((3, 1), 0)]:
    x = array(shape, nan=True)
    case("tril", f"x0, {k}", [x], np.tril(x, k))
    case("triu", f"x0, {k}", [x], np.triu(x, k))

# ---- Shapes and places ----

for old, new in [((2, 3), (3, 2)), ((4, 1, 2), (8,)), ((0, 3), (0, 3, 5)), ((6,), (1, 6)), ((1,), ())]:
    x = array(old, nan=True)
    case("reshape", f"x0, R.shape({list(new)})", [x], x.reshape(new))
    case("flatten", "x0", [x], x.reshape(-1))
x = array((2, 6))
case("reshape", "x0, (0, -1, 3)", [x], x.reshape(2, -1, 3))
for shape, axis in [((2, 3), [0]), ((1,), [-1]), ((0, 3), [1]), ((4,), [0, 2]), ((), [0])]:
    x = array(shape, nan=True)
    case("expand_dims", f"x0, axis={axis}", [x], np.expand_dims(x, tuple(axis)))
for shape, axis in [((1, 3), [0]), ((1,), None), ((0, 1), [-1]), ((1, 4, 1), None), ((1, 4, 1), [2])]:
    x = array(shape, nan=True)
    case("squeeze", f"x0, axis={axis}", [x], np.squeeze(x, None if axis is None else tuple(axis)))
for shape, axes in [((2, 3), None), ((2, 3, 4), [2, 0, 1]), ((0, 1, 3), [1, 2, 0]), ((5,), [0]), ((1, 3), [-1, 0])]:
    x = array(shape, nan=True)
    case("permute_dims", f"x0, axes={axes}", [x], np.transpose(x, axes))
for old, new in [((3,), (2, 3)), ((1,), (4,)), ((1, 3), (0, 3)), ((2, 1), (2, 5)), ((), (2, 2))]:
    x = array(old, nan=True)
    case("broadcast_to", f"x0, R.shape({list(new)})", [x], np.broadcast_to(x, new))
for old, new in [((2, 3), (3,)), ((2, 3), (2, 1)), ((0, 3), (1, 3)), ((4, 2, 3), (1, 3)), ((2, 3), (2, 3))]:
    x = array(old, nan=old == (4, 2, 3))
    y = wide(x)
    while y.ndim > len(new):
        y = y.sum(0)
    for d, e in enumerate(new):
        if e == 1:
            y = y.sum(d, keepdims=True)
    case("collapse_sum_like", "x0, x1", [x, array(new)], y)
    case("collapse_sum_to", f"x0, R.shape({list(new)})", [x], y)
for shapes, axis in [(((2, 3), (2, 1)), 1), (((1,), (0,), (3,)), 0), (((0, 3), (2, 3)), 0), (((2, 1, 2), (2, 4, 2)), -2), (((5,),), 0)]:
    xs = [array(s, nan=True) for s in shapes]
    case("concat", "(" + "".join(f"x{i}, " for i in range(len(xs))) + f"), axis={axis}", xs, np.concatenate(xs, axis))
for shape, parts, axis in [((4, 3), 2, 0), ((2, 5), [1, 3], 1), ((0, 4), 2, 1), ((6,), [2], 0), ((1, 6), [3, 9], -1), ((5,), [4, 2], 0)]:
    x = array(shape, nan=True)
    case("split", f"x0, {parts}, axis={axis}", [x], np.split(x, parts, axis))
x = array((7,))
case("split", "x0, 3", [x], [x[:3], x[3:6], x[6:]])  # sections of ceil(7 / 3)
for shape, n, axis in [((2, 3), 2, 0), ((1,), 3, None), ((0, 3), 2, 1), ((2, 1, 2), 3, -1), ((2, 2), 0, 1)]:
    x = array(shape, nan=True)
    case("repeat", f"x0, {n}, axis={axis}", [x], np.repeat(x, n, axis))
for shape, reps in [((2, 3), [2, 1]), ((1,), [3]), ((0, 3), [2, 2]), ((2,), [2, 1, 3]), ((2, 2), [2]), ((2, 2), [0, 1])]:
    x = array(shape, nan=True)
    case("tile", f"x0, {reps}", [x], np.tile(x, reps))
for shape, axis in [((2, 3), 0), ((1,), 0), ((0, 3), 1), ((2, 1, 4), -1), ((5,), 0)]:
    x = array(shape, nan=True)
    case("flip", f"x0, axis={axis}", [x], np.flip(x, axis))
for shape, where, axis, reduction in [((3, 4), (2, 4), 0, "update"), ((4,), (1,), 0, "add"), ((3, 0), (2, 0), 0, "add"), ((2, 5), (2, 3), 1, "mul"),
                                      ((3, 3), (3, 3), -1, "max"), ((3, 3), (3, 3), 1, "min"), ((4,), (3,), 0, "mean")]:
    x = array(shape, nan=reduction == "max")
    extent, n = shape[axis], where[axis]
    index = np.zeros(where, "int64")
    for at in np.ndindex(*[e for d, e in enumerate(where) if d != axis % len(where)]):
        at = list(at)
        at.insert(axis % len(where), slice(None))
        index[tuple(at)] = random.permutation(extent)[:n] - (extent if n == 1 else 0)  # counted from the end too
    u, y = array(where), wide(x).copy()
    full = index % extent
    old = np.take_along_axis(y, full, axis)
    new = {"update": u, "add": old + u, "mul": old * u, "max": np.maximum(old, u), "min": np.minimum(old, u), "mean": (old + u) / 2}[reduction]
    np.put_along_axis(y, full, new, axis)
    case("scatter_elements", f"x0, x1, x2, axis={axis}, reduction=\"{reduction}\"", [x, index, u], y)
for shape, where, axis in [((4, 3), (2,), 0), ((5,), (1,), None), ((3, 0), (2, 2), 0), ((2, 3, 4), (2, 2), 1), ((2, 3), (0,), -1)]:
    x = array(shape, nan=True)
    i = random.integers(0, max(shape[axis or 0], 1), where)
    case("take", "x0, x1" + ("" if axis is None else f", axis={axis}"), [x, i], np.take(x, i, axis or 0))
for shape, cuts in [((6, 3), {0: (1, 5, 2)}), ((5,), {0: (4, 0, -2)}), ((0, 4), {1: (-3, 9, 1)}), ((3, 4), {0: (0, 2, 1), -1: (3, -5, -1)}), ((4, 1), {0: (3, 1, 1)}), ((7,), {0: (-2, 99, 1)})]:
    x = array(shape, nan=True)
    slices = [slice(None)] * len(shape)
    for a, (b, e, s) in cuts.items():
        slices[a] = slice(b, None if e == -5 else e, s)
    cols = list(zip(*cuts.values()))
    case("strided_slice", f"x0, {list(cuts)}, {list(cols[0])}, {list(cols[1])}, {list(cols[2])}", [x], x[tuple(slices)])
x = array((6,))
case("strided_slice", "x0, [0], [1], [5], [2], assume_inbound=True", [x], x[1:5:2])
for shape, b, e, s in [((6, 3), (1, 0), (5, 3), (2, 1)), ((5,), (4,), (0,), (-2,)), ((3, 1), (0, 0), (2, 1), (1, 1)), ((4, 4), (0, 3), (4, 0), (3, -1)), ((7,), (2,), (99,), (2,)), ((0, 3), (0, 0), (0, 2), (1, 1))]:
    x = array(shape, nan=True)
    case("dynamic_strided_slice", "x0, x1, x2, x3", [x, np.array(b), np.array(e), np.array(s)], x[tuple(slice(*t) for t in zip(b, e, s))])

# ---- Products ----

for a, b, nan in [((2, 3), (3, 4), False), ((3,), (3,), False), ((0, 3), (3, 2), False), ((2, 0), (0, 3), False), ((4, 1, 3, 2), (5, 2, 1), False), ((2, 3), (3, 2), True), ((3,), (2, 3, 4), False)]:
    x, y = array(a, nan=nan), array(b)
    case("matmul", "x0, x1", [x, y], np.matmul(wide(x), wide(y)))
x, y = array((2, 3), -9, 9, "int8"), array((3, 2), -9, 9, "int8")
case("matmul", "x0, x1, out_dtype=\"int32\"", [x, y], np.matmul(x.astype("int32"), y.astype("int32")))
for a, n, bias in [((2, 3), 4, True), ((3,), 2, False), ((0, 3), 2, True), ((2, 1), 1, True), ((2, 2, 3), 2, False)]:
    x, w, b = array(a, nan=a == (2, 2, 3)), array((n, a[-1])), array((n,))
    y = wide(x) @ wide(w).T
    case("linear", "x0, x1, x2" if bias else "x0, x1", [x, w, b] if bias else [x, w], y + b if bias else y)
for subscripts, shapes in [("ij,jk->ik", ((2, 3), (3, 4))), ("ii->i", ((3, 3),)), ("ij->", ((0, 3),)), ("ij,j", ((2, 1), (1,))), ("bij,bjk->bik", ((2, 1, 3), (2, 3, 2))), ("i,i->i", ((4,), (4,))), ("ij->ji", ((2, 3),))]:
    xs = [array(s, nan=subscripts == "i,i->i") for s in shapes]
    case("einsum", "(" + "".join(f"x{i}, " for i in range(len(xs))) + f"), \"{subscripts}\"", xs, np.einsum(subscripts, *map(wide, xs)))

# ---- Reductions, orders ----

AXES = [((2, 3), None, False, False), ((4, 1), [0], True, False), ((0, 3), [0], False, False), ((2, 3, 4), [-1, 0], False, False), ((3, 2), [1], False, True), ((2, 3), None, True, True)]
for op, f in [("sum", np.sum), ("prod", np.prod), ("mean", np.mean), ("variance", np.var), ("std", np.std), ("max", np.max), ("min", np.min)]:
    for shape, axis, keep, nan in AXES:
        if 0 in shape and op in ("max", "min"):
            shape, axis = (0, 3), [1]  # of nothing there is no greatest element
        x = array(shape, nan=nan)
        with np.errstate(all="ignore"):
            case(op, f"x0, axis={axis}, keepdims={keep}", [x], f(wide(x), axis=None if axis is None else tuple(axis), keepdims=keep))
x = array((3, 4), -5, 5, "int32")
for op, f in [("sum", np.sum), ("max", np.max), ("min", np.min), ("prod", np.prod)]:
    case(op, "x0, axis=1", [x], f(x, axis=1, dtype="int32") if op in ("sum", "prod") else f(x, axis=1))
for op, f in [("argmax", np.argmax), ("argmin", np.argmin)]:
    for shape, axis, keep, nan in [((2, 3), None, False, False), ((4, 1), 1, True, False), ((0, 3), 1, False, False), ((2, 3, 4), -2, False, True), ((5,), 0, True, True)]:
        x = np.round(array(shape, nan=nan))
        case(op, f"x0, axis={axis}, keepdims={keep}", [x], f(x, axis=axis, keepdims=keep))
    for dtype, value in (("int8", -128 if op == "argmax" else 127), ("bool", op == "argmin"), ("float32", -np.inf if op == "argmax" else np.inf)):
        x = np.full((3,), value, dtype)
        case(op, "x0", [x], f(x))
for op, f in [("cumsum", np.cumsum), ("cumprod", np.cumprod)]:
    for shape, axis, nan in [((2, 3), 1, False), ((1,), 0, False), ((0, 3), 0, False), ((2, 3), None, False), ((3, 1, 2), -3, False), ((4,), 0, True)]:
        x = array(shape, nan=nan)
        case(op, f"x0, axis={axis}", [x], f(wide(x), axis))
        y = f(wide(x), axis)
        first = np.full_like(y, 0 if op == "cumsum" else 1)
        if y.size:
            a = 0 if axis is None else axis
            first = np.concatenate([np.take(first, [0], a), np.take(y, range(y.shape[a] - 1), a)], a)
        case(op, f"x0, axis={axis}, exclusive=True", [x], first)
    x = array((4,), -3, 3, "int32")
    case(op, "x0, axis=0, dtype=\"int64\"", [x], f(x, dtype="int64"))
for shape, axis, nan in [((2, 5), -1, False), ((1,), 0, False), ((0, 3), 1, False), ((4, 1, 2), 0, False), ((6,), 0, True), ((3, 0), 1, False)]:
    x = np.round(array(shape, nan=nan) * 2).astype("float32")
    if nan:
        x[0] = np.nan
    order = np.argsort(x, axis, kind="stable")
    # Descending: NaN, the greatest, first; equal ones keep their order.
    down = np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    at = lambda i: np.take_along_axis(x, i, axis)
    case("sort", f"x0, axis={axis}", [x], np.sort(x, axis))
    case("sort", f"x0, axis={axis}, descending=True", [x], at(down))
    case("argsort", f"x0, axis={axis}", [x], order.astype("int32"))
    case("argsort", f"x0, axis={axis}, descending=True, dtype=\"int64\"", [x], down)
    for k in {1, x.shape[axis]} - {0}:
        if k > x.shape[axis]:
            continue
        some = lambda i: np.take(i, range(k), axis)
        case("topk", f"x0, k={k}, axis={axis}", [x], [at(some(down)), some(down).astype("int32")])
        case("topk", f"x0, k={k}, axis={axis}, largest=False, ret_type=\"indices\", dtype=\"int64\"", [x], some(order))
        case("topk", f"x0, k={k}, axis={axis}, ret_type=\"values\"", [x], at(some(down)))
for dtype in ("int8", "bool", "int64"):
    x = array((5,), 0, 1, dtype)
    case("sort", "x0", [x], np.sort(x))
    case("argsort", "x0", [x], np.argsort(x, kind="stable").astype("int32"))
for rows, classes, n, nan in [(2, 4, 3, False), (1, 1, 1, False), (3, 5, 0, False), (1, 6, 4, False), (2, 4, 4, True)]:
    p = array((rows, classes), 0.1, 1)
    p = (p / p.sum(1, keepdims=True)).astype("float32")
    if nan:
        p[1, 1] = np.nan
    u, r = array((n, 1), 0, 1), random.integers(0, rows, (n, 1))
    cumulated = np.cumsum(p[r[:, 0]].astype("float64"), 1)
    picked = np.minimum((cumulated <= u).sum(1, keepdims=True), classes - 1)
    case("multinomial_from_uniform", "x0, x1, x2", [p, u, r], picked.astype("int64"))

# ---- Networks ----

def softmax(v, axis=-1):
    if v.size == 0:
        return v
    e = np.exp(v - np.max(v, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)


for shape, axis, nan in [((2, 3), -1, False), ((1,), 0, False), ((0, 3), 1, False), ((4, 1, 2), 0, False), ((3, 2), 1, True)]:
    x = array(shape, -5, 5, nan=nan)
    y = softmax(wide(x), axis)
    case("nn.softmax", f"x0, axis={axis}", [x], y)
    case("nn.log_softmax", f"x0, axis={axis}", [x], np.log(y))
for shape, widths in [((2, 3), (1, 0, 0, 2)), ((1,), (2, 2)), ((0, 3), (1, 1, 0, 0)), ((2, 1, 2), (0, 0, 1, 1, 2, 0)), ((4,), (0, 0))]:
    x = array(shape, nan=True)
    pairs = [widths[2 * d:2 * d + 2] for d in range(len(shape))]
    case("nn.pad", f"x0, {widths}, 1.5", [x], np.pad(x, pairs, constant_values=1.5))
for shape in [(2, 3), (1, 1), (1, 4), (5,), (3, 2)]:
    x, y = array(shape, nan=shape == (3, 2)), array(shape, 0, 1)
    case("nn.cross_entropy_with_logits", "x0, x1", [x, y], -np.sum(wide(x) * y) / (shape[0] if len(shape) > 1 else 1))
for shape, target, weighted, reduction, ignore in [((3, 4), (3,), True, "mean", -100), ((4,), (), True, "sum", -100), ((0, 3), (0,), False, "sum", -100),
                                                   ((2, 3, 1), (2, 1), False, "none", -100), ((4, 3), (4,), True, "mean", 1), ((2, 3, 2), (2, 2), True, "none", 2)]:
    p, t, w = array(shape, nan=reduction == "mean"), random.integers(0, shape[1 if len(shape) > 1 else 0], target), array((shape[1 if len(shape) > 1 else 0],), 0.5, 2)
    loss, weight = np.zeros(target), np.zeros(target)
    for at in np.ndindex(*target):
        c = t[at]
        if c == ignore:
            continue
        weight[at] = w[c] if weighted else 1
        loss[at] = -wide(p)[(at[0], c) + at[1:] if at else (c,)] * weight[at]
    y = {"none": loss, "sum": loss.sum(), "mean": loss.sum() / weight.sum() if reduction == "mean" else 0}[reduction]
    case("nn.nll_loss", ("x0, x1, x2" if weighted else "x0, x1") + f", reduction=\"{reduction}\", ignore_index={ignore}", [p, np.asarray(t), w] if weighted else [p, np.asarray(t)], y)

NORM = [((2, 3), [-1], False), ((4, 1), [0], False), ((0, 3), [1], False), ((2, 3, 4), [1, 2], False), ((2, 4), [-1], True)]
for shape, axes, nan in NORM:
    x = array(shape, nan=nan)
    extents = [shape[a] for a in axes]
    g, b = array(extents), array(extents)
    v, axis = wide(x), tuple(a % len(shape) for a in axes)
    norm = (v - v.mean(axis, keepdims=True)) / np.sqrt(v.var(axis, keepdims=True) + 1e-5) if v.size else v
    column = [e if d in axis else 1 for d, e in enumerate(shape)]
    g1, b1 = g.reshape(column), b.reshape(column)
    case("nn.layer_norm", f"x0, x1, x2, axes={axes}", [x, g, b], norm * g1 + b1, tolerance=1e-4)
    case("nn.layer_norm", f"x0, x1, x2, axes={axes}, center=False, epsilon=0.01", [x, g, b],
         (v - v.mean(axis, keepdims=True)) / np.sqrt(v.var(axis, keepdims=True) + 0.01) * g1 if v.size else v, tolerance=1e-4)
    case("nn.layer_norm", f"x0, x1, x2, axes={axes}, scale=False", [x, g, b], norm + b1, tolerance=1e-4)
    rms = v / np.sqrt(np.mean(v * v, axis, keepdims=True) + 1e-5) * g1 if v.size else v
    case("nn.rms_norm", f"x0, x1, axes={axes}", [x, g], rms)
for shape, groups, axes, nan in [((2, 4, 3), 2, [2], False), ((1, 2, 1), 1, [2], False), ((0, 4, 2), 4, [2], False), ((1, 6, 2, 2), 3, [2, 3], False), ((2, 2, 3), 1, [2], True)]:
    x = array(shape, nan=nan)
    g, b = array((shape[1],)), array((shape[1],))
    v = wide(x).reshape((shape[0], groups, shape[1] // groups) + shape[2:])
    axis = tuple(range(2, v.ndim))
    norm = ((v - v.mean(axis, keepdims=True)) / np.sqrt(v.var(axis, keepdims=True) + 1e-5)).reshape(shape) if v.size else wide(x)
    column = (1, -1) + (1,) * (len(shape) - 2)
    args = f"x0, x1, x2, num_groups={groups}, channel_axis=1, axes={axes}"
    case("nn.group_norm", args, [x, g, b], norm * g.reshape(column) + b.reshape(column), tolerance=1e-4)
    case("nn.group_norm", args + ", scale=False, center=False", [x, g, b], norm, tolerance=1e-4)
for shape, axis, nan in [((2, 3), 1, False), ((4, 1, 2), 1, False), ((3, 2, 2), -1, False), ((2, 3, 1, 2), 1, False), ((4, 2), 1, True)]:
    x = array(shape, nan=nan)
    c = shape[axis]
    g, b, m, s = array((c,)), array((c,)), array((c,)), array((c,), 0.5, 2)
    v, others = wide(x), tuple(d for d in range(len(shape)) if d != axis % len(shape))
    column = [1] * len(shape)
    column[axis] = c
    mean, var = v.mean(others), v.var(others)
    norm = (v - mean.reshape(column)) / np.sqrt(var.reshape(column) + 1e-5)
    y = norm * g.reshape(column) + b.reshape(column)
    case("nn.batch_norm", f"x0, x1, x2, x3, x4, axis={axis}", [x, g, b, m, s], [y, 0.9 * m + 0.1 * mean, 0.9 * s + 0.1 * var], tolerance=1e-4)
    case("nn.batch_norm", f"x0, x1, x2, x3, x4, axis={axis}, momentum=0.5, scale=False, center=False", [x, g, b, m, s],
         [norm, 0.5 * m + 0.5 * mean, 0.5 * s + 0.5 * var], tolerance=1e-4)


def conv(x, w, strides, padding, dilation, groups):
    """x [n, c, ...], w [f, c / groups, ...]; padding: befores, then afters."""
    space = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0)] + [(padding[d], padding[d + space]) for d in range(space)])
    out = [(x.shape[d + 2] - (w.shape[d + 2] - 1) * dilation[d] - 1) // strides[d] + 1 for d in range(space)]
    y = np.zeros([x.shape[0], w.shape[0]] + out)
    per_group, in_group = w.shape[0] // groups, w.shape[1]
    for f in range(w.shape[0]):
        c = f // per_group * in_group
        for o in np.ndindex(*out):
            window = tuple(slice(o[d] * strides[d], o[d] * strides[d] + (w.shape[d + 2] - 1) * dilation[d] + 1, dilation[d]) for d in range(space))
            y[(slice(None), f) + o] = (x[(slice(None), slice(c, c + in_group)) + window] * w[f]).sum(tuple(range(1, x.ndim)))
    return y


CONV = [  # data, weight, strides, padding, dilation, groups, NaN
    ([(2, 3, 7), (4, 3, 3), (1,), (0, 0), (1,), 1, False], 1),
    ([(1, 1, 5), (1, 1, 1), (2,), (1, 2), (1,), 1, False], 1),
    ([(0, 2, 4), (2, 2, 2), (1,), (0, 0), (1,), 1, False], 1),
    ([(1, 4, 6), (6, 2, 2), (1,), (1, 1), (2,), 2, False], 1),
    ([(1, 2, 5), (2, 2, 3), (1,), (0, 0), (1,), 1, True], 1),
    ([(1, 2, 5, 4), (3, 2, 3, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1, False], 2),
    ([(2, 1, 4, 1), (1, 1, 1, 1), (2, 1), (1, 0, 0, 1), (1, 1), 1, False], 2),
    ([(0, 1, 3, 3), (2, 1, 2, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1, False], 2),
    ([(1, 4, 5, 5), (4, 1, 2, 2), (2, 1), (1, 0, 1, 0), (1, 2), 4, False], 2),
    ([(1, 2, 3, 3), (2, 2, 2, 2), (1, 1), (0, 0, 0, 0), (1, 1), 1, True], 2),
    ([(1, 2, 3, 4, 3), (2, 2, 2, 2, 2), (1, 1, 1), (0,) * 6, (1, 1, 1), 1, False], 3),
    ([(1, 1, 1, 2, 3), (1, 1, 1, 1, 2), (1, 1, 2), (1, 0, 0, 0, 0, 1), (1, 1, 1), 1, False], 3),
    ([(0, 1, 2, 2, 2), (1, 1, 2, 2, 2), (1, 1, 1), (0,) * 6, (1, 1, 1), 1, False], 3),
    ([(1, 2, 3, 3, 3), (2, 1, 2, 1, 2), (1, 1, 1), (0,) * 6, (2, 1, 1), 2, False], 3),
    ([(1, 1, 2, 2, 2), (1, 1, 1, 1, 1), (1, 1, 1), (0,) * 6, (1, 1, 1), 1, True], 3),
]
for (a, b, strides, padding, dilation, groups, nan), n in CONV:
    x, w = array(a, nan=nan), array(b)
    attrs = f"strides={list(strides)}, padding={list(padding)}, dilation={list(dilation)}, groups={groups}"
    y = conv(wide(x), wide(w), strides, padding, dilation, groups)
    case(f"nn.conv{n}d", "x0, x1, " + attrs, [x, w], y)
    if n == 2:
        last = lambda v: np.moveaxis(v, 1, -1)
        case("nn.conv2d", "x0, x1, " + attrs + ", data_layout=\"NHWC\", kernel_layout=\"OHWI\"", [last(x), last(w)], last(y))
def conv_transpose(name, a, b, strides, padding, extra, dilation, groups, nan=False):
    n = len(a) - 2
    x, w = array(a, nan=nan), array(b)
    # Each element of x adds the kernel, its elements `dilation` apart, to the output, at its place times the stride.
    spans = [(b[d + 2] - 1) * dilation[d] + 1 for d in range(n)]
    full = [(a[d + 2] - 1) * strides[d] + spans[d] + extra[d] for d in range(n)]
    y = np.zeros([a[0], b[1] * groups] + full)
    per_group = a[1] // groups
    for c in range(a[1]):
        g = c // per_group
        for at in np.ndindex(*a[2:]):
            window = tuple(slice(at[d] * strides[d], at[d] * strides[d] + spans[d], dilation[d]) for d in range(n))
            y[(slice(None), slice(g * b[1], (g + 1) * b[1])) + window] += wide(x)[(slice(None), c) + at].reshape((-1, 1) + (1,) * n) * wide(w)[c]
    y = y[(slice(None), slice(None)) + tuple(slice(padding[d], full[d] - padding[d + n]) for d in range(n))]
    far = f"dilation={list(dilation)}, " if max(dilation) > 1 else ""
    case(name, f"x0, x1, strides={list(strides)}, padding={list(padding)}, output_padding={list(extra)}, {far}groups={groups}", [x, w], y)


for a, b, strides, padding, extra, groups in [((2, 3, 4), (3, 2, 3), (1,), (0, 0), (0,), 1), ((1, 1, 1), (1, 1, 2), (2,), (0, 0), (1,), 1), ((0, 2, 3), (2, 1, 2), (1,), (0, 0), (0,), 1),
                                              ((1, 4, 3), (4, 3, 2), (3,), (1, 0), (1,), 2), ((1, 2, 3), (2, 2, 1), (1,), (0, 0), (0,), 1),
                                              ((1, 2, 3, 2), (2, 3, 2, 3), (1, 2), (0, 1, 1, 0), (0, 1), 1), ((1, 1, 1, 4), (1, 1, 1, 1), (1, 1), (0,) * 4, (0, 0), 1),
                                              ((0, 1, 2, 2), (1, 1, 2, 2), (1, 1), (0,) * 4, (0, 0), 1), ((2, 4, 2, 2), (4, 2, 2, 2), (2, 2), (1, 1, 0, 0), (1, 0), 2), ((1, 2, 2, 3), (2, 1, 2, 1), (1, 1), (0,) * 4, (0, 0), 1)]:
    conv_transpose(f"nn.conv{len(a) - 2}d_transpose", a, b, strides, padding, extra, (1,) * (len(a) - 2), groups, a in ((1, 2, 3), (1, 2, 2, 3)))


def windows(x, size, strides, padding, dilation, ceil):
    """The elements of each window that lie inside of x."""
    space = x.ndim - 2
    out = []
    for d in range(space):
        room = x.shape[d + 2] + padding[d] + padding[d + space] - dilation[d] * (size[d] - 1) - 1
        out.append((room + (strides[d] - 1 if ceil else 0)) // strides[d] + 1)
    for o in np.ndindex(*out):
        places = [[p for k in range(size[d]) if 0 <= (p := o[d] * strides[d] - padding[d] + k * dilation[d]) < x.shape[d + 2]] for d in range(space)]
        yield out, o, [x[(slice(None), slice(None)) + at] for at in itertools.product(*places)]


POOL = [((2, 3, 6), (2,), (2,), (0, 0), (1,), False, False, False), ((1, 1, 5), (3,), (2,), (1, 1), (1,), True, True, False), ((0, 2, 4), (2,), (1,), (0, 0), (1,), False, False, False),
        ((1, 2, 7), (2,), (3,), (1, 0), (2,), True, False, False), ((1, 1, 5), (2,), (1,), (0, 0), (1,), False, False, True),
        ((1, 2, 4, 5), (2, 3), (1, 2), (1, 0, 0, 1), (1, 1), False, False, False), ((2, 1, 1, 3), (1, 1), (1, 1), (0,) * 4, (1, 1), False, False, False), ((0, 1, 3, 3), (2, 2), (2, 2), (0,) * 4, (1, 1), True, False, False),
        ((1, 1, 5, 5), (2, 2), (2, 1), (1, 1, 1, 1), (2, 1), False, True, False), ((1, 1, 3, 3), (2, 2), (1, 1), (0,) * 4, (1, 1), False, False, True),
        ((1, 1, 3, 4, 3), (2, 2, 2), (1, 2, 1), (0,) * 6, (1, 1, 1), False, False, False), ((1, 2, 1, 2, 1), (1, 1, 1), (1, 1, 1), (0,) * 6, (1, 1, 1), False, False, False), ((0, 1, 2, 2, 2), (2, 1, 1), (1, 1, 1), (0,) * 6, (1, 1, 1), False, False, False),
        ((1, 1, 4, 3, 2), (2, 2, 1), (2, 1, 1), (1, 0, 0, 0, 1, 0), (1, 1, 1), False, True, False), ((1, 1, 2, 2, 2), (2, 1, 1), (1, 1, 1), (0,) * 6, (1, 1, 1), False, False, True)]
for shape, size, strides, padding, dilation, ceil, count_pad, nan in POOL:
    x = array(shape, nan=nan)
    for kind in ("max", "avg"):
        y = None
        for out, o, values in windows(wide(x), size, strides, padding, dilation, ceil):
            if y is None:
                y = np.zeros(list(shape[:2]) + out)
            if kind == "max":
                y[(slice(None), slice(None)) + o] = np.max(values, 0)
            else:
                y[(slice(None), slice(None)) + o] = np.sum(values, 0) / (math.prod(size) if count_pad else len(values))
        attrs = f"pool_size={list(size)}, strides={list(strides)}, padding={list(padding)}, dilation={list(dilation)}, ceil_mode={ceil}, count_include_pad={count_pad}"
        case(f"nn.{kind}_pool{len(size)}d", "x0, " + attrs, [x], y)
        if len(size) == 2:
            case(f"nn.{kind}_pool2d", "x0, " + attrs + ", layout=\"NHWC\"", [np.moveaxis(x, 1, -1)], np.moveaxis(y, 1, -1))
for shape, size in [((2, 3, 6), (2,)), ((1, 1, 5), (3,)), ((0, 2, 4), (2,)), ((1, 2, 4), (1,)), ((1, 1, 3), (3,)),
                    ((1, 2, 4, 5), (2, 3)), ((2, 1, 1, 3), (1, 2)), ((0, 1, 3, 3), (2, 2)), ((1, 1, 2, 2), (3, 3)), ((1, 1, 3, 3), (1, 1)),
                    ((1, 1, 3, 4, 3), (2, 2, 2)), ((1, 2, 1, 2, 1), (1, 1, 1)), ((0, 1, 2, 2, 2), (1, 1, 1)), ((1, 1, 4, 3, 2), (2, 3, 1)), ((1, 1, 2, 2, 2), (2, 2, 2))]:
    x = array(shape, nan=shape in ((1, 1, 3), (1, 1, 3, 3), (1, 1, 2, 2, 2)))
    y = np.zeros(shape[:2] + size)
    for o in np.ndindex(*size):
        at = tuple(slice(o[d] * shape[d + 2] // size[d], -(-(o[d] + 1) * shape[d + 2] // size[d])) for d in range(len(size)))
        y[(slice(None), slice(None)) + o] = wide(x)[(slice(None), slice(None)) + at].reshape(shape[:2] + (-1,)).mean(-1) if shape[0] else 0
    case(f"nn.adaptive_avg_pool{len(size)}d", f"x0, output_size={list(size)}", [x], y)

for b, n, m, h, kv, d, e, extra, nan in [(2, 3, 4, 2, 2, 5, 3, {}, False), (1, 1, 1, 1, 1, 1, 1, {}, False), (0, 2, 2, 1, 1, 2, 2, {}, False), (1, 2, 3, 4, 2, 2, 2, {"scale": 0.5}, False), (1, 4, 4, 2, 1, 3, 2, {"causal_mask": "TopLeft"}, False),
                                         (1, 3, 5, 2, 2, 2, 2, {"causal_mask": "BottomRight"}, False), (1, 5, 5, 2, 1, 2, 3, {"causal_mask": "BottomRight", "window_size": 2}, False), (1, 4, 6, 1, 1, 2, 2, {"causal_mask": "TopLeft", "window_size": 1}, False),
                                         (1, 4, 2, 1, 1, 2, 2, {"causal_mask": "BottomRight"}, False), (1, 2, 3, 1, 1, 2, 2, {}, True)]:
    q, k, v = array((b, n, h, d), nan=nan), array((b, m, kv, d)), array((b, m, kv, e))
    for bias in (None, (b, h, n, m), (b, 1, n, m)):
        if bias and b == 0:
            bias = (b, h, n, m)
        p = array(bias or (1,))
        y = np.zeros((b, n, h, e))
        for i, j, t in np.ndindex(b, h, n):
            keys, values = wide(k)[i, :, j * kv // h], wide(v)[i, :, j * kv // h]
            s = keys @ wide(q)[i, t, j] * extra.get("scale", 1 / math.sqrt(d))
            if bias:
                s = s + p[i, j if bias[1] > 1 else 0, t]
            seen = np.ones(m, bool)
            if "causal_mask" in extra:
                last = t if extra["causal_mask"] == "TopLeft" else t + m - n
                seen = (np.arange(m) <= last) & (np.arange(m) > last - extra.get("window_size", m + n))
            if seen.any():
                y[i, t, j] = softmax(s[seen]) @ values[seen]
        attrs = "".join(f", {a}=" + (f"\"{w}\"" if isinstance(w, str) else str(w)) for a, w in extra.items())
        op = "nn.attention_bias" if bias else "nn.attention"
        case(op, ("x0, x1, x2, x3" if bias else "x0, x1, x2") + attrs, [q, k, v] + ([p] if bias else []), y)

for shape, axis, dtype, per in [((2, 3), -1, "int8", True), ((1,), 0, "uint8", True), ((0, 3), 1, "int8", True), ((4, 1, 2), 0, "int16", True), ((2, 3), 1, "int8", False)]:
    n = (shape[axis],) if per else ()
    x, s, z = array(shape, -5, 5), array(n, 0.03, 0.2), array(n, -3, 3, "int8")
    at = [1] * len(shape)
    at[axis] = -1
    sc, ze = (s.reshape(at), z.reshape(at).astype("int32")) if per else (s, z.astype("int32"))
    info = np.iinfo(dtype)
    y = np.clip(np.round((x / sc).astype("float32")) + ze, info.min, info.max).astype(dtype)
    case("quantize", f"x0, x1, x2, axis={axis}, out_dtype=\"{dtype}\"", [x, s, z], y)
    case("dequantize", f"x0, x1, x2, axis={axis}", [y, s, z], ((y.astype("int32") - ze) * sc).astype("float32"), dtype="float32")

for old, new, f, names, pad in [((2, 3), (3, 2), lambda i, j: (j, i), "i, j: (j, i)", None), ((1, 5), (1, 3, 2), lambda i, j: (i, j // 2, j % 2), "i, j: (i, j // 2, j % 2)", 7), ((0, 3), (3, 0), lambda i, j: (j, i), "i, j: (j, i)", None),
                               ((3, 4), (12,), lambda i, j: (i * 4 + j,), "i, j: i * 4 + j", None), ((7,), (4, 2), lambda i: (i % 4, i // 4), "i: (i % 4, i // 4)", -1.5), ((2, 1, 6), (6, 2), lambda i, j, k: (k, i), "i, j, k: (k, i)", None)]:
    x = array(old, nan=True)
    y = np.full(new, 0 if pad is None else pad, "float32")
    for at in np.ndindex(*old):
        y[f(*at)] = x[at]
    case("layout_transform", f"x0, index_map=lambda {names}" + ("" if pad is None else f", pad_value={pad}"), [x], y)

def resize_weights(old, new, method, mode, rounding):
    """What each of `old` elements along one axis counts in each of `new` ones."""
    w = np.zeros((new, old))
    for i in range(new):
        at = {"half_pixel": (i + 0.5) * old / new - 0.5, "align_corners": i * (old - 1) / max(new - 1, 1), "asymmetric": i * old / new}[mode]
        first, t = math.floor(at), at - math.floor(at)
        if method == "nearest_neighbor":
            taps = {(first if rounding == "floor" else math.ceil(at - 0.5)): 1}
        elif method == "linear":
            taps = {first: 1 - t, first + 1: t}
        else:  # Keys' cubic with slope -0.5
            near, far = lambda d: 1.5 * d**3 - 2.5 * d**2 + 1, lambda d: -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2
            taps = {first - 1: far(t + 1), first: near(t), first + 1: near(1 - t), first + 2: far(2 - t)}
        for place, weight in taps.items():
            w[i, min(max(place, 0), old - 1)] += weight
    return w


for shape, size, method, mode, rounding, layout in [((2, 1, 2, 3), (3, 5), "linear", "half_pixel", "round", "NCHW"), ((1, 1, 1, 1), (2, 1), "linear", "align_corners", "round", "NCHW"), ((0, 2, 2, 2), (3, 3), "cubic", "half_pixel", "round", "NCHW"),
                                                    ((1, 1, 3, 4), (5, 3), "cubic", "half_pixel", "round", "NCHW"), ((1, 2, 3, 2), (4, 5), "nearest_neighbor", "half_pixel", "round_prefer_floor", "NHWC"), ((1, 1, 5, 4), (3, 7), "nearest_neighbor", "asymmetric", "floor", "NCHW"),
                                                    ((1, 1, 2, 2), (4, 4), "nearest_neighbor", "asymmetric", "floor", "NCHW")]:
    x = array(shape)
    rows, columns = (resize_weights(old, new, method, mode, rounding) for old, new in zip(shape[2:], size))
    y = np.einsum("ih,nchw,jw->ncij", rows, wide(x), columns)
    if layout == "NHWC":
        x, y = np.moveaxis(x, 1, -1), np.moveaxis(y, 1, -1)
    case("image.resize2d", f"x0, size={size}, layout=\"{layout}\", method=\"{method}\", coordinate_transformation_mode=\"{mode}\", rounding_method=\"{rounding}\", cubic_alpha=-0.5", [x], y)

# ---- Of newer releases ----

for layout in ("NHWC", "CNHW"):
    x, w = array((2, 3, 4, 5)), array((2, 3, 2, 3))
    y = np.einsum("nchwij,fcij->nfhw", np.lib.stride_tricks.sliding_window_view(wide(x), (2, 3), (2, 3)), wide(w))
    case("nn.conv2d", f"x0, x1, out_layout=\"{layout}\"", [x, w], y.transpose(["NCHW".index(c) for c in layout]), tolerance=1e-4)
for op, f in (("mod", np.fmod), ("floor_mod", np.mod)):
    for a, b, nan in PAIRS:
        x, y = array(a, -4, 4, nan=nan), array(b, 0.5, 3) * random.choice([-1, 1], b).astype("float32")
        case(op, "x0, x1", [x, y], f(x, y))
    x, y = array((3, 4), -9, 9, "int32"), array((4,), 1, 4, "int32") * np.array([1, -1, 1, -1], "int32")
    case(op, "x0, x1", [x, y], f(x, y))
for a, b, nan in PAIRS:
    x, y = array(a, nan=nan), array(b)
    case("atan2", "x0, x1", [x, y], np.arctan2(wide(x), wide(y)))
for op, f in (("left_shift", np.left_shift), ("right_shift", np.right_shift)):
    for a, b, nan in PAIRS:
        x, y = array(a, -99, 99, "int32"), array(b, 0, 20, "int32")
        case(op, "x0, x1", [x, y], f(x, y))
for (a, b, nan), value in zip(PAIRS, [1.5, -2.0, 0, 7, 2]):
    x, m = array(a, nan=nan), array(b, dtype="bool")
    case("masked_fill", f"x0, x1, {value}", [x, m], np.where(m, np.float32(value), x))
for shape, axis, keep in [((2, 3), 1, False), ((1,), None, False), ((4, 1, 2), [0], True), ((3, 4), None, True), ((2, 3, 3), [0, 2], False), ((0, 3), -1, False), ((5,), 0, False)]:
    x = array(shape)
    axes = tuple(range(len(shape))) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(a % len(shape) for a in axes)
    rows = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = rows.reshape(rows.shape[:len(shape) - len(axes)] + (math.prod(shape[a] for a in axes),))
    order = np.argsort(rows, -1, kind="stable")[..., (rows.shape[-1] - 1) // 2]
    value = np.take_along_axis(rows, order[..., None], -1)[..., 0]  # the lower one of two in the middle
    kept = [1 if a in axes else n for a, n in enumerate(shape)] if keep else value.shape
    results = [value.reshape(kept)] + ([order.reshape(kept)] if axis is not None and len(axes) == 1 else [])
    case("median", f"x0, axis={axis}, keepdims={keep}", [x], results)
for shape, of, axis in [((2, 3), (2, 5), 1), ((3, 4), (2, 4), 0), ((5,), (5,), -1), ((2, 3, 2), (2, 1, 2), 1), ((4, 1), (0, 1), 0)]:
    x, i = array(shape, nan=True), array(of, -shape[axis], shape[axis] - 1, "int64")
    case("gather_elements", f"x0, x1, axis={axis}", [x, i], np.take_along_axis(x, i, axis))
for shape, of, batch in [((3, 4), (5, 2), 0), ((3, 4), (2, 1), 0), ((2, 3, 4), (2, 2, 1), 1), ((5,), (1, 2, 1), 0), ((3, 2, 2), (0, 2), 0), ((2, 3), (2, 1), 1)]:
    x, i = array(shape, nan=True), np.stack([random.integers(-n, n, of[:-1]) for n in shape[batch:batch + of[-1]]], -1).astype("int64")
    y = np.array([x[tuple(at[:batch]) + tuple(i[at])] for at in np.ndindex(*of[:-1])], "float32")
    case("gather_nd", f"x0, x1, batch_dims={batch}", [x, i], y.reshape(of[:-1] + shape[batch + of[-1]:]))
for shape, of, reduction in [((5, 3), (2, 1), "update"), ((3, 4), (6, 2), "add"), ((4,), (2, 2, 1), "max"), ((2, 2, 2), (3, 2), "mul"), ((3, 4), (0, 1), "min"), ((4, 2), (3, 1), "min")]:
    x, i = array(shape), np.stack([random.integers(-n, n, of[:-1]) for n in shape[:of[-1]]], -1).astype("int64")
    u, y = array(of[:-1] + shape[of[-1]:]), x.copy()
    combine = {"update": lambda old, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    for at in np.ndindex(*of[:-1]):
        y[tuple(i[at])] = combine(y[tuple(i[at])], u[at])
    case("scatter_nd", f"x0, x1, x2, reduction=\"{reduction}\"", [x, i, u], y)
for shape, n, axis in [((2, 3), 2, 0), ((1,), 3, 1), ((0, 3), 2, -1), ((4, 1, 2), 2, 1), ((5,), 1, 0)]:
    parts = [array(shape, nan=True) for _ in range(n)]
    case("stack", "(" + "".join(f"x{k}, " for k in range(n)) + f"), axis={axis}", parts, np.stack(parts, axis))
for shape, flags, axis in [((7,), "tttt", None), ((3, 4), "tftf", None), ((6, 2), "tttt", 0), ((2, 5), "tfft", -1), ((0,), "tttt", None), ((5,), "ffff", None)]:
    x = np.round(array(shape, 0, 2, nan=axis is None)).astype("float32")
    sort, index, inverse, count = (f == "t" for f in flags)
    all_of = list(np.unique(x, True, True, True, axis))
    if not sort:
        all_of[0] = np.take(x.reshape(-1), np.sort(all_of[1]))
    all_of[2] = all_of[2].reshape(-1)
    wanted = [all_of[0]] + [r for r, w in zip(all_of[1:], (index, inverse, count)) if w]
    words = "".join(f", {name}={value}" for name, value in zip(("sorted", "return_index", "return_inverse", "return_counts"), (sort, index, inverse, count)))
    case("unique", "x0" + words + ("" if axis is None else f", axis={axis}"), [x], wanted)
for n, m, k in [(3, 3, 0), (2, 5, 1), (5, 2, -1), (0, 3, 0), (4, 4, 7), (1, 1, 0)]:
    case("eye", f"{n}, {m}, {k}", [], np.eye(n, m, k))
    x = array((n, m))
    case("eye_like", f"x0, {k}", [x], np.eye(n, m, k))
for n, periodic, alpha, beta in [(5, False, 0.54, 0.46), (8, True, 0.54, 0.46), (1, False, 0.54, 0.46), (1, True, 0.5, 0.5), (16, True, 0.5, 0.25), (2, False, 0.54, 0.46)]:
    w = alpha - beta * np.cos(2 * np.pi * np.arange(n) / (n if periodic else n - 1)) if n > 1 else np.ones(1)
    if (alpha, beta) == (0.54, 0.46) and n > 1:
        assert np.allclose(w, np.hamming(n + 1)[:-1] if periodic else np.hamming(n))
    case("hamming_window", f"{n}, {periodic}, {alpha}, {beta}", [], w)
for shapes, indexing in [(((3,), (2,)), "ij"), (((3,), (2,)), "xy"), (((2,), (3,), (4,)), "xy"), (((2,), (2,), (2,)), "ij"), (((0,), (2,)), "ij"), (((), (3,)), "ij")]:
    xs = [array(s, nan=True) for s in shapes]
    grids = np.meshgrid(*xs, indexing=indexing)
    case("meshgrid", "(" + "".join(f"x{k}, " for k in range(len(xs))) + f"), indexing=\"{indexing}\"", xs, list(grids))
for shape, nan in SHAPES:
    x = array(shape, nan=nan)
    case("size", "x0", [x], np.array(x.size, "int64"))
for (shape, nan), count, right, out32 in zip(SHAPES, [4, 1, 3, 6, 5], [False, True, True, False, True], [False, False, True, True, False]):
    x, b = np.round(array(shape, nan=nan) * 2) / 2, np.unique(np.round(array((count,)) * 2) / 2).astype("float32")
    case("bucketize", f"x0, x1, out_int32={out32}, right={right}", [x.astype("float32"), b],
         np.searchsorted(b, x, "right" if right else "left").astype("int32" if out32 else "int64"))
x, b = array((3, 4), -9, 9, "int32"), np.array([-5, 0, 3], "int32")
case("bucketize", "x0, x1", [x, b], np.searchsorted(b, x))
for shape, dtype in [((2, 3), "float32"), ((5,), "bool"), ((0, 3), "float32"), ((4, 1, 2), "int32"), ((3, 3), "bool")]:
    x = array(shape, -1, 1, dtype)
    if dtype == "float32" and x.size:
        x[0] = [0, -0.0, np.nan]
    case("nonzero", "x0", [x], np.array(np.nonzero(x)).astype("int64").reshape(len(shape), -1))
for shape, of in [((3, 4), ((2,), (2,))), ((3, 4, 2), ((2, 1), (3,))), ((5,), ((2, 3),)), ((2, 3, 4), ((4,),)), ((3, 4), ((0,), (0,))), ((2, 3, 2), ((), (2,), (1,)))]:
    x = array(shape, nan=True)
    at = [random.integers(-n, n, s).astype("int64" if k % 2 else "int32") for k, (n, s) in enumerate(zip(shape, of))]
    at = [np.asarray(a) for a in at]
    case("index_tensor", "x0, (" + "".join(f"x{k + 1}, " for k in range(len(at))) + ")", [x, *at], x[tuple(at)])
for shape, (start, end, step), axis in [((4, 3), (0, 4, 2), 0), ((3, 5), (1, 99, 1), 1), ((5,), (-3, -1, 1), 0), ((2, 4, 2), (1, 4, 3), -2), ((0, 3), (0, 2, 1), 1), ((4,), (3, 3, 1), 0)]:
    x, y = array(shape, nan=True), None
    y = x.copy()
    index = tuple(slice(start, end, step) if d == axis % len(shape) else slice(None) for d in range(len(shape)))
    src = array(x[index].shape)
    y[index] = src
    case("slice_scatter", f"x0, x1, {start}, {end}, {step}, axis={axis}", [x, src], y)
for shape, axis in [((2, 3), 1), ((1, 1), 0), ((0, 3), 1), ((4, 3, 2), 1), ((5,), -1)]:
    x, a = array(shape, nan=True), array((shape[axis],), -1, 1)
    along = a.reshape([-1 if d == axis % len(shape) else 1 for d in range(len(shape))])
    case("nn.prelu", f"x0, x1, axis={axis}", [x, a], np.where(wide(x) > 0, wide(x), wide(x) * along))
for (shape, nan), beta, threshold in zip(SHAPES, [1, 2, 0.5, 1, 4], [20, 20, 20, 1, 3]):
    x = array(shape, -6, 6, nan=nan)
    case("nn.softplus", f"x0, beta={beta}, threshold={threshold}", [x],
         np.where(wide(x) * beta > threshold, wide(x), np.log1p(np.exp(wide(x) * beta)) / beta))
for shape, nan in SHAPES:
    x = array(shape, -3, 3, nan=nan)
    case("nn.selu", "x0", [x], 1.0507009873554805 * np.where(wide(x) > 0, wide(x), 1.6732632423543772 * np.expm1(wide(x))))
for shape, nan in [((2, 3), False), ((1,), False), ((0, 3, 2), False), ((4, 1, 2), False), ((2, 2, 2, 2), True)]:
    x = array(shape, nan=nan)
    case("nn.batch_flatten", "x0", [x], x.reshape(shape[0], -1) if x.size else x.reshape(shape[0], math.prod(shape[1:])))
for shape, r in [((1, 4, 2, 2), 2), ((2, 9, 1, 2), 3), ((1, 2, 3, 3), 1), ((0, 4, 2, 2), 2), ((1, 8, 2, 1), 2)]:
    x = array(shape, nan=True)
    n, c, h, w = shape
    y = x.reshape(n, c // r ** 2, r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // r ** 2, h * r, w * r)
    case("nn.pixel_shuffle", f"x0, upscale_factor={r}", [x], y)
for shape, axis in [((2, 3), 1), ((1, 2, 2, 2), 1), ((4, 3), -1), ((0, 3), 1), ((3, 2, 2), 0)]:
    x, n = array(shape), shape[axis]
    g, b, m, v = array((n,), 0.5, 2), array((n,)), array((n,)), array((n,), 0.5, 2)
    column = [-1 if d == axis % len(shape) else 1 for d in range(len(shape))]
    gc, bc, mc, vc = (wide(t).reshape(column) for t in (g, b, m, v))
    case("nn.batch_norm", f"x0, x1, x2, x3, x4, axis={axis}, training=False", [x, g, b, m, v],
         [(wide(x) - mc) / np.sqrt(vc + 1e-5) * gc + bc, m, v])
for shape, reduction, ignore, weighted in [((2, 3), "mean", -100, True), ((3,), "mean", 1, True), ((2, 4, 3), "sum", 0, False), ((1, 2, 2, 2), "none", -1, True), ((4, 5), "mean", -1, False), ((5, 3), "sum", 9, True)]:
    p, n = array(shape), shape[1] if len(shape) > 1 else shape[0]
    of = shape[:1] + shape[2:] if len(shape) > 1 else ()
    t, w = np.asarray(array(of, 0, n - 1, "int64")), array((n,), 0.5, 2)
    if ignore not in range(n) and t.size > 1:
        t.flat[0] = ignore
    g = np.asarray(array(of if reduction == "none" else ()))
    used = np.where(t == ignore, 0, wide(w if weighted else np.ones_like(w))[np.where(t == ignore, 0, t)])
    each = -used * wide(g) / (used.sum() if reduction == "mean" else 1)
    out = np.zeros(shape)
    for at in np.ndindex(*of):
        if t[at] != ignore:
            out[at[:1] + (t[at],) + at[1:]] = each[at]
    if reduction == "mean" and used.sum() == 0:
        continue
    case("grad.nll_loss_backward", f"x0, x1, x2{', x3' if weighted else ''}, reduction=\"{reduction}\", ignore_index={ignore}", [g, p, t] + [w] * weighted, out)
for shape, count, axis in [((3, 4, 5), 2, 1), ((4,), 3, None), ((3, 2), 5, 0), ((2, 3), 0, -1), ((1, 1), 4, 1), ((0, 3), 2, 1)]:
    i = array((count,), 0, shape[axis or 0] - 1, "int32")
    x, along = array(shape), (axis or 0) % len(shape)
    g = array(shape[:along] + (count,) + shape[along + 1:])
    out = np.zeros(shape)
    np.add.at(out, (slice(None),) * along + (i,), wide(g))
    case("grad.take_backward", f"x0, x1, x2, axis={axis}", [g, x, i], out)
for a, b, strides, padding, extra, dilation, groups in [((2, 3, 4), (3, 2, 3), (1,), (0, 0), (0,), (2,), 1), ((1, 4, 3), (4, 3, 2), (3,), (1, 4), (2,), (4,), 2),
                                                        ((1, 2, 3, 2), (2, 3, 2, 3), (1, 2), (0, 1, 1, 0), (0, 1), (3, 2), 1), ((0, 1, 2, 2), (1, 1, 2, 2), (1, 1), (0,) * 4, (0, 0), (1, 2), 1),
                                                        ((2, 4, 2, 2), (4, 2, 2, 2), (2, 2), (1, 1, 0, 0), (1, 0), (2, 1), 2)]:
    conv_transpose(f"nn.conv{len(a) - 2}d_transpose", a, b, strides, padding, extra, dilation, groups)
for shape, nan in SHAPES:
    x = array(shape, nan=nan)
    case("nn.dropout", "x0, rate=0.3", [x], [x, np.ones_like(x)])
for shape, to, dtype, offset in [((6,), (2, 3), None, None), ((2, 3), (3, 2), "int32", 0), ((4,), (2, 3), "float16", 4), ((3, 2), None, "uint32", None), ((8,), (5,), None, 12), ((0, 3), (2, 0), None, None)]:
    x = array(shape)
    seen = x.reshape(-1).view(dtype or "float32")
    start = (offset or 0) // seen.itemsize
    seen = seen[start:start + math.prod(to or shape)].reshape(to or shape)
    words = "".join([f", shape=R.shape({list(to)})" if to else "", f', dtype=R.dtype("{dtype}")' if dtype else "", f", relative_byte_offset=R.prim_value({offset})" if offset is not None else ""])
    case("memory.view", "x0" + words, [x], seen, dtype=str(seen.dtype))
for shape, axis, dtype in [((3, 4), 1, "int32"), ((2, 3, 2), None, "int8"), ((4,), 0, "int64"), ((2, 5), 0, "int16"), ((3, 7), -1, "uint8"), ((0, 2), 1, "int32")]:
    x = array(shape, -120 if dtype != "uint8" else 0, 255 if dtype != "int8" else 120, dtype)
    case("mean", f"x0, axis={[axis] if axis is not None else None}", [x], np.trunc(np.sum(x, axis=axis, dtype="int64") / (x.size if axis is None else shape[axis])).astype(dtype))
for shape, dtype, low, high in [((7,), "int8", -5, 200), ((7,), "uint8", -5, 10), ((2, 3), "uint8", 3, 1000), ((5,), "int16", -70000, 70000), ((3,), "int64", -2, 2)]:
    x = array(shape, 0 if dtype == "uint8" else -128, 127, dtype)
    case("clip", f"x0, {low}, {high}", [x], np.clip(x.astype("int64"), low, high).astype(dtype))
NUMPYS_MODES = {"edge": "edge", "replicate": "edge", "reflect": "reflect", "circular": "wrap"}
for shape, widths, dtype in [((3, 4), (1, 0, 2, 3), "float32"), ((5,), (7, 12), "float32"), ((1, 3), (2, 2, 0, 1), "int8"), ((2, 1, 3), (0, 0, 1, 0, 0, 5), "int64"), ((2, 0), (1, 2, 0, 0), "float32"),
                             ((20, 40), (3, 1, 5, 2), "int32")]:
    pairs = [widths[2 * d:2 * d + 2] for d in range(len(shape))]
    for ours, numpys in NUMPYS_MODES.items():
        x = array(shape, -9, 9, dtype)
        case("nn.pad", f'x0, {widths}, pad_mode="{ours}"', [x], np.pad(x, pairs, numpys))

with open(Path(__file__).with_name("op_cases.jsonl"), "w") as out:
    for line in lines:
        out.write(json.dumps(line, separators=(",", ":")) + "\n")
few = {op: n for op, n in counts.items() if n < 5}
print(f"{len(lines)} cases of {len(counts)} ops" + (f"; fewer than five: {few}" if few else ""))
