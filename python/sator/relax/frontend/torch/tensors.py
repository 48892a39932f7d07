"""Functions of torch's that make tensors, order them, and move their elements."""
from sator import relax, tir
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import cast, promoted
from sator.relax.frontend.torch.functions import _dims
from sator.relax.frontend.torch.table import FUNCTIONS, METHODS, apply, converter, dtype, is_expr, is_known, rank, shape
from sator.relax.frontend.torch.values import array_of, dtype_of

# Tensors of one value, and ranges.


def _filled(name, value):
    @converter(name, method=False)
    def made(reader, *size, dtype=None, **_options):
        return _full(reader, _dims(size), value, "float32" if dtype is None else dtype_of(dtype))

    def like(reader, x, *, dtype=None, **_options):
        return _full(reader, shape(x), value, _dtype(x, dtype))

    def new(reader, x, *size, dtype=None, **_options):
        return _full(reader, _dims(size), value, _dtype(x, dtype))

    converter(f"{name}_like", method=False)(like)
    METHODS[f"new_{name}"] = new


def _full(reader, size, value, dtype):
    return relax.op.full(list(size), cast(reader, value, dtype), dtype)


def _dtype(x, wanted):
    return dtype(x) if wanted is None else dtype_of(wanted)


_filled("ones", 1), _filled("zeros", 0), _filled("empty", 0)


def _dtype_of_value(value):
    if is_expr(value):
        return dtype(value)
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, (int, tir.PrimExpr)) else "float32"


@converter("full", method=False)
def _full_(reader, size, fill_value, dtype=None, **_options):
    return _full(reader, size, fill_value, _dtype_of_value(fill_value) if dtype is None else dtype_of(dtype))


@converter("full_like", method=False)
def _full_like(reader, x, fill_value, dtype=None, **_options):
    return _full(reader, shape(x), fill_value, _dtype(x, dtype))


def _new_full(reader, x, size, fill_value, dtype=None, **_options):
    return _full(reader, size, fill_value, _dtype(x, dtype))


def _fill(reader, x, value):
    return _full(reader, shape(x), value, dtype(x))


METHODS.update({"new_full": _new_full, "fill_": _fill, "zero_": lambda reader, x: _fill(reader, x, 0)})


@converter("arange", method=False)
def _arange(reader, start=0, end=None, step=1, dtype=None, **_options):
    start, end = (0, start) if end is None else (start, end)
    is_float = any(isinstance(v, float) for v in (start, end, step))
    return relax.op.arange(start, end, step, dtype="float32" if dtype is None and is_float else "int64" if dtype is None else dtype_of(dtype))


@converter("linspace", method=False)
def _linspace(reader, start, end, steps, dtype=None, **_options):
    import numpy

    return relax.const(numpy.linspace(start, end, steps).astype("float32" if dtype is None else dtype_of(dtype)))


@converter("eye", method=False)
def _eye(reader, n, m=None, dtype=None, **_options):
    return relax.op.eye(n, n if m is None else m, dtype="float32" if dtype is None else dtype_of(dtype))


@converter("meshgrid", method=False)
def _meshgrid(reader, *tensors, indexing="ij"):
    tensors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    together, out = [shape(t)[0] for t in tensors], []
    for axis, t in enumerate(tensors):
        along = apply(reader, "reshape", t, [together[axis] if d == axis else 1 for d in range(len(tensors))])
        out.append(apply(reader, "broadcast_to", along, together))
    swapped = [1, 0, *range(2, len(tensors))]
    return tuple(apply(reader, "permute_dims", t, swapped) if indexing == "xy" and len(tensors) > 1 else t for t in out)


@converter("one_hot", method=False)
def _one_hot(reader, x, num_classes=-1):
    """Errors: as many classes as a tensor's data say."""
    if num_classes < 0:
        raise TVMError("error: one_hot without num_classes: as many as the data say\n  needs: num_classes")
    import numpy

    classes = relax.const(numpy.arange(num_classes), dtype(x))
    return relax.op.astype(apply(reader, "equal", apply(reader, "expand_dims", x, -1), classes), "int64")


@converter("tensor", method=False)
def _tensor(reader, data, dtype=None, **_options):
    import numpy

    if isinstance(data, tir.PrimExpr):
        return cast(reader, data, "int64" if dtype is None else dtype_of(dtype))
    array = array_of(data)
    wanted = {"float64": "float32"}.get(str(array.dtype), str(array.dtype)) if dtype is None else dtype_of(dtype)
    return relax.const(numpy.asarray(array, wanted))


# Order.


@converter("sort")
def _sort(reader, x, dim=-1, descending=False, stable=False):
    return reader.emit(relax.op.sort(x, dim, descending)), reader.emit(relax.op.argsort(x, dim, descending, "int64"))


@converter("argsort")
def _argsort(reader, x, dim=-1, descending=False, stable=False):
    return relax.op.argsort(x, dim, descending, "int64")


@converter("topk")
def _topk(reader, x, k, dim=-1, largest=True, sorted=True):  # noqa: A002
    both = reader.emit(relax.op.topk(x, k, dim, "both", largest, "int64"))
    return reader.emit(relax.TupleGetItem(both, 0)), reader.emit(relax.TupleGetItem(both, 1))


# Elements in other places.


@converter("pad", method=False)
def pad(reader, x, pad, mode="constant", value=None):
    """`pad` has (before, after) of the last dimension, then of the one before it; numbers below 0 take elements away."""
    pairs = [list(pad[i:i + 2]) for i in range(0, len(pad), 2)]
    widths = [0, 0] * (rank(x) - len(pairs)) + [p for pair in reversed(pairs) for p in pair]
    if not is_known(*widths):
        return _pad_by_sizes(reader, x, widths, mode, value or 0)
    cut = [axis for axis in range(rank(x)) if min(widths[2 * axis:2 * axis + 2]) < 0]
    if cut:
        x = apply(reader, "strided_slice", x, cut, [max(0, -widths[2 * d]) for d in cut], [shape(x)[d] + min(0, widths[2 * d + 1]) for d in cut])
        widths = [max(0, w) for w in widths]
    return relax.op.nn.pad(x, widths, pad_value=value or 0, pad_mode=mode) if any(widths) else x


def _pad_by_sizes(reader, x, widths, mode, value):
    """Widths that follow from symbolic sizes, none of them below 0. Errors: other elements than a constant."""
    if mode != "constant":
        raise TVMError(f"error: pad by {mode!r} of {', '.join(map(str, widths))} elements\n  needs: a constant, or widths that are numbers")
    for axis in range(rank(x)):
        before, after = widths[2 * axis:2 * axis + 2]
        parts = []
        for width in (before, None, after):
            if width is None:
                parts.append(x)
            elif not (is_known(width) and width == 0):
                parts.append(reader.emit(_full(reader, [*shape(x)[:axis], width, *shape(x)[axis + 1:]], value, dtype(x))))
        x = apply(reader, "concat", parts, axis=axis) if len(parts) > 1 else x
    return x


@converter("flip")
def _flip(reader, x, *dims):
    for dim in _dims(dims):
        x = reader.emit(relax.op.flip(x, dim))
    return x


@converter("roll")
def _roll(reader, x, shifts, dims=None):
    if dims in (None, [], ()):
        flat = apply(reader, "reshape", x, [-1])
        return relax.op.reshape(_roll(reader, flat, shifts, 0), shape(x))
    for shift, dim in zip(*[v if isinstance(v, (list, tuple)) else [v] for v in (shifts, dims)]):
        extent = shape(x)[dim]
        if is_known(extent) and extent == 0:
            continue
        cut = -shift % extent if is_known(extent) else tir.floormod(-shift, extent)
        parts = [apply(reader, "strided_slice", x, [dim], [begin], [end]) for begin, end in ((cut, extent), (0, cut))]
        x = apply(reader, "concat", parts, axis=dim) if is_known(extent) else apply(reader, "reshape", apply(reader, "concat", parts, axis=dim), shape(x))
    return x


@converter("unflatten")
def unflatten(reader, x, dim, sizes):
    dims, dim = shape(x), dim % rank(x)
    return relax.op.reshape(x, [*dims[:dim], *sizes, *dims[dim + 1:]])


@converter("repeat_interleave")
def _repeat_interleave(reader, x, repeats, dim=None, output_size=None):
    """Errors: as many times as a tensor's data say."""
    if is_expr(repeats):
        raise TVMError("error: repeat_interleave of a tensor of counts, whose result is as long as they say\n  needs: a number")
    return relax.op.repeat(x if dim is not None else apply(reader, "reshape", x, [-1]), repeats, axis=0 if dim is None else dim)


@converter("bucketize")
def _bucketize(reader, x, boundaries, out_int32=False, right=False):
    return relax.op.bucketize(x, boundaries, out_int32=out_int32, right=right)


@converter("outer", "ger")
def _outer(reader, a, b):
    a, b = promoted(reader, a, b)
    return relax.op.multiply(reader.emit(relax.op.expand_dims(a, 1)), reader.emit(relax.op.expand_dims(b, 0)))


# What a program asks.

METHODS.update({"dim": lambda reader, x: rank(x), "ndimension": lambda reader, x: rank(x), "astype": FUNCTIONS["type"]})


@converter("numel")
def _numel(reader, x):
    count = 1
    for extent in shape(x):
        count = count * extent
    return count


METHODS.update({"tril_": METHODS["tril"], "triu_": METHODS["triu"]})
