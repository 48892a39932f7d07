"""The tables of converters, and what converters ask of values."""
from sator import _core

FUNCTIONS, METHODS = {}, {}


def converter(*names, method=True):
    """Enters a converter under names of functions, and of methods too."""
    def add(function):
        for name in names:
            FUNCTIONS[name] = function
            if method:
                METHODS[name] = function
        return function

    return add


def is_expr(value):
    return isinstance(value, _core.RelaxExpr)


def dtype(value):
    return value.struct_info.dtype


def shape(value):
    return list(value.struct_info.shape.values)


def rank(value):
    return len(shape(value))
