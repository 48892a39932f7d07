#!/usr/bin/env python3
"""Writes small models whose weights other programs' formats hold, with the logits of the values that their codes stand for.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors ml_dtypes
    VENV/bin/python tools/make_quantized_references.py tests/reference/models/quantized [ROW...]

adapter-NAME: a LoRA for a model of ../tiny, and the logits of W + s B A. Else a folder per row: config.json, model.safetensors with codes, expected.safetensors (input_ids_K and logits_K of three
sequences), and of some rows expected-a8.safetensors, where products by codes take their inputs as 8-bit integers (IntegerInputs). The codes are packed here with NumPy, as GPTQ, AWQ, compressed-tensors and gpt-oss lay them out; the logits are those of
transformers in float64 on the dequantized weights. Nothing of Sator takes part.
"""
import json
import pathlib
import sys

import ml_dtypes
import numpy as np
import torch
import transformers
from safetensors.torch import save_file

from make_family_references import MARGIN, Margins, integer_input_logits, randomize

SIZES = dict(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=64, tie_word_embeddings=False,
             bos_token_id=1, eos_token_id=2, pad_token_id=0)
GROUP = 32


def gptq(bits, sym=True, version=1, says_version=None, act_order=False):
    said = "gptq_v2" if (says_version or version) == 2 else "gptq"
    return dict(quant_method="gptq", bits=bits, group_size=GROUP, sym=sym, desc_act=act_order,
                checkpoint_format=said), (bits, sym, version, act_order)


# Name: quantization_config, and what its packer needs to know.
ROWS = {
    "gptq-int4": gptq(4),
    "gptq-int4-asym": gptq(4, sym=False),
    "gptq-int4-v2": gptq(4, version=2),
    "gptq-int4-v2-unsaid": gptq(4, version=2, says_version=1),
    "gptq-int4-act-order": gptq(4, sym=False, act_order=True),
    "gptq-int3": gptq(3, sym=False),
    "gptq-int8": gptq(8),
    "awq-int4": (dict(quant_method="awq", bits=4, group_size=GROUP, zero_point=True, version="gemm"), None),
    "packed-int4": (dict(quant_method="compressed-tensors", format="pack-quantized",
                         config_groups={"group_0": {"targets": ["Linear"], "weights": {
                             "num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}}}),
                    True),
    "packed-int4-asym": (dict(quant_method="compressed-tensors", format="pack-quantized",
                              config_groups={"group_0": {"targets": ["Linear"], "weights": {
                                  "num_bits": 4, "type": "int", "symmetric": False, "strategy": "group",
                                  "group_size": GROUP}}}), False),
    "packed-int8": (dict(quant_method="compressed-tensors", format="int-quantized",
                         config_groups={"group_0": {"targets": ["Linear"], "weights": {
                             "num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}}}), True),
    "mxfp4": (dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn", "lm_head"]), None),
    # 8-bit floats: scales of blocks (whose edges the model's sizes cross), of tensors, of outputs.
    "fp8-block": (dict(quant_method="fp8", activation_scheme="dynamic", fmt="e4m3", weight_block_size=[24, 48]),
                  ("e4m3", "block", "weight_scale_inv", "float32")),
    "fp8-tensor": (dict(quant_method="fp8", activation_scheme="static", fmt="e5m2"),
                   ("e5m2", "tensor", "weight_scale", "float32")),
    "fp8-channel": (dict(quant_method="compressed-tensors", format="float-quantized", config_groups={"group_0": {
        "targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel"},
        "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}}}),
                    ("e4m3", "channel", "weight_scale", "bfloat16")),
    "packed-int4-act-order": (dict(quant_method="compressed-tensors", format="pack-quantized",
                                   config_groups={"group_0": {"targets": ["Linear"], "weights": {
                                       "num_bits": 4, "type": "int", "symmetric": False, "strategy": "group",
                                       "group_size": GROUP, "actorder": "group"}}}), False),
    "gptq-gpt2": gptq(4, sym=False, act_order=True),
    "packed-int8-inputs": (dict(quant_method="compressed-tensors", format="int-quantized",
                                config_groups={"group_0": {"targets": ["Linear"], "weights": {
                                    "num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"},
                                    "input_activations": {"num_bits": 8, "type": "int", "symmetric": True,
                                                          "strategy": "token", "dynamic": True}}}), True),
}
OF_INTEGER_INPUTS = ("gptq-int3", "gptq-gpt2", "awq-int4", "packed-int4-act-order", "packed-int8-inputs")
# Models of rows that are no Llama.
MODELS = {"mxfp4": ("gpt_oss", dict(num_local_experts=3, num_experts_per_tok=2, sliding_window=6)),
          "gptq-gpt2": ("gpt2", dict(n_inner=96, intermediate_size=None, num_key_value_heads=None, head_dim=None))}


def pack(codes, bits):
    """Codes [..., n] to int32 words [..., n * bits / 32]: one after the other from the lowest bit on, also across words."""
    n = codes.shape[-1]
    stream = ((codes[..., None].astype(np.uint64) >> np.arange(bits, dtype=np.uint64)) & 1).reshape(*codes.shape[:-1], n * bits)
    words = stream.reshape(*codes.shape[:-1], -1, 32)
    return (words << np.arange(32, dtype=np.uint64)).sum(-1).astype(np.uint32).view(np.int32)


def grouped_codes(w, group_of, bits, sym):
    """Codes, float16 scales [out, groups], zero points [out, groups] and values of w [out, in]; group_of: of each input."""
    groups = int(group_of.max()) + 1
    scales = np.zeros((w.shape[0], groups), np.float16)
    zeros = np.zeros((w.shape[0], groups), np.int64)
    top = 2**bits - 1
    for g in range(groups):
        part = w[:, group_of == g]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if sym:
            scales[:, g] = np.abs(part).max(1) * 2 / top
            zeros[:, g] = 2 ** (bits - 1)
        else:
            scales[:, g] = (high - low) / top
            zeros[:, g] = np.clip(np.rint(-low / scales[:, g].astype(np.float32)), 1, top)
    s, z = scales.astype(np.float32)[:, group_of], zeros[:, group_of]
    codes = np.clip(np.rint(w / s) + z, 0, top).astype(np.int64)
    return codes, scales, zeros, (codes - z) * s


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


def microscaled(w):
    """Blocks u8 [..., out, groups, 16], scales u8 [..., out, groups] and values of w [..., out, in]."""
    blocks = w.reshape(*w.shape[:-1], -1, GROUP)
    exponent = np.floor(np.log2(np.abs(blocks).max(-1))) - 2
    scaled = blocks / np.exp2(exponent)[..., None]
    codes = np.abs(scaled[..., None] - E2M1).argmin(-1).astype(np.uint8)
    values = (E2M1[codes] * np.exp2(exponent)[..., None]).reshape(w.shape)
    return codes[..., 0::2] | codes[..., 1::2] << 4, (exponent + 127).astype(np.uint8), values


FLOAT8 = {"e4m3": (ml_dtypes.float8_e4m3fn, torch.float8_e4m3fn, 448), "e5m2": (ml_dtypes.float8_e5m2, torch.float8_e5m2, 57344)}


def small_floats(w, config, kind, shares, scale_name, scale_dtype):
    """w [out, in] as 8-bit floats by ml_dtypes, a scale for each block, output or tensor; and the values w8 * scale."""
    to8, stored8, largest = FLOAT8[kind]
    rows, cols = w.shape
    high, wide = config["weight_block_size"] if shares == "block" else (1, cols) if shares == "channel" else (rows, cols)
    scale = np.array([[np.abs(w[i:i + high, j:j + wide]).max() / largest for j in range(0, cols, wide)] for i in range(0, rows, high)], np.float32)
    if scale_dtype == "bfloat16":
        scale = scale.astype(ml_dtypes.bfloat16).astype(np.float32)
    spread = np.repeat(np.repeat(scale, high, 0)[:rows], wide, 1)[:, :cols]
    codes = np.clip(w / spread, -largest, largest).astype(to8)
    values = codes.astype(np.float32) * spread
    stored_scale = torch.from_numpy(scale[0, 0:1].copy() if shares == "tensor" else scale).to(getattr(torch, scale_dtype))
    parts = {"weight": torch.from_numpy(codes.view(np.uint8).copy()).view(stored8), scale_name: stored_scale}
    if config.get("activation_scheme") == "static":
        parts["input_scale"] = torch.tensor([0.02])
    return parts, values


def tensors_of(name, config, detail, w, generator):
    """The tensors of one layer, and the values that they stand for."""
    method = config["quant_method"]
    if isinstance(detail, tuple) and detail[0] in FLOAT8:
        return small_floats(w, config, *detail)
    rows, cols = w.shape
    group_of = np.arange(cols) // GROUP
    if method == "gptq":
        bits, sym, version, act_order = detail
        if act_order:
            group_of = group_of[torch.randperm(cols, generator=generator).numpy()]
        codes, scales, zeros, values = grouped_codes(w, group_of, bits, sym)
        stored = zeros - (1 if version == 1 else 0)
        return {"qweight": pack(codes, bits).T, "qzeros": pack(stored.T, bits), "scales": scales.T,
                "g_idx": group_of.astype(np.int32)}, values
    if method == "awq":
        codes, scales, zeros, values = grouped_codes(w, group_of, 4, False)
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        laid = lambda c: pack(c.reshape(c.shape[0], -1, 8)[:, :, order].reshape(c.shape), 4)
        return {"qweight": laid(codes.T), "qzeros": laid(zeros.T), "scales": scales.T}, values
    if config["format"] == "pack-quantized":
        weights = config["config_groups"]["group_0"]["weights"]
        if weights.get("actorder"):
            group_of = group_of[torch.randperm(cols, generator=generator).numpy()]
        codes, scales, zeros, values = grouped_codes(w, group_of, 4, detail)
        out = {"weight_packed": pack(codes, 4), "weight_scale": scales, "weight_shape": np.array(w.shape, np.int64)}
        if not detail:
            out["weight_zero_point"] = pack(zeros.T, 4).T
        if weights.get("actorder"):
            out["weight_g_idx"] = group_of.astype(np.int32)
        return out, values
    scale = (np.abs(w).max(1, keepdims=True) / 127).astype(np.float16)
    codes = np.clip(np.rint(w / scale.astype(np.float32)), -128, 127)
    return {"weight": codes.astype(np.int8), "weight_scale": scale}, codes * scale.astype(np.float32)


def write(folder, config, detail, seed):
    generator = torch.Generator().manual_seed(seed)
    model_type, added = MODELS.get(folder.name, ("llama", {}))
    model_config = transformers.AutoConfig.for_model(model_type, **{**SIZES, **added})
    model = transformers.AutoModelForCausalLM.from_config(
        model_config, attn_implementation="eager", experts_implementation="eager").eval().float()
    randomize(model, generator)
    tensors, coded = {}, []
    for name, p in model.named_parameters():
        if config["quant_method"] == "mxfp4" and p.dim() == 3:
            blocks, scales, values = microscaled(p.data.numpy().swapaxes(1, 2))  # [experts, in, out]
            p.data = torch.from_numpy(np.ascontiguousarray(values.swapaxes(1, 2), np.float32))
            tensors[name + "_blocks"], tensors[name + "_scales"] = (
                torch.from_numpy(np.ascontiguousarray(part)) for part in (blocks, scales))
            continue
        is_conv = ".c_" in name and p.dim() == 2  # GPT-2's Conv1D holds [in, out]; codes lie as any layer's
        if not (is_conv or "_proj" in name) or config["quant_method"] == "mxfp4" or p.dim() != 2:
            p.data = p.data.half().float()
            tensors[name] = p.data.half().contiguous()
            continue
        coded.append(name)
        parts, values = tensors_of(name, config, detail, p.data.numpy().T if is_conv else p.data.numpy(), generator)
        p.data = torch.from_numpy(np.ascontiguousarray(values.T if is_conv else values, np.float32))
        for part, value in parts.items():
            is_ready = isinstance(value, torch.Tensor)
            tensors[name.removesuffix("weight") + part] = value if is_ready else torch.from_numpy(np.ascontiguousarray(value))
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    stated = model_config.to_dict() | {"quantization_config": config}
    (folder / "config.json").write_text(json.dumps({k: v for k, v in stated.items() if v is not None}, indent=1) + "\n")
    expected = {}
    exact = model.double()
    margins = Margins(exact)
    for k, length in enumerate((7, 19, 37)):
        ids = torch.randint(3, SIZES["vocab_size"], (length,), generator=generator)
        with torch.no_grad():
            logits = exact(ids[None], use_cache=False).logits[0]
        expected[f"input_ids_{k}"] = ids.to(torch.int32)
        expected[f"logits_{k}"] = logits.float().contiguous()
    save_file(expected, folder / "expected.safetensors")
    if folder.name in OF_INTEGER_INPUTS:
        weights = [p for name, p in model.named_parameters() if name in coded]
        save_file(integer_input_logits(model, weights), folder / "expected-a8.safetensors")
    print(folder.name, max(float(v.abs().max()) for n, v in expected.items() if n.startswith("logits")),
          "router margin", margins.least)
    if margins.least < MARGIN:
        raise SystemExit(f"{folder.name}: a token is near to another choice of experts; give the row another seed")


# Folder of a model that is there already: [in, out] matrices, layers that the adapter changes, rank, alpha, rslora.
ADAPTERS = {
    "llama": ("../tiny/llama-a", False, ("q_proj", "v_proj", "down_proj"), 4, 12, False),
    "gpt2": ("../tiny/gpt2-a", True, ("c_attn", "c_fc"), 3, 5, True),
}


def write_adapter(target, name, seed):
    base, transposed, changed, rank, alpha, by_root = ADAPTERS[name]
    generator = torch.Generator().manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_pretrained(target / base, attn_implementation="eager", dtype=torch.float32).eval()
    tensors = {}
    for layer, p in model.named_parameters():
        if p.dim() != 2 or not any(part in layer for part in changed):
            continue
        out, into = p.shape[::-1] if transposed else p.shape
        a, b = (torch.randn(shape, generator=generator) * 0.2 for shape in ((rank, into), (out, rank)))
        prefix = "base_model.model." + layer.removesuffix(".weight")
        tensors[prefix + ".lora_A.weight"], tensors[prefix + ".lora_B.weight"] = a, b
        delta = alpha / (rank**0.5 if by_root else rank) * (b.double() @ a.double())
        p.data = p.data.double() + (delta.T if transposed else delta)
    folder = target / f"adapter-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {"peft_type": "LORA", "r": rank, "lora_alpha": alpha, "use_rslora": by_root, "fan_in_fan_out": transposed,
              "bias": "none", "target_modules": list(changed), "modules_to_save": None, "lora_dropout": 0.1}
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=1) + "\n")
    expected, exact = {}, model.double()
    for k, length in enumerate((7, 19, 37)):
        ids = torch.randint(3, 200, (length,), generator=generator)
        with torch.no_grad():
            logits = exact(ids[None], use_cache=False).logits[0]
        expected[f"input_ids_{k}"], expected[f"logits_{k}"] = ids.to(torch.int32), logits.float().contiguous()
    save_file(expected, folder / "expected.safetensors")
    print(folder.name, max(float(v.abs().max()) for n, v in expected.items() if n.startswith("logits")))


def main():
    target, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for seed, name in enumerate(ADAPTERS):
        if not wanted or f"adapter-{name}" in wanted:
            write_adapter(target, name, 200 + seed)
    for seed, (name, (config, detail)) in enumerate(ROWS.items()):
        if not wanted or name in wanted:
            write(target / name, config, detail, 100 + seed)


if __name__ == "__main__":
    main()
