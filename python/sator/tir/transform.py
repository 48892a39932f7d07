"""Passes over tensor programs, by name; those written in Python with `prim_func_pass`."""
from enum import IntFlag

from sator import _core, paths, transform as passes

__path__ = []  # TVM's modules below are found by sator.paths

prim_func_pass = passes.function_pass_of(_core.tir.PrimFunc, "transform_function")


def Apply(ftransform):  # noqa: N802
    """A pass that gives each tensor program to a function of Python's: func -> func."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), name="Apply")


def Filter(fcond):  # noqa: N802
    """A pass that keeps the tensor programs for which fcond(func) holds, and every other function."""
    from sator import IRModule

    def run(mod, ctx):
        kept = {n: f for n, f in mod.functions.items() if not isinstance(f, _core.tir.PrimFunc) or fcond(f)}
        return mod if len(kept) == len(mod.functions) else IRModule(kept, None, mod.attrs, mod.global_infos)

    return passes.module_pass(run, opt_level=0, name="Filter")


class HoistedConditionals(IntFlag):
    """What HoistExpression moves out of loops, the option tir.HoistExpression.hoisted_conditionals; the values are TVM's."""

    Never = 0
    IfElseStmt = 1
    IfElseExpr = 2
    BooleanExpression = 4
    UsingBlockVar = 8
    All = 15


class HoistedLetBindings(IntFlag):
    """Of let bindings the same, the option tir.HoistExpression.hoisted_let_bindings."""

    Never = 0
    RequiredByConditional = 1
    LetStmt = 2
    LetExpr = 4
    All = 7


def __getattr__(name):
    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    return getattr(passes, name)


def __dir__():
    return sorted([*globals(), *dir(passes)])
