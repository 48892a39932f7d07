"""The language T of scripts: `from sator.script import tir as T`."""
from sator.script.decorators import prim_func  # noqa: F401
from sator.script.macros import macro  # noqa: F401
from sator.script.language import Name

_language = "T"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Name("T." + name)
