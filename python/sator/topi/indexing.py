"""Formulas that choose elements by other tensors or by windows: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, te, tir

__all__ = ["adv_index", "argwhere", "expand_like", "fast_erf", "fast_exp", "fast_tanh", "matrix_set_diag", "reverse_sequence", "searchsorted",
           "sequence_mask", "sliding_window", "unravel_index"]


def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """The sequences with mask_value from their ends on.

    data           [length, batch, ...], or [batch, length, ...] with axis 1
    valid_length   [batch], how long each sequence is
    Errors: ValueError for another axis than 0 and 1.
    """
    if axis not in (0, 1):
        raise ValueError(f"sequence_mask: axis is {axis}\n  needs: 0 or 1")
    value = _core.const(mask_value, data.dtype)
    return te.compute(data.shape, lambda *i: tir.if_then_else(i[axis].astype(valid_length.dtype) >= valid_length(i[1 - axis]), value, data(*i)),
                      name="T_sequence_mask")


def reverse_sequence(a, seq_lengths, seq_axis=1, batch_axis=0):
    """The first elements along seq_axis in reverse, of each slice along batch_axis as many as seq_lengths [batch] says; the others stay."""
    seq, batch = seq_axis % len(a.shape), batch_axis % len(a.shape)

    def element(*i):
        at, extent = i[seq], a.shape[seq]
        length = tir.min(seq_lengths(i[batch]).astype(at.dtype), extent)
        return a(*i[:seq], tir.if_then_else(at < length, length - 1 - at, at), *i[seq + 1:])

    return te.compute(a.shape, element, name="T_reverse_sequence")


def _broadcast(shapes):
    """One shape of several, by NumPy's rule; of extents that are not known to be 1, the first one."""
    rank = max(map(len, shapes))
    filled = [[1] * (rank - len(s)) + list(s) for s in shapes]
    return [next((e for e in extents if not _is_one(e)), extents[0]) for extents in zip(*filled)]


def _is_one(extent):
    return str(extent) == "1"


def adv_index(data, indices):
    """data[indices] as NumPy has it: indices are tensors of integers, of one shape or broadcast to one, for the first dimensions of data.

    Errors: ValueError for more indices than dimensions.
    """
    if len(indices) > len(data.shape):
        raise ValueError(f"adv_index: {len(indices)} indices for a tensor of rank {len(data.shape)}\n  needs: at most one for each dimension")
    shape = _broadcast([t.shape for t in indices])

    def element(*i):
        lead = i[:len(shape)]
        at = [t(*[_core.const(0, p.dtype) if _is_one(e) else p for p, e in zip(lead[len(shape) - len(t.shape):], t.shape)]) for t in indices]
        return data(*at, *i[len(shape):])

    return te.compute([*shape, *data.shape[len(indices):]], element, name="advanced_index")


def searchsorted(sorted_sequence, values, right=False, out_dtype="int64"):
    """Where values go into sorted sequences: how many elements are smaller, or with `right` not greater.

    sorted_sequence   [n], or [..., n] with the leading dimensions of values
    values            any shape where the sequence is one, else [..., m]
    """
    lead = len(sorted_sequence.shape) - 1
    if lead and lead != len(values.shape) - 1:
        raise ValueError(f"searchsorted: sequences of rank {lead + 1} and values of rank {len(values.shape)}\n  needs: one sequence, or one rank")
    axis = te.reduce_axis((0, sorted_sequence.shape[-1]), name="k")

    def element(*i):
        here, value = sorted_sequence(*i[:lead], axis), values(*i)
        return te.sum((here <= value if right else here < value).astype(out_dtype), axis=axis)

    return te.compute(values.shape, element, name="searchsorted")


def sliding_window(data, axis, window_shape, strides):
    """Windows over the dimensions from `axis` on: [the first dimensions, one per window position, the windows' shape].

    Errors: ValueError where there is not one extent and one stride for each of these dimensions.
    """
    axis = axis % len(data.shape)
    slid = data.shape[axis:]
    if not len(slid) == len(window_shape) == len(strides):
        raise ValueError(f"sliding_window: {len(window_shape)} extents and {len(strides)} strides for {len(slid)} dimensions\n  needs: one of each")
    counts = [_core.binary("//", e - (w - 1) + s - 1, s) for e, w, s in zip(slid, window_shape, strides)]

    def element(*i):
        positions, inside = i[axis:axis + len(slid)], i[axis + len(slid):]
        return data(*i[:axis], *(p * s + k for p, s, k in zip(positions, strides, inside)))

    return te.compute([*data.shape[:axis], *counts, *window_shape], element, name="T_sliding_window")


def argwhere(output_shape, condition):
    """The indices of the elements that are not zero, row by row in order.

    output_shape   (rows, rank of condition): rows beyond the number of such elements are 0, such elements beyond the rows are left out
    Errors: ValueError for another number of columns.
    """
    rank = len(condition.shape)
    if str(output_shape[1]) != str(rank):
        raise ValueError(f"argwhere: output_shape {list(output_shape)} for a condition of rank {rank}\n  needs: ({output_shape[0]}, {rank})")

    def statement(ins, outs):
        ib = tir.ir_builder.create()
        given, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        count = ib.allocate("int32", (1,), name="count", scope="global")
        with ib.for_range(0, output_shape[0], name="row") as row:
            for k in range(rank):
                out[row, k] = _core.const(0, "int32")
        count[0] = _core.const(0, "int32")
        loops, at = [], []
        for k, extent in enumerate(condition.shape):
            loops.append(ib.for_range(0, extent, name=f"i{k}"))
            at.append(loops[-1].__enter__())
        index = tuple(at) if rank > 1 else at[0]
        with ib.if_scope(tir.all(given[index] != _core.const(0, condition.dtype), count[0] < output_shape[0])):
            for k in range(rank):
                out[count[0], k] = at[k].astype("int32")
            count[0] = count[0] + 1
        for loop in reversed(loops):
            loop.__exit__(None, None, None)
        return ib.get()

    return te.extern([tuple(output_shape)], [condition], statement, name="argwhere", dtype=["int32"])


def _fast(name, exact):
    def formula(x):
        return te.compute(x.shape, lambda *i: getattr(tir, exact)(x(*i)), name="T_" + name)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = f"{name}(x): tir.{exact} of each element; no less exact than it."
    return formula


fast_exp, fast_tanh, fast_erf = _fast("fast_exp", "exp"), _fast("fast_tanh", "tanh"), _fast("fast_erf", "erf")


def expand_like(a, shape_like, axis):
    """The tensor with the shape of another one, its elements again and again along `axis`, a list of that one's dimensions.

    Errors: ValueError for ranks that do not fit.
    """
    rank = len(shape_like.shape)
    if len(axis) == rank and len(a.shape) == 1:  # one number
        return te.compute(shape_like.shape, lambda *i: a(0), name="T_expand_like")
    new = {d % rank for d in axis}
    if len(new) + len(a.shape) != rank:
        raise ValueError(f"expand_like: rank {len(a.shape)} and the axes {list(axis)} for a shape of rank {rank}\n  needs: an axis for each dimension that a has not")
    return te.compute(shape_like.shape, lambda *i: a(*(at for d, at in enumerate(i) if d not in new)), name="T_expand_like")


def unravel_index(indices, shape):
    """Positions, counted row by row, as coordinates: [rank, n], of a number [rank].

    indices   [n] or a number, integers
    shape     [rank], integers, a tensor
    """
    rank = int(shape.shape[0])

    def element(d, *at):
        left, out = indices(*at), _core.const(0, indices.dtype)
        for v in reversed(range(rank)):
            extent = shape(v).astype(indices.dtype)
            out = tir.if_then_else(d == v, left % extent, out)
            left = left // extent
        return out

    return te.compute([rank, *indices.shape], element, name="T_unravel")


def matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """The matrices [..., m, n] with other values on a diagonal, or on those from k[0] to k[1].

    diagonal   [..., length of the longest one]; of several [..., number, length], the uppermost first
    k          0 the main one, positive ones above it
    align      at which end the shorter ones above it, and those below it, begin in their rows: "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"
    Errors: ValueError for another align, and for k[0] above k[1].
    """
    band = [k] if isinstance(k, int) else list(k) if isinstance(k, (list, tuple)) else []
    sides = str(align).split("_")
    if not all(isinstance(d, int) for d in band) or band != sorted(band) or len(band) not in (1, 2) or len(sides) != 2 or not {*sides} <= {"LEFT", "RIGHT"}:
        raise ValueError(f"matrix_set_diag: k = {k!r}, align = {align!r}\n  needs: k[0] <= k[1]; \"RIGHT_LEFT\", \"LEFT_RIGHT\", \"LEFT_LEFT\" or \"RIGHT_RIGHT\"")
    low, high = band[0], band[-1]
    (m, n), longest = data.shape[-2:], diagonal.shape[-1]

    def element(*i):
        *batch, row, column = i
        d = column - row
        along = tir.if_then_else(d >= 0, row, column)
        if low == high:
            value = diagonal(*batch, along)
        else:
            above = longest - tir.min(n - d, m) if sides[0] == "RIGHT" else 0
            below = longest - tir.min(n, m + d) if sides[1] == "RIGHT" else 0
            value = diagonal(*batch, high - d, along + tir.if_then_else(d >= 0, above, below))
        return tir.if_then_else(tir.all(d >= low, d <= high), value, data(*i))

    return te.compute(data.shape, element, name="T_matrix_set_diag")
