"""Tensor expressions: tensors defined by a formula per element."""
from sator import _core
from sator.extend import extends
from sator.te_schedule import create_schedule  # noqa: F401

Tensor = _core.Tensor
create_prim_func = _core.te.create_prim_func


class _Operation:
    """What computes a tensor."""

    def __init__(self, tensor):
        self._tensor = tensor

    @property
    def axis(self):
        return self._tensor._axes()

    @property
    def reduce_axis(self):
        return self._tensor._reduce_axes()

    @property
    def name(self):
        return self._tensor.name

    def output(self, index):
        return self._tensor


def _elementwise(name, swapped=False):
    def operator(self, other):
        from sator import topi

        if isinstance(other, _core.PrimExpr) or not isinstance(other, (Tensor, int, float)):
            return NotImplemented
        return getattr(topi, name)(other, self) if swapped else getattr(topi, name)(self, other)

    return operator


@extends(Tensor)
class _Tensor:
    def __call__(self, *indices):
        return self._element(list(indices))

    def __getitem__(self, indices):
        return self._element(list(indices) if isinstance(indices, tuple) else [indices])

    def __len__(self):
        return int(self.shape[0])

    @property
    def op(self):
        return _Operation(self)

    def __repr__(self):
        return f"Tensor(shape={list(self.shape)}, name={self.name}, dtype={self.dtype})"

    __add__, __radd__ = _elementwise("add"), _elementwise("add", True)
    __sub__, __rsub__ = _elementwise("subtract"), _elementwise("subtract", True)
    __mul__, __rmul__ = _elementwise("multiply"), _elementwise("multiply", True)
    __truediv__, __rtruediv__ = _elementwise("divide"), _elementwise("divide", True)


def placeholder(shape, dtype="float32", name="placeholder"):
    """A tensor that is given.

    shape   extents: integers or expressions
    """
    return _core.te.placeholder(shape, dtype, name)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at (i, j, ...) is fcompute(i, j, ...): an expression, or a reduction such as te.sum."""
    return _core.te.compute(shape, fcompute, name, dict(attrs or {}))


def reduce_axis(dom, name="k", thread_tag="", span=None):
    """An axis that a reduction runs over: dom is (begin, end)."""
    return _core.te.reduce_axis(dom[0], dom[1], name)


def sum(expr, axis, where=None, init=None):  # noqa: A001
    """The sum of an expression over one axis or several."""
    return _core.te.sum(expr, axis)


def prod(expr, axis):
    """The product of an expression over one axis or several."""
    return _core.te.prod(expr, axis)


def max(expr, axis):  # noqa: A001
    """The largest value of an expression over one axis or several."""
    return _core.te.max(expr, axis)


def min(expr, axis):  # noqa: A001
    """The smallest value of an expression over one axis or several."""
    return _core.te.min(expr, axis)


def var(name="tindex", dtype="int32", span=None):
    """A variable."""
    return _core.make_var(name, dtype, False)


def size_var(name="size", dtype="int32", span=None):
    """A variable that is never negative."""
    return _core.make_var(name, dtype, True)


def __getattr__(name):
    # Functions of elements: te.exp, te.if_then_else, ...
    if name.startswith("__"):
        raise AttributeError(name)
    from sator import tir

    return getattr(tir, name)
