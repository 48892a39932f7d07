#!/usr/bin/env python3
"""Perplexities of a quantized GPT-2, written in numpy from the definitions alone: what tests/llm/reference_test.cc compares with.

    quantized_perplexity.py MODEL DATA WINDOWS SCHEME... > quantized_perplexity.json
    quantized_perplexity.py --checkpoint bf16 MODEL DATA WINDOWS SCHEME... > bfloat16_perplexity.json
    quantized_perplexity.py --logits MODEL SCHEME... > float32_logits.json

With --checkpoint the model's weights are rounded to that dtype before anything else. MODEL: a GPT-2 folder with model.safetensors and validation.ids.u16, the evaluated stream. WINDOWS of 512 tokens are evaluated,
each from position 0. DATA/stories/calibration.txt gives static activation ranges. With --logits: every 8th logit behind each sequence of
MODEL/expected.json, by scheme; `unrounded` are the same of a scheme that kept the checkpoint's dtype where it quantizes nothing. Needs
numpy, safetensors, tokenizers.

Definitions, of W[out, in] and one scale s per tensor, channel, input or group of consecutive inputs:
    symmetric    s = max|w| / (2^(b-1) - 1), q = clamp(round-half-even(w / s))
    asymmetric   lo = min(w, 0), hi = max(w, 0), s = (hi - lo) / (2^b - 1), z = round(-lo / s), q = clamp(round(w / s) + z, 0, 2^b - 1)
                 (each s as the range times the float32 reciprocal of the divisor, as CUDA divides by a scalar; with -s16 rounded to
                 float16)
    floatB       a power of two s per channel, so that max|w / s| as rounded is at least 1 and less than 2; w / s to the nearest multiple, ties to even, of
                 2^(e - (B - 5)), 2^e the power of two at or below |w / s|, at least 2^-14
    activations  dynamic per token, or also per group of W: max|x| / (2^(b-1) - 1), with +embed of the head's input too; static: the same of the ranges over the first 16 windows of the
                 calibration text, multiplied into W before it is quantized
Where a scale of inputs meets activations, these are multiplied by it before they are quantized; beside static scales the
products have one scale, the largest of them by the calibration / (2^(b-1) - 1).

With +a16 both factors of every product (linear layers, head, scores and values of attention) are rounded to 16 bits: bfloat16
of bf16, else float16. Codes are a product's factor where their scale can follow the sum (per tensor, channel) or go to x (per
input), else q * s is. Every parameter that is not quantized is rounded to bfloat16 by bf16 and to float16 by every other scheme but
f32; the calibration runs on those of the checkpoint.
"""
import json
import re
import sys

import numpy as np
from safetensors.numpy import load_file

WINDOW = 512


def rounded(a, dtype):
    """To nearest, ties to even, as float32."""
    if dtype == "f16":
        return a.astype(np.float16).astype(np.float32)
    if dtype == "bf16":
        bits = np.ascontiguousarray(a, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)
    return a


class Scheme:
    def __init__(self, name):
        name, narrow = name.removesuffix("+a16"), name.endswith("+a16")
        self.factors = ("bf16" if name == "bf16" else "f16") if narrow else None
        self.storage = "bf16" if name == "bf16" else "f16"
        self.linears = self.embed = False
        self.activation_bits, self.floats = 0, False
        if name in ("f16", "bf16"):
            return
        if m := re.fullmatch(r"float(\d+)-channel(\+embed)?", name):
            self.bits, self.floats, self.linears, self.embed, self.granularity = int(m[1]), True, True, bool(m[2]), "channel"
            self.storage = "f32" if self.bits > 16 else "bf16"
            return
        form = r"(embed-)?int(\d)-(tensor|channel|input|group(\d+))(-asym)?(-s16)?(\+embed)?(?:\+a(\d)(?:-(token|group|tensor|embedding|peg8))?)?"
        m = re.fullmatch(form, name)
        if not m:
            sys.exit(f"error: {name} is no scheme of integers")
        self.linears, self.embed = not m[1], bool(m[1] or m[7])
        self.bits, self.granularity, self.group, self.asymmetric = int(m[2]), m[3].rstrip("0123456789"), int(m[4] or 0), bool(m[5])
        self.scales = "f16" if m[6] else "f32"
        self.activation_bits, self.activation = int(m[8] or 0), m[9] or "token"


def per_scale(scheme, reduce, a):
    """`reduce` over the elements that share a scale, at each element."""
    if scheme.granularity == "tensor":
        return np.broadcast_to(reduce(a), a.shape)
    if scheme.granularity in ("channel", "input"):
        return np.broadcast_to(reduce(a, axis=1 if scheme.granularity == "channel" else 0, keepdims=True), a.shape)
    out = np.empty_like(a)
    for begin in range(0, a.shape[1], scheme.group):
        part = slice(begin, begin + scheme.group)
        out[:, part] = reduce(a[:, part], axis=1, keepdims=True)
    return out


def small_floats(w, bits):
    """Values, and the power of two of each."""
    w = w.astype(np.float64)
    largest = np.abs(w).max(1, keepdims=True)
    s = 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1)))
    for _ in range(2):  # where the largest is rounded up to 2, another time
        v = w / s
        quantum = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(np.abs(v), 2.0**-40))), -14) - (bits - 5))
        v = np.rint(v / quantum) * quantum
        s = np.where(np.abs(v).max(1, keepdims=True) >= 2, 2 * s, s)
    return v.astype(np.float32), np.broadcast_to(s, w.shape).astype(np.float32)


def quantized(w, scheme):
    """Codes less their zero points, and the scale of each."""
    if scheme.floats:
        return small_floats(w, scheme.bits)
    top = 2 ** (scheme.bits - 1) - 1
    if not scheme.asymmetric:
        s = (per_scale(scheme, np.max, np.abs(w)) * (1 / np.float32(top))).astype(np.float32)
        s = rounded(s, scheme.scales)
        return np.clip(np.rint(w / np.where(s > 0, s, 1)), -top, top), s
    low, high = np.minimum(per_scale(scheme, np.min, w), 0), np.maximum(per_scale(scheme, np.max, w), 0)
    s = rounded(((high - low) * (1 / np.float32(2**scheme.bits - 1))).astype(np.float32), scheme.scales)
    safe = np.where(s > 0, s, 1)
    z = np.rint(-low / safe)
    return np.clip(np.rint(w / safe) + z, 0, 2**scheme.bits - 1) - z, s


class Gpt2:
    def __init__(self, folder, data, checkpoint):
        self.folder, self.data, self.ranges = folder, data, {}
        self.config = json.load(open(f"{folder}/config.json"))
        weights = load_file(f"{folder}/model.safetensors")
        self.stored = {k.removeprefix("transformer."): rounded(v.astype(np.float32), checkpoint) for k, v in weights.items()}
        self.params, self.factors = self.stored, None
        self.layers = [f"h.{i}.{n}" for i in range(self.config["n_layer"]) for n in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]

    def norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        epsilon = np.float32(self.config["layer_norm_epsilon"])
        return (x - mean) / np.sqrt(variance + epsilon) * self.params[name + ".weight"] + self.params[name + ".bias"]

    def logits(self, tokens, linear, table, head):
        n, heads, width = len(tokens), self.config["n_head"], self.config["n_embd"]
        x = table[tokens] + self.params["wpe.weight"][:n]
        mask = np.triu(np.full((n, n), -np.inf, np.float32), 1)
        for i in range(self.config["n_layer"]):
            p = f"h.{i}."
            qkv = linear(p + "attn.c_attn", self.norm(x, p + "ln_1"))
            q, k, v = (t.reshape(n, heads, width // heads).transpose(1, 0, 2) for t in np.split(qkv, 3, -1))
            q, k, v = (rounded(t, self.factors) for t in (q, k, v))
            s = q @ k.transpose(0, 2, 1) / np.float32(np.sqrt(width // heads)) + mask
            s = np.exp(s - s.max(-1, keepdims=True))
            attended = rounded(s, self.factors) @ v / s.sum(-1, keepdims=True)
            x = x + linear(p + "attn.c_proj", attended.transpose(1, 0, 2).reshape(n, width))
            h = linear(p + "mlp.c_fc", self.norm(x, p + "ln_2"))
            h = np.float32(0.5) * h * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (h + np.float32(0.044715) * h**3)))
            x = x + linear(p + "mlp.c_proj", h)
        return head(self.norm(x, "ln_f"))

    def product(self, x, q, s, scheme):
        """x W^T of codes q and their scales s."""
        if self.factors and scheme.granularity == "input":
            return rounded(x * s[0], self.factors) @ q.T.astype(np.float32)
        if self.factors and scheme.granularity != "group":
            return rounded(x, self.factors) @ q.T.astype(np.float32) * s[:, 0]
        return rounded(x, self.factors) @ rounded((q * s).astype(np.float32), self.factors).T

    def exact_linear(self, name, x):
        return rounded(x, self.factors) @ self.params[name + ".weight"] + self.params[name + ".bias"]

    def calibrate(self):
        """max|x| of each input of each linear layer."""
        from tokenizers import Tokenizer

        if self.ranges:
            return
        params, self.params = self.params, self.stored
        tokenizer = Tokenizer.from_file(f"{self.folder}/tokenizer.json")
        text = open(f"{self.data}/stories/calibration.txt", encoding="utf-8", newline="").read().removesuffix("\n")
        stream = []
        for work in re.split(r"(?:^|\n)<\|endoftext\|>(?:\n|$)", text):
            stream += tokenizer.encode(work, add_special_tokens=False).ids + [0]

        def observe(name, x):
            self.ranges[name] = np.maximum(self.ranges.get(name, 0), np.abs(x).max(0))
            return self.exact_linear(name, x)

        for begin in range(0, 16 * WINDOW, WINDOW):
            self.logits(np.array(stream[begin : begin + WINDOW]), observe, *self.table_and_head(None))
        self.params = params

    def static_scales(self, name, scheme, top):
        self.calibrate()
        r = self.ranges[name]
        if scheme.activation == "tensor":
            r = np.full_like(r, r.max())
        if scheme.activation == "peg8":
            r = np.repeat(r.reshape(8, -1).max(1), len(r) // 8)
        return np.where(r > 0, r / top, 1).astype(np.float32)

    @staticmethod
    def dynamic_product(x, q, s, top, group=None):
        """x W^T, the rows of x as integers up to `top` too, each or by groups."""
        if group:
            parts = [slice(k, k + group) for k in range(0, x.shape[1], group)]
            return sum(Gpt2.dynamic_product(x[:, p], q[:, p], s[:, p], top).astype(np.float64) for p in parts).astype(np.float32)
        a = np.abs(x).max(1, keepdims=True) / top
        a = np.where(a > 0, a, 1)
        codes = np.clip(np.rint(x / a), -top, top).astype(np.float64)
        return ((codes @ (q.astype(np.float64) * s).T) * a).astype(np.float32)

    def linear_of(self, scheme):
        if not scheme.linears:
            return self.exact_linear
        top = np.float32(2 ** (scheme.activation_bits - 1) - 1) if scheme.activation_bits else None
        static = scheme.activation_bits and scheme.activation not in ("token", "group")
        group = scheme.group if scheme.activation_bits and scheme.activation == "group" else None
        scales, weights = {}, {}
        for name in self.layers:
            w = np.ascontiguousarray(self.stored[name + ".weight"].T)
            if static:
                scales[name] = self.static_scales(name, scheme, top)
                w = w * scales[name]
            weights[name] = quantized(w, scheme)

        def linear(name, x):
            q, s = weights[name]
            if not scheme.activation_bits:
                return self.product(x, q, s, scheme) + self.params[name + ".bias"]
            if static:
                x, a = x / scales[name], np.float32(1)
                if scheme.granularity == "input":
                    a = (self.ranges[name] / scales[name] * s[0]).max() / top
            if scheme.granularity == "input":
                x, s = x * s[0], np.ones_like(s)
            if not static:
                return self.dynamic_product(x, q, s, top, group) + self.params[name + ".bias"]
            codes = np.clip(np.rint(x / a), -top, top).astype(np.float64)
            y = codes @ (q.astype(np.float64) * s).T
            return (y * a).astype(np.float32) + self.params[name + ".bias"]

        return linear

    def table_and_head(self, scheme):
        if not scheme or not scheme.embed:
            table = self.params["wte.weight"]
            return table, lambda x: rounded(x, self.factors) @ table.T
        q, s = quantized(self.stored["wte.weight"], scheme)
        table = (q * s).astype(np.float32)
        if not scheme.activation_bits or scheme.activation not in ("token", "group"):
            return table, lambda x: self.product(x, q, s, scheme)
        top = np.float32(2 ** (scheme.activation_bits - 1) - 1)
        if scheme.granularity == "input":
            return table, lambda x: self.dynamic_product(x * s[0], q, np.ones_like(s), top)
        return table, lambda x: self.dynamic_product(x, q, s, top, scheme.group if scheme.activation == "group" else None)

    def program_of(self, scheme):
        """The linear layers, the token table and the head under a scheme; exact ones without one."""
        self.params, self.factors = self.stored, scheme and scheme.factors
        if scheme and scheme.storage:
            self.params = {name: rounded(a, scheme.storage) for name, a in self.stored.items()}
        linear = self.linear_of(scheme) if scheme else self.exact_linear
        return linear, *self.table_and_head(scheme)

    def perplexity(self, scheme, ids, windows):
        program = self.program_of(scheme)
        total = 0.0
        for begin in range(0, windows * WINDOW, WINDOW):
            tokens = ids[begin : begin + WINDOW]
            z = self.logits(tokens, *program)[:-1].astype(np.float64)
            z -= z.max(-1, keepdims=True)
            total -= (z[np.arange(WINDOW - 1), tokens[1:]] - np.log(np.exp(z).sum(-1))).sum()
        return float(np.exp(total / ((WINDOW - 1) * windows)))

    def last_logits(self, scheme):
        program = self.program_of(scheme)
        sequences = json.load(open(f"{self.folder}/expected.json"))["sequences"]
        return [[float(z) for z in self.logits(np.array(s["input_ids"]), *program)[-1][::8]] for s in sequences]

    def first_logits(self, scheme, ids):
        """Every 512th logit of the first token: without a sum over tokens, no code lies on a boundary by chance."""
        program = self.program_of(scheme)
        return [float(z) for z in self.logits(ids[:1], *program)[0][::512]]


def main():
    words = sys.argv[1:]
    if words[0] == "--logits":
        model = Gpt2(words[1], None, None)
        schemes = [Scheme(name) for name in words[2:]]
        rows = {name: model.last_logits(scheme) for name, scheme in zip(words[2:], schemes)}
        for scheme in schemes:
            scheme.storage = None
        unrounded = {name: model.last_logits(scheme) for name, scheme in zip(words[2:], schemes)}
        print(json.dumps({"logits": rows, "unrounded": unrounded}))
        return
    checkpoint = words.pop(0) and words.pop(0) if words[0] == "--checkpoint" else None
    folder, data, windows = words[0], words[1], int(words[2])
    model = Gpt2(folder, data, checkpoint)
    ids = np.fromfile(f"{folder}/validation.ids.u16", dtype="<u2").astype(np.int64)
    schemes = {name: None if name == "f32" else Scheme(name) for name in words[3:]}
    rows = {name: model.perplexity(scheme, ids, windows) for name, scheme in schemes.items()}
    # Static scales come out of sums in another order: their last bit decides codes.
    dynamic = {name: scheme for name, scheme in schemes.items() if scheme and scheme.activation_bits and scheme.activation in ("token", "group")}
    first = {name: model.first_logits(scheme, ids) for name, scheme in dynamic.items()}
    print(json.dumps({"windows": windows, "perplexity": rows, "first_logits": first}, indent=1))


if __name__ == "__main__":
    main()
