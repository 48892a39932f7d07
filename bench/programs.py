#!/usr/bin/env python3
"""Times ops of a user's program, built by `sator build` and run by `sator run --profile`, beside NumPy.

    bench/programs.py [--program PATH] [--threads N] [FILTER]

Each case is a graph of one op; results are compared too. Needs NumPy. Lines below half of NumPy's speed are marked.
"""
import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

ROOT = Path(__file__).resolve().parent.parent


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


CONV = 'R.nn.conv2d(x, w, strides=[{0}, {0}], padding=[{1}, {1}, {1}, {1}], data_layout="{2}", kernel_layout="{3}", out_layout="{2}")'

# name, expression over x (and w), shapes, the same in NumPy
CASES = [
    ("matmul 512", "R.matmul(x, w)", [(512, 512), (512, 512)], lambda x, w: x @ w),
    ("matmul 16x128x64x128", "R.matmul(x, w)", [(16, 128, 64), (16, 64, 128)], lambda x, w: x @ w),
    ("matmul 4x8x100x100x100", "R.matmul(x, w)", [(4, 8, 100, 100), (4, 8, 100, 100)], lambda x, w: x @ w),
    ("matmul NT 16x128x64x128", "R.matmul(x, R.permute_dims(w, [0, 2, 1]))", [(16, 128, 64), (16, 128, 64)],
     lambda x, w: x @ w.transpose(0, 2, 1)),
    ("matmul vector", "R.matmul(x, w)", [(1024,), (1024, 1024)], lambda x, w: x @ w),
    ("tensordot 2 axes", 'R.einsum((x, w), "iab,abj->ij")', [(128, 32, 32), (32, 32, 128)],
     lambda x, w: np.tensordot(x, w, axes=((1, 2), (0, 1)))),
    ("conv NCHW 64x56 3x3", CONV.format(1, 1, "NCHW", "OIHW"), [(1, 64, 56, 56), (64, 64, 3, 3)],
     lambda x, w: conv_nchw(x, w, 1, 1)),
    ("conv NCHW 256x14 3x3", CONV.format(1, 1, "NCHW", "OIHW"), [(1, 256, 14, 14), (256, 256, 3, 3)],
     lambda x, w: conv_nchw(x, w, 1, 1)),
    ("conv NCHW 3x224 7x7 s2", CONV.format(2, 3, "NCHW", "OIHW"), [(1, 3, 224, 224), (64, 3, 7, 7)],
     lambda x, w: conv_nchw(x, w, 2, 3)),
    ("conv NCHW 256x56 1x1", CONV.format(1, 0, "NCHW", "OIHW"), [(1, 256, 56, 56), (64, 256, 1, 1)],
     lambda x, w: conv_nchw(x, w, 1, 0)),
    ("conv NHWC 56x64 3x3", CONV.format(1, 1, "NHWC", "HWIO"), [(1, 56, 56, 64), (3, 3, 64, 64)],
     lambda x, w: conv_nhwc(x, w, 1, 1)),
    ("max pool NCHW 3x3 s2", "R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2])", [(1, 64, 113, 113)],
     lambda x: pool(x, 3, 2, (2, 3), np.max)),
    ("max pool NHWC 3x3 s2", 'R.nn.max_pool2d(x, pool_size=[3, 3], strides=[2, 2], layout="NHWC")', [(1, 113, 113, 64)],
     lambda x: pool(x, 3, 2, (1, 2), np.max)),
    ("avg pool NCHW 2x2 s2", "R.nn.avg_pool2d(x, pool_size=[2, 2], strides=[2, 2])", [(1, 64, 112, 112)],
     lambda x: pool(x, 2, 2, (2, 3), np.mean)),
    ("sum all", "R.sum(x)", [(1024, 1024)], lambda x: x.sum()),
    ("sum last", "R.sum(x, axis=[-1])", [(1024, 1024)], lambda x: x.sum(-1)),
    ("sum last odd", "R.sum(x, axis=[-1])", [(1000, 1003)], lambda x: x.sum(-1)),
    ("sum first", "R.sum(x, axis=[0])", [(1024, 1024)], lambda x: x.sum(0)),
    ("sum first narrow", "R.sum(x, axis=[0])", [(65536, 16)], lambda x: x.sum(0)),
    ("sum middle", "R.sum(x, axis=[1])", [(64, 256, 64)], lambda x: x.sum(1)),
    ("sum outer and last", "R.sum(x, axis=[0, 2])", [(64, 256, 64)], lambda x: x.sum((0, 2))),
    ("max last", "R.max(x, axis=[-1])", [(1024, 1024)], lambda x: x.max(-1)),
    ("mean all but channels", "R.mean(x, axis=[0, 2, 3])", [(8, 64, 56, 56)], lambda x: x.mean((0, 2, 3))),
    ("argmax last", "R.argmax(x, axis=-1)", [(1024, 1024)], lambda x: x.argmax(-1)),
    ("argmax first", "R.argmax(x, axis=0)", [(1024, 1024)], lambda x: x.argmax(0)),
    ("softmax last odd", "R.nn.softmax(x, axis=-1)", [(1000, 1003)],
     lambda x: (lambda e: e / e.sum(-1, keepdims=True))(np.exp(x - x.max(-1, keepdims=True)))),
    ("softmax first", "R.nn.softmax(x, axis=0)", [(1024, 1024)],
     lambda x: (lambda e: e / e.sum(0, keepdims=True))(np.exp(x - x.max(0, keepdims=True)))),
    ("layer norm", "R.nn.layer_norm(x, w, w, axes=[-1])", [(1024, 1024), (1024,)],
     lambda x, w: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + w),
    ("transpose 2D", "R.permute_dims(x, [1, 0])", [(1024, 1024)], lambda x: np.ascontiguousarray(x.T)),
    ("transpose 0213", "R.permute_dims(x, [0, 2, 1, 3])", [(8, 64, 128, 64)],
     lambda x: np.ascontiguousarray(x.transpose(0, 2, 1, 3))),
    ("transpose NCHW to NHWC", "R.permute_dims(x, [0, 2, 3, 1])", [(1, 64, 112, 112)],
     lambda x: np.ascontiguousarray(x.transpose(0, 2, 3, 1))),
    ("add", "R.add(x, w)", [(1024, 1024), (1024, 1024)], lambda x, w: x + w),
    ("add bias at batch 1", "R.add(x, w)", [(1, 1, 1024, 1024), (1024,)], lambda x, w: x + w),
    ("exp", "R.exp(x)", [(1024, 1024)], np.exp),
    ("add flat", "R.add(x, w)", [(1 << 20,), (1 << 20,)], lambda x, w: x + w),
    ("concat", "R.concat((x, w), axis=1)", [(1024, 512), (1024, 512)], lambda x, w: np.concatenate((x, w), 1)),
    ("strided slice", "R.strided_slice(x, [1], [1], [1023], [2])", [(1024, 1024)],
     lambda x: np.ascontiguousarray(x[:, 1:1023:2])),
    ("cumsum last", "R.cumsum(x, axis=1)", [(1024, 1024)], lambda x: x.cumsum(1)),
    ("cumsum first", "R.cumsum(x, axis=0)", [(1024, 1024)], lambda x: x.cumsum(0)),
    ("sort 50257", "R.sort(x, axis=-1)", [(1, 50257)], lambda x: np.sort(x, -1)),
    ("argsort rows", "R.argsort(x, axis=-1)", [(256, 1024)], lambda x: np.argsort(x, -1, kind="stable").astype("int32")),
    ("topk 40 of 50257", 'R.topk(x, k=40, axis=-1, ret_type="values")', [(1, 50257)],
     lambda x: -np.sort(-x, -1)[:, :40]),
    ("take rows", "R.take(x, R.astype(R.multiply(R.abs(w), R.const(1000, 'float32')), 'int32'), axis=0)",
     [(4096, 256), (1024,)], lambda x, w: x[(np.abs(w) * np.float32(1000)).astype("int32")]),
]

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main({params}):
        y = {expression}
        return y
"""


def best_of(act, seconds=0.3):
    """The least time of several calls, in microseconds."""
    act()
    times, end = [], time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def measure(program, threads, case, folder):
    name, expression, shapes, in_numpy = case
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    params = ", ".join(f'{n}: R.Tensor({tuple(a.shape)}, "float32")' for n, a in zip("xw", arrays))
    (folder / "p.py").write_text(PROGRAM.format(params=params, expression=expression))
    words = []
    for n, a in zip("xw", arrays):
        np.save(folder / f"{n}.npy", a)
        words += ["--input", str(folder / f"{n}.npy")]

    def sator(*args):
        done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[0])

    sator("build", folder / "p.py", "-o", folder / "p.so")
    sator("run", folder / "p.so", *words, "--output", folder / "y.npy", "--profile", "--rounds", 30, "--threads", threads,
          "--json", folder / "p.json")
    ours = sum(c["Duration (us)"]["microseconds"] for c in json.loads((folder / "p.json").read_text())["profile"]["calls"])
    got, want = np.load(folder / "y.npy"), in_numpy(*arrays)
    error = float(np.max(np.abs(got.reshape(np.shape(want)).astype("float64") - want) / (1 + np.abs(want))))
    return ours, best_of(lambda: in_numpy(*arrays)), error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--program", default=str(ROOT / "build/dev/sator"))
    parser.add_argument("--threads", type=int, default=2)
    a = parser.parse_args()
    print(f"{'op':28s}{'sator us':>12s}{'NumPy us':>12s}{'speed':>8s}")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if a.filter not in case[0]:
                continue
            try:
                ours, theirs, error = measure(a.program, a.threads, case, Path(folder))
            except RuntimeError as e:
                print(f"{case[0]:28s}  {e}")
                continue
            note = ("" if theirs >= 0.5 * ours else "  BELOW HALF") + ("" if error < 1e-3 else f"  WRONG by {error:.2g}")
            print(f"{case[0]:28s}{ours:12.1f}{theirs:12.1f}{theirs / ours:7.2f}x{note}", flush=True)


if __name__ == "__main__":
    main()
