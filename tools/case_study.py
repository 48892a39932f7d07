#!/usr/bin/env python3
"""Writes a document on a model's matrix products and what they cost on a described chip, by kinds of quantization, from a study.json.

    case_study.py STUDY.json [--chip NAME] [--made-by COMMAND] [-o FILE]

The study needs the scheme f16, and with --routes and --context it has what the sections on routes and contexts are made from:
docs/case-study-gpt2.md says how its own was made. Every number in the document is one of the study's, or computed from them.
"""
import argparse
import json
import math
import sys
from pathlib import Path

# What shares one scale. Floats, then each kind for weights alone and with activations.
# Source: Bondarenko et al., "Understanding and Overcoming the Challenges of Efficient Transformer Quantization", EMNLP 2021.
KINDS = [
    ("none", "f16", "", "16-bit floats, which the others are compared with"),
    ("per tensor", "int8-tensor+embed", "weights", "one scale per matrix"),
    ("per embedding", "int8-input+embed", "weights", "one scale per input feature, a column of W[out, in]"),
    ("per token", "int8-channel+embed", "weights", "one scale per row of W[out, in]: in embedding and head per token of the vocabulary"),
    ("per group of embeddings", "int8-group32+embed", "weights", "one scale per 32 input features of a row"),
    ("per tensor", "int8-tensor+embed+a8-tensor", "weights and activations", "one scale for all inputs of a layer"),
    ("per embedding", "int8-channel+embed+a8-embedding", "weights and activations",
     "one scale per input feature of a layer, multiplied into the weights before these are quantized per row"),
    ("per token", "int8-channel+embed+a8-token", "weights and activations", "one scale per token, taken from its row"),
    ("per group of embeddings", "int8-channel+embed+a8-peg8", "weights and activations",
     "one scale per eighth of a layer's input features, multiplied into the weights"),
]
COMPONENTS = {"array": "MAC array", "weights": "weight bytes", "scales": "scale traffic", "activations": "activation bytes",
              "dequantize": "dequantize", "rescale": "rescale", "quantize": "activation quantize", "attention": "attention",
              "vector": "vector work", "launch": "launch", "links": "links"}


# How numbers look: as in Sator's own tables (src/base/figures.h).

def exponent_of(value):
    """The decimal exponent of the value once it is rounded to three digits."""
    return int(f"{abs(value):.2e}".split("e")[1])


def quantity(value, unit=""):
    if value == 0:
        return f"0 {unit}".strip()
    step = min(6, max(-6, exponent_of(value) // 3))
    digits = max(0, 2 - (exponent_of(value) - 3 * step))
    prefix = ["a", "f", "p", "n", "µ", "m", "", "k", "M", "G", "T", "P", "E"][step + 6]
    return f"{value / 10.0 ** (3 * step):.{digits}f} {prefix}{unit}".rstrip()


def significant(value):
    if value == 0:
        return "0"
    exponent = exponent_of(value)
    return f"{value:.2e}" if not -4 <= exponent <= 6 else f"{value:.{max(0, 2 - exponent)}f}"


def times(ratio):
    return (f"{ratio:.{2 if ratio < 9.995 else 1}f}" if ratio < 99.95 else significant(ratio)) + "x"


def percent(share):
    value = abs(share * 100)
    return f"{share * 100:.{0 if value >= 99.95 else 1 if value >= 0.0995 or value == 0 else 2}f} %"


def grouped(n):
    return f"{n:,}"


def energy(cost):
    return "-" if cost["energy_j"] is None else quantity(cost["energy_j"], "J")


def table(heads, rows):
    """Markdown; columns whose head begins with '>' are figures, aligned to the right."""
    lines = [[h.lstrip(">") for h in heads], ["--:" if h.startswith(">") else "---" for h in heads]]
    lines += [list(row) + [""] * (len(heads) - len(row)) for row in rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


class Study:
    """One chip of a study.json."""

    def __init__(self, data, chip):
        self.data, self.model, self.protocol = data, data["model_facts"], data["protocol"]
        chips = {c["name"]: c for c in data["chips"]}
        if chip not in chips:
            raise SystemExit(f"error: the study has no chip {chip}\n  needs: one of {', '.join(chips)}")
        self.chip = chips[chip]
        self.rows = {r["scheme"]: r for r in data["rows"] if r["chip"] == chip}
        self.kinds = [k for k in KINDS if k[1] in self.rows]
        if not self.kinds or self.kinds[0][1] != "f16":
            raise SystemExit("error: the study has no scheme f16\n  needs: the scheme that others are compared with")
        self.base = self.rows["f16"]
        if "matmuls" not in self.base["prefill"]:
            raise SystemExit("error: the study lists no matrix products\n  hint:  run `sator study` of this version again")
        points = [p for p in data["sweep"] if p["chip"] == chip and p["batch"] == 1]
        self.steps = {s: sorted((p for p in points if p["scheme"] == s), key=lambda p: p["context"]) for s in self.rows}
        self.routes = [r for r in data.get("routes", []) if r["chip"] == chip]
        self.outer = self.base["prefill"]["levels"][0]["name"]

    def outside(self, cost):
        """The memory outside of the chip."""
        return cost["levels"][0]

    def outside_bytes(self, cost):
        return cost["bytes"][self.outer]


def with_batch(p):
    return str(p["i"]) if p["batch"] == 1 else f"{p['batch']} x {p['i']}"


def kind_words(kind):
    name, scheme, of, _ = kind
    return f"`{scheme}`" if not of else f"{name}, {of}: `{scheme}`"


def chip_line(c):
    node = f", {c['node_nm']} nm" if c["node_nm"] else ""
    return (f"{c['name']}: {c['rows']}x{c['columns']} MAC units, {c['dataflow']}, {quantity(c['clock_hz'], 'Hz')}, "
            f"{quantity(c['outer_bytes_per_s'], 'B/s')} outside{node}")


def matmul_table(rows):
    """Every kernel with products, one line per product; the kernel's own figures stand in its first line."""
    lines = []
    for k in rows:
        for p, use in enumerate(k["products"]):
            names = [f"`{k['function']}`", k["layer"], str(k["count"])] if p == 0 else [f"its `{use['name']}`", "", ""]
            own = [grouped(k["latency_cycles"]), quantity(k["latency_s"], "s"), quantity(k["outer_bytes"], "B"),
                   quantity(k["outer_bytes_per_s"], "B/s"), energy(k), k["bound"]]
            lines.append(names + [with_batch(use), str(use["j"]), str(use["k"]), use["tile"], quantity(use["macs"])] +
                         (own if p == 0 else []))
    return table(["kernel", "layer", "count", ">i", ">j", ">k", "tile", ">MACs", ">cycles", ">latency", ">bytes outside",
                  ">bandwidth", ">energy", "bound"], lines)


def step_words(s, cost):
    products = sum(k["latency_s"] * k["count"] for k in cost["matmuls"])
    return (f"{quantity(cost['latency_s'], 's')}, {quantity(cost['macs'])} MACs, {quantity(s.outside_bytes(cost), 'B')} outside at "
            f"{quantity(s.outside(cost)['achieved_bytes_per_s'], 'B/s')}, {energy(cost)}; of the latency "
            f"{percent(products / cost['latency_s'])} in kernels with products.")


def question(s):
    m = s.model
    return f"""# Case study: {m['name']} on a described chip

Written by `tools/case_study.py` from a study; every number and every sentence with a number in it is computed.

## The question

Which matrix products does {m['name']} ({m['layers']} layers, {quantity(m['parameters'])} parameters, vocabulary of {grouped(m['vocab_size'])}) run when it reads a prompt and when it writes a token, with which i, j and k, and what does each cost on an accelerator that is only described, under quantization per tensor, per embedding, per token and per group of embeddings?

"""


def method(s):
    contexts = ", ".join(str(p["context"]) for p in s.steps["f16"])
    also = f",\n   and at contexts of {contexts}," if contexts else ""
    ran = "" if not s.protocol["shapes_only"] else " Weights are not\n   needed for this, and nothing here was run."
    calibration = s.chip["calibration"] or "An estimate, not calibrated to silicon."
    return f"""## Method

1. The model is compiled from its `config.json` as it would be for this machine, through phase 3: fused kernels, the
   dequantization inside of the product that needs it. Their names are those of the compiled program.
2. The calls of a prompt of {s.protocol['prompt_len']} tokens (prefill) and of one token at a context of {s.protocol['decode_context']} (decode){also} give the values of
   the symbolic sizes. A run on the virtual machine records the same values: a test compares them.{ran}
3. Each kernel's iteration domains and accesses at these sizes are what the cost engine reads: Y[i,j] += X[i,k] * W[k,j],
   where W is what lies where the chip holds weights. It maps them to the array and counts exactly
   ([dataflow.md](dataflow.md)).

The chip: {chip_line(s.chip)} (`chips/{s.chip['file']}`). {calibration}
Figures of a kernel are those of one of its `count` calls; `*` in a layer's name stands for each layer's number; bytes are
those that cross the chip's edge; the tile names the loops over tiles, outermost first, then what rows and columns of the
array hold.

"""


def floats(s):
    prefill, decode = s.base["prefill"], s.base["decode"]
    return (f"## The products, with weights of 16 bits\n\n### Prefill of {s.protocol['prompt_len']} tokens\n\n"
            f"{matmul_table(prefill['matmuls'])}\nThe whole step: {step_words(s, prefill)}\n"
            f"\n### Decode of one token at a context of {s.protocol['decode_context']}\n\n"
            f"{matmul_table(decode['matmuls'])}\nThe whole step: {step_words(s, decode)}\n\n")


def attention_share(step):
    return step["components"]["attention"]["latency_cycles"] / step["latency_cycles"]


def growth(s):
    steps = s.steps["f16"]
    if not steps:
        return ""
    rows = [[str(p["context"]), quantity(p["decode"]["latency_s"], "s"), quantity(p["decode"]["macs"]),
             quantity(p["decode"]["outer_bytes"], "B"), energy(p["decode"]),
             grouped(p["decode"]["components"]["attention"]["latency_cycles"]), percent(attention_share(p["decode"]))] for p in steps]
    return ("### Attention grows with the context\n\n"
            "All other products of a decode step have one row (i = 1) and keep their sizes. Those of attention have the context as j\n"
            "(scores) and as k (values), read from each call:\n\n" +
            table([">context", ">the step", ">MACs", ">bytes outside", ">energy", ">cycles of attention, all layers",
                   ">of the step's"], rows) + "\n")


def kinds(s):
    base, last = s.base, s.steps["f16"][-1] if s.steps["f16"] else None
    heads = ["one scale", "of", "scheme", ">weights", ">prefill", ">against f16", f">decode at {s.protocol['decode_context']}",
             ">against f16"] + ([f">decode at {last['context']}"] if last else []) + [">bytes outside per token", ">energy per token"]
    rows = []
    for kind, scheme, of, _ in s.kinds:
        row = s.rows[scheme]
        prefill, decode = row["prefill"], row["decode"]
        rows.append([kind, of, f"`{scheme}`", quantity(row["weight_bytes"], "B"), quantity(prefill["latency_s"], "s"),
                     times(base["prefill"]["latency_s"] / prefill["latency_s"]), quantity(decode["latency_s"], "s"),
                     times(base["decode"]["latency_s"] / decode["latency_s"])] +
                    ([quantity(s.steps[scheme][-1]["decode"]["latency_s"], "s")] if last else []) +
                    [quantity(s.outside_bytes(decode), "B"), energy(decode)])
    out = "## Four kinds of quantization\n\n" + table(heads, rows) + "\n"
    out += "".join(f"- {kind_words(k)}: {k[3]}.\n" for k in s.kinds if k[2])
    phases = [(k[1], phase, s.rows[k[1]][phase]) for k in s.kinds for phase in ("prefill", "decode")]
    spent = [c for c in COMPONENTS if any(cost["components"][c]["latency_cycles"] for _, _, cost in phases)]
    share = lambda cost, c: cost["components"][c]["latency_cycles"] / cost["latency_cycles"]
    out += "\nWhere the cycles of a step go (components as in [study.md](study.md)):\n\n"
    out += table(["scheme", "step"] + [">" + COMPONENTS[c] for c in spent],
                 [[f"`{scheme}`", phase] + [percent(share(cost, c)) if share(cost, c) else "-" for c in spent]
                  for scheme, phase, cost in phases]) + "\n"
    for kind in s.kinds:
        if not kind[2]:
            continue
        prefill, decode = s.rows[kind[1]]["prefill"], s.rows[kind[1]]["decode"]
        out += (f"### {kind_words(kind)}\n\nPrefill of {s.protocol['prompt_len']} tokens: {step_words(s, prefill)}\n\n"
                f"{matmul_table(prefill['matmuls'])}\nDecode at {s.protocol['decode_context']}: {step_words(s, decode)}\n\n"
                f"{matmul_table(decode['matmuls'])}\n")
    return out


def padded_share(r):
    return 1 - r["macs_on_chip"] / r["macs_issued"] if r["macs_issued"] else 0


def once(lines):
    return "".join(dict.fromkeys(lines)) or "- nothing\n"


def routes(s):
    if not s.routes:
        return ""
    patterns = ", ".join(f"`{p}`" for p in s.chip["patterns"]) or \
        "it states none, and products with dequantization, scale and bias are taken"
    names = list(dict.fromkeys(r["route"] for r in s.routes))
    merged = f"""- **merged**: the same, and `MergeCompositeFunctions` joins neighbouring kernels where half of `{s.chip['keeps_between']}` has room
  for what lies between them, in a prompt of {s.routes[0]['prompt_len']} tokens.
""" if "merged" in names else ""
    host = s.data["routes_host"]
    out = f"""## Routes to the chip

How a compiler can bring an array that it only has a description of into a program:

- **schedule**: each kernel's loops are bound to `pe.x`, `pe.y`. All figures above are by this route.
- **tensorize**: each product's innermost loops are replaced by an intrinsic, one stamp of the whole array of {s.chip['rows']} x {s.chip['columns']}.
  Products are padded to whole tiles; their zeros are multiplied, and lie in the chip's memories, but not outside.
- **pattern**: `FuseOpsByPattern` finds in the graph what the chip's patterns say (`[[pattern]]` in its file: {patterns});
  they are the chip's kernels, everything else is the host's.
{merged}
The host: {chip_line(host)} (`chips/{host['file']}`). Chip and host take turns and share the chip's memory
outside, at its bandwidth.

"""
    rows, first = [], None
    for scheme in dict.fromkeys(r["scheme"] for r in s.routes):
        for step in ("prefill", "decode"):
            for r in (r for r in s.routes if r["scheme"] == scheme and r["step"] == step):
                first = r if r["route"] == names[0] else first
                head = [f"`{scheme}`", step] if r is first else ["", ""]
                rows.append(head + [r["route"], percent(r["macs_on_chip"] / r["macs"]),
                                    percent(padded_share(r)) if padded_share(r) > 0 else "-", quantity(r["latency_s"], "s"),
                                    percent(r["host_s"] / r["latency_s"]), times(first["latency_s"] / r["latency_s"]),
                                    quantity(r["outside_bytes"], "B"), quantity(r["bandwidth_bytes_per_s"], "B/s"),
                                    str(r["launches_on_chip"]), str(r["launches_on_host"])])
    out += table(["scheme", "step", "route", ">MACs on the chip", ">zeros among those issued", ">latency", ">of it the host",
                  ">against schedule", ">bytes outside", ">bandwidth", ">launches on the chip", ">on the host"], rows)
    kernels = [(r["route"], k) for r in s.routes for k in r["kernels"]]
    out += "\nWhat stays off the chip, and why:\n\n" + once(f"- {route}: {k['why']}\n" for route, k in kernels if k["why"])
    out += "\nWhat is padded to whole tiles:\n\n" + once(f"- {route}: {p}\n" for route, k in kernels for p in k["padded"])
    notes = [f"- {note}\n" for r in s.routes for note in r["notes"]]
    if notes:
        out += "\nWhat the passes say of parts that were not matched, or not joined:\n\n" + once(notes)
    return out + "\n"


def lessons_of_steps(s):
    prefill, decode, outside = s.base["prefill"], s.base["decode"], s.outside(s.base["decode"])
    intensity = lambda cost: cost["macs"] / s.outside_bytes(cost)
    yield (f"**Prompt and token.** Prefill does {significant(intensity(prefill))} MACs per byte from outside and {prefill['bound']} binds "
           f"most of its cycles; decode does {significant(intensity(decode))} and {decode['bound']} binds, at "
           f"{percent(outside['achieved_bytes_per_s'] / outside['available_bytes_per_s'])} of what it can do. "
           f"{quantity(decode['macs'])} MACs use {percent(decode['utilization'])} of the array.")
    macs = lambda rows: sum(p["macs"] * k["count"] for k in rows for p in k["products"])
    every, vocabulary = macs(decode["matmuls"]), s.model["vocab_size"]
    head = macs(k for k in decode["matmuls"] if k["products"][0]["j"] == vocabulary)
    attention = macs(k for k in decode["matmuls"] if len(k["products"]) > 1)
    yield (f"**The head.** Of a decode step's MACs at {s.protocol['decode_context']} tokens, {percent(head / every)} are the head's "
           f"(j = {grouped(vocabulary)}), {percent(attention / every)} attention's.")
    steps = s.steps["f16"]
    if len(steps) > 1:
        a, b = steps[0], steps[-1]
        yield (f"**Attention** depends on the context. From {a['context']} to {b['context']} tokens the decode step takes "
               f"{times(b['decode']['latency_s'] / a['decode']['latency_s'])} as long; attention's share goes from "
               f"{percent(attention_share(a['decode']))} to {percent(attention_share(b['decode']))}, and no scheme here makes the cache smaller.")


def lessons_of_kinds(s):
    speed = lambda kind, phase: s.base[phase]["latency_s"] / s.rows[kind[1]][phase]["latency_s"]
    p, d = (max(s.kinds, key=lambda k: speed(k, phase)) for phase in ("prefill", "decode"))
    yield (f"**Fastest for a prompt:** {kind_words(p)}, {times(speed(p, 'prefill'))} f16's speed. **For a token:** {kind_words(d)}, "
           f"{times(speed(d, 'decode'))}.")
    for kind in s.kinds:
        if not kind[2]:
            continue
        token = s.rows[kind[1]]["decode"]
        before, moved = s.outside(s.base["decode"]), s.outside(token)
        making = sum(token["components"][c]["latency_cycles"] for c in ("dequantize", "rescale", "quantize"))
        yield (f"**{kind_words(kind)}:** the weights that a token reads go from {quantity(before['weight_bytes'], 'B')} to "
               f"{quantity(moved['weight_bytes'], 'B')}, scales are {quantity(moved['scale_bytes'], 'B')}; a token takes "
               f"{times(speed(kind, 'decode'))} and a prompt {times(speed(kind, 'prefill'))} f16's speed. Making codes and taking them "
               f"back binds {percent(making / token['latency_cycles'])} of a token's cycles.")


def lessons_of_routes(s):
    step = {(r["scheme"], r["route"], r["step"]): r for r in s.routes}
    schemes = list(dict.fromkeys(r["scheme"] for r in s.routes))
    names = list(dict.fromkeys(r["route"] for r in s.routes))
    longer = lambda scheme, route, phase: step[scheme, route, phase]["latency_s"] / step[scheme, "schedule", phase]["latency_s"]
    for route in names[1:]:
        scheme = schemes[0]
        q, t = step[scheme, route, "prefill"], step[scheme, route, "decode"]
        zeros = (f", where {percent(padded_share(q))} and {percent(padded_share(t))} of what is multiplied are zeros that fill up tiles"
                 if max(padded_share(q), padded_share(t)) > 0 else "")
        more = t["outside_bytes"] - step[scheme, "schedule", "decode"]["outside_bytes"]
        why = "tiles are those of the whole array." if route == "tensorize" else \
            "what runs apart from its product takes its tensor through the memory once more."
        yield (f"**Route {route}**, of `{scheme}`: {percent(q['macs_on_chip'] / q['macs'])} of a prompt's MACs and "
               f"{percent(t['macs_on_chip'] / t['macs'])} of a token's reach the chip{zeros}; a prompt takes "
               f"{times(longer(scheme, route, 'prefill'))} and a token {times(longer(scheme, route, 'decode'))} as long as by schedule. "
               f"The host takes {quantity(q['host_s'], 's')} of the prompt and {quantity(t['host_s'], 's')} of the token." +
               (f" A token moves {quantity(more, 'B')} more outside: {why}" if more > 0 else ""))
    if "merged" in names:
        launches = lambda route, phase: step[schemes[0], route, phase]["launches_on_chip"]
        saved = step[schemes[0], "pattern", "decode"]["outside_bytes"] - step[schemes[0], "merged", "decode"]["outside_bytes"]
        kept = (f"; what lies between them, {quantity(saved, 'B')} written and read again, stays in `{s.chip['keeps_between']}`"
                if launches("pattern", "decode") > launches("merged", "decode") else "")
        yield (f"**Merging** `{schemes[0]}`: {launches('pattern', 'decode')} launches of a token become {launches('merged', 'decode')}{kept}. "
               f"Of a prompt {launches('pattern', 'prefill')} become {launches('merged', 'prefill')}.")
    # The scheme whose prompt gains most by leaving what is no product to the host.
    scheme = min(schemes, key=lambda scheme: longer(scheme, "pattern", "prefill"))
    share = lambda row, parts: sum(row["prefill"]["components"][c]["latency_cycles"] for c in parts) / row["prefill"]["latency_cycles"]
    yield (f"**What is no product of weights.** Of a prompt under `{scheme}`, attention, vector work and the quantization of activations take "
           f"{percent(share(s.rows[scheme], ('attention', 'vector', 'quantize')))} of the cycles on the chip (of `f16`: "
           f"{percent(share(s.base, ('attention', 'vector')))}); by route pattern the host does this work in "
           f"{quantity(step[scheme, 'pattern', 'prefill']['host_s'], 's')}, and the prompt takes "
           f"{times(longer(scheme, 'pattern', 'prefill'))} as long.")


def document(s, made_by):
    said = list(lessons_of_steps(s)) + list(lessons_of_kinds(s)) + (list(lessons_of_routes(s)) if s.routes else [])
    lessons = "## What one learns\n\n" + "".join(f"{n}. {words}\n" for n, words in enumerate(said, 1)) + "\n"
    commands = "".join(f"    {line}\n" for line in made_by.splitlines())
    repeat = f"## How to repeat it\n\n{commands}\nwrite this file. A test of the project fails when it differs from what they write.\n" if made_by else ""
    return question(s) + method(s) + floats(s) + growth(s) + kinds(s) + routes(s) + lessons + repeat


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="study.json of `sator study`")
    parser.add_argument("--chip", help="which of its chips; the first unless told")
    parser.add_argument("--made-by", default="", help="the commands that repeat it, for the document's end")
    parser.add_argument("-o", "--output", type=Path, help="write the document there instead of printing it")
    a = parser.parse_args()
    try:
        data = json.loads(a.study.read_text())
        words = document(Study(data, a.chip or data["chips"][0]["name"]), a.made_by)
    except (OSError, ValueError) as error:
        raise SystemExit(f"error: {a.study} is no study: {error}")
    except (KeyError, IndexError, TypeError) as error:
        raise SystemExit(f"error: {a.study} lacks {error}\n  needs: study.json of this version\n  hint:  run `sator study` again")
    if a.output:
        a.output.write_text(words)
    else:
        sys.stdout.write(words)


if __name__ == "__main__":
    main()
