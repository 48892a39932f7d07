"""Functions of torch.nn.functional that layers of networks call."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import in_float32
from sator.relax.frontend.torch.table import apply, as_batch, const_like, converter, dtype, known, per_dimension, rank, shape


def _biased(reader, out, bias):
    """With a number added per channel."""
    if bias is None:
        return out
    out = reader.emit(out)
    return relax.op.add(out, reader.emit(relax.op.reshape(bias, [1, -1] + [1] * (rank(out) - 2))))


def _convolution(name, count):
    @converter(name, method=False)
    def convert(reader, x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        strides, dilation = per_dimension(count, stride, dilation)
        return as_batch(reader, x, count, lambda x: _biased(reader, getattr(relax.op.nn, name)(
            x, weight, strides=strides, padding=_padding(padding, weight, dilation), dilation=dilation, groups=groups), bias))

    return convert


conv1d, conv2d, conv3d = (_convolution(f"conv{n}d", n) for n in (1, 2, 3))


def _padding(padding, weight, dilation):
    """The elements added on each side: "same" keeps the size of an image at stride 1, one more after than before where they are odd."""
    if padding == "valid":
        return [0] * len(dilation)
    if padding != "same":
        return per_dimension(len(dilation), padding)[0]
    totals = [d * (int(k) - 1) for d, k in zip(dilation, shape(weight)[2:])]
    return [t // 2 for t in totals] + [t - t // 2 for t in totals]


def _transposed(name, ours, count):
    @converter(name, method=False)
    def convert(reader, x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        strides, padding, output_padding, dilation = per_dimension(count, stride, padding, output_padding, dilation)
        return as_batch(reader, x, count, lambda x: _biased(reader, getattr(relax.op.nn, ours)(
            x, weight, strides=strides, padding=padding, output_padding=output_padding, dilation=dilation, groups=groups), bias))

    return convert


conv_transpose1d = _transposed("conv_transpose1d", "conv1d_transpose", 1)
conv_transpose2d = _transposed("conv_transpose2d", "conv2d_transpose", 2)


@converter("batch_norm", method=False)
@in_float32
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
        key, value = (relax.op.repeat(t, known(shape(query)[-3], "enable_gqa") // known(shape(t)[-3], "enable_gqa"), axis=-3) for t in (key, value))
        key, value = reader.emit(key), reader.emit(value)
    sees_some = None
    if attn_mask is not None and dtype(attn_mask) == "bool":  # a position that sees none gets 0
        sees_some = apply(reader, "astype", apply(reader, "max", apply(reader, "astype", attn_mask, "int8"), -1, keepdims=True), "bool")
        attn_mask = apply(reader, "where", attn_mask, const_like(0.0, query), const_like(float("-inf"), query))
    has_heads = rank(query) == 4
    inside = [reader.emit(relax.op.permute_dims(t, [0, 2, 1, 3]) if has_heads else relax.op.expand_dims(t, 2)) for t in (query, key, value)]
    if attn_mask is not None:
        attn_mask = reader.emit(relax.op.expand_dims(attn_mask, 1)) if not has_heads and rank(attn_mask) == 3 else attn_mask
        lead = [1] * (4 - rank(attn_mask))
        attn_mask = reader.emit(relax.op.reshape(attn_mask, [*lead, *shape(attn_mask)])) if lead else attn_mask
    out = reader.emit(relax.op.nn.attention(*inside, bias=attn_mask, causal_mask="TopLeft" if is_causal else None, scale=scale))
    out = relax.op.permute_dims(out, [0, 2, 1, 3]) if has_heads else relax.op.squeeze(out, 2)
    return out if sees_some is None else relax.op.where(sees_some, reader.emit(out), const_like(0.0, query))
