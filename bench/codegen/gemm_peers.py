#!/usr/bin/env python3
"""f32 matrix products of the default rules against the better of OpenBLAS and oneDNN, in turns in one run.

    gemm_peers.py [--json] BUILD_DIR

Each library runs in its own process: thread pools in one process spin against each other. OpenBLAS is taken from the system;
oneDNN is the program `onednn_deb` of the peers' work folder, named by SATOR_PEERS.
"""
import argparse
import ctypes
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

SHAPES = [(2304, 768), (768, 768), (3072, 768), (768, 3072), (50257, 768), (2048, 2048), (8192, 2048), (2048, 8192)]
ROWS = [1, 16, 128, 512]
REACH = 0.85
THREADS = 2
ROUNDS = 2


def openblas():
    """Prints one JSON object per shape, measured as the other programs do: two calls to warm up, then at least three."""
    blas = ctypes.CDLL("libopenblas.so.0")
    blas.openblas_set_num_threads(THREADS)
    gemm = blas.cblas_sgemm
    gemm.restype = None
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    for n, k in SHAPES:
        weights = (ctypes.c_float * (n * k))(*([0.02, -0.01, 0.03] * (n * k // 3 + 1))[: n * k])
        x, y = (ctypes.c_float * (512 * k))(*([0.1, -0.2] * (256 * k))), (ctypes.c_float * (512 * n))()
        for m in ROWS:
            times, end = [], time.perf_counter() + 0.08
            while len(times) < 5 or time.perf_counter() < end:
                start = time.perf_counter()
                gemm(101, 111, 111, m, n, k, one, x, k, weights, n, zero, y, n)
                times.append(time.perf_counter() - start)
            times = sorted(times[2:])
            print(json.dumps({"M": m, "N": n, "K": k, "gflops": 2e-9 * m * n * k / times[len(times) // 2]}), flush=True)


def rows(command):
    """{(m, n, k): GFLOP/s} of a program's JSON lines; a time or a speed, in either spelling."""
    out = {}
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"status {done.returncode}")
    for line in done.stdout.splitlines():
        row = json.loads(line)
        key = tuple(int(row.get(c, row.get(c.lower()))) for c in "MNK")
        speed = row.get("gflops") or row.get("median_gflops")
        if speed is None:
            speed = 2e-9 * key[0] * key[1] * key[2] / (row.get("median_s") or row["median"])
        out[key] = max(out.get(key, 0), speed)
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("build_dir", nargs="?", type=Path)
    parser.add_argument("--openblas", action="store_true", help="be the OpenBLAS process")
    args = parser.parse_args()
    if args.openblas:
        return openblas()
    programs = {"sator": [str(args.build_dir / "codegen_products_bench"), "--json", "--threads", str(THREADS), "gemm"],
                "OpenBLAS": [sys.executable, __file__, "--openblas"]}
    onednn = Path(os.environ.get("SATOR_PEERS", "/nonexistent")) / "onednn_deb"
    if onednn.exists():
        shapes = [f"{m},{n},{k}" for n, k in SHAPES for m in ROWS]
        programs["oneDNN"] = [str(onednn), str(THREADS), "f32", "0.08", *shapes]
    else:
        print(json.dumps({"bench": "gemm_f32_peers", "case": "oneDNN",
                          "absent": "SATOR_PEERS names no work folder of the peers' setup.sh with onednn_deb"}))
    speeds = {}
    for _ in range(ROUNDS):
        for name, command in list(programs.items()):
            try:
                for key, speed in rows(command).items():
                    best = speeds.setdefault(name, {})
                    best[key] = max(best.get(key, 0), speed)
            except OSError as error:
                if name == "sator":
                    raise
                print(json.dumps({"bench": "gemm_f32_peers", "case": name, "absent": str(error)}))
                del programs[name]
    peers = [name for name in programs if name != "sator"]
    for m in ROWS if peers else []:
        ours = [speeds["sator"][m, n, k] for n, k in SHAPES]
        ratios = [speed / max(speeds[p][m, n, k] for p in peers) for speed, (n, k) in zip(ours, SHAPES)]
        mean = lambda v: math.exp(sum(map(math.log, v)) / len(v))
        print(json.dumps({"bench": "gemm_f32_peers", "case": f"M = {m}", "gflops": mean(ours), "ratio": mean(ratios),
                          "reach": REACH, "peers": " and ".join(peers)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
