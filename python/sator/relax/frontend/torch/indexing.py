"""Elements by their positions: read, and with others in their place."""
from sator import _core, arith, relax, tir
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import cast, is_symbolic, promoted
from sator.relax.frontend.torch.table import FUNCTIONS, METHODS, apply, const_like, converter, dtype, is_expr, is_known, is_one, known, per_dimension, rank, shape


def _constant(values, extents=(-1,)):
    import numpy

    return relax.const(numpy.asarray(values, "int64").reshape(extents))


def from_zero(reader, index, extent):
    """Positions, of which negative ones count from the end."""
    index = index if is_expr(index) else _constant(index)
    end = cast(reader, extent, dtype(index))
    return apply(reader, "where", apply(reader, "less", index, const_like(0, index)), apply(reader, "add", index, end), index)


def broadcast(shapes):
    """The shape that tensors of these shapes have together."""
    ranks = max(map(len, shapes))
    columns = zip(*([1] * (ranks - len(s)) + s for s in shapes))
    return [next((e for e in column if not is_one(e)), 1) for column in columns]


class _Places:
    """Elements of a tensor at one index per dimension that has one: those dimensions stand first in `x`, and `positions` has [common..., count].

    common   the shape of the indices together
    at       where the common dimensions stand among the others in torch's result: in place of the first where the indexed ones lie side by side
    Errors: an index of truth values, as many as a tensor's data say.
    """

    def __init__(self, reader, x, indices):
        given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
        for _, index in given:
            if is_expr(index) and dtype(index) == "bool":
                raise TVMError("error: index: a tensor of bool, whose result is as long as it has True\n  needs: a tensor of positions\n"
                               "  hint:  torch.where keeps the shape")
        axes = [axis for axis, _ in given]
        others = [axis for axis in range(rank(x)) if axis not in axes]
        self.order = axes + others
        self.at = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
        self.x = x if self.order == list(range(rank(x))) else apply(reader, "permute_dims", x, self.order)
        indices = promoted(reader, *(from_zero(reader, i, shape(x)[axis]) for axis, i in given))
        self.common = broadcast([shape(i) for i in indices])
        columns = [apply(reader, "expand_dims", apply(reader, "broadcast_to", i, self.common), -1) for i in indices]
        self.positions = columns[0] if len(columns) == 1 else apply(reader, "concat", columns, axis=-1)
        self.count = len(axes)

    def result_order(self):
        """Axes of [common..., others...] in torch's order."""
        many, all_of_them = len(self.common), len(self.common) + len(self.order) - self.count
        return [*range(many, many + self.at), *range(many), *range(many + self.at, all_of_them)]


def _permuted(reader, x, order):
    return x if list(order) == list(range(len(order))) else apply(reader, "permute_dims", x, list(order))


def indexed(reader, x, indices):
    """The elements at one index per dimension that has one, in None's place all."""
    given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    if len(given) == 1 and not (is_expr(given[0][1]) and dtype(given[0][1]) == "bool"):
        axis, index = given[0]
        return relax.op.take(x, from_zero(reader, index, shape(x)[axis]), axis=axis)
    places = _Places(reader, x, indices)
    return _permuted(reader, apply(reader, "gather_nd", places.x, places.positions), places.result_order())


@converter("index_put", "index_put_")
def _index_put(reader, x, indices, values, accumulate=False):
    """x with values at positions; a mask of truth values takes one value. Errors: as many values as a mask has True."""
    values = cast(reader, values, dtype(x))
    if len(indices) == 1 and is_expr(indices[0]) and dtype(indices[0]) == "bool":
        if not all(map(is_one, shape(values))) or accumulate:
            raise TVMError(f"error: index_put at a mask, of values [{', '.join(map(str, shape(values)))}], accumulate={accumulate}\n"
                           "  needs: one value\n  hint:  torch.where takes values of the shape of the tensor")
        mask = apply(reader, "reshape", indices[0], [*shape(indices[0]), *[1] * (rank(x) - rank(indices[0]))])
        return relax.op.where(mask, apply(reader, "reshape", values, []), x)
    places = _Places(reader, x, indices)
    others = [shape(x)[axis] for axis in places.order[places.count:]]
    order = places.result_order()
    inner = [*places.common, *others]
    values = apply(reader, "broadcast_to", values, [inner[axis] for axis in order])
    values = _permuted(reader, values, _inverse(order))
    out = apply(reader, "scatter_nd", places.x, places.positions, values, "add" if accumulate else "update")
    return _permuted(reader, out, _inverse(places.order))


def _inverse(order):
    return [order.index(axis) for axis in range(len(order))]


@converter("getitem", method=False)
def getitem(reader, x, index):
    if not is_expr(x):
        return x[index]
    if isinstance(x.struct_info, _core.relax.TupleStructInfo):
        return relax.TupleGetItem(x, index)
    return _sliced(reader, x, list(index) if isinstance(index, tuple) else [index])


def bound(position, extent):
    """Where a slice begins or ends; a symbolic position that is never above 0 counts from the end."""
    if not is_symbolic(position) or not arith.Analyzer().can_prove(position <= 0):
        return position
    return extent + position


def _is_position(i):
    return isinstance(i, (int, tir.PrimExpr)) and not isinstance(i, bool)


def _sliced(reader, x, indices):
    """Slices, numbers and None first, then what is taken by tensors, as torch orders them."""
    def consumed(i):
        return 0 if i is None else rank(i) if is_expr(i) and dtype(i) == "bool" else 1

    if Ellipsis in [i for i in indices if not is_expr(i)]:
        at = next(k for k, i in enumerate(indices) if i is Ellipsis)
        taken = sum(consumed(i) for i in indices if i is not Ellipsis)
        indices = indices[:at] + [slice(None)] * (rank(x) - taken) + indices[at + 1:]
    axes, begin, end, strides, final, tensors, dim = [], [], [], [], [], [], 0
    dims = shape(x)
    for i in indices:
        if i is None:
            final.append(1)
            tensors.append(None)
            continue
        if _is_position(i):
            low = dims[dim] + i if isinstance(i, int) and i < 0 else i
            axes.append(dim), begin.append(low), end.append(low + 1), strides.append(1)
        elif isinstance(i, slice):
            if i != slice(None):
                low, high = (bound(b, dims[dim]) for b in (0 if i.start is None else i.start, dims[dim] if i.stop is None else i.stop))
                axes.append(dim), begin.append(low), end.append(high), strides.append(i.step or 1)
            final.append(None)
            tensors.append(None)
        elif is_expr(i) or isinstance(i, (list, tuple)):
            final.extend([None] * consumed(i))
            tensors.append(i)
        else:
            raise TVMError(f"error: getitem: {i!r} is no index\n  needs: numbers, slices, None, ... and tensors of positions")
        dim += consumed(i)
    out = apply(reader, "strided_slice", x, axes, begin, end, strides) if axes else x
    sizes = iter(s for s, d in zip(shape(out), range(rank(x))) if d not in _single(indices, consumed))
    wanted = [1 if f == 1 else next(sizes) for f in final] + list(sizes)
    out = out if len(wanted) == rank(out) and None not in [i for i in indices if not is_expr(i)] else apply(reader, "reshape", out, wanted)
    return indexed(reader, out, tensors) if any(t is not None for t in tensors) else out


def _single(indices, consumed):
    """The dimensions that a number takes away."""
    dim, out = 0, set()
    for i in indices:
        if _is_position(i):
            out.add(dim)
        dim += consumed(i)
    return out


@converter("index_select")
def _index_select(reader, x, dim, index):
    return relax.op.take(x, index, axis=dim)


@converter("take")
def _take(reader, x, index):
    flat = apply(reader, "reshape", x, [-1])
    return relax.op.take(flat, from_zero(reader, index, shape(flat)[0]), axis=0)


@converter("gather")
def _gather(reader, x, dim, index):
    return relax.op.gather_elements(x, index, axis=dim)


@converter("narrow")
def narrow(reader, x, dim, start, length):
    return relax.op.strided_slice(x, [dim], [start], [start + length])


@converter("select")
def select(reader, x, dim, index):
    index = shape(x)[dim] + index if isinstance(index, int) and index < 0 else index
    return relax.op.squeeze(reader.emit(narrow(reader, x, dim, index, 1)), dim)


@converter("unbind")
def _unbind(reader, x, dim=0):
    return tuple(reader.emit(select(reader, x, dim, i)) for i in range(known(shape(x)[dim], "unbind")))


@converter("diagonal")
def diagonal(reader, x, offset=0, dim1=0, dim2=1):
    """The elements (i, i + offset) of two dimensions, which become the last one."""
    rows, columns = dim1 % rank(x), dim2 % rank(x)
    height, width = (known(shape(x)[d], "diagonal") for d in (rows, columns))
    first = (0, offset) if offset >= 0 else (-offset, 0)
    count = max(0, min(height - first[0], width - first[1]))
    others = [d for d in range(rank(x)) if d not in (rows, columns)]
    inner = _permuted(reader, x, [rows, columns, *others])
    found = apply(reader, "gather_nd", inner, _constant([[first[0] + i, first[1] + i] for i in range(count)], [count, 2]))
    return _permuted(reader, found, [*range(1, rank(found)), 0])


@converter("trace")
def _trace(reader, x):
    return FUNCTIONS["sum"](reader, reader.emit(diagonal(reader, x)))


@converter("diag")
def _diag(reader, x, diagonal=0):
    """Of a matrix its diagonal; of a vector a matrix with it."""
    if rank(x) == 2:
        return FUNCTIONS["diagonal"](reader, x, diagonal)
    return _diag_embed(reader, x, diagonal)


@converter("diag_embed")
def _diag_embed(reader, x, offset=0, dim1=-2, dim2=-1):
    import numpy

    if (dim1, dim2) != (-2, -1):
        raise TVMError(f"error: diag_embed into dimensions {dim1} and {dim2}\n  needs: the last two\n  hint:  permute the result")
    size = known(shape(x)[-1], "diag_embed")
    at = relax.const(numpy.eye(size, size + abs(offset), max(offset, 0)) if offset >= 0 else numpy.eye(size, size - offset), "bool")
    rows = apply(reader, "where", at, apply(reader, "expand_dims", x, -1), const_like(0, x))
    before = [0, 0] * (rank(x) - 1)
    return relax.op.nn.pad(rows, [*before, abs(offset) if offset < 0 else 0, 0 if offset < 0 else offset, 0, 0]) if offset else rows


def _windows(extent, size, step, dilation=1):
    """The positions of windows along a dimension, window by window."""
    count = (known(extent, "windows") - dilation * (size - 1) - 1) // step + 1
    return count, [w * step + k * dilation for w in range(count) for k in range(size)]


def unfold(reader, x, dim, size, step):
    """Windows along a dimension; their elements become the last one. The method of tensors and aten.unfold."""
    dim %= rank(x)
    count, places = _windows(shape(x)[dim], size, step)
    out = apply(reader, "take", x, _constant(places), axis=dim)
    out = apply(reader, "reshape", out, [*shape(x)[:dim], count, size, *shape(x)[dim + 1:]])
    return _permuted(reader, out, [d for d in range(rank(out)) if d != dim + 1] + [dim + 1])


METHODS["unfold"] = unfold


@converter("im2col", method=False)
def im2col(reader, x, kernel_size, dilation=1, padding=0, stride=1):
    """torch.nn.functional.unfold: [n, c, h, w] becomes [n, c kernel, windows]."""
    kernel, dilation, padding, stride = per_dimension(2, kernel_size, dilation, padding, stride)
    if any(padding):
        x = reader.emit(relax.op.nn.pad(x, [0, 0, 0, 0, padding[0], padding[0], padding[1], padding[1]]))
    batch, channels, *extents = shape(x)
    counts = []
    for axis in (0, 1):
        count, places = _windows(extents[axis], kernel[axis], stride[axis], dilation[axis])
        counts.append(count)
        x = apply(reader, "take", x, _constant(places), axis=2 + axis)
    x = apply(reader, "reshape", x, [batch, channels, counts[0], kernel[0], counts[1], kernel[1]])
    x = apply(reader, "permute_dims", x, [0, 1, 3, 5, 2, 4])
    return relax.op.reshape(x, [batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]])


FUNCTIONS["unfold"] = im2col

# Elements along one dimension.

_REDUCTIONS = {None: "update", "add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@converter("scatter", "scatter_")
def scatter(reader, x, dim, index, src=None, value=None, reduce=None, include_self=True):
    """x with elements of src at index along a dimension; without include_self those of x do not count where others are put. Errors: a mean."""
    src = value if src is None else src
    if reduce not in _REDUCTIONS:
        raise TVMError(f"error: scatter by {reduce!r}\n  needs: one of {', '.join(map(repr, _REDUCTIONS))}")
    extents = shape(index)
    src = cast(reader, src, dtype(x))
    if rank(src) != rank(index):
        src = apply(reader, "broadcast_to", src, extents)
    larger = [d for d in range(rank(index)) if str(shape(src)[d]) != str(extents[d])]
    if larger:  # torch reads as much of src as index has
        src = apply(reader, "strided_slice", src, larger, [0] * len(larger), [extents[d] for d in larger])
    if not include_self:
        neutral = {"sum": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf")}[reduce]
        x = apply(reader, "scatter_elements", x, index, apply(reader, "full", extents, const_like(neutral, x), dtype(x)), axis=dim)
    return relax.op.scatter_elements(x, index, src, axis=dim, reduction=_REDUCTIONS[reduce])


@converter("scatter_add", "scatter_add_")
def _scatter_add(reader, x, dim, index, src):
    return scatter(reader, x, dim, index, src, reduce="add")


@converter("scatter_reduce", "scatter_reduce_")
def _scatter_reduce(reader, x, dim, index, src, reduce, include_self=True):
    return scatter(reader, x, dim, index, src, None, reduce, include_self)


def _by_rows(name, combine):
    """Slices of x along a dimension, by the positions in a vector."""
    @converter(name, name + "_")
    def convert(reader, x, dim, index, source, **options):
        indices = [None] * (dim % rank(x)) + [index]
        return combine(reader, x, indices, source, **options)


def _add_rows(reader, x, indices, source, alpha=1):
    source = source if alpha == 1 else apply(reader, "multiply", source, const_like(alpha, source))
    return _index_put(reader, x, indices, source, True)


_by_rows("index_add", _add_rows)
_by_rows("index_copy", _index_put)
_by_rows("index_fill", _index_put)


@converter("slice_scatter")
def _slice_scatter(reader, x, src, dim=0, start=None, end=None, step=1):
    extent = shape(x)[dim]
    end = extent if end is None or isinstance(end, int) and end >= 2**63 - 1 else end
    start, end = (e + extent if isinstance(e, int) and e < 0 else bound(e, extent) for e in (0 if start is None else start, end))
    if isinstance(end, int) and is_known(extent):
        end = min(end, extent)
    return relax.op.slice_scatter(x, cast(reader, src, dtype(x)), start, end, step, axis=dim)


@converter("select_scatter")
def _select_scatter(reader, x, src, dim, index):
    index = shape(x)[dim] + index if isinstance(index, int) and index < 0 else index
    return _slice_scatter(reader, x, apply(reader, "expand_dims", src, dim), dim, index, index + 1)


@converter("masked_fill", "masked_fill_")
def _masked_fill(reader, x, mask, value):
    return relax.op.where(mask, cast(reader, value, dtype(x)), x)
