"""Layers."""
from sator import tir
from sator.relax.frontend.nn import op
from sator.relax.frontend.nn.core import Module, Parameter


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
