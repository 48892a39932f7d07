#!/usr/bin/env python3
"""Prefill and decode of whole models against llama.cpp, in turns in one run.

    side_by_side.py [--json] BUILD_DIR

Needs the peers: SATOR_PEERS is the work folder of their setup.sh and run.sh (models/ holds the GGUF files), SATOR_PEERS_TOOLS
the folder of their scripts; a random GPT-2 124M of make_hf.py in SATOR_PEERS/hf/gpt2-124m is measured where it is there.
"""
import os
import re
import subprocess
import sys
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Scheme, llama.cpp's format, least ratio of each figure.
PAIRS = [("f32", "f32", {"prefill128": 1.0, "prefill512": 1.0, "decode_at16": 1.0, "decode_at512": 1.1}),
         ("int8-channel+a8", "q8_0", {"prefill128": 2.0, "prefill512": 2.0})]


def main():
    build = Path(sys.argv[-1])
    work = Path(os.environ.get("SATOR_PEERS", "/nonexistent"))
    tools = Path(os.environ.get("SATOR_PEERS_TOOLS", ROOT.parent / "shared" / "tools" / "peers"))
    program = build / "sator"
    for folder, name in [(ROOT / "examples" / "gpt2-stories", "gpt2-stories"), (work / "hf" / "gpt2-124m", "gpt2-124m")]:
        for scheme, form, reach in PAIRS:
            head = {"bench": "side_by_side", "case": f"{name} {scheme} / {form}"}
            gguf = work / "models" / f"{name}-{form}.gguf"
            missing = [str(p) for p in (program, tools / "side_by_side.py", folder / "config.json", gguf) if not p.exists()]
            if missing:
                print(json.dumps(head | {"absent": f"there is no {missing[0]}"}), flush=True)
                continue
            command = [str(work / "venv/bin/python"), str(tools / "side_by_side.py"), str(work), str(program), str(folder), scheme,
                       str(gguf), "noamx"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(json.dumps(head | {"absent": done.stderr.strip().splitlines()[-1]}), flush=True)
                continue
            for figure, ours, theirs in re.findall(r"(\w+)\s+sator\s+([\d.]+)\s+llama.cpp\s+([\d.]+)", done.stdout):
                row = {"case": f"{head['case']} {figure}", "tokens_per_s": float(ours), "llama_tokens_per_s": float(theirs),
                       "ratio": float(ours) / float(theirs)}
                print(json.dumps(head | row | ({"reach": reach[figure]} if figure in reach else {})), flush=True)


if __name__ == "__main__":
    sys.exit(main())
