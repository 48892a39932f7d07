#!/usr/bin/env python3
"""Samples texts under JSON schemas with `sator generate` and validates each with Python's jsonschema.

    python3 -m venv VENV && VENV/bin/pip install jsonschema
    VENV/bin/python tools/check_schema_samples.py build/dev/sator examples/gpt2-stories [--count 1000]

The schemas are those below and, in turn, those of tests/reference/json-schema that `sator` does not refuse. Prints how many texts were valid, whole,
and refused; exit status 1 if one is not valid.
"""
import argparse
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 20},
                                      "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                      "tags": {"type": "array", "items": {"enum": ["kind", "old", "young"]}, "maxItems": 3},
                                      "home": {"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^[A-Z][a-z]+$"}]}},
     "required": ["name", "age", "home"], "additionalProperties": False},
    {"type": "array", "items": {"type": "number", "minimum": -2.5, "exclusiveMaximum": 10, "multipleOf": 0.25}, "minItems": 1, "maxItems": 6},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"},
     "right": {"$ref": "#/$defs/tree"}, "v": {"type": "boolean"}}, "required": ["v"], "additionalProperties": False}}},
    {"type": "array", "items": {"oneOf": [{"type": "object", "properties": {"k": {"const": "a"}, "n": {"type": "integer"}}, "required": ["k", "n"]},
                                          {"type": "object", "properties": {"k": {"const": "b"}, "s": {"type": "string"}}, "required": ["k"]}]}},
    {"type": "object", "patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string", "maxLength": 9},
     "minProperties": 2, "maxProperties": 4},
    {"type": "string", "pattern": "^\\d{4}-(0[1-9]|1[0-2])-\\d{2}$"},
    {"not": {"type": ["object", "string"]}},
    {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0.1, "exclusiveMaximum": 0.3}, "minItems": 2, "maxItems": 4},
]


def all_schemas():
    found = list(SCHEMAS)
    for file in sorted((ROOT / "tests/reference/json-schema").glob("*.json")):
        found += [group["schema"] for group in json.loads(file.read_text())]
    return found


decimal.getcontext().prec = 200


def read(text):
    """JSON with exact decimals: floats would fail multiples of 0.0001 that are some."""
    def number(digits):
        value = decimal.Decimal(digits)
        return int(value) if value == value.to_integral_value() else value
    return json.loads(text, parse_float=number)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sator")
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    schemas, valid, whole, refused, seed, turn = all_schemas(), 0, 0, set(), 0, 0
    while whole < args.count:
        turn += 1
        which = turn % len(schemas) if turn % 2 else turn // 2 % len(SCHEMAS)
        if which in refused or "\\\\p{" in json.dumps(schemas[which]):  # Python's re has no \p
            continue
        seed += 1
        (folder / "schema.json").write_text(json.dumps(schemas[which]))
        run = subprocess.run([args.sator, "generate", args.model, "--prompt", "As JSON: ", "--json-schema", folder / "schema.json",
                              "--temperature", "1.2", "--seed", str(seed), "--max-tokens", "150", "--json", folder / "out.json"],
                             capture_output=True, text=True)
        if run.returncode != 0:
            if not any(words in run.stderr for words in ("not done", "refers to", "multipleOf", "allows no value")):
                sys.exit(f"{schemas[which]}: {run.stderr}")
            refused.add(which)
            continue
        text = json.loads((folder / "out.json").read_text())["text"]
        whole += 1
        try:
            for reader in [read] if "multipleOf" in json.dumps(schemas[which]) else [read, json.loads]:
                jsonschema.Draft202012Validator(reader(json.dumps(schemas[which]))).validate(reader(text))
            valid += 1
        except Exception as problem:
            print(f"{json.dumps(schemas[which])}\n  {text}\n  {problem}".splitlines()[:4], run.stderr)
    print(f"{valid} of {whole} texts are valid; {len(refused)} schemas refused, {len(schemas)} in all")
    sys.exit(valid != whole)


main()
