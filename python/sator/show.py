"""Programs as text, in colour on a terminal."""
import re
import sys

from sator import _core
from sator.extend import extends

_TOKENS = re.compile(r"(?P<comment>#[^\n]*)|(?P<string>\"(?:[^\"\\\n]|\\.)*\")|(?P<decorator>@[\w.]+)"
                     r"|\b(?P<keyword>def|class|for|in|with|if|else|elif|while|return|pass|as|from|import|lambda|True|False|None)\b"
                     r"|(?<![\w.])(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_COLOURS = {"comment": "2;3", "string": "31", "decorator": "35", "keyword": "1;32", "number": "34"}


def coloured(text):
    """The text with the colours of a terminal."""
    return _TOKENS.sub(lambda m: f"\033[{_COLOURS[m.lastgroup]}m{m.group()}\033[0m", text)


@extends(_core.Object)
class Object:
    def script(self, *, show_meta=True, **_options):
        """The program as TVMScript."""
        return self._script(show_meta)

    def show(self, style=None, **options):
        """Prints the program, in colour on a terminal."""
        text = self.script(**{k: v for k, v in options.items() if k == "show_meta"})
        print(coloured(text) if sys.stdout.isatty() else text)

    def astext(self, *_args, **_options):
        """The program as text."""
        return self._script(True)
