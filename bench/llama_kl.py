#!/usr/bin/env python3
"""Compares the predictions of a GGUF file as Sator and as llama.cpp run it: mean KL divergence, and how often the most likely token is the same.

    bench/llama_kl.py MODEL.gguf IDS [--quantization NAME] [--program PATH] [--windows N] [--length N]

IDS: token ids as 16-bit integers, or as text with commas or blanks between them. Needs NumPy and llama-cpp-python. llama.cpp runs on two
threads with its own defaults (a float16 cache, activations of 8 bits beside quantized weights); Sator as `sator logits` does: what differs is
what the two make of the same file. Beside it stands the perplexity of both over the same windows.
"""
import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from llama_cpp import Llama

ROOT = Path(__file__).resolve().parent.parent


def read_ids(path):
    raw = Path(path).read_bytes()
    if path.endswith(".u16"):
        return np.frombuffer(raw, "<u2").astype(int).tolist()
    return [int(word) for word in raw.decode().replace(",", " ").split()]


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def sator_logits(program, model, scheme, ids, folder):
    out = Path(folder) / "logits.npy"
    asked = ["--quantization", scheme] if scheme else []
    subprocess.run([program, "logits", model, *asked, "--ids", ",".join(map(str, ids)), "-o", out], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return np.load(out)


def llama_logits(llama, ids):
    llama.reset()
    llama.eval(ids)
    return np.array(llama.scores[:len(ids)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("ids")
    parser.add_argument("--quantization", help="Q4_0+a8 takes inputs as integers too; the file's own codes with float inputs unless told")
    parser.add_argument("--program", default=ROOT / "build" / "release" / "sator")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    a = parser.parse_args()
    ids = read_ids(a.ids)
    windows = [ids[i:i + a.length] for i in range(0, len(ids) - a.length + 1, a.length)][:a.windows]
    if not windows:
        parser.error(f"{a.ids} has {len(ids)} ids, fewer than a window of {a.length}")
    llama = Llama(a.model, n_ctx=a.length, n_batch=a.length, n_threads=2, n_threads_batch=2, logits_all=True, verbose=False)
    divergences, same, nats = [], [], {"sator": [], "llama.cpp": []}
    with tempfile.TemporaryDirectory() as folder:
        for window in windows:
            p, q = log_softmax(llama_logits(llama, window)), log_softmax(sator_logits(a.program, a.model, a.quantization, window, folder))
            divergences.append((np.exp(p) * (p - q)).sum(axis=-1).mean())
            same.append((p.argmax(axis=-1) == q.argmax(axis=-1)).mean())
            for name, x in (("llama.cpp", p), ("sator", q)):
                nats[name].append(-x[np.arange(len(window) - 1), window[1:]].mean())
    error = np.std(divergences, ddof=1) / np.sqrt(len(divergences)) if len(divergences) > 1 else float("nan")
    print(f"{Path(a.model).name}: {len(windows)} windows of {a.length} tokens")
    print(f"KL of Sator's predictions from llama.cpp's: {np.mean(divergences):.3g} nats per token, standard error {error:.1g}")
    print(f"same most likely token: {100 * np.mean(same):.2f} %")
    for name, x in nats.items():
        print(f"perplexity, {name}: {np.exp(np.mean(x)):.4f}")


if __name__ == "__main__":
    main()
