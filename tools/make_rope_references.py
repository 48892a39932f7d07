#!/usr/bin/env python3
"""Prints the rotary frequencies that Hugging Face's transformers computes, for the tables of tests/llm/rope_test.cc.

    python3 -m venv VENV && VENV/bin/pip install torch transformers
    VENV/bin/python tools/make_rope_references.py

A row per kind of scaling, as the test spells it: the bits of each frequency, in float32 on the CPU, for a context of 4096 positions.
"""
import torch
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

CONTEXT = 4096
# theta, elements of a head, and what config.json says of the scaling.
ROWS = [
    (10000, 80, {}),
    (500000, 64, {}),
    (10000, 64, {"rope_type": "linear", "factor": 4}),
    (500000, 128, {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}),
    (10000, 64, {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}),
    (10000, 64, {"rope_type": "dynamic", "factor": 2, "original_max_position_embeddings": 1024}),
]


def frequencies(theta, dims, scaling):
    # Of a dynamic scaling the positions before it is stretched are max_position_embeddings.
    positions = scaling.get("original_max_position_embeddings", CONTEXT) if scaling.get("rope_type") == "dynamic" else CONTEXT
    config = transformers.LlamaConfig(hidden_size=4 * dims, num_attention_heads=4, head_dim=dims, max_position_embeddings=positions,
                                      rope_parameters={"rope_type": "default", "rope_theta": float(theta), **scaling})
    init = ROPE_INIT_FUNCTIONS.get(config.rope_parameters["rope_type"], LlamaRotaryEmbedding.compute_default_rope_parameters)
    return init(config, seq_len=CONTEXT)[0]


def spelled(theta, dims, scaling):
    fields = [f".kind = Kind::{scaling['rope_type']}", f".factor = {scaling['factor']}"] if scaling else []
    if original := scaling.get("original_max_position_embeddings"):
        fields.append(f".original_positions = {original}")
    return f"{{.theta = {theta}, .dims = {dims}" + (f", .scaling = {{{', '.join(fields)}}}" if fields else "") + "}"


def main():
    print(f"// transformers {transformers.__version__}, torch {torch.__version__}")
    for row in ROWS:
        bits = frequencies(*row).float().view(torch.int32).tolist()
        lines = [", ".join(map(str, bits[i:i + 8])) for i in range(0, len(bits), 8)]
        print(f"{{{spelled(*row)},\n {{" + ",\n  ".join(lines) + "}},")


main()
