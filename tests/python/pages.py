"""Runs pages of docs/: their blocks of Python, one after the other, and what they print.

    pages.py PAGE [--write]      --write fills text blocks that are empty
"""
import io
import os
import re
import sys
import tempfile
import contextlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.S | re.M)


class Mismatch(AssertionError):
    """A block printed something else than the page shows."""


def matches(expected, printed):
    """Whether the text is the expected one; "..." stands for any text, a run of spaces for any other."""

    def pattern(line):
        return r".*".join(r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in line.split("..."))

    return re.fullmatch(r"\s*".join([pattern(line) + r"[^\S\n]*\n?" for line in expected.strip().splitlines()]) + r"\s*",
                        printed.strip() + "\n", re.S) is not None


def run(name, write=False):
    """Runs a page in the root of the checkout: the names that its blocks define. Raises Mismatch, or what a block raises.

    write   puts what was printed in the place of text blocks that are empty
    """
    page = (ROOT / name).read_text()
    blocks = _BLOCK.findall(page)
    namespace, printed = {"__name__": "page"}, ""
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(ROOT)
        try:
            for i, (kind, text) in enumerate(blocks):
                if kind == "text":
                    if write and not text.strip():
                        page = page.replace("```text\n```", f"```text\n{printed.rstrip()}\n```", 1)
                        continue
                    if not matches(text, printed):
                        raise Mismatch(f"{name}, block {i}: the page shows\n{text}\nand it printed\n{printed}")
                    continue
                # A file each: decorators read the source of what they decorate.
                file = Path(folder) / f"block_{i}.py"
                file.write_text(text)
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(compile(text, str(file), "exec"), namespace)
                printed = out.getvalue()
        finally:
            os.chdir(here)
    if write:
        (ROOT / name).write_text(page)
    return namespace


if __name__ == "__main__":
    run(sys.argv[1], "--write" in sys.argv)
