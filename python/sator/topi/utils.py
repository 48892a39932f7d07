"""What formulas of TVM's users share."""
from sator import _core
from sator.arith import Analyzer


def get_const_int(expr):
    """The integer of a constant expression. Errors: ValueError, it is not constant."""
    if isinstance(expr, int):
        return expr
    expr = Analyzer().simplify(expr)
    if not isinstance(expr, _core.tir.IntImm):
        raise ValueError(f"{expr} is not constant\n  needs: an integer that is known before the program runs")
    return int(expr.value)


def get_const_tuple(in_tuple):
    """A shape as integers; extents that are not constant stay as they are."""
    simplified = [e if isinstance(e, int) else Analyzer().simplify(e) for e in in_tuple]
    return tuple(int(e) if isinstance(e, (int, _core.tir.IntImm)) else e for e in simplified)


def ravel_index(indices, shape):
    """The position of an element, counted row by row."""
    at = 0
    for index, extent in zip(indices, shape):
        at = at * extent + index
    return at


def unravel_index(idx, shape):
    """The index of the element at a position that is counted row by row."""
    out = []
    for extent in reversed(shape):
        out.insert(0, _core.binary("%", idx, extent))
        idx = _core.binary("//", idx, extent)
    return out
