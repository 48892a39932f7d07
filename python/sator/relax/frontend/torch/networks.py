"""Functions of torch.nn.functional that layers of networks call."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.table import converter, dtype, rank, shape
from sator.relax.frontend.torch.values import pair


def _biased(reader, out, bias):
    """With a number added per channel."""
    if bias is None:
        return out
    out = reader.emit(out)
    return relax.op.add(out, reader.emit(relax.op.reshape(bias, [1, -1] + [1] * (rank(out) - 2))))


def _each(value, count):
    """One number for all dimensions, or one of each."""
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


def _convolution(name, count):
    @converter(name, method=False)
    def convert(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        dilation = _each(dilation, count)
        out = getattr(relax.op.nn, name)(x, weight, strides=_each(stride, count), padding=_padding(padding, weight, dilation), dilation=dilation,
                                         groups=groups)
        return _biased(reader, out, bias)

    return convert


conv1d, conv2d, conv3d = (_convolution(f"conv{n}d", n) for n in (1, 2, 3))


def _padding(padding, weight, dilation):
    """The elements added on each side: "same" keeps the size of an image at stride 1, one more after than before where they are odd."""
    if padding == "valid":
        return [0] * len(dilation)
    if padding != "same":
        return _each(padding, len(dilation))
    totals = [d * (int(k) - 1) for d, k in zip(dilation, shape(weight)[2:])]
    return [t // 2 for t in totals] + [t - t // 2 for t in totals]


def _transposed(name, ours, count):
    @converter(name, method=False)
    def convert(reader, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        stride, padding, output_padding, dilation = (_each(v, count) for v in (stride, padding, output_padding, dilation))
        if any(d != 1 for d in dilation):
            raise TVMError(f"error: {name} with dilation {dilation}\n  needs: dilation 1\n  hint:  give a converter in call_function_map")
        out = getattr(relax.op.nn, ours)(x, weight, strides=stride, padding=padding, output_padding=output_padding, dilation=dilation, groups=groups)
        return _biased(reader, out, bias)

    return convert


conv_transpose1d = _transposed("conv_transpose1d", "conv1d_transpose", 1)
conv_transpose2d = _transposed("conv_transpose2d", "conv2d_transpose", 2)


@converter("interpolate", method=False)
def interpolate(reader, x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """An image [n, c, h, w] at another size. Errors: a mode, a rank or a factor that resize2d has not."""
    methods = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode not in methods or rank(x) != 4 or antialias:
        raise TVMError(f"error: interpolate of rank {rank(x)} by {mode!r}, antialias={antialias}\n"
                       f"  needs: an image [n, c, h, w], one of {', '.join(methods)}, no antialias\n  hint:  give a converter in call_function_map")
    if size is None:
        sizes = [int(d) * f for d, f in zip(shape(x)[2:], pair(scale_factor))]
        if any(s != int(s) for s in sizes) and not recompute_scale_factor:
            raise TVMError(f"error: interpolate by {scale_factor} gives an image of {sizes[0]} x {sizes[1]}\n"
                           "  needs: whole numbers\n  hint:  give the size, or recompute_scale_factor=True")
        size = [int(s) for s in sizes]
    transform = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
    return relax.op.image.resize2d(x, pair(size), layout="NCHW", method=methods[mode], coordinate_transformation_mode=transform,
                                   rounding_method="floor" if mode == "nearest" else "", cubic_alpha=-0.75)


@converter("batch_norm", method=False)
def batch_norm(reader, x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    """Normalises each channel: by the statistics of the batch in training or where there are no others, else by the running ones."""
    channels = [shape(x)[1]]
    if training or running_mean is None:
        parts = [relax.op.ones(channels, dtype(x)) if weight is None else weight, relax.op.zeros(channels, dtype(x)) if bias is None else bias,
                 relax.op.zeros(channels, dtype(x)) if running_mean is None else running_mean,
                 relax.op.ones(channels, dtype(x)) if running_var is None else running_var]
        return relax.TupleGetItem(reader.emit(relax.op.nn.batch_norm(x, *[reader.emit(p) for p in parts], axis=1, epsilon=eps)), 0)

    def along_channels(part):
        return reader.emit(relax.op.reshape(part, [1, -1] + [1] * (rank(x) - 2)))

    deviation = reader.emit(relax.op.sqrt(reader.emit(relax.op.add(running_var, relax.const(eps, dtype(x))))))
    out = reader.emit(relax.op.subtract(x, along_channels(running_mean)))
    out = relax.op.divide(out, along_channels(deviation))
    if weight is not None:
        out = relax.op.multiply(reader.emit(out), along_channels(weight))
    return out if bias is None else relax.op.add(reader.emit(out), along_channels(bias))


def _pools(count, *names):
    """Pooling over `count` dimensions: the largest, the mean, the mean at a size that is given."""
    @converter(f"max_pool{count}d", *names, method=False)
    def largest(reader, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if return_indices:
            raise TVMError("error: max_pool with return_indices=True\n  needs: return_indices=False\n  hint:  give a converter in call_function_map")
        kernel, strides, padding, dilation = (_each(v, count) for v in (kernel_size, kernel_size if stride in (None, []) else stride, padding, dilation))
        return getattr(relax.op.nn, f"max_pool{count}d")(x, pool_size=kernel, strides=strides, padding=padding, dilation=dilation, ceil_mode=ceil_mode)

    @converter(f"avg_pool{count}d", method=False)
    def mean(reader, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        if divisor_override is not None:
            raise TVMError("error: avg_pool with divisor_override\n  needs: divisor_override=None\n  hint:  give a converter in call_function_map")
        kernel, strides, padding = (_each(v, count) for v in (kernel_size, kernel_size if stride in (None, []) else stride, padding))
        return getattr(relax.op.nn, f"avg_pool{count}d")(x, pool_size=kernel, strides=strides, padding=padding, ceil_mode=ceil_mode,
                                                         count_include_pad=count_include_pad)

    @converter(f"adaptive_avg_pool{count}d", method=False)
    def adaptive(reader, x, output_size):
        return getattr(relax.op.nn, f"adaptive_avg_pool{count}d")(x, _each(output_size, count))


_pools(1), _pools(2, "boolean_dispatch"), _pools(3)


@converter("layer_norm", method=False)
def layer_norm(reader, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight = relax.op.ones(extents, dtype(x)) if weight is None else weight
    bias = relax.op.zeros(extents, dtype(x)) if bias is None else bias
    return relax.op.nn.layer_norm(x, weight, bias, axes=list(range(-len(extents), 0)), epsilon=eps)


@converter("scaled_dot_product_attention", method=False)
def _attention(reader, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Attention of [batch, heads, positions, features] or [batch, positions, features]; a mask of bool has True where a position is seen."""
    if dropout_p > 0:
        raise TVMError(f"error: scaled_dot_product_attention with dropout of {dropout_p}\n  needs: no dropout\n  hint:  model.eval()")
    if enable_gqa:  # each head of keys and values serves several of the queries
        key, value = (relax.op.repeat(t, int(shape(query)[-3]) // int(shape(t)[-3]), axis=-3) for t in (key, value))
        key, value = reader.emit(key), reader.emit(value)
    if attn_mask is not None and dtype(attn_mask) == "bool":
        seen, hidden = (relax.const(v, dtype(query)) for v in (0.0, float("-inf")))
        attn_mask = reader.emit(relax.op.where(attn_mask, seen, hidden))
    has_heads = rank(query) == 4
    inside = [reader.emit(relax.op.permute_dims(t, [0, 2, 1, 3]) if has_heads else relax.op.expand_dims(t, 2)) for t in (query, key, value)]
    if attn_mask is not None:
        attn_mask = reader.emit(relax.op.expand_dims(attn_mask, 1)) if not has_heads and rank(attn_mask) == 3 else attn_mask
        lead = [1] * (4 - rank(attn_mask))
        attn_mask = reader.emit(relax.op.reshape(attn_mask, [*lead, *shape(attn_mask)])) if lead else attn_mask
    out = reader.emit(relax.op.nn.attention(*inside, bias=attn_mask, causal_mask="TopLeft" if is_causal else None, scale=scale))
    return relax.op.permute_dims(out, [0, 2, 1, 3]) if has_heads else relax.op.squeeze(out, 2)
