#!/usr/bin/env python3
"""Times ops of a user's program beside NumPy: each is a graph of one op, built and called by the Python package.

    PYTHONPATH=build/dev/python build/venv/bin/python bench/programs.py [--dtype NAME ...] [--threads N ...] [FILTER]

FILTER is part of a case's name. Both are called as their users would call them, with results that are allocated by the call, in turns on
warm caches; the least time of many calls counts. Results are compared too. Rows below half of NumPy's speed are marked; the last lines
say how many rows are, and the median of all.
"""
import argparse
import statistics
import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import sator
from sator import relax
from sator.script import parse

FLOAT = ("float32", "float64")
INTEGER = ("int8", "uint8", "int32", "int64")
NUMBER = FLOAT + INTEGER
ANY = NUMBER + ("bool",)
F32 = ("float32",)
SQUARE, FLAT, ROWS, FIRST, PRIME = (1024, 1024), (1 << 20,), (1000, 1003), (1003, 1000), (1009, 1013)


# ---- Inputs: a shape has values of the case's dtype, of both signs; the others are functions of (random, dtype) ----

def values(shape):
    def make(random, dtype):
        if dtype == "bool":
            return random.random(shape) < 0.5
        if dtype in FLOAT:
            return random.standard_normal(shape).astype(dtype)
        return random.integers(0 if dtype == "uint8" else -100, 100, shape).astype(dtype)
    return make


def positive(shape, least=0.1, most=3.0):
    def make(random, dtype):
        if dtype in FLOAT:
            return random.uniform(least, most, shape).astype(dtype)
        return random.integers(max(1, int(least)), int(most) + 1, shape).astype(dtype)
    return make


def near_one(shape):
    """Factors of long products."""
    return lambda random, dtype: (1 + random.standard_normal(shape) / 1000 if dtype in FLOAT else random.integers(1, 4, shape)).astype(dtype)


def indices(shape, below, dtype="int32"):
    return lambda random, _: random.integers(0, below, shape).astype(dtype)


def distinct(count, below):
    return lambda random, _: random.permutation(below)[:count].astype("int64")


def condition(shape):
    return lambda random, _: random.random(shape) < 0.5


def of(dtype, make):
    return lambda random, _: make(random, dtype)


# ---- The same in NumPy, where it is no one call ----

def windows(x, kernel, stride, axes):
    """Windows of `kernel` along `axes`, moved by `stride`; the windows' own axes are the last."""
    view = sliding_window_view(x, kernel, axis=axes)
    index = [slice(None)] * x.ndim
    for axis in axes:
        index[axis] = slice(None, None, stride)
    return view[tuple(index)]


def conv_nchw(x, w, stride, padding):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    patches = windows(x, w.shape[2:], stride, (2, 3))  # n c h w kh kw
    return np.ascontiguousarray(np.tensordot(patches, w, axes=((1, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2))


def conv_nhwc(x, w, stride, padding):
    x = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    patches = windows(x, w.shape[:2], stride, (1, 2))  # n h w c kh kw
    return np.tensordot(patches, w, axes=((3, 4, 5), (2, 0, 1)))


def pool(x, kernel, stride, axes, reduce):
    return reduce(windows(x, (kernel, kernel), stride, axes), axis=(-2, -1))


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x):
    moved = x - x.max(-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(-1, keepdims=True))


def norm(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))


def written(x, index, update):
    """A copy of x with update at index."""
    out = x.copy()
    out[index] = update
    return out


def added(x, index, update):
    out = x.copy()
    np.add.at(out, index, update)
    return out


def put_along(x, index, update):
    out = x.copy()
    np.put_along_axis(out, index, update, 1)
    return out


def resized_linear(x):
    """A linear resize by 2 with half pixels: each result is 3/4 of the nearest element, 1/4 of the next."""
    for axis in (2, 3):
        near = np.repeat(x, 2, axis)
        far = np.take(x, np.clip(np.arange(2 * x.shape[axis]) // 2 + np.tile([-1, 1], x.shape[axis]), 0, x.shape[axis] - 1), axis)
        x = near * np.float32(0.75) + far * np.float32(0.25)
    return x


def sampled(p, u, rows):
    reached = np.cumsum(p, 1)[rows[:, 0]] <= u
    return np.minimum(reached.sum(1), p.shape[1] - 1).reshape(-1, 1)


def stable(x, axis):
    return np.argsort(x, axis, kind="stable").astype("int32")


# ---- Cases: name, expression over x, w and v, inputs, the same in NumPy (of the dtype where there are no inputs), dtypes ----

CONV = 'R.nn.conv2d(x, w, strides=[{0}, {0}], padding=[{1}, {1}, {1}, {1}], data_layout="{2}", kernel_layout="{3}", out_layout="{2}")'
SCATTER = 'R.scatter_elements(x, w, v, axis=1, reduction="update")'

CASES = [
    ("matmul 512", "R.matmul(x, w)", [(512, 512), (512, 512)], np.matmul, NUMBER),
    ("matmul 16x128x64x128", "R.matmul(x, w)", [(16, 128, 64), (16, 64, 128)], np.matmul, NUMBER),
    ("matmul 4x8x100x100x100", "R.matmul(x, w)", [(4, 8, 100, 100), (4, 8, 100, 100)], np.matmul, FLOAT),
    ("matmul NT 16x128x64x128", "R.matmul(x, R.permute_dims(w, [0, 2, 1]))", [(16, 128, 64), (16, 128, 64)], lambda x, w: x @ w.transpose(0, 2, 1), NUMBER),
    ("matmul TN 512", "R.matmul(R.permute_dims(x, [1, 0]), w)", [(512, 512), (512, 512)], lambda x, w: x.T @ w, FLOAT),
    ("matmul vector", "R.matmul(x, w)", [(1024,), SQUARE], np.matmul, NUMBER),
    ("matmul by vector", "R.matmul(x, w)", [SQUARE, (1024,)], np.matmul, NUMBER),
    ("tensordot 2 axes", 'R.einsum((x, w), "iab,abj->ij")', [(128, 32, 32), (32, 32, 128)], lambda x, w: np.tensordot(x, w, axes=((1, 2), (0, 1))), FLOAT),
    ("outer product", 'R.einsum((x, w), "i,j->ij")', [(1024,), (1024,)], np.outer, NUMBER),
    ("conv NCHW 64x56 3x3", CONV.format(1, 1, "NCHW", "OIHW"), [(1, 64, 56, 56), (64, 64, 3, 3)], lambda x, w: conv_nchw(x, w, 1, 1), FLOAT),
    ("conv NCHW 256x14 3x3", CONV.format(1, 1, "NCHW", "OIHW"), [(1, 256, 14, 14), (256, 256, 3, 3)], lambda x, w: conv_nchw(x, w, 1, 1), F32),
    ("conv NCHW 3x224 7x7 s2", CONV.format(2, 3, "NCHW", "OIHW"), [(1, 3, 224, 224), (64, 3, 7, 7)], lambda x, w: conv_nchw(x, w, 2, 3), F32),
    ("conv NCHW 256x56 1x1", CONV.format(1, 0, "NCHW", "OIHW"), [(1, 256, 56, 56), (64, 256, 1, 1)], lambda x, w: conv_nchw(x, w, 1, 0), F32),
    ("conv NHWC 56x64 3x3", CONV.format(1, 1, "NHWC", "HWIO"), [(1, 56, 56, 64), (3, 3, 64, 64)], lambda x, w: conv_nhwc(x, w, 1, 1), FLOAT),
    ("max pool NCHW 3x3 s2", "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2])", [(1, 64, 113, 113)], lambda x: pool(x, 3, 2, (2, 3), np.max), NUMBER),
    ("max pool NHWC 3x3 s2", 'R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], layout="NHWC")', [(1, 113, 113, 64)],
     lambda x: pool(x, 3, 2, (1, 2), np.max), NUMBER),
    ("avg pool NCHW 2x2 s2", "R.nn.avg_pool2d(x, pool_size=[2, 2], strides=[2, 2])", [(1, 64, 112, 112)], lambda x: pool(x, 2, 2, (2, 3), np.mean), FLOAT),
    ("adaptive avg pool", "R.nn.adaptive_avg_pool2d(x, output_size=[1, 1])", [(1, 256, 56, 56)], lambda x: x.mean((2, 3), keepdims=True), FLOAT),
]

# Elementwise ops of one operand, as a square and at batch 1.
FLOAT_UNARY = {
    "exp": np.exp, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "atan": np.arctan, "asinh": np.arcsinh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "ceil": np.ceil, "floor": np.floor, "round": np.round, "isnan": np.isnan, "isinf": np.isinf,
    "isfinite": np.isfinite, "nn.gelu_tanh": gelu_tanh, "nn.silu": lambda x: x / (1 + np.exp(-x)), "nn.softplus": lambda x: np.logaddexp(x, 0).astype(x.dtype),
}
POSITIVE_UNARY = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "acosh": np.arccosh}
CASES += [(name, f"R.{name}(x)", [SQUARE], f, FLOAT) for name, f in FLOAT_UNARY.items()]
CASES += [(name, f"R.{name}(x)", [positive(SQUARE, 1.1)], f, FLOAT) for name, f in POSITIVE_UNARY.items()]
CASES += [(name, f"R.{name}(x)", [lambda random, dtype: random.uniform(-0.99, 0.99, SQUARE).astype(dtype)], f, FLOAT)
          for name, f in {"acos": np.arccos, "asin": np.arcsin, "atanh": np.arctanh}.items()]
CASES += [
    ("exp batch 1", "R.exp(x)", [(1, 1, 1 << 20)], np.exp, FLOAT),
    ("abs", "R.abs(x)", [SQUARE], np.abs, NUMBER),
    ("negative", "R.negative(x)", [SQUARE], np.negative, NUMBER),
    ("square", "R.square(x)", [SQUARE], np.square, NUMBER),
    ("sign", "R.sign(x)", [SQUARE], np.sign, NUMBER),
    ("bitwise_not", "R.bitwise_not(x)", [SQUARE], np.invert, INTEGER),
    ("logical_not", "R.logical_not(x)", [SQUARE], np.logical_not, ("bool",)),
    ("relu", "R.nn.relu(x)", [SQUARE], lambda x: np.maximum(x, x.dtype.type(0)), NUMBER),
    ("leakyrelu", "R.nn.leakyrelu(x, 0.1)", [SQUARE], lambda x: np.where(x > 0, x, x * x.dtype.type(0.1)), FLOAT),
    ("clip", "R.clip(x, 5, 50)", [SQUARE], lambda x: np.clip(x, x.dtype.type(5), x.dtype.type(50)), NUMBER),
]

# Of two operands.
BINARY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal}
CASES += [(name, f"R.{name}(x, w)", [SQUARE, SQUARE], f, NUMBER) for name, f in BINARY.items()]
CASES += [(name, f"R.{name}(x, w)", [SQUARE, SQUARE], f, NUMBER) for name, f in COMPARE.items()]
CASES += [(name, f"R.{name}(x, w)", [SQUARE, SQUARE], f, INTEGER + ("bool",))
          for name, f in {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}.items()]
CASES += [(name, f"R.{name}(x, w)", [SQUARE, SQUARE], f, ("bool",))
          for name, f in {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}.items()]
CASES += [
    ("divide", "R.divide(x, w)", [SQUARE, positive(SQUARE)], np.divide, FLOAT),
    ("floor_divide", "R.floor_divide(x, w)", [SQUARE, positive(SQUARE, 1, 50)], np.floor_divide, NUMBER),
    ("floor_mod", "R.floor_mod(x, w)", [SQUARE, positive(SQUARE, 1, 50)], np.mod, NUMBER),
    ("mod", "R.mod(x, w)", [SQUARE, positive(SQUARE, 1, 50)], np.fmod, NUMBER),
    ("power", "R.power(x, w)", [positive(SQUARE), positive(SQUARE)], np.power, FLOAT),
    ("atan2", "R.atan2(x, w)", [SQUARE, SQUARE], np.arctan2, FLOAT),
    ("left_shift", "R.left_shift(x, w)", [SQUARE, indices(SQUARE, 3, None)], np.left_shift, INTEGER),
    ("right_shift", "R.right_shift(x, w)", [SQUARE, indices(SQUARE, 3, None)], np.right_shift, INTEGER),
    ("add flat", "R.add(x, w)", [FLAT, FLAT], np.add, NUMBER),
    ("add bias at batch 1", "R.add(x, w)", [(1, 1, *SQUARE), (1024,)], np.add, NUMBER),
    ("add column", "R.add(x, w)", [SQUARE, (1024, 1)], np.add, NUMBER),
    ("add prime", "R.add(x, w)", [PRIME, PRIME], np.add, NUMBER),
    ("add number", "R.add(x, R.const(3, '{dtype}'))", [SQUARE], lambda x: x + x.dtype.type(3), NUMBER),
    ("ewise_fma", "R.ewise_fma(x, w, v)", [SQUARE, SQUARE, SQUARE], lambda x, w, v: x * w + v, NUMBER),
    ("where", "R.where(x, w, v)", [condition(SQUARE), SQUARE, SQUARE], np.where, ANY),
    ("where row", "R.where(x, w, v)", [condition((1024,)), SQUARE, SQUARE], np.where, NUMBER),
    ("masked_fill", "R.masked_fill(x, w, R.const(0, '{dtype}'))", [SQUARE, condition(SQUARE)], lambda x, w: np.where(w, x.dtype.type(0), x), NUMBER),
]

# Reductions over all axes, the last, the first, odd and prime extents, narrow ones, and at batch 1.
OVER = {
    "all": ("None", SQUARE, None), "all prime": ("None", PRIME, None), "all flat": ("None", (1048573,), None), "last": ("[-1]", SQUARE, -1),
    "last odd": ("[-1]", ROWS, -1), "last prime": ("[-1]", PRIME, -1), "last batch 1": ("[-1]", (1, 1048573), -1), "last of 7": ("[-1]", (7, 149797), -1),
    "last of 13": ("[-1]", (80659, 13), -1), "first": ("[0]", SQUARE, 0), "first odd": ("[0]", FIRST, 0), "first prime": ("[0]", PRIME, 0),
    "first narrow": ("[0]", (65536, 16), 0), "first of 7 columns": ("[0]", (149797, 7), 0), "first of 3 rows": ("[0]", (3, 349525), 0),
    "middle": ("[1]", (64, 256, 64), 1), "middle prime": ("[1]", (61, 257, 67), 1), "outer and last": ("[0, 2]", (64, 256, 64), (0, 2)),
}
for where, (axes, shape, axis) in OVER.items():
    CASES += [
        (f"sum {where}", f"R.sum(x, axis={axes})", [shape], lambda x, axis=axis: x.sum(axis, dtype=x.dtype), NUMBER),
        (f"max {where}", f"R.max(x, axis={axes})", [shape], lambda x, axis=axis: x.max(axis), NUMBER),
    ]
    if where in ("all", "all prime", "last", "last prime", "first", "first prime", "middle"):
        CASES += [
            (f"min {where}", f"R.min(x, axis={axes})", [shape], lambda x, axis=axis: x.min(axis), NUMBER),
            (f"prod {where}", f"R.prod(x, axis={axes})", [near_one(shape)], lambda x, axis=axis: x.prod(axis, dtype=x.dtype), NUMBER),
            (f"mean {where}", f"R.mean(x, axis={axes})", [shape], lambda x, axis=axis: x.mean(axis), FLOAT),
            (f"variance {where}", f"R.variance(x, axis={axes})", [shape], lambda x, axis=axis: x.var(axis), FLOAT),
        ]
    if not isinstance(axis, tuple):
        CASES += [(f"argmax {where}", f"R.argmax(x, axis={axis})", [shape], lambda x, axis=axis: x.argmax(axis), NUMBER)]
        if where in ("all", "last", "first"):
            CASES += [(f"argmin {where}", f"R.argmin(x, axis={axis})", [shape], lambda x, axis=axis: x.argmin(axis), NUMBER)]
CASES += [
    ("std last", "R.std(x, axis=[-1])", [SQUARE], lambda x: x.std(-1), FLOAT),
    ("mean all but channels", "R.mean(x, axis=[0, 2, 3])", [(8, 64, 56, 56)], lambda x: x.mean((0, 2, 3)), FLOAT),
    ("median last", "R.median(x, axis=[-1])", [ROWS], lambda x: (np.median(x, -1), np.argsort(x, -1, kind="stable")[:, 501]), FLOAT),
    ("collapse_sum_to", "R.collapse_sum_to(x, (1, 1024))", [SQUARE], lambda x: x.sum(0, keepdims=True), FLOAT),
    ("softmax last odd", "R.nn.softmax(x, axis=-1)", [ROWS], lambda x: softmax(x, -1), FLOAT),
    ("softmax first", "R.nn.softmax(x, axis=0)", [SQUARE], lambda x: softmax(x, 0), FLOAT),
    ("softmax batch 1", "R.nn.softmax(x, axis=-1)", [(1, 50257)], lambda x: softmax(x, -1), FLOAT),
    ("log_softmax last", "R.nn.log_softmax(x, axis=-1)", [SQUARE], log_softmax, FLOAT),
    ("layer norm", "R.nn.layer_norm(x, w, w, axes=[-1])", [SQUARE, (1024,)], lambda x, w: norm(x, -1) * w + w, FLOAT),
    ("rms norm", "R.nn.rms_norm(x, w, axes=[-1], epsilon=1e-5)", [SQUARE, (1024,)],
     lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5).astype(x.dtype) * w, FLOAT),
    ("group norm", "R.nn.group_norm(x, w, w, num_groups=8, channel_axis=1, axes=[2, 3])", [(1, 64, 112, 112), (64,)],
     lambda x, w: norm(x.reshape(1, 8, 8, 112, 112), (2, 3, 4)).reshape(x.shape) * w[:, None, None] + w[:, None, None], FLOAT),
]

# Running sums, sorts, searches.
for where, axis, shape in (("last", 1, SQUARE), ("last odd", 1, ROWS), ("first", 0, SQUARE), ("batch 1", 1, (1, 1 << 20)), ("middle", 1, (64, 256, 64))):
    CASES += [
        (f"cumsum {where}", f"R.cumsum(x, axis={axis})", [shape], lambda x, axis=axis: x.cumsum(axis, dtype=x.dtype), NUMBER),
        (f"cumprod {where}", f"R.cumprod(x, axis={axis})", [near_one(shape)], lambda x, axis=axis: x.cumprod(axis, dtype=x.dtype), NUMBER),
    ]
for where, axis, shape in (("rows 224", -1, (1024, 224)), ("rows 1024", -1, (256, 1024)), ("first", 0, (1024, 256)), ("batch 1", -1, (1, 50257))):
    CASES += [
        (f"sort {where}", f"R.sort(x, axis={axis})", [shape], lambda x, axis=axis: np.sort(x, axis), NUMBER),
        (f"argsort {where}", f"R.argsort(x, axis={axis})", [shape], lambda x, axis=axis: stable(x, axis), NUMBER),
    ]
CASES += [
    ("sort down", "R.sort(x, axis=-1, descending=True)", [(256, 1024)], lambda x: np.sort(x, -1)[:, ::-1].copy(), NUMBER),
    ("topk 10 of 1024", 'R.topk(x, k=10, axis=-1, ret_type="values")', [(256, 1024)], lambda x: np.sort(x, -1)[:, :-11:-1].copy(), NUMBER),
    ("topk 10 of 224", 'R.topk(x, k=10, axis=-1, ret_type="values")', [(1024, 224)], lambda x: np.sort(x, -1)[:, :-11:-1].copy(), NUMBER),
    ("topk 40 of 50257", 'R.topk(x, k=40, axis=-1, ret_type="values")', [(1, 50257)], lambda x: np.sort(x, -1)[:, :-41:-1].copy(), NUMBER),
    ("unique", "R.unique(x)", [(1 << 18,)], np.unique, NUMBER),
    ("unique few", "R.unique(x)", [indices((1 << 18,), 50, None)], np.unique, NUMBER),
    ("nonzero", "R.nonzero(x)", [condition(SQUARE)], lambda x: np.stack(np.nonzero(x)), ("bool",)),
    ("bucketize", "R.bucketize(x, w)", [FLAT, lambda random, dtype: np.sort(values((256,))(random, dtype))],
     lambda x, w: np.searchsorted(w, x), NUMBER),
    ("multinomial", "R.multinomial_from_uniform(x, w, v)", [lambda random, dtype: random.dirichlet(np.ones(4096), 64).astype(dtype),
     positive((64, 1), 0.01, 0.99), lambda random, _: np.arange(64).reshape(-1, 1)], sampled, FLOAT),
]

# What moves elements.
CASES += [
    ("transpose 2D", "R.permute_dims(x, [1, 0])", [SQUARE], lambda x: np.ascontiguousarray(x.T), ANY),
    ("transpose odd", "R.permute_dims(x, [1, 0])", [ROWS], lambda x: np.ascontiguousarray(x.T), NUMBER),
    ("transpose 0213", "R.permute_dims(x, [0, 2, 1, 3])", [(8, 64, 128, 64)], lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3)), NUMBER),
    ("transpose NCHW to NHWC", "R.permute_dims(x, [0, 2, 3, 1])", [(1, 64, 112, 112)], lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1)), NUMBER),
    ("layout_transform NCHW16c", "R.layout_transform(x, index_map=lambda n, c, h, w: (n, c // 16, h, w, c % 16))", [(1, 64, 112, 112)],
     lambda x: np.ascontiguousarray(x.reshape(1, 4, 16, 112, 112).transpose(0, 1, 3, 4, 2)), NUMBER),
    ("pixel_shuffle", "R.nn.pixel_shuffle(x, 2)", [(1, 64, 112, 112)],
     lambda x: x.reshape(1, 16, 2, 2, 112, 112).transpose(0, 1, 4, 2, 5, 3).reshape(1, 16, 224, 224), NUMBER),
    ("concat last", "R.concat((x, w), axis=1)", [(1024, 512), (1024, 512)], lambda x, w: np.concatenate((x, w), 1), ANY),
    ("concat first", "R.concat((x, w), axis=0)", [(512, 1024), (512, 1024)], lambda x, w: np.concatenate((x, w), 0), ANY),
    ("stack last", "R.stack((x, w), axis=2)", [SQUARE, SQUARE], lambda x, w: np.stack((x, w), 2), NUMBER),
    ("stack first", "R.stack((x, w), axis=0)", [SQUARE, SQUARE], lambda x, w: np.stack((x, w)), NUMBER),
    ("split last", "R.split(x, 2, axis=1)", [SQUARE], lambda x: tuple(np.ascontiguousarray(p) for p in np.split(x, 2, 1)), ANY),
    ("strided slice", "R.strided_slice(x, [1], [1], [1023], [2])", [SQUARE], lambda x: np.ascontiguousarray(x[:, 1:1023:2]), ANY),
    ("slice", "R.strided_slice(x, [0, 1], [1, 1], [1023, 1023])", [SQUARE], lambda x: np.ascontiguousarray(x[1:1023, 1:1023]), ANY),
    ("flip last", "R.flip(x, axis=1)", [SQUARE], lambda x: np.ascontiguousarray(x[:, ::-1]), ANY),
    ("flip first", "R.flip(x, axis=0)", [SQUARE], lambda x: np.ascontiguousarray(x[::-1]), ANY),
    ("tile", "R.tile(x, [2, 2])", [(512, 512)], lambda x: np.tile(x, (2, 2)), ANY),
    ("repeat last", "R.repeat(x, 2, axis=1)", [(1024, 512)], lambda x: np.repeat(x, 2, 1), ANY),
    ("repeat first", "R.repeat(x, 2, axis=0)", [(512, 1024)], lambda x: np.repeat(x, 2, 0), ANY),
    ("broadcast row", "R.broadcast_to(x, (1024, 1024))", [(1, 1024)], lambda x: np.broadcast_to(x, SQUARE).copy(), ANY),
    ("broadcast column", "R.broadcast_to(x, (1024, 1024))", [(1024, 1)], lambda x: np.broadcast_to(x, SQUARE).copy(), ANY),
    ("pad", "R.nn.pad(x, [1, 1, 2, 2])", [SQUARE], lambda x: np.pad(x, ((1, 1), (2, 2))), NUMBER),
    ("tril", "R.tril(x, 0)", [SQUARE], np.tril, ANY),
    ("triu", "R.triu(x, 3)", [SQUARE], lambda x: np.triu(x, 3), ANY),
    ("full", "R.full((1024, 1024), R.const(1, '{dtype}'), dtype='{dtype}')", [], lambda dtype: np.full(SQUARE, 1, dtype), ANY),
    ("zeros", "R.zeros((1024, 1024), '{dtype}')", [], lambda dtype: np.full(SQUARE, 0, dtype), ANY),
    ("full_like", "R.full_like(x, R.const(1, '{dtype}'))", [SQUARE], lambda x: np.full_like(x, 1), ANY),
    ("arange", "R.arange(0, 1048576, 1, dtype='{dtype}')", [], lambda dtype: np.arange(0, 1048576, 1, dtype), ("float32", "float64", "int32", "int64")),
    ("eye", "R.eye(1024, 1024, 0, dtype='{dtype}')", [], lambda dtype: np.eye(1024, dtype=dtype), NUMBER),
    ("meshgrid", "R.meshgrid((x, w), indexing='ij')", [(1024,), (1024,)], lambda x, w: tuple(np.meshgrid(x, w, indexing="ij", copy=True)), NUMBER),
    ("take rows", "R.take(x, w, axis=0)", [(4096, 256), indices((1024,), 4096)], lambda x, w: np.take(x, w, 0), ANY),
    ("take columns", "R.take(x, w, axis=1)", [SQUARE, indices((1024,), 1024)], lambda x, w: np.take(x, w, 1), ANY),
    ("take elements", "R.take(x, w, axis=0)", [FLAT, indices(FLAT, 1 << 20)], lambda x, w: np.take(x, w), ANY),
    ("gather_elements", "R.gather_elements(x, w, axis=1)", [SQUARE, indices(SQUARE, 1024, "int64")], lambda x, w: np.take_along_axis(x, w, 1), NUMBER),
    ("gather_nd", "R.gather_nd(x, w)", [(4096, 256), indices((1024, 1), 4096, "int64")], lambda x, w: x[w[:, 0]], NUMBER),
    ("index_tensor", "R.index_tensor(x, (w,))", [(4096, 256), indices((1024,), 4096, "int64")], lambda x, w: x[w], NUMBER),
    ("slice_scatter", "R.slice_scatter(x, w, 1, 1023, 2, axis=0)", [SQUARE, (511, 1024)], lambda x, w: written(x, slice(1, 1023, 2), w), NUMBER),
    ("scatter_elements", SCATTER, [SQUARE, lambda random, _: np.argsort(random.random((1024, 256)), 1), (1024, 256)], put_along, NUMBER),
    ("scatter_nd", 'R.scatter_nd(x, w, v, reduction="update")', [(4096, 256), lambda r, t: distinct(1024, 4096)(r, t).reshape(-1, 1), (1024, 256)],
     lambda x, w, v: written(x, w[:, 0], v), NUMBER),
    ("scatter_nd add", 'R.scatter_nd(x, w, v, reduction="add")', [(4096, 256), indices((1024, 1), 4096, "int64"), (1024, 256)],
     lambda x, w, v: added(x, w[:, 0], v), NUMBER),
    ("resize2d nearest", 'R.image.resize2d(x, (224, 224), layout="NCHW", method="nearest_neighbor", coordinate_transformation_mode="asymmetric", '
     'rounding_method="floor")', [(1, 16, 112, 112)], lambda x: x.repeat(2, 2).repeat(2, 3), NUMBER),
    ("resize2d linear", 'R.image.resize2d(x, (224, 224), layout="NCHW", method="linear", coordinate_transformation_mode="half_pixel")', [(1, 16, 112, 112)],
     resized_linear, F32),
    ("quantize", 'R.quantize(x, w, R.const(0, "int8"), axis=0, out_dtype="int8")', [SQUARE, positive((1024,))],
     lambda x, w: np.clip(np.round(x / w[:, None]), -128, 127).astype("int8"), F32),
]
CASES += [(f"astype {to}", f"R.astype(x, '{to}')", [positive(SQUARE, 1, 100)], lambda x, to=to: x.astype(to), tuple(d for d in NUMBER if d != to)) for to in NUMBER]
CASES += [(f"astype {to}", f"R.astype(x, '{to}')", [SQUARE], lambda x, to=to: x.astype(to), ("bool",)) for to in NUMBER]

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main({params}):
        y = {expression}
        return y
"""
ALLOWED_ERROR = {"float32": 1e-3, "float64": 1e-10}


def arrays_of(result):
    if isinstance(result, (tuple, list)) or type(result).__name__ == "Tuple":
        return [np.asarray(r) for r in result]
    return [result.numpy() if hasattr(result, "numpy") else np.asarray(result)]


def error_of(got, want):
    """The greatest difference, relative to 1 + |want|; infinity for other shapes."""
    got, want = arrays_of(got), arrays_of(want)
    worst = 0.0 if len(got) == len(want) else float("inf")
    for g, w in zip(got, want):
        g = g.numpy() if hasattr(g, "numpy") else g
        if g.size != w.size:
            return float("inf")
        difference = np.abs(g.reshape(w.shape).astype("float64") - w.astype("float64"))
        worst = max(worst, float(np.max(difference / (1 + np.abs(w.astype("float64"))), initial=0)))
    return worst


def in_turns(acts, turns=6, seconds=0.03):
    """The least time of one call of each, in microseconds."""
    best = [float("inf")] * len(acts)
    for _ in range(turns):
        for i, act in enumerate(acts):
            act()
            end = time.perf_counter() + seconds
            while True:
                start = time.perf_counter()
                act()
                now = time.perf_counter()
                best[i] = min(best[i], now - start)
                if now >= end:
                    break
    return [b * 1e6 for b in best]


def measure(case, dtype, threads):
    """Times of NumPy and of one machine for each number of threads, in microseconds, and the error."""
    _, expression, inputs, in_numpy, _ = case
    random = np.random.default_rng(0)
    arrays = [(values(i) if isinstance(i, tuple) else i)(random, dtype) for i in inputs]
    if "shift" in expression:
        arrays = [a.astype(dtype) for a in arrays]
    params = ", ".join(f'{n}: R.Tensor({tuple(a.shape)}, "{a.dtype}")' for n, a in zip("xwv", arrays))
    module = parse(PROGRAM.format(params=params, expression=expression.replace("{dtype}", dtype)))
    program = relax.build(module, target="llvm")
    machines = [relax.VirtualMachine(program, sator.cpu(), num_threads=n)["main"] for n in threads]
    tensors = [sator.nd.array(a) for a in arrays]
    given = arrays or [dtype]  # what makes a tensor of nothing takes its dtype
    error = error_of(machines[0](*tensors), in_numpy(*given))
    times = in_turns([lambda: in_numpy(*given)] + [lambda f=f: f(*tensors) for f in machines])
    return times, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--dtype", nargs="+", default=ANY, choices=ANY)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    a = parser.parse_args()
    print(f"{'op':26s}{'dtype':>8s}{'NumPy us':>11s}" + "".join(f"{f'at {n} us':>11s}{'speed':>8s}" for n in a.threads))
    speeds, below = [[] for _ in a.threads], 0
    for case in CASES:
        for dtype in case[4]:
            if a.filter not in case[0] or dtype not in a.dtype:
                continue
            row = f"{case[0]:26s}{dtype:>8s}"
            try:
                (theirs, *ours), error = measure(case, dtype, a.threads)
            except (sator.TVMError, ValueError) as e:
                print(f"{row}  {str(e).strip().splitlines()[0]}", flush=True)
                continue
            for of_threads, t in zip(speeds, ours):
                of_threads.append(theirs / t)
            slow = any(theirs < 0.5 * t for t in ours)
            below += slow
            wrong = not error <= ALLOWED_ERROR.get(dtype, 0)
            print(f"{row}{theirs:11.1f}" + "".join(f"{t:11.1f}{theirs / t:7.2f}x" for t in ours) + ("  BELOW HALF" if slow else "") +
                  (f"  WRONG by {error:.2g}" if wrong else ""), flush=True)
    if speeds[0]:
        medians = ", ".join(f"{statistics.median(s):.2f} x at {n}" for n, s in zip(a.threads, speeds))
        print(f"{len(speeds[0])} rows, {below} below half; medians {medians}")


if __name__ == "__main__":
    main()
