"""Layers."""
from sator import relax, tir
from sator.relax.frontend.nn import op
from sator.relax.frontend.nn.core import Effect, Module, ModuleList, Parameter, Tensor, current_builder, get_default_dtype


def _activation(name):
    def forward(self, x):
        return getattr(op, name.lower())(x)

    forward.__doc__ = f"nn.op.{name.lower()} of each element."
    return type(name, (Module,), {"__doc__": f"nn.op.{name.lower()} as a layer.", "forward": forward})


ReLU, SiLU, GELU = _activation("ReLU"), _activation("SiLU"), _activation("GELU")


class Identity(Module):
    """What is given."""

    def forward(self, x):
        """x itself."""
        return x


class Linear(Module):
    """x @ weight.T + bias: weight is [out_features, in_features].

    out_dtype   of the product, where it is another one
    """

    def __init__(self, in_features, out_features, bias=True, dtype=None, out_dtype=None):
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), dtype if out_dtype is None else out_dtype) if bias else None

    def forward(self, x):
        """[..., in_features] -> [..., out_features]."""
        y = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return y if self.bias is None else y + self.bias


class Embedding(Module):
    """Rows of weight, [num, dim], by index."""

    def __init__(self, num, dim, dtype=None):
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x):
        """[...] integers -> [..., dim]."""
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        return op.reshape(op.take(self.weight, op.reshape(x, [-1]), axis=0), [*x.shape, self.dim])


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last axis, of normalized_shape elements."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, dtype=None):
        self.normalized_shape, self.eps = normalized_shape, eps
        self.weight = Parameter((normalized_shape,), dtype) if elementwise_affine else None
        self.bias = Parameter((normalized_shape,), dtype) if elementwise_affine else None

    def forward(self, x):
        """[..., normalized_shape] -> the same shape."""
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x^2) + epsilon) * weight + bias over `axes`."""

    def __init__(self, hidden_size, axes=-1, epsilon=1e-5, bias=True, dtype=None):
        self.axes, self.epsilon = axes, epsilon
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x):
        """[..., hidden_size] -> the same shape."""
        out = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return out if self.bias is None else out + self.bias


class GroupNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the channels of a group."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
        self.num_groups, self.eps = num_groups, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x, channel_axis=1, axes=None):
        """[batch, channels, ...] -> the same shape."""
        return op.group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes)


class Conv1D(Module):
    """A convolution of [batch, channels, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None):
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        channels = in_channels if isinstance(in_channels, (str, tir.Var)) else in_channels // groups
        self.weight = Parameter((out_channels, channels, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x):
        """[batch, in_channels, width] -> [batch, out_channels, width after the convolution]."""
        return op.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2D(Module):
    """A convolution of [batch, channels, height, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None,
                 data_layout="NCHW"):
        self.stride, self.padding, self.dilation, self.groups, self.data_layout = stride, padding, dilation, groups, data_layout
        kernel = list(kernel_size) if isinstance(kernel_size, (list, tuple)) else [kernel_size] * 2
        channels = in_channels if isinstance(in_channels, (str, tir.Var)) else in_channels // groups
        shape = (out_channels, channels, *kernel) if data_layout == "NCHW" else (*kernel, channels, out_channels)
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x):
        """[batch, in_channels, height, width] -> [batch, out_channels, height, width after the convolution], of data_layout NCHW."""
        return op.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.data_layout)


class Conv3D(Module):
    """A convolution of [batch, channels, depth, height, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None,
                 data_layout="NCDHW"):
        self.stride, self.padding, self.dilation, self.groups, self.data_layout = stride, padding, dilation, groups, data_layout
        kernel = list(kernel_size) if isinstance(kernel_size, (list, tuple)) else [kernel_size] * 3
        channels = in_channels if isinstance(in_channels, (str, tir.Var)) else in_channels // groups
        shape = (out_channels, channels, *kernel) if data_layout == "NCDHW" else (*kernel, channels, out_channels)
        self.weight = Parameter(shape, dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x):
        """[batch, in_channels, depth, height, width] -> [batch, out_channels, the extents after the convolution], of data_layout NCDHW."""
        return op.conv3d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups, self.data_layout)


class ConvTranspose1D(Module):
    """A transposed convolution of [batch, channels, width]."""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, dilation=1, groups=1, bias=True, dtype=None):
        self.stride, self.padding, self.output_padding, self.dilation, self.groups = stride, padding, output_padding, dilation, groups
        channels = out_channels if isinstance(out_channels, (str, tir.Var)) else out_channels // groups
        self.weight = Parameter((in_channels, channels, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x):
        """[batch, in_channels, width] -> [batch, out_channels, (width - 1) * stride + kernel - 2 * padding + output_padding]."""
        return op.conv1d_transpose(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.dilation, self.groups)


class IOEffect(Effect):
    """The order of what a model prints; `effect` is the variable that holds it."""

    def __init__(self):
        self.effect = None

    def emit_init(self, name_hint, bb):
        """Emits the first state."""
        return [bb.emit(relax.op.null_value(), f"{name_hint}.io")]

    def create(self, name_hint):
        """A method's parameter."""
        self.effect = relax.Var(f"{name_hint}.io", relax.ObjectStructInfo())
        return [self.effect]

    def set_state(self, state_vars):
        """Says which variable holds the state now."""
        (self.effect,) = state_vars

    def finalize(self):
        """The state at the end of a method."""
        result, self.effect = self.effect, None
        return [result]


class KVCache(Effect):
    """Rows of a tensor that grow from call to call, as keys and values do: room for `init_seq_len` at first, each of `unit_shape`."""

    def __init__(self, init_seq_len, unit_shape, dtype=None):
        self.init_seq_len, self.unit_shape, self.dtype = init_seq_len, [int(i) for i in unit_shape], dtype or get_default_dtype()
        self.cache = None

    def emit_init(self, name_hint, bb):
        """Emits an empty cache."""
        shape = [self.init_seq_len, *self.unit_shape]
        return [bb.emit(relax.call_pure_packed("vm.builtin.attention_kv_cache_create", relax.op.zeros(shape, self.dtype), relax.ShapeExpr(shape),
                                                    relax.PrimValue(0), sinfo_args=relax.ObjectStructInfo()), name_hint)]

    def create(self, name_hint):
        """A method's parameter."""
        return [relax.Var(name_hint, relax.ObjectStructInfo())]

    def set_state(self, state_vars):
        """Says which variable holds the cache now."""
        (self.cache,) = state_vars

    def finalize(self):
        """The cache at the end of a method."""
        result, self.cache = self.cache, None
        return [result]

    def to(self, dtype=None):
        """Another dtype of the rows."""
        self.dtype = dtype or self.dtype

    def view(self, seq_len):
        """All rows, as a tensor in the cache's memory. Errors when it runs: the cache does not hold seq_len rows."""
        shape = relax.ShapeExpr([seq_len, *self.unit_shape])
        rows = relax.call_pure_packed("vm.builtin.attention_kv_cache_view", self.cache, shape, sinfo_args=relax.TensorStructInfo(shape, self.dtype))
        return Tensor(_expr=current_builder().emit(rows))

    def append(self, new_element):
        """Adds rows, [n, *unit_shape]. Errors: TypeError for those of another dtype."""
        if new_element.dtype != self.dtype:
            raise TypeError(f"KVCache.append: rows of {new_element.dtype}\n  needs: {self.dtype}, the cache's dtype\n"
                            f"  hint:  new_element.astype({self.dtype!r})")
        self.cache = current_builder().emit(relax.op.call_inplace_packed("vm.builtin.attention_kv_cache_append", self.cache, new_element._expr,
                                                                         inplace_indices=[0], sinfo_args=relax.ObjectStructInfo()))


class Timesteps(Module):
    """nn.op.get_timestep_embedding as a layer: the sines and cosines of diffusion models' time steps."""

    def __init__(self, num_channels, flip_sin_to_cos=False, downscale_freq_shift=1):
        self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift = num_channels, flip_sin_to_cos, downscale_freq_shift

    def forward(self, x):
        """[n] -> [n, num_channels]."""
        return op.get_timestep_embedding(x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift)


def _silu(where, name):
    if name != "silu":
        raise ValueError(f"TimestepEmbedding: {where} = {name!r}\n  needs: \"silu\"")
    return SiLU()


class TimestepEmbedding(Module):
    """Two linear layers with SiLU between them, for the embedding of a time step.

    out_dim         of the second layer; time_embed_dim without one
    post_act_fn     "silu" behind it, or None
    cond_proj_dim   of a condition, whose projection is added to the sample
    Errors: ValueError for another activation.
    """

    def __init__(self, in_channels, time_embed_dim, act_fn="silu", out_dim=None, post_act_fn=None, cond_proj_dim=None):
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
        self.act = _silu("act_fn", act_fn)
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = None if post_act_fn is None else _silu("post_act_fn", post_act_fn)

    def forward(self, sample, condition=None):
        """[n, in_channels] and [n, cond_proj_dim] or None -> [n, out_dim]."""
        if condition is not None:
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(self.act(self.linear_1(sample)))
        return sample if self.post_act is None else self.post_act(sample)


class Attention(Module):
    """Attention of `heads` heads between linear layers, of a sequence with itself or with another one.

    cross_attention_dim   channels of the other sequence; query_dim without one
    norm_num_groups       groups of a norm before the layers, over the sequence per group of channels; None for no norm
    scale_qk              whether scores are divided by sqrt(dim_head)
    """

    def __init__(self, query_dim, cross_attention_dim=None, heads=8, dim_head=64, bias=False, norm_num_groups=None, out_bias=True, scale_qk=True):
        self.query_dim, self.cross_attention_dim = query_dim, cross_attention_dim or query_dim
        self.heads, self.dim_head, self.inner_dim = heads, dim_head, heads * dim_head
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None, **_cross_attention_kwargs):
        """[batch, n, query_dim] and [batch, m, cross_attention_dim] or None -> [batch, n, query_dim]. Errors: ValueError for a mask."""
        if attention_mask is not None:
            raise ValueError("Attention: attention_mask\n  needs: None\n  hint:  nn.op.scaled_dot_product_attention takes attn_mask")
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        other = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = (op.reshape(y, [y.shape[0], y.shape[1], self.heads, self.dim_head])
                             for y in (self.to_q(hidden_states), self.to_k(other), self.to_v(other)))
        y = op.scaled_dot_product_attention(query, key, value, scale=self.scale)
        return self.to_out[0](op.reshape(y, [y.shape[0], y.shape[1], self.inner_dim]))
