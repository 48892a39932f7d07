#!/usr/bin/env python3
"""Writes small models as MLC-LLM's folders hold them, one for each of its schemes, with the logits of the values that their codes stand for.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors ml_dtypes
    VENV/bin/python tools/make_mlc_references.py tests/reference/models/mlc [ROW...]

Names are MLC-LLM's (qkv_proj or c_attn, gate_up_proj, moe.e1_e3 and moe.e2); layouts are packed here with NumPy from their formulas; the
logits are those of transformers in float64 on the dequantized weights. Nothing of Sator or of MLC-LLM takes part.
"""
import hashlib
import json
import pathlib
import sys

import ml_dtypes
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from make_family_references import MARGIN, Margins, randomize

# hidden_size is one group of 40, and one of 32 with a rest of 8.
SIZES = dict(vocab_size=37, hidden_size=40, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=8,
             max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)
WHOLE = dict(hidden_size=32, intermediate_size=128, num_attention_heads=4, num_key_value_heads=4, head_dim=32)  # parts of whole blocks of 128
GPT2 = dict(vocab_size=37, n_embd=40, n_inner=48, n_layer=1, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
F16, BF16, F32 = np.float16, ml_dtypes.bfloat16, np.float32

# Row: family, scheme, its dtype, changes of sizes, what qkv is called.
ROWS = {
    "q0f16-gpt2": ("gpt2", "q0f16", F16, {}, None),
    "q0f32-gemma": ("gemma", "q0f32", F32, {}, "qkv_proj"),
    "q3f16_0-llama": ("llama", "q3f16_0", F16, {}, "qkv_proj"),
    "q3f16_1-gemma": ("gemma", "q3f16_1", F16, {}, "qkv_proj"),
    "q4f16_0-mistral": ("mistral", "q4f16_0", F16, {}, "qkv_proj"),
    "q4f16_1-qwen2": ("qwen2", "q4f16_1", F16, {}, "c_attn"),
    "q4f16_1-gpt2": ("gpt2", "q4f16_1", F16, {}, None),
    "q4f16_1-mixtral": ("mixtral", "q4f16_1", F16, dict(num_local_experts=3, num_experts_per_tok=2), "qkv_proj"),
    "q4f16_2-llama": ("llama", "q4f16_2", F16, {}, "qkv_proj"),
    "q4bf16_1-qwen3": ("qwen3", "q4bf16_1", BF16, {}, "c_attn"),
    "q4f32_1-llama": ("llama", "q4f32_1", F32, {}, "qkv_proj"),
    "q4f16_autoawq-llama": ("llama", "q4f16_autoawq", F16, WHOLE, "qkv_proj"),
    "e4m3-llama": ("llama", "e4m3_e4m3_f16", F16, {}, "qkv_proj"),
    "fp8-block-qwen3": ("qwen3", "fp8_e4m3fn_bf16_block_scale", BF16, WHOLE, "c_attn"),
}


def widened(a):
    return a.astype(np.float32)


def group_codes(w, bits, group, dtype):
    """w [..., out, in] -> words [..., out, words], scales [..., out, groups], values. Arithmetic in `dtype`."""
    m = 2 ** (bits - 1) - 1
    groups = -(-w.shape[-1] // group)
    padded = np.zeros((*w.shape[:-1], groups * group), np.float32)
    padded[..., :w.shape[-1]] = widened(w.astype(dtype))
    blocks = padded.reshape(*w.shape[:-1], groups, group)
    scale = (np.abs(blocks).max(-1) / m).astype(dtype)
    if dtype is F32:
        scale = widened(scale.astype(BF16))  # as it lies on disk
    codes = np.clip(np.rint(blocks / widened(scale)[..., None] + m), 0, 2 * m).astype(np.uint32)
    values = widened(((codes.astype(np.float32) - m) * widened(scale)[..., None]).astype(dtype)).reshape(padded.shape)[..., :w.shape[-1]]
    codes.reshape(padded.shape)[..., w.shape[-1]:] = 0
    per_word = 32 // bits
    codes = codes.reshape(*w.shape[:-1], -1, per_word)
    words = (codes << (np.arange(per_word, dtype=np.uint32) * bits)).sum(-1, dtype=np.uint32)
    return words, scale, values


def awq_codes(w, group=128):
    """w [out, in] -> qweight [in, out / 8], qzeros [groups, out / 8], scales [groups, out], values."""
    groups = -(-w.shape[1] // group)
    codes, zeros, scales, values = np.zeros(w.shape, np.uint32), np.zeros((w.shape[0], groups), np.uint32), np.zeros((w.shape[0], groups), F16), np.zeros(w.shape, np.float32)
    for g in range(groups):
        part = slice(g * group, min((g + 1) * group, w.shape[1]))
        low, high = np.minimum(w[:, part].min(1), 0), np.maximum(w[:, part].max(1), 0)
        scales[:, g] = ((high - low) / 15).astype(F16)
        s = widened(scales[:, g])
        zeros[:, g] = np.clip(np.rint(-low / s), 0, 15)
        codes[:, part] = np.clip(np.rint(w[:, part] / s[:, None]) + zeros[:, g, None], 0, 15)
        values[:, part] = widened(((codes[:, part].astype(np.float32) - zeros[:, g, None]) * s[:, None]).astype(F16))

    def packed(c):  # [n, out] -> [n, out / 8]: output i of eight lies in nibble i % 2 * 4 + i // 2
        nibble = np.array([i % 2 * 4 + i // 2 for i in range(8)], np.uint32)
        return (c.reshape(c.shape[0], -1, 8) << (nibble * 4)).sum(-1, dtype=np.uint32)
    return packed(codes.T), packed(zeros.T), scales.T, values


def blocks_of(w, codes_dtype, largest, block):
    scale = np.array([[np.abs(w[i:i + block, j:j + block]).max() / largest for j in range(0, w.shape[1], block)] for i in range(0, w.shape[0], block)], np.float32)
    spread = np.repeat(np.repeat(scale, block, 0)[:w.shape[0]], block, 1)[:, :w.shape[1]]
    codes = np.clip(w / spread, -largest, largest).astype(codes_dtype)
    return codes, scale, codes.astype(np.float32) * spread


class Folder:
    """Records of one shard, and values by Hugging Face's names."""

    def __init__(self, scheme, dtype):
        self.scheme, self.dtype, self.records, self.data, self.values = scheme, dtype, [], b"", {}

    def put(self, name, array):
        # MLC-LLM stores every float32 tensor as bfloat16, and says so.
        dtype = {np.dtype(BF16): "bfloat16", np.dtype(ml_dtypes.float8_e4m3fn): "float8_e4m3fn", np.dtype(ml_dtypes.float8_e5m2): "float8_e5m2"}.get(array.dtype, array.dtype.name)
        raw = array.astype(BF16).tobytes() if dtype == "float32" else np.ascontiguousarray(array).tobytes()
        self.records.append(dict(name=name, shape=list(array.shape), dtype=dtype, format="f32-to-bf16", nbytes=len(raw), byteOffset=len(self.data)))
        self.data += raw

    def plain(self, name, array):
        stored = array.astype(self.dtype)
        self.put(name, stored)
        return widened(stored.astype(BF16) if self.dtype is F32 else stored)

    def matrix(self, layer, w, quantized):
        """Puts a matrix [out, in], or of experts [e, out, in]; its values."""
        s = self.scheme
        if s.startswith("q0") or not quantized:
            return self.plain(layer + ".weight", w)
        if s == "q4f16_autoawq":
            qweight, qzeros, scales, values = awq_codes(w)
            for part, array in (("qweight", qweight), ("qzeros", qzeros), ("scales", scales)):
                self.put(f"{layer}.{part}", array)
            return values
        if s == "e4m3_e4m3_f16":
            codes, scale, values = blocks_of(w, ml_dtypes.float8_e4m3fn, 448, max(w.shape))
            self.put(layer + ".q_weight", codes), self.put(layer + ".q_scale", widened(scale.astype(BF16)).reshape(1))
            self.put(layer + ".q_calibration_scale", np.ones(1, F32))
            return codes.astype(np.float32) * widened(scale.astype(BF16))
        if s == "e5m2_e5m2_f16":
            codes = w.astype(ml_dtypes.float8_e5m2)
            self.put(layer + ".q_weight", codes)
            return codes.astype(np.float32)
        if s.startswith("fp8"):
            codes, scale, _ = blocks_of(w, ml_dtypes.float8_e4m3fn, 448, 128)
            scale = widened(scale.astype(BF16))
            self.put(layer + ".weight", codes), self.put(layer + ".weight_scale_inv", scale)
            return codes.astype(np.float32) * np.repeat(np.repeat(scale, 128, 0)[:w.shape[0]], 128, 1)[:, :w.shape[1]]
        words, scale, values = group_codes(w, int(s[1]), 40 if s[1] == "3" else 32, self.dtype)
        is_table = layer.endswith(("embed_tokens", "wte", "wpe"))  # no nn.Linear: [rows, words] under every scheme
        turn = (lambda a: a.T) if s.endswith("_0") and not is_table else (lambda a: a)
        self.put(layer + ".q_weight", turn(words)), self.put(layer + ".q_scale", turn(scale))
        return values

    def write(self, path, config):
        path.mkdir(parents=True, exist_ok=True)
        (path / "params_shard_0.bin").write_bytes(self.data)
        shard = dict(dataPath="params_shard_0.bin", format="raw-shard", nbytes=len(self.data), md5sum=hashlib.md5(self.data).hexdigest(), records=self.records)
        meta = dict(ParamSize=len(self.records), ParamBytes=float(len(self.data)), BitsPerParam=8.0)
        (path / "tensor-cache.json").write_text(json.dumps(dict(metadata=meta, records=[shard]), separators=(",", ":")) + "\n")
        (path / "mlc-chat-config.json").write_text(json.dumps(config, separators=(",", ":")) + "\n")


def fill(folder, model, family, qkv):
    """Puts all weights of a model; sets its parameters to the values that they stand for."""
    params = dict(model.named_parameters())
    array = lambda name: params[name].data.numpy()
    tables = folder.scheme.startswith(("q3", "q4")) and folder.scheme not in ("q4f16_2", "q4f16_autoawq")

    def assign(name, values):
        params[name].data = torch.from_numpy(np.ascontiguousarray(values, np.float32))

    def fused(target, names, quantized=True):
        values = folder.matrix(target, np.concatenate([array(n + ".weight") for n in names]), quantized)
        first = 0
        for n in names:
            count = params[n + ".weight"].shape[0]
            assign(n + ".weight", values[first:first + count])
            first += count
        if names[0] + ".bias" in params:
            bias = folder.plain(target + ".bias", np.concatenate([array(n + ".bias") for n in names]))
            first = 0
            for n in names:
                count = params[n + ".bias"].shape[0]
                assign(n + ".bias", bias[first:first + count])
                first += count

    done = set()
    for name in list(params):
        layer, kind = name.rsplit(".", 1)
        if layer in done:
            continue
        if family == "gpt2" and params[name].dim() == 2:
            turned = array(name) if layer.endswith(("wte", "wpe")) else array(name).T
            values = folder.matrix(layer, turned, tables or "wte" not in layer and "wpe" not in layer)
            assign(name, values if layer.endswith(("wte", "wpe")) else values.T)
            if layer.endswith("wte"):
                folder.matrix("lm_head", turned, tables)
        elif layer.endswith("self_attn.q_proj"):
            parts = [layer.removesuffix("q_proj") + p for p in ("q_proj", "k_proj", "v_proj")]
            fused(layer.removesuffix("q_proj") + qkv, parts)
            done.update(parts)
        elif layer.endswith("mlp.gate_proj"):
            parts = [layer, layer.removesuffix("gate_proj") + "up_proj"]
            fused(layer.removesuffix("gate_proj") + "gate_up_proj", parts)
            done.update(parts)
        elif name.endswith("mlp.experts.gate_up_proj"):  # [experts, 2 units, hidden], gate before up
            assign(name, folder.matrix(name.replace("mlp.experts.gate_up_proj", "moe.e1_e3"), array(name), True))
        elif name.endswith("mlp.experts.down_proj"):
            assign(name, folder.matrix(name.replace("mlp.experts.down_proj", "moe.e2"), array(name), True))
        elif layer.endswith("mlp.gate"):
            assign(name, folder.plain(name.replace("mlp.gate", "moe.gate"), array(name)))
        elif params[name].dim() == 2:
            is_table = layer.endswith(("embed_tokens", "lm_head"))
            assign(name, folder.matrix(layer, array(name), tables or not is_table))
        elif family == "gemma" and "norm" in layer:
            assign(name, folder.plain(name, array(name) + 1) - 1)
        else:
            assign(name, folder.plain(name, array(name)))


def write(target, name, seed):
    family, scheme, dtype, changes, qkv = ROWS[name]
    generator = torch.Generator().manual_seed(seed)
    sizes = GPT2 if family == "gpt2" else {**SIZES, **changes}
    config = transformers.AutoConfig.for_model(family, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager").eval().float()
    randomize(model, generator)
    folder = Folder(scheme, dtype)
    fill(folder, model, family, qkv)
    stated = {k: v for k, v in config.to_dict().items() if v is not None}
    folder.write(target / name, dict(version="0.1.0", model_type=family, quantization=scheme, model_config=stated, vocab_size=sizes["vocab_size"],
                                     context_window_size=64, prefill_chunk_size=64, bos_token_id=1, eos_token_id=2, conv_template="LM"))
    expected = {}
    exact = model.double()
    margins = Margins(exact)
    for k, length in enumerate((2, 5, 13)):
        ids = torch.randint(3, sizes["vocab_size"], (length,), generator=generator)
        with torch.no_grad():
            logits = exact(ids[None], use_cache=False).logits[0]
        expected[f"input_ids_{k}"], expected[f"logits_{k}"] = ids.to(torch.int32), logits.float().contiguous()
    save_file(expected, target / name / "expected.safetensors")
    print(name, max(float(v.abs().max()) for n, v in expected.items() if n.startswith("logits")), "router margin", margins.least)
    if margins.least < MARGIN:
        raise SystemExit(f"{name}: a token is near to another choice of experts; give the row another seed")


def main():
    target, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for seed, name in enumerate(ROWS):
        if not wanted or name in wanted:
            write(target, name, 300 + seed)


if __name__ == "__main__":
    main()
