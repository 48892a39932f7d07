#!/usr/bin/env python3
"""Writes what Hugging Face's transformers makes of the example model: log-probabilities of a greedy text, for tests/cli.

    python3 -m venv VENV && VENV/bin/pip install torch transformers
    VENV/bin/python tools/make_generation_references.py tests/reference/generation

logprobs.json: of a prompt's tokens and of twelve greedy tokens after it ln p, the place among all tokens, and the three likeliest; float64 on
the float16 weights of examples/gpt2-stories.
choices.jsonl, cloze.jsonl: tasks made from examples/gpt2-stories/validation.txt; eval.json: what the model makes of them in float64, by the
definitions of lm-evaluation-harness 4e7e0d4 (lm_eval/api/model.py: loglikelihood, _encode_pair; lm_eval/models/huggingface.py:
_loglikelihood_tokens; lm_eval/api/task.py: process_results), stated here once more; encodings.json: pairs as a tokenizer that begins texts with a
mark encodes them.
"""
import json
import math
import pathlib
import random
import re
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


def encode_pair(tokenizer, context, continuation):
    prefix = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    encode = lambda text: tokenizer.encode(text, add_special_tokens=not text.startswith(tokenizer.decode(prefix)))
    if context == "":
        ids = tokenizer.encode(continuation, add_special_tokens=False)
        return ([prefix], ids) if ids[0] != prefix else (ids[:1], ids[1:])
    spaces = len(context) - len(context.rstrip())
    if spaces > 0:
        continuation = context[-spaces:] + continuation
        context = context[:-spaces]
    whole, ids = encode(context + continuation), encode(context)
    return ids, whole[len(ids):]


def log_likelihood(model, tokenizer, context, continuation, window):
    context, continuation = encode_pair(tokenizer, context, continuation)
    ids = (context + continuation)[-(window + 1):][:-1]
    logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0], -1)[-len(continuation):]
    target = torch.tensor(continuation)
    return {"log_likelihood": logprobs.gather(1, target[:, None]).sum().item(),
            "greedy": bool((logprobs.argmax(-1) == target).all())}


def make_tasks(out):
    rng = random.Random(16)
    text = (ROOT / "examples/gpt2-stories/validation.txt").read_text().replace("<|endoftext|>", " ")
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if 60 < len(s) < 220 and s.count(" ") > 11]
    choices, cloze = [], []
    for i in range(40):
        words = [s.split(" ") for s in rng.sample(sentences, 4)]
        cut = rng.randint(5, 8)
        options = [" ".join(w[cut:cut + rng.randint(2, 6)]) for w in words]
        gold = rng.randrange(4)
        options[0], options[gold] = options[gold], options[0]
        row = {"context": " ".join(words[0][:cut]) + (" " if i % 5 == 4 else ""), "choices": options, "gold": gold}
        if i % 7 == 3:
            row["gold"] = [gold, (gold + 1) % 4]
        if i % 5 == 4:
            row["delimiter"] = ""
        if i == 6:
            row["context"] = ""
        if i == 13:
            row["context"] = text[2000:6000].replace("\n", " ") + row["context"]  # longer than the context window
        if i == 20:
            row["choices"][1] = "a caf\u00e9 \u2014 \u00e7a"
        choices.append(row)
    for _ in range(40):
        words = rng.choice(sentences).split(" ")
        cloze.append({"context": " ".join(words[:10]), "continuation": " " + words[10]})
    for name, rows in (("choices", choices), ("cloze", cloze)):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return choices, cloze


def wilson(p, n, z=1.959963984540054):
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return {"value": p, "low": middle - half, "high": middle + half}


def evaluate(model, tokenizer, choices, cloze):
    window = model.config.n_positions
    hits, scored = {"acc": 0, "acc_norm": 0, "acc_bytes": 0}, []
    for row in choices:
        results = [log_likelihood(model, tokenizer, row["context"], row.get("delimiter", " ") + c, window) for c in row["choices"]]
        scored.append(results)
        gold = row["gold"] if isinstance(row["gold"], list) else [row["gold"]]
        for name, length in (("acc", lambda c: 1), ("acc_norm", len), ("acc_bytes", lambda c: len(c.encode()))):
            values = [r["log_likelihood"] / length(c) for r, c in zip(results, row["choices"])]
            hits[name] += values.index(max(values)) in gold
    shares = {name: wilson(n / len(choices), len(choices)) for name, n in hits.items()}
    results = [log_likelihood(model, tokenizer, row["context"], row["continuation"], window) for row in cloze]
    losses = [-r["log_likelihood"] for r in results]
    mean = sum(losses) / len(losses)
    error = 1.959963984540054 * math.sqrt(sum((x - mean) ** 2 for x in losses) / (len(losses) - 1) / len(losses))
    return {"choices": {**shares, "scored": scored},
            "cloze": {"acc": wilson(sum(r["greedy"] for r in results) / len(cloze), len(cloze)), "scored": results,
                      "perplexity": {"value": math.exp(mean), "low": math.exp(mean - error), "high": math.exp(mean + error)}}}


def encodings(tokenizer):
    pairs = [("Once upon a", " time"), ("Once upon a ", "time"), ("", "Once upon"), ("The end. \n", "And"), ("<s>Once", " more"),
             ("", "<s>Once"), ("caf", "\u00e9 au lait"), ("a\u3000", "b"), ("It is", " n't so")]
    return [{"context": c, "continuation": k, "ids": encode_pair(tokenizer, c, k)} for c, k in pairs]


@torch.no_grad()
def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    folder = ROOT / "examples/gpt2-stories"
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    (out / "eval.json").write_text(json.dumps(evaluate(model, tokenizer, *make_tasks(out))) + "\n")
    marked = transformers.AutoTokenizer.from_pretrained(ROOT / "tests/reference/models/llama-stories")
    (out / "encodings.json").write_text(json.dumps(encodings(marked), separators=(",", ":")) + "\n")
    (out / "logprobs.json").write_text(json.dumps(logprobs(model, tokenizer), separators=(",", ":")) + "\n")


main()
