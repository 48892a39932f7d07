#!/usr/bin/env python3
"""Writes small GGUF files, as the gguf package of llama.cpp does, with what its NumPy code and transformers make of them.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors gguf
    VENV/bin/python tools/make_gguf_references.py TO TOKENIZERS EXAMPLE [ROW...]

blocks/TYPE.gguf, blocks/TYPE.safetensors   a matrix of random blocks of each type, and its values by gguf's NumPy code
NAME.gguf, NAME.safetensors                 a random model, each of its matrices of another type: input_ids_K and logits_K by
                                            transformers in float64 on the dequantized values
NAME-a8.safetensors                         of some: the same of single tokens, where a product by codes takes its input as 8-bit integers
                                            too: of each row max|x| / 127 is the scale, each x / scale is rounded, ties to even
NAME-a8-group.safetensors                   the same with a scale for each row and group of columns that share one in the weight
tokenizer-NAME.gguf                         vocabularies alone, made from the tokenizer.json of EXAMPLE and of folders in TOKENIZERS
                                            (data/tokenizers), whose expected.jsonl says what they make of texts
tokenizer-cuttings.gguf, cuttings.json      a vocabulary of some texts, and what it makes of them, cut as other models' tokenizer.json says
Rows of queries and keys are ordered, and 1 is added to norms, as llama.cpp's converter does it.
"""
import json
import pathlib
import sys

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize
from safetensors.numpy import save_file

from make_family_references import MARGIN, Margins, integer_input_logits, randomize

TYPES = [Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q2_K, Type.Q3_K, Type.Q4_K, Type.Q5_K, Type.Q6_K,
         Type.IQ4_NL, Type.IQ4_XS, Type.MXFP4, Type.F16, Type.BF16, Type.F32]
# Where a block's 16-bit scales lie, of types that are made of random bytes.
SCALES_AT = {Type.Q2_K: (80, 82), Type.Q3_K: (108,), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
             Type.IQ4_NL: (0,), Type.IQ4_XS: (0,), Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q5_0: (0,), Type.Q5_1: (0, 2),
             Type.Q8_0: (0,)}
# The largest value of a block is about its scale times this.
REACH = {Type.Q2_K: 45, Type.Q3_K: 128, Type.Q4_K: 900, Type.Q5_K: 1900, Type.Q6_K: 4000, Type.IQ4_NL: 120,
         Type.IQ4_XS: 4000, Type.Q4_0: 8, Type.Q4_1: 15, Type.Q5_0: 16, Type.Q5_1: 31, Type.Q8_0: 127}


def random_blocks(rows, cols, kind, size, rng):
    """A matrix of random blocks whose values are about `size` large: bytes [rows, bytes of a row]."""
    if kind in (Type.F16, Type.BF16, Type.F32):
        return gguf.quants.quantize((rng.standard_normal((rows, cols)) * size / 2).astype(np.float32), kind)
    elements, width = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * cols // elements, width), dtype=np.uint8)
    if kind == Type.MXFP4:
        blocks[:, 0] = np.clip(np.rint(127 + np.log2(size / 6) + rng.uniform(-1, 1, len(blocks))), 0, 254)
    for at in SCALES_AT.get(kind, ()):
        scale = (size / REACH[kind] * rng.uniform(0.5, 1.5, len(blocks))).astype(np.float16)
        blocks[:, at:at + 2] = scale.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(rows, -1)


def write_blocks(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, kind in enumerate(TYPES):
        data = random_blocks(5, 512, kind, 1.0, np.random.default_rng(number))
        writer = gguf.GGUFWriter(folder / f"{kind.name}.gguf", "llama")
        writer.add_tensor("matrix", data.view(np.float32) if kind == Type.F32 else data, raw_dtype=kind)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
        writer.close()
        values = data if kind == Type.F32 else dequantize(data.view(np.uint8), kind)
        save_file({"values": np.ascontiguousarray(values, np.float32).view(np.float32)}, folder / f"{kind.name}.safetensors")


SIZES = dict(vocab_size=96, hidden_size=256, intermediate_size=256, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, head_dim=64, max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=1,
             eos_token_id=2, pad_token_id=0)
SMALL = dict(vocab_size=33, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
             max_position_embeddings=64, tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0)
GPT2 = dict(vocab_size=96, n_embd=256, n_layer=1, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
# File: model_type, what the row adds, GGUF's architecture, and the type that its matrices begin with.
ROWS = {
    "llama": ("llama", {}, "llama", 7),
    "llama3-rope": ("llama", {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}}, "llama", 0),
    "qwen2": ("qwen2", {}, "qwen2", 3),
    "qwen3": ("qwen3", {}, "qwen3", 5),
    "gemma2": ("gemma2", {"num_hidden_layers": 2, "tie_word_embeddings": True, "sliding_window": 6,
                          "query_pre_attn_scalar": 64, "hidden_activation": "gelu_pytorch_tanh"}, "gemma2", 9),
    "phi3": ("phi3", {"head_dim": None}, "phi3", 1),
    "gpt2": ("gpt2", None, "gpt2", 6),
    "starcoder2": ("starcoder2", {"head_dim": None, "sliding_window": None, "tie_word_embeddings": True}, "starcoder2", 2),
    "olmo2": ("olmo2", {"head_dim": None}, "olmo2", 4),
    "granite": ("granite", {"head_dim": None, "embedding_multiplier": 3.0, "residual_multiplier": 0.6,
                            "attention_multiplier": 0.2, "logits_scaling": 2.5}, "granite", 8),
    "stablelm": ("stablelm", {"head_dim": None}, "stablelm", 10),
    "qwen2moe": ("qwen2_moe", {"head_dim": None, "num_experts": 5, "num_experts_per_tok": 2,
                               "moe_intermediate_size": 64, "shared_expert_intermediate_size": 96}, "qwen2moe", 0),
    "qwen3moe": ("qwen3_moe", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64,
                               "norm_topk_prob": True}, "qwen3moe", 4),
    "mixtral": ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64,
                            "sliding_window": None}, "llama", 1),
    "gpt-oss": ("gpt_oss", {"num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 64,
                            "sliding_window": 6, "rope_parameters": {
                                "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0,
                                "beta_slow": 1.0, "original_max_position_embeddings": 16, "truncate": False}}, "gpt-oss", 9),
    # As the first files of Mixtral have them: a tensor for each expert.
    "mixtral-by-expert": ("mixtral", {"hidden_size": 32, "head_dim": 16, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1,
                                      "num_local_experts": 3, "num_experts_per_tok": 2, "intermediate_size": 64, "vocab_size": 61,
                                      "sliding_window": None}, "llama", 0),
    # llama.cpp knows no other GELU of these two.
    "gptneox": ("gpt_neox", {**SMALL, "head_dim": None, "num_key_value_heads": None, "hidden_act": "gelu_pytorch_tanh"}, "gptneox", 0),
    "falcon": ("falcon", {**SMALL, "head_dim": None, "num_key_value_heads": None, "intermediate_size": None, "num_attention_heads": 4,
                          "num_kv_heads": 2, "ffn_hidden_size": 32, "tie_word_embeddings": True, "new_decoder_architecture": True,
                          "activation": "gelu_pytorch_tanh"}, "falcon", 2),
    "deepseek2": ("deepseek_v3", {**SMALL, "head_dim": None, "num_key_value_heads": 2, "q_lora_rank": 32, "kv_lora_rank": 32,
                                  "qk_nope_head_dim": 32, "qk_rope_head_dim": 8, "v_head_dim": 32, "moe_intermediate_size": 32,
                                  "n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1,
                                  "first_k_dense_replace": 0, "rope_parameters": {
                                      "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                                      "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 4}}, "deepseek2", 0),
}
PERMUTED = ("llama", "granite")
# Together they have every type, and experts.
OF_INTEGER_INPUTS = ("llama", "qwen2", "gpt2", "qwen2moe")


def permuted(w, heads):
    """Rows in the order in which llama.cpp rotates neighbours."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def unpermuted(w, heads):
    return w.reshape(heads, w.shape[0] // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


def rows_by_part(config):
    """Which rows of a tensor that holds queries, key and value of each group come first in one that holds all queries, all keys, all
    values."""
    groups = getattr(config, "num_kv_heads", config.num_attention_heads)
    head_dim = config.hidden_size // config.num_attention_heads
    rows = np.arange((config.num_attention_heads + 2 * groups) * head_dim).reshape(groups, -1, head_dim)
    return np.concatenate([rows[:, :-2].ravel(), rows[:, -2].ravel(), rows[:, -1].ravel()])


def add_deepseek(writer, config):
    writer.add_layer_norm_rms_eps(config.rms_norm_eps), writer.add_head_count_kv(1)
    writer.add_q_lora_rank(config.q_lora_rank), writer.add_kv_lora_rank(config.kv_lora_rank)
    writer.add_rope_dimension_count(config.qk_rope_head_dim)
    writer.add_key_length(config.kv_lora_rank + config.qk_rope_head_dim), writer.add_value_length(config.kv_lora_rank)
    writer.add_key_length_mla(config.qk_nope_head_dim + config.qk_rope_head_dim), writer.add_value_length_mla(config.v_head_dim)
    writer.add_leading_dense_block_count(config.first_k_dense_replace)
    writer.add_expert_count(config.n_routed_experts), writer.add_expert_used_count(config.num_experts_per_tok)
    writer.add_expert_feed_forward_length(config.moe_intermediate_size), writer.add_expert_shared_count(config.n_shared_experts)
    writer.add_expert_group_count(config.n_group), writer.add_expert_group_used_count(config.topk_group)
    writer.add_expert_weights_scale(config.routed_scaling_factor), writer.add_expert_weights_norm(config.norm_topk_prob)
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"]), writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    writer.add_rope_scaling_factor(rope["factor"])
    writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    writer.add_rope_scaling_yarn_log_mul(0.1 * rope["mscale_all_dim"])


def add_metadata(writer, config, arch, model_type):
    text = lambda name, otherwise=None: getattr(config, name, otherwise)
    writer.add_context_length(text("max_position_embeddings") or config.n_positions)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(text("intermediate_size") or text("ffn_hidden_size") or 4 * config.hidden_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_file_type(15)
    if model_type == "gpt2":
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    if model_type == "deepseek_v3":
        add_deepseek(writer, config)
        return
    writer.add_head_count_kv(text("num_key_value_heads") or text("num_kv_heads") or config.num_attention_heads)
    head_dim = text("head_dim") or config.hidden_size // config.num_attention_heads
    if text("head_dim"):
        writer.add_key_length(head_dim), writer.add_value_length(head_dim)
    share = (text("rope_parameters") or {}).get("partial_rotary_factor", 1.0)
    writer.add_rope_dimension_count(int(head_dim * share))
    writer.add_rope_freq_base((text("rope_parameters") or {}).get("rope_theta", 10000.0))
    if model_type in ("starcoder2", "stablelm", "gpt_neox", "falcon"):
        writer.add_layer_norm_eps(text("norm_epsilon") or text("layer_norm_eps") or text("layer_norm_epsilon"))
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    if model_type in ("stablelm", "gpt_neox"):
        writer.add_parallel_residual(config.use_parallel_residual)
    if text("num_experts_per_tok"):
        writer.add_expert_count(text("num_experts") or config.num_local_experts)
        writer.add_expert_used_count(config.num_experts_per_tok)
        if text("moe_intermediate_size"):
            writer.add_expert_feed_forward_length(config.moe_intermediate_size)
        if text("shared_expert_intermediate_size"):
            writer.add_expert_shared_feed_forward_length(config.shared_expert_intermediate_size)
    rope = text("rope_parameters") or {}
    if rope.get("rope_type") == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if model_type == "gpt_oss":
        writer.add_sliding_window(config.sliding_window)
    if model_type == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
        writer.add_sliding_window(config.sliding_window)
    if model_type == "granite":
        writer.add_embedding_scale(config.embedding_multiplier), writer.add_residual_scale(config.residual_multiplier)
        writer.add_attention_scale(config.attention_multiplier), writer.add_logit_scale(config.logits_scaling)


def parts_of(name, p, model_type):
    """GGUF's tensors of a parameter by role, each as what gives its part of the parameter: the file holds gate and up apart,
    [experts, out, in]."""
    block, _, part = name.partition(".mlp.experts.")
    if not part:
        return None
    stack = p.data.transpose(1, 2) if model_type == "gpt_oss" and p.dim() == 3 else p.data
    role = block.replace("model.layers.", "blk.") + "."
    ending = "bias" if part.endswith("_bias") else "weight"
    if part.startswith("down"):
        return [(f"{role}ffn_down_exps.{ending}", stack)]
    halves = (stack[:, 0::2], stack[:, 1::2]) if model_type == "gpt_oss" else stack.chunk(2, 1)
    return [(f"{role}ffn_{half}_exps.{ending}", view) for half, view in zip(("gate", "up"), halves)]


# What the package's map of names lacks, or has for another model.
OWN_NAMES = {"mlp.gate.weight": "ffn_gate_inp.weight", "mlp.router.weight": "ffn_gate_inp.weight",
             "mlp.router.bias": "ffn_gate_inp.bias", "self_attn.sinks": "attn_sinks.weight",
             "mlp.shared_expert_gate.weight": "ffn_gate_inp_shexp.weight", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias"}


def gguf_name(names, hf_name, arch):
    layer, _, part = hf_name.partition("model.layers.")[2].partition(".")
    if part in OWN_NAMES:
        return f"blk.{layer}.{OWN_NAMES[part]}"
    if arch == "gpt-oss" and part == "post_attention_layernorm.weight":
        return f"blk.{layer}.post_attention_norm.weight"
    return names.get_name(hf_name, try_suffixes=(".weight", ".bias"))


# Of small models, whose types make no difference: fewer kernels are compiled.
SMALL_TYPES = (Type.Q4_0, Type.Q5_1)


def blocks_like(shape, kind, rng, is_small=False):
    """Random blocks of that type, or of the next one whose blocks fit the rows: bytes, values, the type's number."""
    # Large matrices of float32 would only make files larger: vectors are float32, and a small matrix may be.
    while shape[-1] % gguf.GGML_QUANT_SIZES[TYPES[kind % len(TYPES)]][0] or (
            TYPES[kind % len(TYPES)] == Type.F32 and np.prod(shape) > 2**15) or (
            is_small and TYPES[kind % len(TYPES)] not in SMALL_TYPES):
        kind += 1
    of = TYPES[kind % len(TYPES)]
    data = random_blocks(int(np.prod(shape[:-1])), shape[-1], of, 2.5 / 16, rng)
    values = dequantize(data.view(np.uint8), of) if of != Type.F32 else data
    return data.reshape(*shape[:-1], -1), np.ascontiguousarray(values.reshape(shape), np.float32), kind


# Columns that share a scale, integer ones of super-blocks too.
GROUPS = {Type.Q2_K: 16, Type.Q3_K: 16, Type.Q6_K: 16}


def write_integer_inputs(target, name, model, types):
    """  types   of the blocks of each parameter"""
    floats = (Type.F32, Type.F16, Type.BF16)
    halves = [n for n, all in types.items() if len({t in floats for t in all}) > 1]
    assert not halves, f"{halves} are of codes and floats"
    coded = {n: p for n, p in model.named_parameters() if n in types and types[n][0] not in floats}
    groups = [{GROUPS.get(t, 32) for t in types[n]} for n in coded]
    assert all(len(g) == 1 for g in groups), "parts of one parameter have other groups"
    for ending, of_each in (("a8", None), ("a8-group", [g.pop() for g in groups])):
        logits = integer_input_logits(model, coded.values(), of_each)
        save_file({n: t.numpy() for n, t in logits.items()}, target / f"{name}-{ending}.safetensors")


def write_model(target, name, seed):
    """Seeds are tried from the row's own on, until no token is near to another choice of experts."""
    while not write_model_with(target, name, seed):
        seed += 100


def write_model_with(target, name, seed):
    model_type, added, arch, kind = ROWS[name]
    keys = GPT2 if added is None else {k: v for k, v in {**SIZES, **added}.items() if v is not None or k == "sliding_window"}
    config = transformers.AutoConfig.for_model(model_type, **keys)
    is_small = config.vocab_size == SMALL["vocab_size"]
    generator, rng = torch.Generator().manual_seed(seed), np.random.default_rng(seed)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation="eager", experts_implementation="eager").eval().float()
    randomize(model, generator)
    model.tie_weights()
    writer = gguf.GGUFWriter(target / f"{name}.gguf", arch)
    add_metadata(writer, config, arch, model_type)
    key = {"gpt-oss": "GPT_OSS"}.get(arch, arch.upper())
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, key), config.num_hidden_layers)
    heads = {"attn_q": config.num_attention_heads, "attn_k": getattr(config, "num_key_value_heads", None)}
    types = {}
    biases = [(n, b) for n, b in model.named_buffers() if n.endswith("e_score_correction_bias")]
    for hf_name, p in [*model.named_parameters(), *biases]:
        if hf_name.endswith("kv_b_proj.weight"):  # by head: the key's rows, transposed, then the value's
            heads_of = p.data.view(config.num_attention_heads, -1, config.kv_lora_rank)
            nope = config.qk_nope_head_dim
            for role, part in (("k", heads_of[:, :nope].transpose(1, 2)), ("v", heads_of[:, nope:])):
                data, values, kind = blocks_like(part.shape, kind, rng, is_small)
                writer.add_tensor(f"blk.{hf_name.split('.')[2]}.attn_{role}_b.weight", data, raw_dtype=TYPES[kind % len(TYPES)])
                part.copy_(torch.from_numpy(values))
                kind += 1
            continue
        for gg_name, part in parts_of(hf_name, p, model_type) or ():
            if part.dim() == 2:
                writer.add_tensor(gg_name, np.ascontiguousarray(part.numpy(), np.float32))
                continue
            data, values, kind = blocks_like(part.shape, kind, rng, is_small)
            types.setdefault(hf_name, []).append(TYPES[kind % len(TYPES)])
            if name.endswith("by-expert"):
                for e, one in enumerate(data):
                    writer.add_tensor(gg_name.replace("_exps.", f".{e}."), np.ascontiguousarray(one), raw_dtype=TYPES[kind % len(TYPES)])
            else:
                writer.add_tensor(gg_name, data, raw_dtype=TYPES[kind % len(TYPES)])
            part.copy_(torch.from_numpy(values))
            kind += 1
        if ".mlp.experts." in hf_name:
            continue
        gg_name = gguf_name(names, hf_name, arch)
        role = gg_name.split(".")[-2]
        w = p.data.numpy()
        if "ffn_gate_inp" in gg_name:  # never quantized; the gate of the shared expert is a vector
            writer.add_tensor(gg_name, np.ascontiguousarray(w.reshape(-1) if len(w) == 1 else w, np.float32))
            continue
        by_part = rows_by_part(config) if "query_key_value" in hf_name else np.arange(len(w))
        transposed = model_type == "gpt2" and w.ndim == 2 and "h." in hf_name
        if transposed:
            w = w.T
        if w.ndim == 1:
            if arch in PERMUTED and role in heads:
                w = permuted(w, heads[role])
            w = w[by_part]
            writer.add_tensor(gg_name, np.ascontiguousarray(w + 1 if "gemma" in arch and "norm" in gg_name else w, np.float32))
            continue
        data, values, kind = blocks_like(w.shape, kind, rng, is_small)
        types[hf_name] = [TYPES[kind % len(TYPES)]]
        writer.add_tensor(gg_name, data, raw_dtype=TYPES[kind % len(TYPES)])
        kind += 1
        if arch in PERMUTED and role in heads:
            values = unpermuted(values, heads[role])
        if not transposed:
            values = values[np.argsort(by_part)]
        p.data = torch.from_numpy(np.ascontiguousarray(values.T if transposed else values, np.float32))
    if name == "llama3-rope":
        # The factors by which llama.cpp's converter divides the frequencies.
        plain = 1.0 / 10000.0 ** (np.arange(0, 64, 2) / 64)
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.double().numpy()).astype(np.float32))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
    expected, exact = {}, model.double()
    margins = Margins(exact)
    for k, length in enumerate((3, 5, 9) if is_small else (5, 13, 37)):
        ids = torch.randint(3, config.vocab_size, (length,), generator=generator)
        with torch.no_grad():
            logits = exact(ids[None], use_cache=False).logits[0]
        expected[f"input_ids_{k}"] = ids.to(torch.int32).numpy()
        expected[f"logits_{k}"] = logits.float().contiguous().numpy()
    if margins.least < MARGIN:
        return False
    save_file(expected, target / f"{name}.safetensors")
    if name in OF_INTEGER_INPUTS:
        write_integer_inputs(target, name, exact, types)
    print(name, float(np.abs(expected["logits_2"]).max()), "router margin", margins.least)
    return True


# Folder of a tokenizer.json: kind, the cutting's name.
TOKENIZERS = {"gpt2-stories": ("gpt2", "gpt-2"), "qwen2-style": ("gpt2", "qwen2"), "mistral-7b-v0.1": ("llama", None)}


def write_tokenizer(source, file, kind, pre):
    tree = json.loads((source / "tokenizer.json").read_text())
    vocab = dict(tree["model"]["vocab"])
    added = {t["content"]: t for t in tree["added_tokens"]}
    vocab.update({t["content"]: t["id"] for t in tree["added_tokens"]})
    tokens = [t for t, _ in sorted(vocab.items(), key=lambda x: x[1])]
    types = [3 if t in added and t != "<unk>" else 2 if t == "<unk>" else 6 if kind == "llama" and t.startswith("<0x") else 1
             for t in tokens]
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_tokenizer_model(kind)
    writer.add_token_list(tokens), writer.add_token_types(types)
    if kind == "llama":  # the earlier a piece is merged, the better its score
        first = {}
        for rank, m in enumerate(tree["model"]["merges"]):
            first.setdefault("".join(m.split(" ") if isinstance(m, str) else m), rank)
        writer.add_token_scores([float(-first.get(t, 0)) for t in tokens])
        writer.add_bos_token_id(vocab["<s>"]), writer.add_eos_token_id(vocab["</s>"]), writer.add_add_bos_token(True)
    else:
        writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tree["model"]["merges"]])
        writer.add_tokenizer_pre(pre)
        writer.add_eos_token_id(vocab["<|endoftext|>"])
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()


# The letters and the ideographs of DeepSeek-LLM, as its tokenizer.json (that of DeepSeek-V2-Lite) lists them.
LETTERS = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377"
    "\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d"
    "\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    "\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d"
    "\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4"
    "\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-\ufb06"
    "\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943")
IDEOGRAPHS = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
TEXTS = ["12 3456.789\u00b2\u00bd \u0663\u2167\uff11", "Don't we'LL\r\n\n  x \u2018no\u2019\u2013...?!\u00a0 ",
         "\u65e5\u672c\u30abe\u0301 \ud55c\u3002\u043f\u0440\u0438, \u0644\u060c\u0939\u0940\u0964", " #a_b $x^2`|~\U0001f680 \u2126\u01c5"]


def cuttings():
    """Normalizer and steps of tokenizer.json, by llama.cpp's name, of the models that the name comes from."""
    from tokenizers import Regex, normalizers, pre_tokenizers as steps
    split = lambda pattern: steps.Split(Regex(pattern), "isolated")
    level = lambda regex: steps.ByteLevel(add_prefix_space=False, use_regex=regex)
    single = steps.Digits(individual_digits=True)
    return {
        "deepseek-llm": (None, [split("[\r\n]"), split(r"\s?[" + LETTERS + "]+"),
                                split("\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+"), split(r"\s+$"),
                                split(IDEOGRAPHS), single, level(False)]),
        "deepseek-coder": (None, [split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split(IDEOGRAPHS), single, level(False)]),
        "deepseek-v3": (None, [split(r"\p{N}{1,3}"), split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                               split(r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"""
                                     r""" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""), level(False)]),
        "falcon": (None, [steps.Punctuation("contiguous"), level(True), steps.Digits(individual_digits=False), split("[0-9][0-9][0-9]")]),
        "bloom": (None, [split(" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+"), level(False)]),
        "command-r": (normalizers.NFC(), [single, level(True)]),
        "smollm": (None, [single, level(True)]),
        "olmo": (normalizers.NFC(), [level(True)]),
        "phi-2": (None, [level(True)]),
    }


def write_cuttings(target):
    """A vocabulary in which each text is one token, and so is less wherever it is cut."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=1000, initial_alphabet=alphabet, show_progress=False))
    tree = json.loads(tokenizer.to_str())["model"]
    writer = gguf.GGUFWriter(target / "tokenizer-cuttings.gguf", "llama")
    writer.add_tokenizer_model("gpt2"), writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(sorted(tree["vocab"], key=tree["vocab"].get))
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in tree["merges"]])
    writer.add_bos_token_id(0)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file()
    writer.close()
    ids = {}
    for name, (normalizer, steps) in cuttings().items():
        if normalizer:
            tokenizer.normalizer = normalizer
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        ids[name] = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]
        tokenizer.normalizer = None
    (target / "cuttings.json").write_text(json.dumps({"texts": TEXTS, "ids": ids}, separators=(",", ":")) + "\n")


def main():
    target, tokenizers, example = map(pathlib.Path, sys.argv[1:4])
    wanted = sys.argv[4:]
    for seed, name in enumerate(ROWS):
        if not wanted or name in wanted:
            write_model(target, name, 300 + seed)
    if wanted:
        return
    write_blocks(target / "blocks")
    write_cuttings(target)
    for name, (kind, pre) in TOKENIZERS.items():
        source = example if name == example.name else tokenizers / name
        write_tokenizer(source, target / f"tokenizer-{name}.gguf", kind, pre)


if __name__ == "__main__":
    main()
