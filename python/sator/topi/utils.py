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


def get_const_float(expr):
    """The number of a constant expression. Errors: ValueError, it is not constant."""
    value = expr if isinstance(expr, (int, float)) else getattr(Analyzer().simplify(expr), "value", None)
    if value is None:
        raise ValueError(f"{expr} is not constant\n  needs: a number that is known before the program runs")
    return float(value)


def get_float_tuple(in_tuple):
    """Constant expressions as numbers."""
    return tuple(get_const_float(e) for e in in_tuple)


def equal_const_int(expr, value):
    """Whether an expression is this constant."""
    expr = expr if isinstance(expr, int) else Analyzer().simplify(expr)
    return getattr(expr, "value", expr if isinstance(expr, int) else None) == value


def prod(x):
    """The product of a list of expressions; 1 of none, as int32."""
    if not x:
        return _core.const(1, "int32")
    out = x[0]
    for factor in x[1:]:
        out = out * factor
    return out


def simplify(expr):
    """A simpler expression of the same value; what is no expression is kept."""
    return Analyzer().simplify(expr) if isinstance(expr, _core.PrimExpr) else expr


def ceil_div(a, b):
    """(a + b - 1) // b."""
    return _core.binary("//", a + b - 1, b)


def is_empty_shape(shape):
    """Whether an extent is known to be 0."""
    return any(equal_const_int(e, 0) for e in shape)


def is_dynamic_shape(shape):
    """Whether an extent is not constant."""
    return any(not isinstance(e, int) for e in get_const_tuple(shape))


def get_max_power2_factor(n, max_value=None):
    """The largest power of two that divides n, at most max_value."""
    factor = 1
    while n % 2 == 0 and (max_value is None or factor * 2 <= max_value):
        factor, n = factor * 2, n // 2
    return factor


def swap(arr, axis):
    """A list of axes with the last one in the place of `axis`, and back."""
    return [*arr[:axis], arr[-1], *arr[axis + 1:-1], arr[axis]]


def get_shape(src_shape, src_layout, dst_layout):
    """A shape in another layout of the same dimensions: (1, 3, 8, 8) from NCHW to NHWC is (1, 8, 8, 3)."""
    if src_layout == dst_layout:
        return get_const_tuple(src_shape)
    if sorted(src_layout) != sorted(dst_layout) or len(src_layout) != len(src_shape):
        raise ValueError(f"get_shape from {src_layout} to {dst_layout}\n  needs: two orders of the same dimensions")
    return get_const_tuple([src_shape[src_layout.index(c)] for c in dst_layout])
