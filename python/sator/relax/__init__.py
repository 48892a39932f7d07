"""Graphs: nodes, ops, passes, building and running."""
import importlib

from sator import _core, ir  # noqa: F401
from sator.driver import Executable, relax_build as build  # noqa: F401
from sator.extend import add_constructors, extends
from sator.runtime.vm import VirtualMachine  # noqa: F401

Expr, StructInfo, Binding = _core.RelaxExpr, _core.StructInfo, _core.Binding


@extends(_core.relax.GlobalVar)
class _GlobalVar:
    def __init__(self, name_hint, struct_info=None):
        _core.Object.__init__(self, _core.make(_core.relax.GlobalVar, [name_hint, struct_info]))


@extends(_core.relax.Function)
class _Function:
    def with_attr(self, key, value=None):
        """The function with one attribute, or those of a dictionary. This object stays as it is."""
        func = self
        for k, v in (key if isinstance(key, dict) else {key: value}).items():
            func = _core.with_attr(func, k, v)
        return func

    def without_attr(self, key):
        """The function without an attribute."""
        return _core.with_attr(self, key, None)


add_constructors(_core.relax)
globals().update({name: cls for name, cls in vars(_core.relax).items() if not name.startswith("_")})


def const(value, dtype=None):
    """A tensor that is known before the program runs, from a number or an array."""
    import numpy

    array = numpy.asarray(value, dtype=dtype)
    if dtype is None and array.dtype == numpy.float64 and not hasattr(value, "dtype"):
        array = array.astype("float32")
    return _core.constant(_core.copy_of(numpy.ascontiguousarray(array)))


def __getattr__(name):
    if name == "transform":
        return importlib.import_module("sator.relax.transform")
    raise AttributeError(f"module 'sator.relax' has no attribute {name!r}")
