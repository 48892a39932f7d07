"""How formulas are found, and those that TVM names by their operands."""
import difflib

from sator import _core, te
from sator.relax.op_docs import DOCS

_OPS = {name for name, _ in _core.ops()}


_BINARY = {"add", "subtract", "multiply", "divide", "floor_divide", "power", "maximum", "minimum", "mod", "less", "less_equal", "greater",
           "greater_equal", "equal", "not_equal"}


def _with_one_dtype(args):
    """Numbers beside a tensor as constants of its dtype."""
    dtypes = [a.dtype for a in args if isinstance(a, te.Tensor)]
    return [_core.const(a, dtypes[0]) if dtypes and isinstance(a, (int, float)) and not isinstance(a, bool) else a for a in args]


def formula_of(name, op):
    """The formula of an op as a function of tensors. Errors: AttributeError for an op that there is not."""
    if op not in _OPS:
        near = difflib.get_close_matches(str(op), _OPS, 3)
        raise AttributeError(f"topi has no formula {name}\n  needs: the name of an op that has a formula"
                             + (f"\n  hint:  the nearest are {', '.join(near)}" if near else "\n  hint:  write it with te.compute"))

    def formula(*args, **kwargs):
        return _core.formula(op, _with_one_dtype(args) if op in _BINARY else list(args), kwargs)

    formula.__name__ = formula.__qualname__ = name
    words = DOCS.get(op)
    formula.__doc__ = f"{dict(_core.ops())[op]}: the formula of the op {op}, over tensors of te." + (f"\n\n{words}" if words else "")
    return formula


def matmul(tensor_a, tensor_b, transp_a=False, transp_b=False, out_dtype=None):
    """The product of two matrices, each transposed first where that is said; its block is called T_matmul_NN, _NT, _TN or _TT.

    tensor_a   [m, k], or [k, m] transposed
    tensor_b   [k, n], or [n, k] transposed
    """
    m, k = (tensor_a.shape[1], tensor_a.shape[0]) if transp_a else tensor_a.shape
    n = tensor_b.shape[0] if transp_b else tensor_b.shape[1]
    axis = te.reduce_axis((0, k), name="k")
    dtype = out_dtype or tensor_a.dtype

    def element(i, j):
        a = tensor_a[axis, i] if transp_a else tensor_a[i, axis]
        b = tensor_b[j, axis] if transp_b else tensor_b[axis, j]
        return te.sum(a.astype(dtype) * b.astype(dtype), axis=axis)

    return te.compute((m, n), element, name="T_matmul_" + "NT"[transp_a] + "NT"[transp_b])


def _shift(name, builtin):
    def formula(lhs, rhs):
        from sator.script import tir as T

        a, b = _with_one_dtype([lhs, rhs])
        if not isinstance(b, te.Tensor):
            return te.compute(a.shape, lambda *i: getattr(T, builtin)(a(*i), b), name="T_" + name)
        if len(a.shape) != len(b.shape) or any(str(m) != str(n) for m, n in zip(a.shape, b.shape)):
            raise ValueError(f"{name} of shapes {list(a.shape)} and {list(b.shape)}\n  needs: one shape, or a number of bits\n  hint:  "
                             "topi.broadcast_to first")
        return te.compute(a.shape, lambda *i: getattr(T, builtin)(a(*i), b(*i)), name="T_" + name)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(lhs, rhs): the bits of integers moved by rhs places, of a tensor of the same shape or a number."
    return formula


left_shift, right_shift = _shift("left_shift", "shift_left"), _shift("right_shift", "shift_right")
