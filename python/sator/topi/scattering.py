"""Formulas that put elements at positions that other tensors say: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, te, tir

__all__ = ["invert_permutation", "scatter_nd", "strided_set"]


def scatter_nd(data, indices, updates, mode):
    """data with updates at the positions that `indices` says.

    data      [x0, x1, ...]
    indices   [m, y0, ...]       indices[:, y0, ...] is a position in the first m dimensions of data
    updates   [y0, ..., xm, ...]
    mode      "update", "add", "mul", "min" or "max"
    """
    rank = len(indices.shape)
    last = te.compute([*indices.shape[1:], indices.shape[0]], lambda *i: indices(i[rank - 1], *i[:rank - 1]), name="T_indices_last")
    return _core.formula("scatter_nd", [data, last, updates], {"reduction": mode})


def invert_permutation(data):
    """The permutation out with out[data[i]] = i.

    data   [n]  integers, each of 0 .. n - 1 once
    """
    def statement(ins, outs):
        ib = tir.ir_builder.create()
        given, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, data.shape[0], "i") as i:
            out[given[i]] = i.astype(data.dtype)
        return ib.get()

    return te.extern(list(data.shape), [data], statement, name="invert_permutation", dtype=data.dtype)


def strided_set(a, v, begin, end, strides=None):
    """The tensor a with a[begin:end:strides] = v, as NumPy has slices, in each dimension; dimensions that are not named are whole.

    begin, end, strides   lists, or tensors [n] of int32; strides may be negative, 1 where they are not named
    """
    def entry(values, axis, default):
        known = values.shape[0] if isinstance(values, te.Tensor) else len(values or ())
        if isinstance(known, int) or isinstance(known, tir.IntImm):
            return values[axis] if axis < int(known) else default
        return tir.if_then_else(axis < known, values[axis], default)

    slices = []
    for axis, extent in enumerate(a.shape):
        step = entry(strides, axis, tir.const(1, "int32"))
        forward = step > 0
        first = entry(begin, axis, None)
        last = entry(end, axis, None)
        slices.append((extent, step, forward, first, last))

    def from_front(at, extent, forward):
        """A bound of a slice: from the end where it is negative, and cut to the tensor."""
        at = tir.Select(at < 0, at + extent, at)
        return tir.Select(forward, tir.max(tir.min(at, extent), 0), tir.max(tir.min(at, extent - 1), -1))

    def element(*i):
        inside, position = [], []
        for at, (extent, step, forward, first, last) in zip(i, slices):
            low = tir.Select(forward, 0, extent - 1) if first is None else from_front(_int(first, at), extent, forward)
            stop = tir.Select(forward, extent, -1) if last is None else from_front(_int(last, at), extent, forward)
            away = tir.Select(forward, at - low, low - at)
            size = tir.Select(forward, _int(step, at), 0 - _int(step, at))
            inside += [away >= 0, tir.Select(forward, at < stop, at > stop), tir.floormod(away, size) == 0]
            position.append(tir.floordiv(away, size))
        return tir.if_then_else(tir.all(*inside), v(*position), a(*i))

    return te.compute(a.shape, element, name="strided_set")


def _int(value, like):
    """A bound in the dtype of an index."""
    return tir.const(value, like.dtype) if isinstance(value, int) else value.astype(like.dtype)
