"""Patterns of graphs: what they match, and what is put in its place.

    x = wildcard()
    twice = is_op("relax.add")(x, x)                    # the same value on both sides, for x is one object
    rewrite_call(twice, lambda call, matched: relax.op.multiply(matched[x], relax.const(2.0)), func)
"""
from sator import paths
from sator.relax.dpl.context import PatternContext  # noqa: F401
from sator.relax.dpl.pattern import *  # noqa: F401,F403
from sator.relax.dpl.rewrite import rewrite_bindings, rewrite_call  # noqa: F401


__getattr__ = paths.lookup(__name__)
