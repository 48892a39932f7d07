"""Formulas of sequences, slices and bits: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, te
from sator.topi.formulas import formula_of

__all__ = ["ceil_log2", "collapse_sum", "dynamic_strided_slice", "fast_erf", "fast_exp", "fast_tanh", "reinterpret",
           "sequence_mask"]


def _same(name):
    def formula(x):
        return formula_of(name, name)(x)

    formula.__name__ = formula.__qualname__ = f"fast_{name}"
    formula.__doc__ = f"topi.{name}: it is fast as it is."
    return formula


fast_exp, fast_tanh, fast_erf = _same("exp"), _same("tanh"), _same("erf")


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


def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """Elements beyond each sequence's length set to a value.

    data           [length, batch, ...] with axis 0, [batch, length, ...] with axis 1
    valid_length   [batch] integers
    """
    from sator import tir

    if axis not in (0, 1) or len(data.shape) < 2:
        raise ValueError(f"sequence_mask: axis = {axis!r} of {len(data.shape)} dimensions\n  needs: axis 0 or 1, two dimensions")
    masked = _core.const(mask_value, data.dtype)
    return te.compute(data.shape, lambda *i: tir.if_then_else(i[axis] < valid_length(i[1 - axis]), data(*i), masked), name="sequence_mask")


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
