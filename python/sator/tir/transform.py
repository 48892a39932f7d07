"""Passes over tensor programs, by name; those written in Python with `prim_func_pass`."""
from enum import IntFlag

from sator import _core, transform

prim_func_pass = transform.function_pass_of(_core.tir.PrimFunc, "transform_function")


def Apply(ftransform):  # noqa: N802
    """A pass that gives each tensor program to a function of Python's: func -> func."""
    return prim_func_pass(lambda func, mod, ctx: ftransform(func), name="Apply")


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
    return getattr(transform, name)


def __dir__():
    return sorted([*globals(), *dir(transform)])
