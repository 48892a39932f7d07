"""Modules of torch.nn, by the name of their class. Each takes the reader, the module and its inputs."""
from sator import relax
from sator.relax.frontend.torch import functions as f
from sator.relax.frontend.torch import networks

MODULES = {}


def _module(*names):
    def add(convert):
        for name in names:
            MODULES[name] = convert
        return convert

    return add


@_module("Linear")
def _linear(reader, m, x):
    return f.linear(reader, x, reader.param(m.weight), reader.param(m.bias))


@_module("Conv1d")
def _conv1d(reader, m, x):
    return networks.conv1d(reader, x, reader.param(m.weight), reader.param(m.bias), m.stride, m.padding, m.dilation, m.groups)


@_module("Conv2d")
def _conv2d(reader, m, x):
    return networks.conv2d(reader, x, reader.param(m.weight), reader.param(m.bias), m.stride, m.padding, m.dilation, m.groups)


@_module("MaxPool2d")
def _max_pool2d(reader, m, x):
    return networks.max_pool2d(reader, x, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode)


@_module("AvgPool2d")
def _avg_pool2d(reader, m, x):
    return networks.avg_pool2d(reader, x, m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad)


@_module("AdaptiveAvgPool2d")
def _adaptive_avg_pool2d(reader, m, x):
    return networks.adaptive_avg_pool2d(reader, x, m.output_size)


@_module("ConvTranspose2d")
def _conv_transpose2d(reader, m, x):
    return networks.conv_transpose2d(reader, x, reader.param(m.weight), reader.param(m.bias), m.stride, m.padding, m.output_padding, m.groups,
                                     m.dilation)


@_module("Upsample")
def _upsample(reader, m, x):
    return networks.interpolate(reader, x, m.size, m.scale_factor, m.mode, m.align_corners, m.recompute_scale_factor)


@_module("BatchNorm2d", "BatchNorm1d")
def _batch_norm(reader, m, x):
    mean, variance, weight, bias = (reader.param(t) for t in (m.running_mean, m.running_var, m.weight, m.bias))
    return networks.batch_norm(reader, x, mean, variance, weight, bias, m.training, m.momentum, m.eps)


@_module("LayerNorm")
def _layer_norm(reader, m, x):
    return networks.layer_norm(reader, x, m.normalized_shape, reader.param(m.weight), reader.param(m.bias), m.eps)


@_module("GroupNorm")
def _group_norm(reader, m, x):
    return relax.op.nn.group_norm(x, reader.param(m.weight), reader.param(m.bias), num_groups=m.num_groups, channel_axis=1,
                                  axes=list(range(2, f.rank(x))), epsilon=m.eps)


@_module("Embedding")
def _embedding(reader, m, x):
    return f.embedding(reader, x, reader.param(m.weight))


@_module("Flatten")
def _flatten(reader, m, x):
    return f.flatten(reader, x, m.start_dim, m.end_dim)


@_module("Softmax")
def _softmax(reader, m, x):
    return relax.op.nn.softmax(x, axis=-1 if m.dim is None else m.dim)


@_module("LogSoftmax")
def _log_softmax(reader, m, x):
    return relax.op.nn.log_softmax(x, axis=-1 if m.dim is None else m.dim)


@_module("GELU")
def _gelu(reader, m, x):
    return f.FUNCTIONS["gelu"](reader, x, getattr(m, "approximate", "none"))


@_module("LeakyReLU")
def _leaky_relu(reader, m, x):
    return relax.op.nn.leakyrelu(x, m.negative_slope)


@_module("Dropout", "Identity")
def _same(reader, m, x):
    return x


def _function(name):
    return lambda reader, m, x: f.FUNCTIONS[name](reader, x)


MODULES.update({"ReLU": _function("relu"), "ReLU6": _function("relu6"), "SiLU": _function("silu"), "Sigmoid": _function("sigmoid"),
                "Tanh": _function("tanh"), "Hardsigmoid": _function("hardsigmoid"), "Hardswish": _function("hardswish")})
