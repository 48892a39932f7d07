"""The language R of scripts: `from sator.script import relax as R`."""
from sator.script.decorators import function  # noqa: F401
from sator.script.macros import macro  # noqa: F401
from sator.script.language import Name

_language = "R"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Name("R." + name)
