"""Functions and methods of torch's, by name. Each takes the reader and the node's arguments, and gives an expression or a plain value."""
from sator import _core, relax
from sator.relax.frontend.torch.values import dtype_of, pair

FUNCTIONS, METHODS = {}, {}


def _converter(*names, method=True):
    def add(function):
        for name in names:
            FUNCTIONS[name] = function
            if method:
                METHODS[name] = function
        return function

    return add


def _is_expr(value):
    return isinstance(value, _core.RelaxExpr)


def dtype(value):
    return value.struct_info.dtype


def shape(value):
    return list(value.struct_info.shape.values)


def rank(value):
    return len(shape(value))


def _operand(value, like):
    """A number as a constant of the other operand's dtype."""
    return value if _is_expr(value) else relax.const(value, dtype(like))


def _binary(name, python=None):
    def convert(reader, a, b, alpha=1, **_options):
        if not _is_expr(a) and not _is_expr(b):
            return python(a, b)
        if alpha != 1:
            b = relax.op.multiply(_operand(b, a), relax.const(alpha, dtype(a)))
        return getattr(relax.op, name)(_operand(a, b) if not _is_expr(a) else a, _operand(b, a))

    return convert


for _name, _ours, _python in (
        ("add", "add", lambda a, b: a + b), ("sub", "subtract", lambda a, b: a - b), ("mul", "multiply", lambda a, b: a * b),
        ("truediv", "divide", lambda a, b: a / b), ("floordiv", "floor_divide", lambda a, b: a // b), ("pow", "power", lambda a, b: a**b),
        ("maximum", "maximum", max), ("minimum", "minimum", min), ("lt", "less", lambda a, b: a < b), ("le", "less_equal", lambda a, b: a <= b),
        ("gt", "greater", lambda a, b: a > b), ("ge", "greater_equal", lambda a, b: a >= b), ("eq", "equal", lambda a, b: a == b),
        ("ne", "not_equal", lambda a, b: a != b), ("mod", "mod", lambda a, b: a % b)):
    _converter(_name)(_binary(_ours, _python))
for _alias, _name in (("iadd", "add"), ("isub", "sub"), ("imul", "mul"), ("div", "truediv"), ("add_", "add"), ("sub_", "sub"), ("mul_", "mul"),
                      ("div_", "truediv"), ("multiply", "mul"), ("subtract", "sub"), ("floor_divide", "floordiv"), ("divide", "truediv"),
                      ("remainder", "mod")):
    _converter(_alias)(FUNCTIONS[_name])


def _unary(name):
    def convert(reader, x, *_more, **_options):
        return getattr(relax.op, name)(x)

    return convert


for _name in ("abs", "ceil", "cos", "erf", "exp", "floor", "log", "round", "rsqrt", "sigmoid", "sign", "sin", "sqrt", "square", "tan", "tanh"):
    _converter(_name)(_unary(_name))
_converter("neg", "negative")(_unary("negative"))


@_converter("relu", "relu_")
def _relu(reader, x, inplace=False):
    return relax.op.nn.relu(x)


@_converter("relu6")
def _relu6(reader, x, inplace=False):
    return relax.op.clip(x, 0, 6)


@_converter("silu")
def _silu(reader, x, inplace=False):
    return relax.op.nn.silu(x)


@_converter("gelu", method=False)
def _gelu(reader, x, approximate="none"):
    return relax.op.nn.gelu_tanh(x) if approximate == "tanh" else relax.op.nn.gelu(x)


@_converter("hardsigmoid", method=False)
def _hardsigmoid(reader, x, inplace=False):
    return relax.op.divide(relax.op.clip(relax.op.add(x, relax.const(3, dtype(x))), 0, 6), relax.const(6, dtype(x)))


@_converter("hardswish", method=False)
def _hardswish(reader, x, inplace=False):
    return relax.op.multiply(x, reader.emit(_hardsigmoid(reader, x)))


@_converter("leaky_relu", method=False)
def _leaky_relu(reader, x, negative_slope=0.01, inplace=False):
    return relax.op.nn.leakyrelu(x, negative_slope)


@_converter("softmax")
def _softmax(reader, x, dim=-1, _stacklevel=3, dtype=None):
    return relax.op.nn.softmax(x, axis=-1 if dim is None else dim)


@_converter("log_softmax")
def _log_softmax(reader, x, dim=-1, _stacklevel=3, dtype=None):
    return relax.op.nn.log_softmax(x, axis=-1 if dim is None else dim)


@_converter("dropout", method=False)
def _dropout(reader, x, p=0.5, training=False, inplace=False):
    return x


@_converter("clamp", "clip")
def _clamp(reader, x, min=None, max=None):
    return relax.op.clip(x, float("-inf") if min is None else min, float("inf") if max is None else max)


@_converter("matmul", "bmm", "mm")
def _matmul(reader, a, b):
    return relax.op.matmul(a, b)


@_converter("linear", method=False)
def linear(reader, x, weight, bias=None):
    return relax.op.linear(x, weight, bias)


@_converter("addmm")
def _addmm(reader, bias, a, b):
    return relax.op.add(reader.emit(relax.op.matmul(a, b)), bias)


@_converter("baddbmm")
def _baddbmm(reader, bias, a, b, beta=1, alpha=1):
    product = reader.emit(relax.op.matmul(a, b))
    if alpha != 1:
        product = reader.emit(relax.op.multiply(product, relax.const(alpha, dtype(a))))
    if beta == 0:
        return product
    return relax.op.add(product, bias if beta == 1 else reader.emit(relax.op.multiply(bias, relax.const(beta, dtype(a)))))


@_converter("einsum", method=False)
def _einsum(reader, equation, *operands):
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return relax.op.einsum(relax.Tuple(list(operands)), subscripts=equation)


@_converter("embedding", method=False)
def embedding(reader, x, weight, *_options, **_named):
    if dtype(x) != "int32":
        x = reader.emit(relax.op.astype(x, "int32"))
    if rank(x) == 1:
        return relax.op.take(weight, x, axis=0)
    rows = reader.emit(relax.op.take(weight, reader.emit(relax.op.reshape(x, [-1])), axis=0))
    return relax.op.reshape(rows, [*shape(x), shape(weight)[1]])


# Shapes.


@_converter("size")
def _size(reader, x, dim=None):
    return tuple(shape(x)) if dim is None else shape(x)[dim]


@_converter("getattr", method=False)
def _getattr(reader, x, name):
    if name == "shape":
        return tuple(shape(x))
    if name == "dtype":
        return dtype(x)
    if name == "device":
        return "cpu"
    return getattr(x, name)


def _dims(dims):
    return list(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else list(dims)


@_converter("reshape", "view")
def _reshape(reader, x, *dims, shape=None):
    return relax.op.reshape(x, _dims(dims) if shape is None else list(shape))


@_converter("flatten")
def flatten(reader, x, start_dim=0, end_dim=-1):
    dims = shape(x)
    start, end = start_dim % len(dims), end_dim % len(dims)
    size = 1
    for d in dims[start:end + 1]:
        size = size * d
    return relax.op.reshape(x, [*dims[:start], size, *dims[end + 1:]])


@_converter("permute")
def _permute(reader, x, *dims):
    return relax.op.permute_dims(x, _dims(dims))


@_converter("transpose", "swapaxes")
def _transpose(reader, x, dim0, dim1):
    axes = list(range(rank(x)))
    axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return relax.op.permute_dims(x, axes)


@_converter("t")
def _t(reader, x):
    return relax.op.permute_dims(x)


@_converter("unsqueeze")
def _unsqueeze(reader, x, dim):
    return relax.op.expand_dims(x, dim)


@_converter("squeeze")
def _squeeze(reader, x, dim=None):
    return relax.op.squeeze(x, dim)


@_converter("expand", "broadcast_to")
def _expand(reader, x, *dims):
    dims, own = _dims(dims), shape(x)
    own = [1] * (len(dims) - len(own)) + own
    return relax.op.broadcast_to(x, [o if isinstance(d, int) and d == -1 else d for d, o in zip(dims, own)])


@_converter("repeat", "tile")
def _tile(reader, x, *dims):
    return relax.op.tile(x, _dims(dims))


@_converter("cat", "concat", method=False)
def _cat(reader, tensors, dim=0):
    return relax.op.concat(list(tensors), axis=dim)


@_converter("stack", method=False)
def _stack(reader, tensors, dim=0):
    return relax.op.concat([reader.emit(relax.op.expand_dims(t, dim)) for t in tensors], axis=dim)


@_converter("chunk")
def _chunk(reader, x, chunks, dim=0):
    return relax.op.split(x, chunks, axis=dim)


@_converter("split")
def _split(reader, x, split_size, dim=0):
    if isinstance(split_size, (list, tuple)):
        ends, at = [], 0
        for size in split_size[:-1]:
            at += size
            ends.append(at)
        return relax.op.split(x, ends, axis=dim)
    return relax.op.split(x, -(-int(shape(x)[dim]) // split_size), axis=dim)


@_converter("getitem", method=False)
def _getitem(reader, x, index):
    if not _is_expr(x):
        return x[index]
    if isinstance(x.struct_info, _core.relax.TupleStructInfo):
        return relax.TupleGetItem(x, index)
    return _sliced(reader, x, list(index) if isinstance(index, tuple) else [index])


def _sliced(reader, x, indices):
    if Ellipsis in [i for i in indices if not _is_expr(i)]:
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


@_converter("contiguous", "clone", "detach", "cpu")
def _same(reader, x, *_args, **_options):
    return x


@_converter("float")
def _float(reader, x):
    return relax.op.astype(x, "float32")


@_converter("half")
def _half(reader, x):
    return relax.op.astype(x, "float16")


@_converter("to", "type")
def _to(reader, x, *args, dtype=None, **_options):
    for given in [*args, dtype]:
        if given is not None and ("torch." in str(given) or str(given) in ("float16", "float32", "float64", "int32", "int64", "bool")):
            return relax.op.astype(x, dtype_of(given))
    return x


@_converter("type_as")
def _type_as(reader, x, other):
    return relax.op.astype(x, dtype(other))


@_converter("mean")
def _mean(reader, x, dim=None, keepdim=False, dtype=None):
    return relax.op.mean(x, dim, keepdims=keepdim)


@_converter("sum")
def _sum(reader, x, dim=None, keepdim=False, dtype=None):
    return relax.op.sum(x, dim, keepdims=keepdim)


@_converter("cumsum")
def _cumsum(reader, x, dim, dtype=None):
    return relax.op.cumsum(x, axis=dim, dtype=None if dtype is None else dtype_of(dtype))


@_converter("argmax")
def _argmax(reader, x, dim=None, keepdim=False):
    return relax.op.argmax(x, dim, keepdim)


@_converter("argmin")
def _argmin(reader, x, dim=None, keepdim=False):
    return relax.op.argmin(x, dim, keepdim)


@_converter("tril")
def _tril(reader, x, diagonal=0):
    return relax.op.tril(x, diagonal)


@_converter("triu")
def _triu(reader, x, diagonal=0):
    return relax.op.triu(x, diagonal)


@_converter("where")
def _where(reader, condition, x, y):
    like = x if _is_expr(x) else y
    return relax.op.where(condition, _operand(x, like), _operand(y, like))


@_converter("masked_fill", "masked_fill_")
def _masked_fill(reader, x, mask, value):
    return relax.op.where(mask, relax.op.full_like(x, relax.const(value, dtype(x))), x)


# Networks.


@_converter("conv1d", method=False)
def conv1d(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    out = relax.op.nn.conv1d(x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups)
    return out if bias is None else relax.op.add(reader.emit(out), reader.emit(relax.op.reshape(bias, [1, -1, 1])))


@_converter("conv2d", method=False)
def conv2d(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    out = relax.op.nn.conv2d(x, weight, strides=pair(stride), padding=pair(padding), dilation=pair(dilation), groups=groups)
    return out if bias is None else relax.op.add(reader.emit(out), reader.emit(relax.op.reshape(bias, [1, -1, 1, 1])))


@_converter("max_pool2d", "boolean_dispatch", method=False)
def max_pool2d(reader, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return relax.op.nn.max_pool2d(x, pool_size=pair(kernel_size), strides=pair(kernel_size if stride is None else stride),
                                  padding=pair(padding), dilation=pair(dilation), ceil_mode=ceil_mode)


@_converter("avg_pool2d", method=False)
def avg_pool2d(reader, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return relax.op.nn.avg_pool2d(x, pool_size=pair(kernel_size), strides=pair(kernel_size if stride is None else stride),
                                  padding=pair(padding), ceil_mode=ceil_mode, count_include_pad=count_include_pad)


@_converter("adaptive_avg_pool2d", method=False)
def adaptive_avg_pool2d(reader, x, output_size):
    return relax.op.nn.adaptive_avg_pool2d(x, pair(output_size))


@_converter("layer_norm", method=False)
def layer_norm(reader, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight = relax.op.ones(extents, dtype(x)) if weight is None else weight
    bias = relax.op.zeros(extents, dtype(x)) if bias is None else bias
    return relax.op.nn.layer_norm(x, weight, bias, axes=list(range(-len(extents), 0)), epsilon=eps)


@_converter("scaled_dot_product_attention", method=False)
def _attention(reader, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    heads_inside = [reader.emit(relax.op.permute_dims(t, [0, 2, 1, 3])) for t in (query, key, value)]
    mask = {} if attn_mask is None else {"bias": attn_mask}
    out = relax.op.nn.attention(*heads_inside, causal_mask="TopLeft" if is_causal else None, scale=scale, **mask)
    return relax.op.permute_dims(reader.emit(out), [0, 2, 1, 3])
