"""The language I of scripts: `from sator.script import ir as I`."""
from sator.script.decorators import ir_module  # noqa: F401
from sator.script.language import Name

_language = "I"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Name("I." + name)
