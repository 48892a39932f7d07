"""TVMScript: programs written as Python functions, or as text.

    from sator.script import ir as I, tir as T, relax as R
"""
from sator.script import ir, relax, tir  # noqa: F401
from sator.script.decorators import from_source, ir_module, parse, prim_func  # noqa: F401
