"""Functions and methods of torch's, by name. Each takes the reader and the node's arguments, and gives an expression or a plain value."""
from sator import _core, relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import cast, promoted, result_dtype
from sator.relax.frontend.torch.table import FUNCTIONS, METHODS, apply, converter, dtype, is_expr, is_known, is_one, known, rank, shape  # noqa: F401
from sator.relax.frontend.torch.values import dtype_of, is_dtype


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
    if is_expr(min) or is_expr(max):
        x = x if min is None else apply(reader, "maximum", x, cast(reader, min, dtype(x)))
        return x if max is None else relax.op.minimum(x, cast(reader, max, dtype(x)))
    if min is not None and max is not None and min > max:
        min = max
    return relax.op.clip(x, float("-inf") if min is None else min, float("inf") if max is None else max)


@converter("clamp_min")
def _clamp_min(reader, x, min):
    return _clamp(reader, x, min=min)


@converter("clamp_max")
def _clamp_max(reader, x, max):
    return _clamp(reader, x, max=max)


@converter("matmul", "bmm", "mm", "mv", "dot")
def _matmul(reader, a, b):
    return relax.op.matmul(a, b)


@converter("linear", method=False)
def linear(reader, x, weight, bias=None):
    return relax.op.linear(x, weight, bias)


@converter("addmm", "baddbmm")
def _addmm(reader, bias, a, b, beta=1, alpha=1):
    product = reader.emit(relax.op.matmul(a, b))
    if is_expr(alpha) or alpha != 1:
        product = apply(reader, "multiply", product, cast(reader, alpha, dtype(a)))
    if not is_expr(beta) and beta == 0:
        return product
    return relax.op.add(product, bias if not is_expr(beta) and beta == 1 else apply(reader, "multiply", bias, cast(reader, beta, dtype(a))))


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
    if name in ("T", "H", "mT", "mH"):
        axes = list(range(rank(x)))
        return relax.op.permute_dims(x, axes[::-1] if name in ("T", "H") else axes[:-2] + [axes[-1], axes[-2]])
    if name in ("ndim", "data", "requires_grad", "is_cuda"):
        return {"ndim": rank(x), "data": x, "requires_grad": False, "is_cuda": False}[name]
    if not is_expr(x):
        return getattr(x, name)
    raise TVMError(f"error: getattr: the attribute {name} of a tensor has no converter\n  needs: shape, dtype, T, mT, ndim, device or data")


def _dims(dims):
    return list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else list(dims)


@converter("reshape", "view")
def _reshape(reader, x, *dims, shape=None, dtype=None):
    """Another shape; of the method view, with a dtype, the elements' bits as another dtype of the same size."""
    if str(dims[0] if dims else dtype).startswith("torch."):
        return relax.op.memory.view(x, dtype=dtype_of(dims[0] if dims else dtype))
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


@converter("movedim", "moveaxis")
def _movedim(reader, x, source, destination):
    sources, destinations = ([d % rank(x) for d in (v if isinstance(v, (list, tuple)) else [v])] for v in (source, destination))
    others = iter(axis for axis in range(rank(x)) if axis not in sources)
    placed = dict(zip(destinations, sources))
    return relax.op.permute_dims(x, [placed[axis] if axis in placed else next(others) for axis in range(rank(x))])


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
    single = [d for d in dims if is_one(shape(x)[d])]
    return relax.op.squeeze(x, single) if single else x


@converter("expand", "broadcast_to")
def _expand(reader, x, *dims):
    dims, own = _dims(dims), shape(x)
    own = [1] * (len(dims) - len(own)) + own
    return relax.op.broadcast_to(x, [o if isinstance(d, int) and d == -1 else d for d, o in zip(dims, own)])


@converter("repeat", "tile")
def _tile(reader, x, *dims):
    dims = _dims(dims)
    if is_known(*dims):
        return relax.op.tile(x, dims)
    own = [1] * (len(dims) - rank(x)) + shape(x)
    apart = reader.emit(relax.op.reshape(x, [e for extent in own for e in (1, extent)]))
    repeated = reader.emit(relax.op.broadcast_to(apart, [e for pair in zip(dims, own) for e in pair]))
    return relax.op.reshape(repeated, [count * extent for count, extent in zip(dims, own)])


@converter("cat", "concat", method=False)
def _cat(reader, tensors, dim=0):
    """End to end, in a dtype that has them all; torch leaves out empty tensors of one dimension, whatever the others have."""
    tensors = promoted(reader, *tensors)
    ranks = max(rank(t) for t in tensors)
    joined = [t for t in tensors if ranks == 1 or rank(t) > 1 or not (is_known(shape(t)[0]) and shape(t)[0] == 0)]
    return relax.op.concat(joined, axis=dim) if len(joined) > 1 else joined[0]


@converter("stack", method=False)
def _stack(reader, tensors, dim=0):
    return relax.op.concat([apply(reader, "expand_dims", t, dim) for t in promoted(reader, *tensors)], axis=dim)


def _pieces(x, size, dim):
    """Parts of `size` elements of a dimension; the last one has what remains."""
    extent = known(shape(x)[dim], "split")
    return relax.op.split(x, list(range(size, extent, size)) if extent % size else extent // size, axis=dim)


@converter("chunk")
def _chunk(reader, x, chunks, dim=0):
    if not is_known(shape(x)[dim]):
        return relax.op.split(x, chunks, axis=dim)
    return _pieces(x, -(-shape(x)[dim] // chunks), dim)


@converter("split")
def _split(reader, x, split_size=None, dim=0, split_size_or_sections=None):
    split_size = split_size_or_sections if split_size is None else split_size
    if isinstance(split_size, (list, tuple)):
        ends, at = [], 0
        for size in split_size[:-1]:
            at += size
            ends.append(at)
        return relax.op.split(x, ends or 1, axis=dim) if is_known(*ends) else _cut(reader, x, ends, dim)
    if is_known(split_size, shape(x)[dim]):
        return _pieces(x, split_size, dim)
    return _cut(reader, x, [split_size * k for k in range(1, reader.count_of_results("split"))], dim)


def _cut(reader, x, ends, dim):
    """Slices up to each of the ends, and what remains."""
    bounds = [0, *ends, shape(x)[dim]]
    return tuple(apply(reader, "strided_slice", x, [dim], [low], [high]) for low, high in zip(bounds, bounds[1:]))


# Values.


@converter("contiguous", "clone", "detach", "cpu")
def _same(reader, x, *_args, **_options):
    return x


def _as(name, wanted):
    converter(name)(lambda reader, x: relax.op.astype(x, wanted))


for _name, _dtype in (("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("int", "int32"), ("long", "int64"),
                      ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool")):
    _as(_name, _dtype)


@converter("to", "type")
def _to(reader, x, *args, dtype=None, **_options):
    """As another dtype: the first argument that is one, or a tensor, which has it."""
    for given in [*args, dtype]:
        if is_expr(given):
            return _type_as(reader, x, given)
        if is_dtype(given):
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
