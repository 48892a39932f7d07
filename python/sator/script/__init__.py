"""TVMScript: programs written as Python functions, or as text.

    from sator.script import ir as I, tir as T, relax as R
"""
from sator.script import ir, relax, tir  # noqa: F401
from sator.script.decorators import from_source, ir_module, parse, prim_func  # noqa: F401


def __getattr__(name):
    import importlib

    from sator import paths

    if name == "printer":
        return importlib.import_module("sator.script.printer")
    deep = paths.submodule("sator.script", name)
    if deep is not None:
        return deep
    raise paths.missing("sator.script", name, globals())
