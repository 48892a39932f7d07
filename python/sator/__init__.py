"""Sator: a compiler of tensor programs and graphs, with the names of TVM's Python package.

    import sator
    from sator.script import ir as I, tir as T, relax as R

Submodules and the compiler itself are loaded when they are first used.
"""
import importlib
import os

from sator import answers, paths

paths.install()
answers.install()

# A wheel carries the linker that compiled programs need.
_linker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ld.lld")
if os.path.exists(_linker):
    os.environ.setdefault("SATOR_LINKER", _linker)

__version__ = "0.1.0"

_SUBMODULES = ("arith", "dlight", "driver", "error", "ir", "nd", "relax", "runtime", "script", "target", "te", "testing", "tir", "topi", "transform")
_NAMES = {
    "IRModule": "ir",
    "register_func": "runtime",
    "get_global_func": "runtime",
    "cpu": "runtime",
    "cuda": "runtime",
    "metal": "runtime",
    "opencl": "runtime",
    "rocm": "runtime",
    "vulkan": "runtime",
    "device": "runtime",
    "convert": "runtime",
    "gpu": "runtime",
    "cl": "runtime",
    "mtl": "runtime",
    "Object": "runtime",
    "DataType": "runtime",
    "build": "driver",
    "lower": "driver",
    "TVMError": "error",
    "Target": "target",
    "LM": "model",
    "export_model": "model",
    "command": "commands",
    "study": "commands",
    "estimate": "commands",
    "explain": "commands",
    "schemes": "commands",
    "chips": "commands",
}


def __getattr__(name):
    if name in _SUBMODULES:
        return importlib.import_module("sator." + name)
    if name in _NAMES:
        value = getattr(importlib.import_module("sator." + _NAMES[name]), name)
        globals()[name] = value
        return value
    deep = paths.submodule("sator", name)
    if deep is not None:
        return deep
    raise paths.missing("sator", name, __dir__())


def __dir__():
    return sorted([*globals(), *_SUBMODULES, *_NAMES])
