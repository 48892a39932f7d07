"""Writes sampling_cases.json: what may be drawn after the logits processors of Hugging Face's transformers.

The definitions are those of generation/logits_process.py (RepetitionPenaltyLogitsProcessor,
SequenceBiasLogitsProcessor, NoRepeatNGramLogitsProcessor, NoBadWordsLogitsProcessor, MinLengthLogitsProcessor,
MinNewTokensLengthLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, MinPLogitsWarper), written
down here once more with NumPy, in the order of generation/utils.py. Run it with NumPy installed: python3 tests/engine/data/sampling_cases.py
"""
import json
import pathlib

import numpy as np


def repetition_penalty(scores, sequence, penalty):
    for token in set(sequence):
        x = scores[token]
        scores[token] = x * np.float32(penalty) if x < 0 else x / np.float32(penalty)


def no_repeat_ngram(scores, sequence, n):
    seen = {}
    for i in range(len(sequence) - n + 1):
        *before, last = sequence[i : i + n]
        seen.setdefault(tuple(before), []).append(last)
    if len(sequence) + 1 >= n:
        for token in seen.get(tuple(sequence[len(sequence) - n + 1 :]), []):
            scores[token] = -np.inf


def sequence_bias(scores, sequence, biases):
    total = np.zeros_like(scores)
    for tokens, bias in {tuple(t): b for t, b in biases}.items():  # of two biases of one sequence the later one
        *before, last = tokens
        if len(before) <= len(sequence) and sequence[len(sequence) - len(before) :] == before:
            total[last] += np.float32(bias)
    scores += total


def probabilities(case):
    scores = np.array(case["logits"], dtype=np.float32)
    sequence = case["sequence"]
    scores[case.get("excluded", [])] = -np.inf
    if "sequence_bias" in case:
        sequence_bias(scores, sequence, case["sequence_bias"])
    if "repetition_penalty" in case:
        repetition_penalty(scores, sequence, case["repetition_penalty"])
    if "no_repeat_ngram_size" in case:
        no_repeat_ngram(scores, sequence, case["no_repeat_ngram_size"])
    if "bad_words" in case:
        sequence_bias(scores, sequence, [(word, -np.inf) for word in case["bad_words"]])
    if len(sequence) < case.get("min_length", 0):
        scores[case["ends"]] = -np.inf
    if len(sequence) - case.get("prompt", 0) < case.get("min_new_tokens", 0):
        scores[case["ends"]] = -np.inf
    scores = scores.astype(np.float64) / case["temperature"]
    softmax = lambda s: np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    if case.get("top_k"):
        scores[scores < np.sort(scores)[-case["top_k"]]] = -np.inf
    if "top_p" in case:
        order = np.argsort(scores)
        removed = softmax(scores)[order].cumsum() <= 1 - case["top_p"]
        removed[-1] = False
        scores[order[removed]] = -np.inf
    if "min_p" in case:
        p = softmax(scores)
        scores[p < case["min_p"] * p.max()] = -np.inf
    return softmax(scores)


def main():
    random = np.random.default_rng(14)
    cases = []
    for i in range(40):
        vocab = int(random.integers(5, 40))
        case = {
            "logits": [float(np.float32(x)) for x in random.normal(0, 3, vocab)],
            "sequence": [int(t) for t in random.integers(0, min(vocab, 6), int(random.integers(1, 20)))],
            "temperature": float(random.choice([0.5, 0.7, 1.0, 1.6])),
        }
        for name, values in {
            "repetition_penalty": [1.1, 1.3, 2.0, 0.8],
            "no_repeat_ngram_size": [1, 2, 3, 4],
            "min_p": [0.02, 0.1, 0.5],
            "top_k": [1, 3, 7],
            "top_p": [0.3, 0.8, 0.95],
        }.items():
            if random.random() < 0.5:
                if name == "no_repeat_ngram_size" and vocab <= 6:
                    continue
                case[name] = random.choice(values).item()
        if i % 5 == 0:
            case["excluded"] = [vocab - 1, vocab - 2]
        if case.get("top_k", 0) > vocab:
            del case["top_k"]
        p = probabilities(case)
        case["probabilities"] = {int(t): float(p[t]) for t in range(vocab) if p[t] > 0}
        cases.append(case)
    for i in range(30):
        vocab = int(random.integers(8, 20))
        sequence = [int(t) for t in random.integers(0, 4, int(random.integers(1, 12)))]
        words = lambda n: [
            [int(t) for t in random.integers(0, 4, int(random.integers(1, 4)))] for _ in range(int(random.integers(1, n)))
        ]
        ends_here = [sequence[-k:] + [int(random.integers(0, vocab))] for k in (1, 2) if k <= len(sequence)]
        case = {
            "logits": [float(np.float32(x)) for x in random.normal(0, 3, vocab)],
            "sequence": sequence,
            "prompt": int(random.integers(1, len(sequence) + 1)),
            "temperature": 1.0,
            "ends": [int(t) for t in random.choice(np.arange(4, vocab), 2, replace=False)],
        }
        if i % 3 != 1:
            biased = words(5) + ends_here
            case["sequence_bias"] = [[w, float(np.float32(random.normal(0, 2)))] for w in biased]
            case["repetition_penalty"] = 1.2
        if i % 3 != 2:
            case["bad_words"] = words(3) + ends_here[:1]
        if i % 2:
            case["min_length"] = len(sequence) + int(random.integers(-1, 2))
        if i % 4 < 2:
            case["min_new_tokens"] = len(sequence) - case["prompt"] + int(random.integers(-1, 2))
        p = probabilities(case)
        case["probabilities"] = {int(t): float(p[t]) for t in range(vocab) if p[t] > 0}
        cases.append(case)
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


main()
