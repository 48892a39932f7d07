"""Ops over the tensors of a model."""
import math
import sys

from sator import _core, relax, tir
from sator.relax.frontend.nn.core import Tensor, _io_effects, current_builder, get_default_dtype, wrap_nested
from sator.relax.frontend.nn.sampling import multinomial_from_uniform, renormalize_top_p_top_k_prob, sample_top_p_top_k_from_sorted_prob  # noqa: F401

__all__ = ["add", "argsort", "astype", "broadcast_to", "ccl_allreduce", "ccl_broadcast_from_worker0", "chunk", "concat", "conv1d", "conv1d_transpose",
           "conv2d", "conv3d", "cumsum", "debug_func", "divide", "empty", "equal", "exp", "full", "gelu", "get_timestep_embedding", "greater",
           "greater_equal", "group_norm", "interpolate", "layer_norm", "less", "less_equal", "matmul", "maximum", "minimum", "multinomial_from_uniform",
           "multiply", "negative", "not_equal", "ones", "pad", "permute", "permute_dims", "print_", "relu", "renormalize_top_p_top_k_prob", "repeat",
           "reshape", "rms_norm", "sample_top_p_top_k_from_sorted_prob", "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "sort", "split",
           "sqrt", "square", "squeeze", "subtract", "sum", "take", "tanh", "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op", "topk", "triu",
           "unsqueeze", "where", "zeros", "extern"]


def as_tensor(value, dtype):
    """A number as a tensor of the dtype."""
    return value if isinstance(value, Tensor) else Tensor.from_scalar(value, dtype)


def _expr(x):
    return x._expr if isinstance(x, Tensor) else x


def _value(x):
    return relax.PrimValue(tir.FloatImm("float64", x)) if isinstance(x, float) else _expr(x)


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
_larger, _smaller, equal, not_equal = _binary("maximum"), _binary("minimum"), _binary("equal"), _binary("not_equal")
less, less_equal, greater, greater_equal = _binary("less"), _binary("less_equal"), _binary("greater"), _binary("greater_equal")


def maximum(x1, x2, name="maximum"):
    """The larger of two elements, broadcast; a number takes the other one's dtype."""
    return _larger(x1, x2, name)


def minimum(x1, x2, name="minimum"):
    """The smaller of two elements, broadcast; a number takes the other one's dtype."""
    return _smaller(x1, x2, name)


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
        hint = getattr(x._expr, "name_hint", "")
        name = hint.replace("linear", "matmul") if "linear" in hint else "permute_dims"
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
    fill_value = getattr(fill_value, "value", fill_value)  # of a constant of tir
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


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCDHW", name="conv3d"):
    """The convolution of [batch, channels, depth, height, width] with weight [out, channels / groups, kernel, kernel, kernel]."""
    kernel_layout = "OIDHW" if data_layout == "NCDHW" else "DHWIO"
    out = wrap_nested(relax.op.nn.conv3d(x._expr, weight._expr, strides=stride, padding=padding, dilation=dilation, groups=groups,
                                         data_layout=data_layout, kernel_layout=kernel_layout), name)
    return out if bias is None else add(out, reshape(bias, [1, -1, 1, 1, 1] if data_layout == "NCDHW" else [1, 1, 1, 1, -1]))


def conv1d_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1, name="conv1d_transpose"):
    """The transposed convolution of [batch, channels, width] with weight [channels, out / groups, kernel]."""
    out = wrap_nested(relax.op.nn.conv1d_transpose(x._expr, weight._expr, strides=stride, padding=padding, output_padding=output_padding,
                                                   dilation=dilation, groups=groups), name)
    return out if bias is None else add(out, reshape(bias, [1, -1, 1]))


def interpolate(x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=None,
                data_layout="NCHW", name="interpolate"):
    """An image in another size, by torch's rules.

    size           height and width, or one of both
    scale_factor   in its place: times the present ones, rounded down
    mode           "nearest", "bilinear", "bicubic"
    Errors: ValueError for recompute_scale_factor, antialias, and neither or both of size and scale_factor.
    """
    for option, value in (("recompute_scale_factor", recompute_scale_factor), ("antialias", antialias)):
        if value:
            raise ValueError(f"interpolate: {option} = {value!r}\n  needs: {option} left out")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: neither or both of size and scale_factor\n  needs: one of them")
    if size is None:
        extents = [x.shape[i] for i, axis in enumerate(data_layout) if axis not in "NC"]
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(extents)
        size = [int(e * f) for e, f in zip(extents, factors)]
    is_nearest = mode.startswith("nearest")
    corners = "asymmetric" if is_nearest else "align_corners" if align_corners else "half_pixel"
    method = "nearest_neighbor" if is_nearest else mode[2:] if mode.startswith("bi") else mode
    more = {"rounding_method": "floor"} if is_nearest else {"cubic_alpha": -0.75} if method == "cubic" else {}
    return wrap_nested(relax.op.image.resize2d(x._expr, size, layout=data_layout, method=method, coordinate_transformation_mode=corners, **more), name)


def get_timestep_embedding(x, embedding_dim, flip_sin_to_cos=False, downscale_freq_shift=1, scale=1, max_period=10000, name="get_timestep_embedding"):
    """Sines and cosines of steps at falling frequencies, as diffusion models take them: [n] -> [n, embedding_dim].

    flip_sin_to_cos        cosines first
    downscale_freq_shift   the frequencies are max_period ** (-i / (embedding_dim // 2 - downscale_freq_shift))
    scale                  of the angles
    Source: Ho, Jain, Abbeel, "Denoising Diffusion Probabilistic Models", 2020.
    """
    o, half = relax.op, embedding_dim // 2
    steps = o.expand_dims(o.astype(x._expr, "float32"), 1)
    exponents = o.multiply(relax.const(-math.log(max_period), "float32"), o.arange(0, half, dtype="float32"))
    rates = o.exp(o.divide(exponents, relax.const(half - downscale_freq_shift, "float32")))
    angles = o.multiply(steps, o.expand_dims(rates, 0))
    if scale != 1:
        angles = o.multiply(relax.const(scale, "float32"), angles)
    out = o.concat([o.cos(angles), o.sin(angles)] if flip_sin_to_cos else [o.sin(angles), o.cos(angles)], axis=-1)
    if embedding_dim % 2:
        out = o.nn.pad(out, (0, 0, 0, 1))
    return wrap_nested(o.astype(out, get_default_dtype()), name)


def ccl_allreduce(x, op_type="sum", name="ccl_allreduce"):
    """The sum (prod, min, max, avg) of x over all workers, by the function runtime.disco.allreduce, which the user registers."""
    return wrap_nested(relax.op.ccl.allreduce(x._expr, op_type), name)


def ccl_broadcast_from_worker0(x, name="broadcast_from_worker"):
    """What the first worker has, by the function runtime.disco.broadcast_from_worker0, which the user registers."""
    return wrap_nested(relax.op.ccl.broadcast_from_worker0(x._expr), name)


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


def tensor_ir_inplace_op(func, name_hint, args, inplace_indices, out):
    """Calls a PrimFunc that writes its results over arguments: result i over the tensor argument inplace_indices[i], -1 over none."""
    builder = current_builder()
    callee = builder.add_func(func, name_hint)
    args = args if isinstance(args, (list, tuple)) else [args]
    tensors = [a._expr for a in args if isinstance(a, Tensor)]
    sizes = [a for a in args if not isinstance(a, Tensor)]
    infos = [o._expr.struct_info for o in (out if isinstance(out, (list, tuple)) else [out])]
    places = [inplace_indices] if isinstance(inplace_indices, int) else list(inplace_indices)
    call = relax.call_tir_inplace(callee, tensors, places, infos if isinstance(out, (list, tuple)) else infos[0], tir_vars=sizes or None)
    return wrap_nested(call, name_hint)


def debug_func(name, *args, _line_info=None):
    """Calls a function of Python's while the model runs: f(line, *args), where `line` says where the model calls it.

    name   of the function, as given to sator.register_func
    args   Tensors, numbers, texts
    Errors: RuntimeError without export_tvm(..., debug=True).
    """
    current_builder()
    io = _io_effects[-1]
    if io is None:
        raise RuntimeError("debug_func: the model is exported without its debug functions\n  needs: export_tvm(spec, debug=True)")
    if _line_info is None:
        caller = sys._getframe(1)
        while caller.f_globals.get("__name__") == "sator.answers":  # which gives errors their words
            caller = caller.f_back
        _line_info = f"{caller.f_code.co_filename}:{caller.f_lineno}"
    given = [_value(a) for a in args]
    io.effect = current_builder().emit(relax.call_pure_packed("vm.builtin.invoke_debug_func", io.effect, relax.StringImm(name),
                                                              relax.StringImm(_line_info), *given, sinfo_args=[relax.ObjectStructInfo()]), "io")


def print_(tensor):
    """Prints a tensor while the model runs, with the line that asks for it. Errors: as of debug_func."""
    caller = sys._getframe(1)
    while caller.f_globals.get("__name__") == "sator.answers":
        caller = caller.f_back
    debug_func("vm.builtin.debug_print", tensor, _line_info=f"{caller.f_code.co_filename}:{caller.f_lineno}")


def _invoke_debug_func(io, name, line, *args):
    from sator.runtime.functions import get_global_func

    get_global_func(name)(line, *args)
    return io


_core.register_func("vm.builtin.invoke_debug_func", _invoke_debug_func, True)
_core.register_func("vm.builtin.debug_print", lambda line, tensor: print(f"{line}: shape = {tensor.shape}, dtype = {tensor.dtype}, data =\n{tensor}"), True)


def extern(name, args, out):
    """Calls a function of the runtime that writes its result to its last argument. args: Tensors, numbers, texts, tuples of them."""
    info = out._expr.struct_info
    return wrap_nested(relax.call_dps_packed(name, [_value(a) for a in args], info), name)
