#!/usr/bin/env python3
"""Writes small random models of each family with logits of Hugging Face's transformers, for tests/llm.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors
    VENV/bin/python tools/make_family_references.py tests/reference/models/families [ROW...]

A folder per row: config.json (float32), model.safetensors (bfloat16, which halves the file) and expected.safetensors:
input_ids_K and logits_K of three sequences, computed in float64 from the same weights. All weights are random, those of norms
and biases too, so that each part of a family changes the logits; windows are shorter than the texts, head counts odd.
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

# Llama's spelling, at sizes with which nothing divides by accident.
BASE = dict(vocab_size=97, hidden_size=42, intermediate_size=58, num_hidden_layers=2, num_attention_heads=6,
            num_key_value_heads=2, head_dim=10, max_position_embeddings=64, tie_word_embeddings=False,
            bos_token_id=1, eos_token_id=2, pad_token_id=0)
WITHOUT_HEAD_DIM = {k: v for k, v in BASE.items() if k != "head_dim"}
FALCON = dict(vocab_size=97, ffn_hidden_size=58, num_hidden_layers=2, max_position_embeddings=64, tie_word_embeddings=True,
              bos_token_id=1, eos_token_id=2, pad_token_id=0)
DEEPSEEK = dict(vocab_size=97, hidden_size=42, intermediate_size=58, moe_intermediate_size=22, num_hidden_layers=3, num_attention_heads=3,
                num_key_value_heads=3, kv_lora_rank=18, qk_nope_head_dim=10, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=12,
                n_group=4, topk_group=2, num_experts_per_tok=3, first_k_dense_replace=1, max_position_embeddings=64,
                tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=0,
                rope_parameters={"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "mscale": 0.7, "mscale_all_dim": 1.2,
                                 "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 16})
# Name: model_type, what the row adds, lengths of the sequences.
ROWS = {
    "qwen2": ("qwen2", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1}, None),
    "qwen3": ("qwen3", BASE, None),
    "mistral": ("mistral", {**BASE, "sliding_window": 6}, None),
    "phi3-longrope": ("phi3", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1,
                               "original_max_position_embeddings": 16,
                               "rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0,
                                                   "partial_rotary_factor": 0.75,
                                                   "original_max_position_embeddings": 16,
                                                   "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
                                                   "long_factor": [1.0, 1.5, 2.5, 4.0, 5.5, 7.0]}}, (19, 28, 37)),
    "llama-yarn": ("llama", {**BASE, "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0,
                                                         "original_max_position_embeddings": 16}}, None),
    "gemma": ("gemma", {**BASE, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True}, None),
    "gemma2": ("gemma2", {**BASE, "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True,
                          "query_pre_attn_scalar": 21, "attn_logit_softcapping": 4.0, "final_logit_softcapping": 6.0,
                          "sliding_window": 6}, None),
    "opt": ("opt", dict(vocab_size=97, hidden_size=42, ffn_dim=58, num_hidden_layers=2, num_attention_heads=3,
                        max_position_embeddings=64, word_embed_proj_dim=42, do_layer_norm_before=True), None),
    "starcoder2": ("starcoder2", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "sliding_window": 6}, None),
    "olmo2": ("olmo2", {**WITHOUT_HEAD_DIM, "hidden_size": 48}, None),
    "granite": ("granite", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "embedding_multiplier": 3.0, "residual_multiplier": 0.6,
                            "attention_multiplier": 0.2, "logits_scaling": 2.5, "attention_bias": True}, None),
    "stablelm": ("stablelm", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1,
                              "use_qkv_bias": True}, None),
    # As StableLM 2 12B: a norm without bias for each head of queries and keys, in tensors of their own.
    "stablelm-parallel": ("stablelm", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_attention_heads": 3,
                                       "num_key_value_heads": 3, "use_parallel_residual": True, "qk_layernorm": True}, None),
    "gemma3": ("gemma3_text", {**BASE, "num_hidden_layers": 3, "hidden_activation": "gelu_pytorch_tanh",
                               "tie_word_embeddings": True, "query_pre_attn_scalar": 21, "sliding_window": 6,
                               "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                               "rope_parameters": {
                                   "full_attention": {"rope_type": "linear", "rope_theta": 50000.0, "factor": 4.0},
                                   "sliding_attention": {"rope_type": "default", "rope_theta": 300.0}}}, None),
    "smollm3": ("smollm3", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 3,
                            "num_key_value_heads": 1, "no_rope_layer_interval": 2}, None),
    "glm4": ("glm4", {**BASE, "head_dim": 12, "attention_bias": True}, None),
    "cohere": ("cohere", {**WITHOUT_HEAD_DIM, "hidden_size": 60, "logit_scale": 0.7, "tie_word_embeddings": True}, None),
    "cohere-qk-norm": ("cohere", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1,
                                  "use_qk_norm": True, "logit_scale": 0.7, "tie_word_embeddings": True}, None),
    "cohere2": ("cohere2", {**WITHOUT_HEAD_DIM, "hidden_size": 60, "num_hidden_layers": 3, "sliding_window": 6,
                            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                            "logit_scale": 0.7, "tie_word_embeddings": True}, None),
    "phi": ("phi", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 3,
                    "qk_layernorm": True}, None),
    "gpt-neox": ("gpt_neox", dict(vocab_size=97, hidden_size=48, intermediate_size=58, num_hidden_layers=2,
                                  num_attention_heads=3, max_position_embeddings=64), None),
    "gpt-neox-sequential": ("gpt_neox", dict(vocab_size=97, hidden_size=48, intermediate_size=58, num_hidden_layers=2,
                                             num_attention_heads=3, max_position_embeddings=64, attention_bias=False,
                                             use_parallel_residual=False), None),
    "gptj": ("gptj", dict(vocab_size=97, n_embd=60, n_inner=58, n_layer=2, n_head=5, rotary_dim=8, n_positions=64,
                          bos_token_id=1, eos_token_id=2), None),
    "falcon-7b": ("falcon", dict(FALCON, hidden_size=60, num_attention_heads=5), None),
    "falcon-40b": ("falcon", dict(FALCON, hidden_size=60, num_attention_heads=6, num_kv_heads=2,
                                  new_decoder_architecture=True), None),
    "falcon-11b": ("falcon", dict(FALCON, hidden_size=60, num_attention_heads=6, num_kv_heads=2,
                                  new_decoder_architecture=True, num_ln_in_parallel_attn=1, bias=True), None),
    "falcon-rw": ("falcon", dict(FALCON, hidden_size=60, num_attention_heads=5, multi_query=False, parallel_attn=False,
                                 alibi=True, bias=True), None),
    "bloom": ("bloom", dict(vocab_size=97, hidden_size=60, n_layer=2, n_head=6, tie_word_embeddings=True), None),
    # One layer in two has experts, of which the last has none all the same.
    "qwen2-moe": ("qwen2_moe", {**WITHOUT_HEAD_DIM, "hidden_size": 48, "num_hidden_layers": 4, "num_experts": 5,
                                "num_experts_per_tok": 2, "moe_intermediate_size": 22,
                                "shared_expert_intermediate_size": 34, "decoder_sparse_step": 2,
                                "mlp_only_layers": [3]}, None),
    "qwen3-moe": ("qwen3_moe", {**BASE, "num_experts": 7, "num_experts_per_tok": 3, "moe_intermediate_size": 22,
                                "norm_topk_prob": True}, None),
    "mixtral": ("mixtral", {**BASE, "intermediate_size": 64, "num_local_experts": 4, "num_experts_per_tok": 2,
                            "sliding_window": 6}, None),
    # The clamp is near, so that it acts; the stretched rotary embedding has a ramp between whole pairs.
    "gpt-oss": ("gpt_oss", {**BASE, "num_hidden_layers": 3, "num_local_experts": 5, "num_experts_per_tok": 2,
                            "sliding_window": 6, "swiglu_limit": 0.8, "rope_parameters": {
                                "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                "original_max_position_embeddings": 16, "truncate": False}}, None),
    # The first layer has no experts; values are narrower than keys; the stretched rotary embedding changes the scores' scale.
    "deepseek-v2": ("deepseek_v2", {**DEEPSEEK, "q_lora_rank": None, "topk_method": "group_limited_greedy", "n_shared_experts": 2,
                                    "routed_scaling_factor": 1.7}, None),
    "deepseek-v3": ("deepseek_v3", {**DEEPSEEK, "q_lora_rank": 20, "norm_topk_prob": True, "n_shared_experts": 1,
                                    "routed_scaling_factor": 2.5, "attention_bias": True}, None),
    # As OPT-350m: norms after the sums, none at the end, embeddings narrower than the blocks.
    "opt-350m": ("opt", dict(vocab_size=97, hidden_size=42, ffn_dim=58, num_hidden_layers=2, num_attention_heads=3,
                             max_position_embeddings=64, word_embed_proj_dim=26, do_layer_norm_before=False), None),
}
MARGIN = 1e-3  # between the last expert that a token takes and the next one
# Eager attention of Falcon in transformers 5.23 adds the linear biases twice: in the mask, and to the scores.
ATTENTION = {"falcon-rw": "sdpa"}


def randomize(model, generator):
    """Every parameter a random bfloat16; those of norms around the value that they begin with. A router's bias changes its choice."""
    for name, b in model.named_buffers():
        if name.endswith("e_score_correction_bias"):
            b.data = (0.2 * torch.randn(b.shape, generator=generator, dtype=torch.float32)).bfloat16().float()
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator, dtype=torch.float32)
        if p.dim() == 1:
            p.data = p.data.float() + 0.3 * noise
        else:
            p.data = noise * (0.6 if "embed" in name else 1.3) / p.shape[-1] ** 0.5
        p.data = p.data.bfloat16().float()


# What a rounded x / scale keeps from the middle between two integers: less, and the last bits of a sum choose.
TIE_MARGIN = 5e-4


class IntegerInputs:
    """While it is entered, products by these weights take their input as integers, scaled row by row or by groups of so many columns (None:
    whole rows). `margin`: the nearest that one was to a tie."""

    def __init__(self, weights, groups):
        self.groups = {w.untyped_storage().data_ptr(): g for w, g in zip(weights, groups)}
        self.margin, self.linear, self.conv = 1.0, torch.nn.functional.linear, transformers.pytorch_utils.Conv1D.forward

    def integers(self, x, weight):
        place = weight.untyped_storage().data_ptr()
        if place not in self.groups:
            return x
        parts = x.view(*x.shape[:-1], -1, self.groups[place] or x.shape[-1])
        scale = parts.abs().amax(-1, keepdim=True) / 127
        codes = parts / torch.where(scale > 0, scale, 1)
        self.margin = min(self.margin, float((0.5 - (codes - codes.round()).abs()).min()))
        return (codes.round() * scale).view(x.shape)

    def __enter__(self):
        torch.nn.functional.linear = lambda x, w, b=None: self.linear(self.integers(x, w), w, b)
        transformers.pytorch_utils.Conv1D.forward = lambda layer, x: self.conv(layer, self.integers(x, layer.weight))
        return self

    def __exit__(self, *error):
        torch.nn.functional.linear, transformers.pytorch_utils.Conv1D.forward = self.linear, self.conv


def integer_input_logits(model, weights, groups=None):
    """input_ids_K and logits_K of the first four single tokens whose codes are far enough from ties."""
    expected, number = {}, 0
    for token in range(3, model.config.vocab_size):
        with torch.no_grad(), IntegerInputs(weights, groups or [None] * len(weights)) as inputs:
            logits = model(torch.tensor([[token]]), use_cache=False).logits[0]
        if inputs.margin < TIE_MARGIN or number == 4:
            continue
        expected[f"input_ids_{number}"] = torch.tensor([token], dtype=torch.int32)
        expected[f"logits_{number}"] = logits.float().contiguous()
        number += 1
    assert number == 4, f"{number} tokens are far from ties"
    return expected


class Margins:
    """The least distance between the probability (or logit) of a chosen expert and one that is not."""

    def __init__(self, model):
        self.least = float("inf")
        for name, module in model.named_modules():
            if name.endswith((".mlp.gate", ".mlp.router")):
                module.register_forward_hook(self.see)

    def see(self, module, inputs, outputs):
        logits = outputs[0].double()
        if not hasattr(module, "num_group"):
            self.between(torch.softmax(logits, -1), module.top_k)
            return
        # DeepSeek: first groups are chosen, then experts of these.
        bias = getattr(module, "e_score_correction_bias", None)
        scores = torch.softmax(logits, -1) if bias is None else logits.sigmoid() + bias.double()
        groups = scores.view(len(scores), module.num_group, -1)
        of_group = groups.max(-1).values if bias is None else groups.topk(2).values.sum(-1)
        self.between(of_group, module.topk_group)
        shut = of_group < of_group.topk(module.topk_group).values[:, -1:]
        self.between(groups.masked_fill(shut[..., None], -9.0).flatten(1), module.top_k)

    def between(self, scores, k):
        ordered = scores.sort(-1, descending=True).values
        self.least = min(self.least, float((ordered[:, k - 1] - ordered[:, k]).min()))


def write(folder, model_type, keys, lengths, seed):
    """Seeds are tried from the row's own on, until no token is near to another choice of experts."""
    while not write_with(folder, model_type, keys, lengths, seed):
        seed += 100


def write_with(folder, model_type, keys, lengths, seed):
    config = transformers.AutoConfig.for_model(model_type, **keys)
    attention = config._attn_implementation = ATTENTION.get(folder.name, "eager")
    generator = torch.Generator().manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation=attention, experts_implementation="eager").eval().float()
    randomize(model, generator)
    model.tie_weights()
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file({name: p.bfloat16() for name, p in load_file(folder / "model.safetensors").items()}, folder / "model.safetensors",
              metadata={"format": "pt"})
    expected = {}
    exact = model.double()
    margins = Margins(exact)
    for k, length in enumerate(lengths or (7, 19, 37)):
        ids = torch.randint(3, config.vocab_size, (length,), generator=generator)
        with torch.no_grad():
            logits = exact(ids[None], use_cache=False).logits[0]
        expected[f"input_ids_{k}"] = ids.to(torch.int32)
        expected[f"logits_{k}"] = logits.float().contiguous()
    if "num_experts_per_tok" in keys and margins.least == float("inf"):
        raise SystemExit(f"{folder.name}: no router was seen; what does this transformers call it?")
    if margins.least < MARGIN:
        return False
    save_file(expected, folder / "expected.safetensors")
    spread = max(float(v.abs().max()) for name, v in expected.items() if name.startswith("logits"))
    print(f"{folder.name}: {sum(p.numel() for p in model.parameters())} parameters, largest logit {spread:.2f}, "
          f"router margin {margins.least:.4f}")
    return True


def main():
    target, wanted = pathlib.Path(sys.argv[1]), sys.argv[2:]
    for seed, (name, (model_type, keys, lengths)) in enumerate(ROWS.items()):
        if not wanted or name in wanted:
            write(target / name, model_type, keys, lengths, seed)
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    (target / "versions.json").write_text(json.dumps(versions) + "\n")


if __name__ == "__main__":
    main()
