"""Functions of torch.nn.functional that layers of networks call."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.table import converter, dtype, rank, shape
from sator.relax.frontend.torch.values import pair


@converter("conv1d", method=False)
def conv1d(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    out = relax.op.nn.conv1d(x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups)
    return out if bias is None else relax.op.add(reader.emit(out), reader.emit(relax.op.reshape(bias, [1, -1, 1])))


def _padding(padding, weight, dilation):
    """The elements added on each side: "same" keeps the size of an image at stride 1, one more after than before where they are odd."""
    if padding == "valid":
        return [0, 0]
    if padding != "same":
        return pair(padding)
    totals = [d * (int(k) - 1) for d, k in zip(dilation, shape(weight)[2:])]
    return [t // 2 for t in totals] + [t - t // 2 for t in totals]


@converter("conv2d", method=False)
def conv2d(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    out = relax.op.nn.conv2d(x, weight, strides=pair(stride), padding=_padding(padding, weight, pair(dilation)), dilation=pair(dilation),
                             groups=groups)
    return out if bias is None else relax.op.add(reader.emit(out), reader.emit(relax.op.reshape(bias, [1, -1, 1, 1])))


@converter("conv_transpose2d", method=False)
def conv_transpose2d(reader, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    out = relax.op.nn.conv2d_transpose(x, weight, strides=pair(stride), padding=pair(padding), output_padding=pair(output_padding),
                                       dilation=pair(dilation), groups=groups)
    return out if bias is None else relax.op.add(reader.emit(out), reader.emit(relax.op.reshape(bias, [1, -1, 1, 1])))


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


@converter("max_pool2d", "boolean_dispatch", method=False)
def max_pool2d(reader, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    return relax.op.nn.max_pool2d(x, pool_size=pair(kernel_size), strides=pair(kernel_size if stride is None else stride),
                                  padding=pair(padding), dilation=pair(dilation), ceil_mode=ceil_mode)


@converter("avg_pool2d", method=False)
def avg_pool2d(reader, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    return relax.op.nn.avg_pool2d(x, pool_size=pair(kernel_size), strides=pair(kernel_size if stride is None else stride),
                                  padding=pair(padding), ceil_mode=ceil_mode, count_include_pad=count_include_pad)


@converter("adaptive_avg_pool2d", method=False)
def adaptive_avg_pool2d(reader, x, output_size):
    return relax.op.nn.adaptive_avg_pool2d(x, pair(output_size))


@converter("layer_norm", method=False)
def layer_norm(reader, x, normalized_shape, weight=None, bias=None, eps=1e-5):
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight = relax.op.ones(extents, dtype(x)) if weight is None else weight
    bias = relax.op.zeros(extents, dtype(x)) if bias is None else bias
    return relax.op.nn.layer_norm(x, weight, bias, axes=list(range(-len(extents), 0)), epsilon=eps)


@converter("scaled_dot_product_attention", method=False)
def _attention(reader, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None):
    heads_inside = [reader.emit(relax.op.permute_dims(t, [0, 2, 1, 3])) for t in (query, key, value)]
    mask = {} if attn_mask is None else {"bias": attn_mask}
    out = relax.op.nn.attention(*heads_inside, causal_mask="TopLeft" if is_causal else None, scale=scale, **mask)
    return relax.op.permute_dims(reader.emit(out), [0, 2, 1, 3])
