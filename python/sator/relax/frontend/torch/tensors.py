"""Functions of torch's that make tensors, order them, and move their elements."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import sum_dtype, cast, promoted
from sator.relax.frontend.torch.functions import _dims
from sator.relax.frontend.torch.table import FUNCTIONS, METHODS, converter, dtype, is_expr, rank, shape
from sator.relax.frontend.torch.values import array_of, dtype_of

# Tensors of one value, and ranges.


def _filled(name, value):
    @converter(name, method=False)
    def made(reader, *size, dtype=None, **_options):
        return _full(_dims(size), value, "float32" if dtype is None else dtype_of(dtype))

    def like(reader, x, *, dtype=None, **_options):
        return _full(shape(x), value, _dtype(x, dtype))

    def new(reader, x, *size, dtype=None, **_options):
        return _full(_dims(size), value, _dtype(x, dtype))

    converter(f"{name}_like", method=False)(like)
    METHODS[f"new_{name}"] = new


def _full(size, value, dtype):
    return relax.op.full(list(size), relax.const(value, dtype), dtype)


def _dtype(x, wanted):
    return dtype(x) if wanted is None else dtype_of(wanted)


_filled("ones", 1), _filled("zeros", 0), _filled("empty", 0)


def _dtype_of_value(value):
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


@converter("full", method=False)
def _full_(reader, size, fill_value, dtype=None, **_options):
    return _full(size, fill_value, _dtype_of_value(fill_value) if dtype is None else dtype_of(dtype))


@converter("full_like", method=False)
def _full_like(reader, x, fill_value, dtype=None, **_options):
    return _full(shape(x), fill_value, _dtype(x, dtype))


def _new_full(reader, x, size, fill_value, dtype=None, **_options):
    return _full(size, fill_value, _dtype(x, dtype))


def _fill(reader, x, value):
    return relax.op.full(shape(x), value if is_expr(value) else relax.const(value, dtype(x)), dtype(x))


METHODS.update({"new_full": _new_full, "fill_": _fill, "zero_": lambda reader, x: _fill(reader, x, 0)})


@converter("arange", method=False)
def _arange(reader, start=0, end=None, step=1, dtype=None, **_options):
    start, end = (0, start) if end is None else (start, end)
    is_float = any(isinstance(v, float) for v in (start, end, step))
    return relax.op.arange(start, end, step, dtype="float32" if dtype is None and is_float else "int64" if dtype is None else dtype_of(dtype))


@converter("tensor", method=False)
def _tensor(reader, data, dtype=None, **_options):
    import numpy

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


# Statistics.


def _correction(unbiased, correction):
    return correction if correction is not None else 0 if unbiased is False else 1


@converter("var")
def _var(reader, x, dim=None, unbiased=True, keepdim=False, correction=None):
    """The variance; of a sample (divided by the count less one) unless unbiased=False or correction=0."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    out = reader.emit(relax.op.variance(x, dim, keepdims=keepdim))
    less = _correction(unbiased, correction)
    if less == 0:
        return out
    count = 1
    for axis in range(rank(x)) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]:
        count *= int(shape(x)[axis])
    return relax.op.multiply(out, relax.const(count / (count - less), dtype(x)))


@converter("std")
def _std(reader, x, dim=None, unbiased=True, keepdim=False, correction=None):
    return relax.op.sqrt(reader.emit(_var(reader, x, dim, unbiased, keepdim, correction)))


@converter("prod")
def _prod(reader, x, dim=None, keepdim=False, dtype=None):
    return relax.op.prod(cast(reader, x, sum_dtype(x) if dtype is None else dtype_of(dtype)), dim, keepdims=keepdim)


# Elements in other places.


@converter("pad", method=False)
def pad(reader, x, pad, mode="constant", value=None):
    """`pad` has (before, after) of the last dimension, then of the one before it."""
    pairs = [list(pad[i:i + 2]) for i in range(0, len(pad), 2)]
    if any(p < 0 for pair in pairs for p in pair):
        raise TVMError(f"error: pad: {list(pad)} takes elements away\n  needs: numbers from 0 on\n  hint:  a slice takes elements away")
    widths = [0, 0] * (rank(x) - len(pairs)) + [p for pair in reversed(pairs) for p in pair]
    return relax.op.nn.pad(x, widths, pad_value=value or 0, pad_mode=mode)


@converter("flip")
def _flip(reader, x, *dims):
    for dim in _dims(dims):
        x = reader.emit(relax.op.flip(x, dim))
    return x


@converter("roll")
def _roll(reader, x, shifts, dims=None):
    if dims is None:
        flat = reader.emit(relax.op.reshape(x, [-1]))
        return relax.op.reshape(_roll(reader, flat, shifts, 0), shape(x))
    for shift, dim in zip(*[v if isinstance(v, (list, tuple)) else [v] for v in (shifts, dims)]):
        cut = -shift % int(shape(x)[dim])
        if cut:
            parts = reader.emit(relax.op.split(x, [cut], axis=dim))
            x = reader.emit(relax.op.concat([reader.emit(relax.TupleGetItem(parts, i)) for i in (1, 0)], axis=dim))
    return x


@converter("narrow")
def _narrow(reader, x, dim, start, length):
    return relax.op.strided_slice(x, [dim], [start], [start + length])


@converter("select")
def _select(reader, x, dim, index):
    index = index if index >= 0 else int(shape(x)[dim]) + index
    return relax.op.squeeze(reader.emit(_narrow(reader, x, dim, index, 1)), dim)


@converter("unbind")
def _unbind(reader, x, dim=0):
    return tuple(reader.emit(_select(reader, x, dim, i)) for i in range(int(shape(x)[dim])))


@converter("unflatten")
def unflatten(reader, x, dim, sizes):
    dims, dim = shape(x), dim % rank(x)
    return relax.op.reshape(x, [*dims[:dim], *sizes, *dims[dim + 1:]])


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
    return int(count) if all(hasattr(e, "value") for e in shape(x)) else count


METHODS.update({"tril_": METHODS["tril"], "triu_": METHODS["triu"]})
