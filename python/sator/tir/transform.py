"""Passes over tensor programs, by name; those written in Python with `prim_func_pass`."""
from sator import _core, transform

prim_func_pass = transform.function_pass_of(_core.tir.PrimFunc, "transform_function")


def __getattr__(name):
    return getattr(transform, name)


def __dir__():
    return sorted([*globals(), *dir(transform)])
