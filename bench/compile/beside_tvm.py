#!/usr/bin/env python3
"""The compiler's own speed beside apache-tvm, both as their users call them from Python, in turns in one process: seconds, and how many
times faster Sator is. One JSON object a line.

    beside_tvm.py [--json] [--rounds N] BUILD_DIR

Needs BUILD_DIR/python, the package of `./dev build`, and apache-tvm (0.27 at the time of writing) in SATOR_PEERS/venv, whose Python runs
both. What is timed:
    parse      the text of a module of 100 products of matrices
    print      that module
    schedule   1,000 steps: split, reorder, fuse, cache_read, cache_write, compute_at, vectorize, unroll, parallel, decompose_reduction,
               on fresh products
    graph      LegalizeOps, AnnotateTIROpPattern, FoldConstant, FuseOps, FuseTIR of GPT-2's 12 layers, written with relax.frontend.nn in
               both, for 128 tokens; each step is listed too
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

try:
    import tvm
    from tvm import relax as tvm_relax
    from tvm.relax.frontend import nn as tvm_nn

    import sator
    from sator import relax as sator_relax
    from sator.relax.frontend import nn as sator_nn
except ImportError:
    tvm = None  # main runs it again with a Python that has both

WIDTH, HEADS, LAYERS, TOKENS, VOCAB = 768, 12, 12, 128, 50257
STEPS = ("LegalizeOps", "AnnotateTIROpPattern", "FoldConstant", "FuseOps", "FuseTIR")


def text_of(functions, tvm_spelling):
    tir = "tirx" if tvm_spelling else "tir"
    head = f"# from tvm.script import ir as I\n# from tvm.script import {tir} as T\n@I.ir_module\nclass Module:\n"
    decorator = "@T.prim_func(s_tir=True)" if tvm_spelling else "@T.prim_func"
    block = "sblock" if tvm_spelling else "block"
    return head + "".join(f'''    {decorator}
    def product{n}(A: T.Buffer((1024, 1024), "float32"), B: T.Buffer((1024, 1024), "float32"), C: T.Buffer((1024, 1024), "float32")):
        for i, j, k in T.grid(1024, 1024, 1024):
            with T.{block}("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
''' for n in range(functions))


def steps_on(schedule, block):
    """12 steps."""
    i, j, k = schedule.get_loops(block)
    i0, i1, i2 = schedule.split(i, [None, 4, 16])
    j0, j1, j2 = schedule.split(j, [None, 2, 32])
    k0, k1 = schedule.split(k, [None, 16])
    schedule.reorder(i0, j0, k0, i1, j1, k1, i2, j2)
    write = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(write, j0)
    read = schedule.cache_read(block, 1, "global")
    schedule.compute_at(read, k0)
    schedule.vectorize(j2)
    schedule.unroll(i2)
    schedule.parallel(i0)
    schedule.decompose_reduction(block, k0)


ROUNDS_OF_STEPS = -(-1000 // 12)


def gpt2(nn):
    """GPT-2's graph for TOKENS tokens in the words that both packages have."""
    op = nn.op

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x, mask):
            size = WIDTH // HEADS
            parts = op.split(op.reshape(self.qkv(self.norm1(x)), (1, TOKENS, 3 * HEADS, size)), 3, axis=2)
            q, k, v = (op.permute_dims(part, [0, 2, 1, 3]) for part in parts)
            scores = op.matmul(q, op.permute_dims(k, [0, 1, 3, 2])) * (1 / size**0.5) + mask
            mixed = op.permute_dims(op.matmul(op.softmax(scores, axis=-1), v), [0, 2, 1, 3])
            x = x + self.out(op.reshape(mixed, (1, TOKENS, WIDTH)))
            return x + self.down(op.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(VOCAB, WIDTH), nn.Embedding(1024, WIDTH)
            self.blocks, self.norm = nn.ModuleList([Block() for _ in range(LAYERS)]), nn.LayerNorm(WIDTH)
            self.head = nn.Linear(WIDTH, VOCAB, bias=False)

        def forward(self, ids: nn.Tensor, positions: nn.Tensor, mask: nn.Tensor):
            x = self.tokens(ids) + self.positions(positions)
            for block in self.blocks:
                x = block(x, mask)
            return self.head(self.norm(x))

    return Model().export_tvm({"forward": {"ids": nn.spec.Tensor([1, TOKENS], "int32"), "positions": nn.spec.Tensor([1, TOKENS], "int32"),
                                           "mask": nn.spec.Tensor([1, 1, TOKENS, TOKENS], "float32")}})[0]


def seconds(work):
    begin = time.perf_counter()
    out = work()
    return time.perf_counter() - begin, out


class Sator:
    name = "sator"
    text, one = text_of(100, False), text_of(1, False)

    def parse(self, text):
        return sator.script.parse(text)

    def schedule(self, module):
        s = sator.tir.Schedule(module)
        s.work_on("product0")
        steps_on(s, s.get_block("product"))
        return s

    def graph(self):
        return gpt2(sator_nn)

    def step(self, name, module):
        with sator.target.Target("llvm"):
            return getattr(sator_relax.transform, name)()(module)


class Tvm:
    name = "tvm"
    text, one = text_of(100, True), text_of(1, True)

    def parse(self, text):
        return tvm.script.from_source(text)

    def schedule(self, module):
        s = tvm.s_tir.Schedule(module, debug_mask="none")
        s.work_on("product0")
        steps_on(s, s.get_sblock("product"))
        return s

    def graph(self):
        return gpt2(tvm_nn)

    def step(self, name, module):
        with tvm.target.Target("llvm"):
            return getattr(tvm_relax.transform, name)()(module)


def measure(side, times):
    def timed(what, work):
        took, out = seconds(work)
        times.setdefault(what, {}).setdefault(side.name, []).append(took)
        return out

    module = timed("parse 100 functions", lambda: side.parse(side.text))
    timed("print 100 functions", lambda: module.script())
    one = side.parse(side.one)
    timed(f"schedule {12 * ROUNDS_OF_STEPS} steps", lambda: [side.schedule(one) for _ in range(ROUNDS_OF_STEPS)])
    current, whole = side.graph(), 0.0
    for name in STEPS:
        took, current = seconds(lambda: side.step(name, current))
        times.setdefault(f"graph {name}", {}).setdefault(side.name, []).append(took)
        whole += took
    times.setdefault(f"graph {STEPS[0]}..{STEPS[-1]}", {}).setdefault(side.name, []).append(whole)
    return len(current.get_global_vars() if hasattr(current, "get_global_vars") else current.functions)


def with_both(build_dir):
    """Runs this script with the Python that has both packages; says what is absent."""
    python, package = Path(os.environ.get("SATOR_PEERS", "/nonexistent")) / "venv/bin/python", build_dir.resolve() / "python"
    for needed in (python, package / "sator"):
        if not needed.exists():
            print(json.dumps({"bench": "compile_beside_tvm", "case": "", "absent": f"there is no {needed}"}))
            return 0
    environment = dict(os.environ, PYTHONPATH=str(package), SATOR_HAS_BOTH="1")
    done = subprocess.run([python, __file__, *sys.argv[1:]], env=environment, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        print(json.dumps({"bench": "compile_beside_tvm", "case": "", "absent": done.stderr.strip().splitlines()[-1]}))
    return 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("build_dir", type=Path)
    given = arguments.parse_args()
    if "SATOR_HAS_BOTH" not in os.environ:
        return with_both(given.build_dir)
    if tvm is None:
        sys.exit("apache-tvm or sator cannot be imported")
    times, functions = {}, {}
    for _ in range(given.rounds):
        for side in (Sator(), Tvm()):
            functions[side.name] = measure(side, times)
    for what, of in times.items():
        ours, theirs = statistics.median(of["sator"]), statistics.median(of["tvm"])
        row = {"bench": "compile_beside_tvm", "case": what, "sator_s": ours, "tvm_s": theirs, "ratio": theirs / ours, "tvm": tvm.__version__}
        print(json.dumps(row) if given.json else f"{what:36s} {ours * 1e3:10.1f} ms {theirs * 1e3:10.1f} ms {theirs / ours:8.1f} x", flush=True)
    print(f"functions after FuseTIR: {functions}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
