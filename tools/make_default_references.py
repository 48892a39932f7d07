#!/usr/bin/env python3
"""Writes what each family's configuration class of Hugging Face's transformers fills in, for tests/frontend.

    VENV/bin/python tools/make_default_references.py tests/reference/models/defaults.json

A row per family: a config.json with sizes alone, and what the class, and a model made of it, have in place of the rest.
"""
import json
import pathlib
import sys

import torch
import transformers

IDS = dict(vocab_size=97, bos_token_id=1, eos_token_id=2, pad_token_id=0)
SIZES = dict(IDS, hidden_size=256, intermediate_size=64, num_hidden_layers=12, num_attention_heads=32)
GPT2 = dict(IDS, n_embd=256, n_layer=2, n_head=4, n_positions=64)
MOE = dict(SIZES, num_hidden_layers=4, moe_intermediate_size=16)
LATENT = dict(IDS, hidden_size=256, intermediate_size=64, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4,
              kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=16,
              num_experts_per_tok=4, moe_intermediate_size=16)
ROWS = {
    "gpt2": GPT2, "gptj": GPT2, "llama": SIZES, "qwen2": dict(SIZES, num_hidden_layers=30), "qwen3": SIZES, "mistral": SIZES,
    "phi3": SIZES, "gemma": SIZES, "gemma2": SIZES, "gemma3_text": SIZES, "starcoder2": SIZES, "olmo2": SIZES, "granite": SIZES,
    "stablelm": SIZES, "smollm3": SIZES, "glm4": SIZES, "cohere": SIZES, "cohere2": SIZES, "phi": SIZES, "gpt_neox": SIZES,
    "opt": dict(IDS, hidden_size=256, ffn_dim=64, num_hidden_layers=2, num_attention_heads=4,
                max_position_embeddings=64),
    "falcon": dict(IDS, hidden_size=256, num_hidden_layers=2, num_attention_heads=4),
    "bloom": dict(IDS, hidden_size=256, n_layer=2, n_head=4),
    "qwen2_moe": dict(MOE, shared_expert_intermediate_size=16), "qwen3_moe": MOE, "mixtral": SIZES, "gpt_oss": SIZES,
    "deepseek_v2": LATENT, "deepseek_v3": LATENT,
}
# The same families where a window is asked for.
WITH_WINDOW = ["qwen2", "qwen3", "qwen2_moe", "qwen3_moe"]


def first(config, *names):
    for name in names:
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    return None


def windows(config, layers):
    """Positions of the window, and the layers that have it."""
    positions = getattr(config, "sliding_window", None) or 0
    types = getattr(config, "layer_types", None)
    with_window = [i for i in range(layers) if positions and (not types or types[i] == "sliding_attention")]
    return (positions, with_window) if with_window else (0, [])


def has(names, *ends):
    return any(name.endswith(ends) for name in names)


def row_of(model_type, keys):
    config = transformers.AutoConfig.for_model(model_type, **keys)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    names = [name for name, _ in model.named_parameters()]
    layers = config.num_hidden_layers
    norms = {getattr(m, "eps", getattr(m, "variance_epsilon", None)) for n, m in model.named_modules()
             if n.endswith(("final_layernorm", "final_layer_norm", "ln_f", "model.norm"))}
    attention = next(m for n, m in model.named_modules() if n.endswith((".0.attn", ".0.self_attn", ".0.attention", ".0.self_attention")))
    out = {
        "epsilon": norms.pop(),
        "activation": first(config, "hidden_activation", "hidden_act", "activation_function", "activation"),
        "tied": config.tie_word_embeddings,
        "positions": getattr(config, "max_position_embeddings", None),
        "head_dim": getattr(attention, "head_dim", None),
        "kv_heads": 1 if getattr(config, "multi_query", False) else first(config, "num_key_value_heads", "num_attention_heads"),
        "qkv_bias": has(names, "q_proj.bias", "qkv_proj.bias", "query_key_value.bias", "c_attn.bias"),
        "mlp_bias": has(names, "mlp.up_proj.bias", "c_fc.bias", "fc1.bias", "fc_in.bias", "dense_h_to_4h.bias",
                        "gate_up_proj_bias"),
        "head_bias": "lm_head.bias" in names,
        "scale": getattr(attention, "scaling", getattr(attention, "scale_attn", None)),
        "attention_cap": first(config, "attn_logit_softcapping") or 0,
        "logit_scale": getattr(config, "logit_scale", 1.0),
        "logit_cap": first(config, "final_logit_softcapping") or 0,
    }
    out["window"], out["window_layers"] = windows(config, layers)
    # Frequencies say base, share and scaling at once.
    rotary = next((m for n, m in model.named_modules() if n.endswith("rotary_emb")), None)
    if rotary is not None and hasattr(config, "rope_parameters"):
        rope = config.rope_parameters
        kinds = {"full": rope.get("full_attention", rope), "window": rope.get("sliding_attention")}
        for kind, given in kinds.items():
            if given:
                out["rope_" + kind] = {"theta": given["rope_theta"], "type": given["rope_type"],
                                       "share": given.get("partial_rotary_factor", 1.0),
                                       "factor": given.get("factor", 1.0),
                                       "original": given.get("original_max_position_embeddings", 0),
                                       "truncate": given.get("truncate", True)}
        if "rope_full" in out and hasattr(rotary, "attention_scaling"):
            out["rope_full"]["attention_factor"] = float(rotary.attention_scaling)
    if model_type == "gptj":
        out["rotary_dim"] = config.rotary_dim
    experts = first(config, "num_experts", "num_local_experts", "n_routed_experts")
    if experts:
        out["experts"] = {"count": experts, "per_token": config.num_experts_per_tok,
                          "normalized": bool(getattr(config, "norm_topk_prob", model_type in ("mixtral", "gpt_oss")))}
    if model_type.startswith("deepseek"):
        out["latent"] = {"query_rank": config.q_lora_rank or 0, "groups": config.n_group or 1, "open_groups": config.topk_group or 1,
                         "scale": config.routed_scaling_factor, "shared": config.n_shared_experts,
                         "dense": config.first_k_dense_replace}
    return {"config": {"model_type": model_type, **keys}, "is": out}


def main():
    rows = [row_of(model_type, keys) for model_type, keys in ROWS.items()]
    rows += [row_of(model_type, dict(ROWS[model_type], use_sliding_window=True)) for model_type in WITH_WINDOW]
    lines = ",\n".join("  " + json.dumps(row) for row in rows)
    pathlib.Path(sys.argv[1]).write_text(f'{{"transformers": "{transformers.__version__}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
