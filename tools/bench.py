#!/usr/bin/env python3
"""Runs benchmarks and collects their results.

    bench.py BUILD_DIR [FILTER]

A benchmark is a program BUILD_DIR/<room>_<name>_bench, made of bench/<room>/<name>.cc, or a script bench/<room>/<name>.py, which gets
BUILD_DIR as its last argument. With `--json` it prints one JSON object per line and result: "bench" and "case" name it, numbers have
their unit in the name; "ratio" with "reach" compares with a peer; "absent" says in words which peer is not set up.
FILTER keeps benchmarks whose <room>_<name> contains it. All results go to BUILD_DIR/results.json.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def benchmarks(build_dir, root=ROOT):
    """The name and command of each benchmark."""
    found = {p.name.removesuffix("_bench"): [str(p), "--json"] for p in build_dir.glob("*_bench") if p.is_file()}
    for script in (root / "bench").glob("*/*.py"):
        found[f"{script.parent.name}_{script.stem}"] = [sys.executable, str(script), "--json", str(build_dir)]
    return dict(sorted(found.items()))


def described(result):
    """One line for a result."""
    head = f"{result.get('bench', '?')}: {result.get('case', '')}".rstrip(": ")
    if "absent" in result:
        return f"{head}: not compared: {result['absent']}"
    parts = []
    for key, value in result.items():
        if key not in ("bench", "case"):
            parts.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}")
    below = "ratio" in result and "reach" in result and result["ratio"] < result["reach"]
    return f"{head}: {', '.join(parts)}{'   BELOW ITS REACH' if below else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("filter", nargs="?", default="")
    args = parser.parse_intermixed_args()
    chosen = {name: command for name, command in benchmarks(args.build_dir.resolve()).items() if args.filter in name}
    if not chosen:
        sys.exit(f"error: no benchmark contains {args.filter}\n  needs: part of a name: {' '.join(benchmarks(args.build_dir))}\n  hint:  ./dev bench runs all")
    results, broken = [], []
    for name, command in chosen.items():
        print(f"== {name}", flush=True)
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
            for line in run.stdout:
                try:
                    result = json.loads(line)
                except ValueError:
                    print(line, end="")
                    continue
                results.append(result)
                print(described(result), flush=True)
        if run.returncode:
            broken.append(name)
            print(f"{name} ended with status {run.returncode}")
    path = args.build_dir / "results.json"
    path.write_text(json.dumps({"results": results, "broken": broken}, indent=1) + "\n")
    print(f"{len(results)} results in {path}" + (f"; broken: {', '.join(broken)}" if broken else ""))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
