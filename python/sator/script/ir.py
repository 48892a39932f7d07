"""The language I of scripts: `from sator.script import ir as I`."""
from sator.script.decorators import ir_module  # noqa: F401
from sator.script.language import Name

_language = "I"


def module_attrs(attrs):
    """Attributes of the module in whose class it stands; the decorator reads it from the source."""


def module_global_infos(infos):
    """What functions of the module share, such as devices; as module_attrs."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Name("I." + name)
