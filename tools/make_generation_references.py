#!/usr/bin/env python3
"""Writes what Hugging Face's transformers makes of the example model: log-probabilities of a greedy text, for tests/cli.

    python3 -m venv VENV && VENV/bin/pip install torch transformers
    VENV/bin/python tools/make_generation_references.py tests/reference/generation

logprobs.json: of a prompt's tokens and of twelve greedy tokens after it ln p, the place among all tokens, and the three likeliest; float64 on
the float16 weights of examples/gpt2-stories.
"""
import json
import pathlib
import sys

import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROMPT = "Once upon a time there was a"


def describe(logits, token, best):
    logprobs = torch.log_softmax(logits, -1)
    top = torch.topk(logprobs, best)
    return {"id": token, "logprob": logprobs[token].item(), "rank": int((logprobs > logprobs[token]).sum()) + 1,
            "best": [{"id": int(i), "logprob": v.item()} for i, v in zip(top.indices, top.values)]}


def logprobs(model, tokenizer, steps=12, best=3):
    ids = tokenizer(PROMPT)["input_ids"]
    prompt = len(ids)
    for _ in range(steps):
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    logits = model(torch.tensor([ids])).logits[0]
    rows = [describe(logits[i], ids[i + 1], best) for i in range(len(ids) - 1)]
    return {"prompt": PROMPT, "prompt_logprobs": rows[: prompt - 1], "logprobs": rows[prompt - 1 :]}


@torch.no_grad()
def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    folder = ROOT / "examples/gpt2-stories"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    (out / "logprobs.json").write_text(json.dumps(logprobs(model, tokenizer), indent=1) + "\n")


main()
