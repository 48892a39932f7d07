#!/usr/bin/env python3
"""Prefill and decode of whole models beside llama.cpp, ONNX Runtime and OpenVINO, in turns: medians, spread, the ratio to the best of them,
and of decode how near it is to what a plain read of as many bytes would take.

    in_turns.py [--json] [--rounds N] [--only WORDS] BUILD_DIR

Needs the peers: SATOR_PEERS is the work folder of their setup.sh (venv/, hf-gpt2-124m and hf-llama-1b of make_hf.py, models/ of
make_gguf.py), SATOR_PEERS_TOOLS the folder of their scripts. Hosts are shared: single runs mislead by up to 1.4 x, and what else the
machine does shows; the spread tells.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple, Optional

ROOT = Path(__file__).resolve().parent.parent.parent
FIGURES = ("prefill128", "prefill512", "decode_at16", "decode_at512")
REACH = {"prefill128": 1.0, "prefill512": 1.0, "decode_at16": 1.15, "decode_at512": 1.15}


class Row(NamedTuple):
    scheme: str
    llama: Optional[str]     # llama.cpp's format, where it has one that is computed so
    ort: Optional[str]       # the mode of ONNX Runtime
    openvino: Optional[str]  # and of OpenVINO
    of_file: bool = False    # the scheme is of llama.cpp's own file


# By model and width. Of integers the embedding is stored as such too, as there.
ROWS = {
    "gpt2-124m f32": Row("f32", "f32", "f32", "f32"),
    # The same logits in 28 bits a weight, but for weights below 2^-14 of their channel's largest.
    "gpt2-124m f32 in 28 bits": Row("float28-channel+embed", "f32", "f32", "f32"),
    "gpt2-124m bf16": Row("bf16+a16", None, None, "bf16"),
    "gpt2-124m int8": Row("int8-channel+embed+a8", "q8_0", "int8", "int8"),
    "gpt2-124m int4": Row("int4-group32-s16+embed+a8", "q4_0", "int4", "int4"),
    "gpt2-124m Q4_K_M": Row("Q4_K_M+a8-group", "q4_k_m", None, None, of_file=True),
    "gpt2-124m Q8_0": Row("Q8_0+a8-group", "q8_0", None, None, of_file=True),
    "llama-1b int8": Row("int8-channel+embed+a8", "q8_0", "int8", "int8"),
    "llama-1b int4": Row("int4-group32-s16+embed+a8", "q4_0", "int4", "int4"),
    "llama-1b Q4_0": Row("Q4_0+a8-group", "q4_0", None, None, of_file=True),
    "llama-1b Q4_K_M": Row("Q4_K_M+a8-group", "q4_k_m", None, None, of_file=True),
}


class Peers:
    def __init__(self, program):
        self.program = program
        self.work = Path(os.environ.get("SATOR_PEERS", "/nonexistent"))
        self.tools = Path(os.environ.get("SATOR_PEERS_TOOLS", ROOT.parent / "shared" / "tools" / "peers"))
        self.python = self.work / "venv/bin/python"

    def missing(self, model):
        needed = (self.program, self.tools / "llm_bench.py", self.python, self.work / f"hf-{model}/config.json")
        return [str(p) for p in needed if not p.exists()]

    def gguf(self, model, row):
        return self.work / f"models/{model}-{row.llama}.gguf"

    def sator(self, model, row):
        source = self.gguf(model, row) if row.of_file else self.work / f"hf-{model}"
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "bench.json"
            command = [self.program, "bench", source, "--quantization", row.scheme, "--threads", "2", "--json", out]
            subprocess.run(command, check=True, capture_output=True)
            return json.loads(out.read_text())

    def script(self, *words):
        environment = dict(os.environ, LLAMA_CPP_LIB_PATH=str(self.work / "lib_amx"))
        done = subprocess.run([self.python, *words], cwd=self.tools, env=environment, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.strip().splitlines()[-1])

    def of(self, model, row):
        """What measures each, by its name."""
        runs = {"sator": lambda: self.sator(model, row)}
        if row.llama:
            runs["llama.cpp"] = lambda: self.script("llama_bench.py", str(self.gguf(model, row)), "2")
        short = model.split("-")[0]
        for name, word, mode in (("onnxruntime", "ort", row.ort), ("openvino", "openvino", row.openvino)):
            if mode:
                runs[name] = lambda word=word, mode=mode: self.script("llm_bench.py", word, short, mode, "2", str(self.work))
        return runs

    def read_rate(self):
        """GB/s of the best plain read of 2 GB by two threads; nothing where the peers' program of ceilings was not built."""
        ceilings = self.work / "ceilings"
        if not ceilings.exists():
            return None
        lines = subprocess.run([ceilings], capture_output=True, text=True, timeout=300).stdout.splitlines()
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return max((r["median"] for r in rows if r["ceiling"].startswith("read 2048")), default=None)


def figures_of(name, seen, bytes_per_token, rate):
    """A row for each figure."""
    medians = {peer: [statistics.median(c) for c in zip(*runs)] for peer, runs in seen.items()}
    for i, figure in enumerate(FIGURES):
        best = max((p for p in medians if p != "sator"), key=lambda p: medians[p][i], default=None)
        ours = medians["sator"][i]
        row = {"bench": "in_turns", "case": f"{name} {figure}", "tokens_per_s": ours}
        for peer, runs in seen.items():
            row |= {f"{peer}_least": min(r[i] for r in runs), f"{peer}_median": medians[peer][i], f"{peer}_most": max(r[i] for r in runs)}
        if best:
            row |= {"best": best, "ratio": ours / medians[best][i], "reach": REACH[figure]}
        if figure == "decode_at16" and rate and bytes_per_token:
            row |= {"GB_per_token": bytes_per_token / 1e9, "of_a_plain_read": ours * bytes_per_token / 1e9 / rate}
        yield row


def as_line(row, peers):
    each = "  ".join(f"{p} {row[p + '_median']:.1f} ({row[p + '_least']:.0f}-{row[p + '_most']:.0f})" for p in peers)
    read = f"  {row['of_a_plain_read']:.2f} of a plain read" if "of_a_plain_read" in row else ""
    return f"{row['case']:38s}{each}" + (f"  x {row['ratio']:.2f}" if "ratio" in row else "") + read


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--only", default="")
    arguments.add_argument("build_dir", type=Path)
    given = arguments.parse_args()
    peers = Peers(given.build_dir.resolve() / "sator")
    for name, row in ROWS.items():
        if given.only not in name:
            continue
        model = name.split()[0]
        if absent := peers.missing(model):
            print(json.dumps({"bench": "in_turns", "case": name, "absent": f"there is no {absent[0]}"}), flush=True)
            continue
        rates, seen, bytes_per_token = [], {}, 0
        for _ in range(given.rounds):
            rates.append(peers.read_rate())  # in its turn too: a host's memory is not always equally quick
            for peer, measure in peers.of(model, row).items():
                try:
                    result = measure()
                except (subprocess.CalledProcessError, ValueError, IndexError):
                    continue  # it has no such mode
                seen.setdefault(peer, []).append([result.get(f, 0) for f in FIGURES])
                bytes_per_token = result.get("bytes_per_token", bytes_per_token)
        rate = statistics.median(rates) if rates and None not in rates else None
        for figure in figures_of(name, seen, bytes_per_token, rate):
            print(json.dumps(figure) if given.json else as_line(figure, seen), flush=True)


if __name__ == "__main__":
    sys.exit(main())
