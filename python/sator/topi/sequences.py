"""Formulas of sequences, slices and bits: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, te
from sator.topi.formulas import formula_of

__all__ = ["ceil_log2", "collapse_sum", "dynamic_strided_slice", "reinterpret"]


def reinterpret(x, dtype):
    """The bits of each element as another dtype of the same size."""
    from sator import tir

    return te.compute(x.shape, lambda *i: tir.reinterpret(dtype, x(*i)), name="T_reinterpret")


def ceil_log2(x):
    """The least n with 2 ** n >= x, of an integer expression, in its dtype."""
    from sator import tir

    return tir.Cast(x.dtype, tir.ceil(tir.log2(tir.Cast("float64", x))))


def collapse_sum(data, target_shape):
    """The sum over those dimensions that a broadcast of target_shape to the data's shape repeats."""
    return formula_of("collapse_sum_to", "collapse_sum_to")(data, target_shape)


def dynamic_strided_slice(a, begin, end, strides, output_shape):
    """The elements begin[d], begin[d] + strides[d], ... of each dimension d, where tensors of integers say so while the program runs.

    output_shape   of the result; `end` says nothing beside it
    """
    from sator import tir

    def element(*i):
        at = []
        for d, index in enumerate(i):
            first = tir.Cast(index.dtype, begin(d))
            first = tir.if_then_else(first < 0, first + a.shape[d], first)
            at.append(tir.min(first, a.shape[d] - 1) + index * tir.Cast(index.dtype, strides(d)))
        return a(*at)

    return te.compute(output_shape, element, name="T_strided_slice_dynamic")
