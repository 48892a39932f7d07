"""Functions and methods of torch's, by name. Each takes the reader and the node's arguments, and gives an expression or a plain value."""
from sator import _core, relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import cast, promoted, result_dtype
from sator.relax.frontend.torch.table import FUNCTIONS, METHODS, converter, dtype, is_expr, rank, shape  # noqa: F401
from sator.relax.frontend.torch.values import dtype_of, pair


def _unary(name):
    def convert(reader, x, *_more, **_options):
        return getattr(relax.op, name)(x)

    return convert


for _name in ("abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "floor", "isfinite", "isinf", "isnan",
              "log", "logical_not", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"):
    converter(_name)(_unary(_name))
converter("neg", "negative")(_unary("negative"))


@converter("round")
def _round(reader, x, decimals=0):
    if decimals == 0:
        return relax.op.round(x)
    scale = relax.const(10.0**decimals, dtype(x))
    return relax.op.divide(reader.emit(relax.op.round(reader.emit(relax.op.multiply(x, scale)))), scale)


@converter("relu", "relu_")
def _relu(reader, x, inplace=False):
    return relax.op.nn.relu(x)


@converter("relu6")
def _relu6(reader, x, inplace=False):
    return relax.op.clip(x, 0, 6)


@converter("silu")
def _silu(reader, x, inplace=False):
    return relax.op.nn.silu(x)


@converter("gelu", method=False)
def _gelu(reader, x, approximate="none"):
    return relax.op.nn.gelu_tanh(x) if approximate == "tanh" else relax.op.nn.gelu(x)


@converter("hardsigmoid", method=False)
def _hardsigmoid(reader, x, inplace=False):
    return relax.op.divide(relax.op.clip(relax.op.add(x, relax.const(3, dtype(x))), 0, 6), relax.const(6, dtype(x)))


@converter("hardswish", method=False)
def _hardswish(reader, x, inplace=False):
    return relax.op.multiply(x, reader.emit(_hardsigmoid(reader, x)))


@converter("leaky_relu", method=False)
def _leaky_relu(reader, x, negative_slope=0.01, inplace=False):
    return relax.op.nn.leakyrelu(x, negative_slope)


@converter("softmax")
def _softmax(reader, x, dim=-1, _stacklevel=3, dtype=None):
    x = x if dtype is None else cast(reader, x, dtype_of(dtype))
    return relax.op.nn.softmax(x, axis=-1 if dim is None else dim)


@converter("log_softmax")
def _log_softmax(reader, x, dim=-1, _stacklevel=3, dtype=None):
    x = x if dtype is None else cast(reader, x, dtype_of(dtype))
    return relax.op.nn.log_softmax(x, axis=-1 if dim is None else dim)


@converter("dropout", method=False)
def _dropout(reader, x, p=0.5, training=False, inplace=False):
    return x


@converter("clamp", "clip")
def _clamp(reader, x, min=None, max=None):
    """At least `min`, then at most `max`, which wins where it is less."""
    x = cast(reader, x, result_dtype(x, *(b for b in (min, max) if b is not None)))
    if min is not None and max is not None and not is_expr(min) and not is_expr(max) and min > max:
        min = max
    return relax.op.clip(x, float("-inf") if min is None else min, float("inf") if max is None else max)


@converter("matmul", "bmm", "mm")
def _matmul(reader, a, b):
    return relax.op.matmul(a, b)


@converter("linear", method=False)
def linear(reader, x, weight, bias=None):
    return relax.op.linear(x, weight, bias)


@converter("addmm", "baddbmm")
def _addmm(reader, bias, a, b, beta=1, alpha=1):
    product = reader.emit(relax.op.matmul(a, b))
    if alpha != 1:
        product = reader.emit(relax.op.multiply(product, relax.const(alpha, dtype(a))))
    if beta == 0:
        return product
    return relax.op.add(product, bias if beta == 1 else reader.emit(relax.op.multiply(bias, relax.const(beta, dtype(a)))))


@converter("einsum", method=False)
def _einsum(reader, equation, *operands):
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return relax.op.einsum(relax.Tuple(list(operands)), subscripts=equation)


@converter("embedding", method=False)
def embedding(reader, x, weight, *_options, **_named):
    if dtype(x) != "int32":
        x = reader.emit(relax.op.astype(x, "int32"))
    if rank(x) == 1:
        return relax.op.take(weight, x, axis=0)
    rows = reader.emit(relax.op.take(weight, reader.emit(relax.op.reshape(x, [-1])), axis=0))
    return relax.op.reshape(rows, [*shape(x), shape(weight)[1]])


# Shapes.


@converter("size")
def _size(reader, x, dim=None):
    return tuple(shape(x)) if dim is None else shape(x)[dim]


@converter("getattr", method=False)
def _getattr(reader, x, name):
    if isinstance(x, tuple) and name in ("values", "indices"):  # what max and min along a dimension give
        return x[name == "indices"]
    if name == "shape":
        return tuple(shape(x))
    if name == "dtype":
        return dtype(x)
    if name == "device":
        return "cpu"
    return getattr(x, name)


def _dims(dims):
    return list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else list(dims)


@converter("reshape", "view")
def _reshape(reader, x, *dims, shape=None):
    return relax.op.reshape(x, _dims(dims) if shape is None else list(shape))


@converter("flatten")
def flatten(reader, x, start_dim=0, end_dim=-1):
    dims = shape(x)
    start, end = start_dim % len(dims), end_dim % len(dims)
    size = 1
    for d in dims[start:end + 1]:
        size = size * d
    return relax.op.reshape(x, [*dims[:start], size, *dims[end + 1:]])


@converter("permute")
def _permute(reader, x, *dims):
    return relax.op.permute_dims(x, _dims(dims))


@converter("transpose", "swapaxes")
def _transpose(reader, x, dim0, dim1):
    axes = list(range(rank(x)))
    axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return relax.op.permute_dims(x, axes)


@converter("t")
def _t(reader, x):
    return relax.op.permute_dims(x)


@converter("unsqueeze")
def _unsqueeze(reader, x, dim):
    return relax.op.expand_dims(x, dim)


@converter("squeeze")
def _squeeze(reader, x, dim=None):
    """Without dimensions of extent 1, or of the given ones those."""
    dims = range(rank(x)) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    single = [d for d in dims if getattr(shape(x)[d], "value", shape(x)[d]) == 1]
    return relax.op.squeeze(x, single) if single else x


@converter("expand", "broadcast_to")
def _expand(reader, x, *dims):
    dims, own = _dims(dims), shape(x)
    own = [1] * (len(dims) - len(own)) + own
    return relax.op.broadcast_to(x, [o if isinstance(d, int) and d == -1 else d for d, o in zip(dims, own)])


@converter("repeat", "tile")
def _tile(reader, x, *dims):
    dims = _dims(dims)
    if all(isinstance(d, int) or hasattr(d, "value") for d in dims):
        return relax.op.tile(x, dims)
    own = [1] * (len(dims) - rank(x)) + shape(x)
    apart = reader.emit(relax.op.reshape(x, [e for extent in own for e in (1, extent)]))
    repeated = reader.emit(relax.op.broadcast_to(apart, [e for pair in zip(dims, own) for e in pair]))
    return relax.op.reshape(repeated, [count * extent for count, extent in zip(dims, own)])


@converter("cat", "concat", method=False)
def _cat(reader, tensors, dim=0):
    """End to end; torch leaves out empty tensors of one dimension, whatever the others have."""
    ranks = max(rank(t) for t in tensors)
    joined = [t for t in tensors if ranks == 1 or rank(t) > 1 or getattr(shape(t)[0], "value", 1) != 0]
    return relax.op.concat(joined, axis=dim) if len(joined) > 1 else joined[0]


@converter("stack", method=False)
def _stack(reader, tensors, dim=0):
    return relax.op.concat([reader.emit(relax.op.expand_dims(t, dim)) for t in tensors], axis=dim)


def _pieces(x, size, dim):
    """Parts of `size` elements of a dimension; the last one has what remains."""
    extent = int(shape(x)[dim])
    return relax.op.split(x, list(range(size, extent, size)) if extent % size else extent // size, axis=dim)


@converter("chunk")
def _chunk(reader, x, chunks, dim=0):
    if not isinstance(shape(x)[dim], int) and not hasattr(shape(x)[dim], "value"):
        return relax.op.split(x, chunks, axis=dim)
    return _pieces(x, -(-int(shape(x)[dim]) // chunks), dim)


@converter("split")
def _split(reader, x, split_size=None, dim=0, split_size_or_sections=None):
    split_size = split_size_or_sections if split_size is None else split_size
    if isinstance(split_size, (list, tuple)):
        ends, at = [], 0
        for size in split_size[:-1]:
            at += size
            ends.append(at)
        return relax.op.split(x, ends or 1, axis=dim)
    return _pieces(x, split_size, dim)


@converter("index_select")
def _index_select(reader, x, dim, index):
    return relax.op.take(x, index, axis=dim)


@converter("gather")
def _gather(reader, x, dim, index):
    return relax.op.gather_elements(x, index, axis=dim)


@converter("getitem", method=False)
def _getitem(reader, x, index):
    if not is_expr(x):
        return x[index]
    if isinstance(x.struct_info, _core.relax.TupleStructInfo):
        return relax.TupleGetItem(x, index)
    return _sliced(reader, x, list(index) if isinstance(index, tuple) else [index])


def _sliced(reader, x, indices):
    if Ellipsis in [i for i in indices if not is_expr(i)]:
        at = next(k for k, i in enumerate(indices) if i is Ellipsis)
        taken = sum(1 for i in indices if i is not None and i is not Ellipsis)
        indices = indices[:at] + [slice(None)] * (rank(x) - taken) + indices[at + 1:]
    axes, begin, end, strides, final, dim = [], [], [], [], [], 0
    dims = shape(x)
    for i in indices:
        if i is None:
            final.append(1)
            continue
        if isinstance(i, int):
            position = i if i >= 0 else dims[dim] + i
            low, high, step = position, position + 1, 1
        elif isinstance(i, slice):
            low, high, step = i.start or 0, dims[dim] if i.stop is None else i.stop, i.step or 1
        else:
            return relax.op.take(x, i, axis=dim)
        if not (isinstance(i, slice) and i == slice(None)):
            axes.append(dim), begin.append(low), end.append(high), strides.append(step)
        if isinstance(i, slice):
            final.append(None)
        dim += 1
    out = reader.emit(relax.op.strided_slice(x, axes, begin, end, strides)) if axes else x
    sizes = iter(s for s, i in zip(shape(out), [i for i in indices if i is not None] + [slice(None)] * rank(x)) if not isinstance(i, int))
    wanted = [1 if f == 1 else next(sizes) for f in final] + list(sizes)
    return out if len(wanted) == rank(out) and None not in indices else relax.op.reshape(out, wanted)


# Values.


@converter("contiguous", "clone", "detach", "cpu")
def _same(reader, x, *_args, **_options):
    return x


@converter("float")
def _float(reader, x):
    return relax.op.astype(x, "float32")


@converter("half")
def _half(reader, x):
    return relax.op.astype(x, "float16")


@converter("to", "type")
def _to(reader, x, *args, dtype=None, **_options):
    for given in [*args, dtype]:
        if given is not None and ("torch." in str(given) or str(given) in ("float16", "float32", "float64", "int32", "int64", "bool")):
            return relax.op.astype(x, dtype_of(given))
    return x


@converter("type_as")
def _type_as(reader, x, other):
    return relax.op.astype(x, dtype(other))


@converter("argmax")
def _argmax(reader, x, dim=None, keepdim=False):
    return relax.op.argmax(x, dim, keepdim)


@converter("argmin")
def _argmin(reader, x, dim=None, keepdim=False):
    return relax.op.argmin(x, dim, keepdim)


@converter("tril")
def _tril(reader, x, diagonal=0):
    return relax.op.tril(x, diagonal)


@converter("triu")
def _triu(reader, x, diagonal=0):
    return relax.op.triu(x, diagonal)


@converter("where")
def _where(reader, condition, x, y):
    return relax.op.where(condition, *promoted(reader, x, y))


@converter("masked_fill", "masked_fill_")
def _masked_fill(reader, x, mask, value):
    return relax.op.where(mask, cast(reader, value, dtype(x)), x)
