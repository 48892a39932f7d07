"""Ops over the tensors of a model."""
from sator import relax, tir
from sator.relax.frontend.nn.core import Tensor, current_builder, wrap_nested

__all__ = ["add", "argsort", "astype", "broadcast_to", "chunk", "concat", "conv1d", "conv2d", "cumsum", "divide", "empty", "equal", "exp", "full",
           "gelu", "greater", "greater_equal", "group_norm", "layer_norm", "less", "less_equal", "matmul", "maximum", "minimum", "multiply",
           "negative", "not_equal", "ones", "pad", "permute", "permute_dims", "relu", "repeat", "reshape", "rms_norm",
           "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "sort", "split", "sqrt", "square", "squeeze", "subtract", "sum", "take",
           "tanh", "tensor_expr_op", "tensor_ir_op", "topk", "triu", "unsqueeze", "where", "zeros", "extern"]


def as_tensor(value, dtype):
    """A number as a tensor of the dtype."""
    return value if isinstance(value, Tensor) else Tensor.from_scalar(value, dtype)


def _expr(x):
    return x._expr if isinstance(x, Tensor) else x


def _unary(name, ours=None, label=None):
    function = relax.op
    for part in (ours or name).split("."):
        function = getattr(function, part)

    def op(x, name=label or name):
        return wrap_nested(function(x._expr), name)

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"The op {ours or name} of each element."
    return op


relu, silu, sigmoid = _unary("relu", "nn.relu"), _unary("silu", "nn.silu"), _unary("sigmoid")
tanh, exp, sqrt, square, negative = _unary("tanh"), _unary("exp"), _unary("sqrt"), _unary("square"), _unary("negative", None, "neg")


def _binary(name, label=None):
    def op(a, b, name=label or name):
        a, b = (a, as_tensor(b, a.dtype)) if isinstance(a, Tensor) else (as_tensor(a, b.dtype), b)
        return wrap_nested(getattr(relax.op, ours)(a._expr, b._expr), name)

    ours = name
    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"The op {name} of two tensors, broadcast; a number takes the other one's dtype."
    return op


add, subtract, multiply, divide = _binary("add"), _binary("subtract"), _binary("multiply", "mul"), _binary("divide")
maximum, minimum, equal, not_equal = _binary("maximum"), _binary("minimum"), _binary("equal"), _binary("not_equal")
less, less_equal, greater, greater_equal = _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")


def gelu(x, approximate=None, name="gelu"):
    """x * P(X <= x) of the normal distribution; approximate="tanh" is its approximation."""
    return wrap_nested(relax.op.nn.gelu_tanh(x._expr) if approximate == "tanh" else relax.op.nn.gelu(x._expr), name)


def softmax(x, axis=-1, name="softmax"):
    """exp(x) / sum(exp(x)) along the axis."""
    return wrap_nested(relax.op.nn.softmax(x._expr, axis=axis), name)


def matmul(a, b, out_dtype=None, name="matmul"):
    """[..., m, k] @ [..., k, n] -> [..., m, n], broadcast over the first dimensions."""
    return wrap_nested(relax.op.matmul(a._expr, b._expr, out_dtype=out_dtype), name)


def sum(x, axis=None, keepdims=False, name="sum"):  # noqa: A001
    """The sum over an axis, several, or all (None)."""
    return wrap_nested(relax.op.sum(x._expr, axis, keepdims=keepdims), name)


def cumsum(data, axis=None, dtype=None, exclusive=None, name="cumsum"):
    """Running sums along an axis; `exclusive` without the element itself."""
    return wrap_nested(relax.op.cumsum(data._expr, axis=axis, dtype=dtype, exclusive=bool(exclusive)), name)


def permute_dims(x, axes=None, name=None):
    """The dimensions in the order `axes`, or reversed."""
    if name is None:
        # A weight's transpose is called after it.
        hint = getattr(x._expr, "name_hint", "")
        name = f"{hint}_T" if axes is None and "linear" in hint else "permute_dims"
    return wrap_nested(relax.op.permute_dims(x._expr, axes), name)


def permute(x, axes, name="permute"):
    """The dimensions in the order `axes`."""
    return wrap_nested(relax.op.permute_dims(x._expr, axes), name)


def reshape(x, shape, name="reshape"):
    """The same elements under another shape; -1 is what is left."""
    return wrap_nested(relax.op.reshape(x._expr, list(shape)), name)


def squeeze(x, axis=-1, name="squeeze"):
    """Without the dimension `axis`, whose extent is 1."""
    return wrap_nested(relax.op.squeeze(x._expr, axis), name)


def unsqueeze(x, dim, name="unsqueeze"):
    """With a dimension of extent 1 before `dim`."""
    return wrap_nested(relax.op.expand_dims(x._expr, dim), name)


def broadcast_to(x, shape, name="broadcast_to"):
    """Repeated to a shape, by NumPy's rules."""
    return wrap_nested(relax.op.broadcast_to(x._expr, list(shape)), name)


def repeat(x, repeats, axis=None, name="repeat"):
    """Each element `repeats` times along the axis, or of the flat tensor."""
    return wrap_nested(relax.op.repeat(x._expr, repeats, axis), name)


def concat(x, dim, name="concat"):
    """Tensors one after the other along `dim`."""
    return wrap_nested(relax.op.concat([t._expr for t in x], axis=dim), name)


def split(ary, indices_or_sections, axis=0, name="split"):
    """A tuple of parts along the axis: so many equal ones, or cut at these indices."""
    return wrap_nested(relax.op.split(ary._expr, indices_or_sections, axis=axis), name)


def chunk(x, chunks, dim=0, name="chunk"):
    """A tuple of `chunks` parts along `dim`."""
    return wrap_nested(relax.op.split(x._expr, chunks, axis=dim), name)


def pad(x, pad, mode="constant", value=0, name="pad"):
    """With elements around: `pad` has (before, after) of each dimension, flat."""
    return wrap_nested(relax.op.nn.pad(x._expr, pad_width=pad, pad_value=value, pad_mode=mode), name)


def take(x, indices, axis=None, name="take"):
    """The elements at `indices` along the axis."""
    return wrap_nested(relax.op.take(x._expr, indices._expr, axis), name)


def where(condition, x1, x2, name="where"):
    """x1 where the condition holds, else x2."""
    condition = condition if condition.dtype == "bool" else condition.astype("bool")
    return wrap_nested(relax.op.where(condition._expr, x1._expr, x2._expr), name)


def astype(x, dtype, name="astype"):
    """In another dtype."""
    return x if x.dtype == dtype else wrap_nested(relax.op.astype(x._expr, dtype), name)


def triu(x, diagonal=0, name="triu"):
    """The upper triangle: zero below the diagonal."""
    return wrap_nested(relax.op.triu(x._expr, diagonal), name)


def full(shape, fill_value, dtype="float32", name="full"):
    """A tensor of one value."""
    value = fill_value if isinstance(fill_value, Tensor) else Tensor.from_scalar(fill_value, dtype)
    return wrap_nested(relax.op.full(list(shape), value._expr, dtype), name)


def zeros(shape, dtype="float32", name="zeros"):
    """A tensor of zeros."""
    return wrap_nested(relax.op.zeros(list(shape), dtype), name)


def ones(shape, dtype="float32", name="ones"):
    """A tensor of ones."""
    return wrap_nested(relax.op.ones(list(shape), dtype), name)


def empty(shape, dtype="float32", name="empty"):
    """A tensor whose elements are not set: zeros."""
    return zeros(shape, dtype, name)


def sort(x, axis=-1, descending=False, name="sort"):
    """Sorted along the axis."""
    return wrap_nested(relax.op.sort(x._expr, axis, descending), name)


def argsort(data, axis=-1, descending=False, dtype="int32", name="argsort"):
    """The positions of the sorted elements along the axis."""
    return wrap_nested(relax.op.argsort(data._expr, axis, descending, dtype), name)


def topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32", name="topk"):
    """The k largest (or smallest) along the axis: a tuple (values, positions), or one of both by ret_type "values" or "indices"."""
    return wrap_nested(relax.op.topk(data._expr, k, axis, ret_type, largest, dtype), name)


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, name="layer_norm"):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, normalized_shape."""
    extents = [normalized_shape] if isinstance(normalized_shape, (int, tir.PrimExpr)) else list(normalized_shape)
    weight = relax.op.ones(extents, x.dtype) if weight is None else weight._expr
    bias = relax.op.zeros(extents, x.dtype) if bias is None else bias._expr
    return wrap_nested(relax.op.nn.layer_norm(x._expr, weight, bias, axes=list(range(-len(extents), 0)), epsilon=eps), name)


def rms_norm(x, weight, axes, epsilon=1e-5, name="rms_norm"):
    """x / sqrt(mean(x^2) + epsilon) * weight over `axes`."""
    return wrap_nested(relax.op.nn.rms_norm(x._expr, weight._expr, axes=axes, epsilon=epsilon), name)


def group_norm(x, num_groups, weight=None, bias=None, eps=1e-5, channel_axis=1, axes=None, name="group_norm"):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the channels of a group."""
    weight = relax.op.ones([x.shape[channel_axis]], x.dtype) if weight is None else weight._expr
    bias = relax.op.zeros([x.shape[channel_axis]], x.dtype) if bias is None else bias._expr
    axes = list(axes) if axes is not None else [a for a in range(2, x.ndim)]
    return wrap_nested(relax.op.nn.group_norm(x._expr, weight, bias, num_groups=num_groups, channel_axis=channel_axis, axes=axes, epsilon=eps),
                       name)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, name="conv1d"):
    """The convolution of [batch, channels, width] with weight [out, channels / groups, kernel]."""
    out = wrap_nested(relax.op.nn.conv1d(x._expr, weight._expr, strides=stride, padding=padding, dilation=dilation, groups=groups), name)
    return out if bias is None else add(out, reshape(bias, [1, -1, 1]))


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCHW", name="conv2d"):
    """The convolution of [batch, channels, height, width] with weight [out, channels / groups, kernel, kernel]; NHWC with weight [kernel, kernel, channels / groups, out]."""
    kernel_layout = "OIHW" if data_layout == "NCHW" else "HWIO"
    out = wrap_nested(relax.op.nn.conv2d(x._expr, weight._expr, strides=stride, padding=padding, dilation=dilation, groups=groups,
                                         data_layout=data_layout, kernel_layout=kernel_layout), name)
    return out if bias is None else add(out, reshape(bias, [1, -1, 1, 1] if data_layout == "NCHW" else [1, 1, 1, -1]))


def scaled_dot_product_attention(query, key, value, attn_mask=None, is_causal=False, scale=None, name="scaled_dot_product_attention"):
    """Attention of [batch, seq, heads, head_dim]."""
    mask = {} if attn_mask is None else {"bias": attn_mask._expr}
    return wrap_nested(relax.op.nn.attention(query._expr, key._expr, value._expr, causal_mask="TopLeft" if is_causal else None, scale=scale,
                                             **mask), name)


def tensor_expr_op(tensor_expr_func, name_hint, args, *, attrs=None):
    """Calls a formula over te's tensors."""
    return wrap_nested(current_builder().call_te(tensor_expr_func, *(_expr(a) for a in args), primfunc_name_hint=name_hint), name_hint)


def tensor_ir_op(func, name_hint, args, out):
    """Calls a PrimFunc. out: a Tensor.placeholder of its result, or a list of them; sizes among `args` come last."""
    builder = current_builder()
    callee = builder.add_func(func, name_hint)
    tensors = [a._expr for a in args if isinstance(a, Tensor)]
    sizes = [a for a in args if not isinstance(a, Tensor)]
    infos = [o._expr.struct_info for o in (out if isinstance(out, (list, tuple)) else [out])]
    call = relax.call_tir(callee, tensors, infos if isinstance(out, (list, tuple)) else infos[0], tir_vars=sizes or None)
    return wrap_nested(call, name_hint)


def extern(name, args, out):
    """Calls a function of the runtime that writes its result to its last argument."""
    info = out._expr.struct_info
    return wrap_nested(relax.call_dps_packed(name, [_expr(a) for a in args], info), name)
