"""Modules of torch.nn, by the name of their class. Each takes the reader, the module and its inputs."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch import activations, functions as f, indexing, mathematics, networks, pools, resize, tensors  # noqa: F401

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


def _convolution(reader, m, x):
    if getattr(m, "padding_mode", "zeros") != "zeros":
        raise TVMError(f"error: a {type(m).__name__} with padding_mode={m.padding_mode!r}\n  needs: padding_mode=\"zeros\"\n"
                       "  hint:  give a converter in call_module_map")
    convert = f.FUNCTIONS[type(m).__name__.lower()]
    return convert(reader, x, reader.param(m.weight), reader.param(m.bias), m.stride, m.padding, m.dilation, m.groups)


@_module("ConvTranspose1d", "ConvTranspose2d")
def _transposed(reader, m, x):
    convert = f.FUNCTIONS[type(m).__name__.lower().replace("transpose", "_transpose")]
    return convert(reader, x, reader.param(m.weight), reader.param(m.bias), m.stride, m.padding, m.output_padding, m.groups, m.dilation)


for _count in (1, 2, 3):
    MODULES[f"Conv{_count}d"] = _convolution
    MODULES[f"MaxPool{_count}d"] = lambda reader, m, x, name=f"max_pool{_count}d": f.FUNCTIONS[name](
        reader, x, m.kernel_size, m.stride, m.padding, m.dilation, m.ceil_mode, m.return_indices)
    MODULES[f"AvgPool{_count}d"] = lambda reader, m, x, name=f"avg_pool{_count}d": f.FUNCTIONS[name](
        reader, x, m.kernel_size, m.stride, m.padding, m.ceil_mode, m.count_include_pad, getattr(m, "divisor_override", None))
    MODULES[f"AdaptiveMaxPool{_count}d"] = lambda reader, m, x, name=f"adaptive_max_pool{_count}d": f.FUNCTIONS[name](
        reader, x, m.output_size, m.return_indices)
    MODULES[f"AdaptiveAvgPool{_count}d"] = lambda reader, m, x, name=f"adaptive_avg_pool{_count}d": f.FUNCTIONS[name](reader, x, m.output_size)


@_module("Upsample")
def _upsample(reader, m, x):
    return resize.interpolate(reader, x, m.size, m.scale_factor, m.mode, m.align_corners, m.recompute_scale_factor)


@_module("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
def _batch_norm(reader, m, x):
    mean, variance, weight, bias = (reader.param(t) for t in (m.running_mean, m.running_var, m.weight, m.bias))
    return networks.batch_norm(reader, x, mean, variance, weight, bias, m.training, m.momentum, m.eps)


@_module("LayerNorm")
def _layer_norm(reader, m, x):
    return networks.layer_norm(reader, x, m.normalized_shape, reader.param(m.weight), reader.param(m.bias), m.eps)


@_module("GroupNorm")
def _group_norm(reader, m, x):
    return activations.group_norm(reader, x, m.num_groups, reader.param(m.weight), reader.param(m.bias), m.eps)


@_module("InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d")
def _instance_norm(reader, m, x):
    mean, variance, weight, bias = (reader.param(t) for t in (m.running_mean, m.running_var, m.weight, m.bias))
    return activations.instance_norm(reader, x, mean, variance, weight, bias, m.training or not m.track_running_stats, m.momentum, m.eps)


@_module("RMSNorm")
def _rms_norm(reader, m, x):
    return activations.rms_norm(reader, x, m.normalized_shape, reader.param(m.weight), m.eps)


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


@_module("Hardtanh", "ReLU6")
def _hardtanh(reader, m, x):
    return activations.hardtanh(reader, x, m.min_val, m.max_val)


@_module("PReLU")
def _prelu(reader, m, x):
    return activations.prelu(reader, x, reader.param(m.weight))


@_module("Softplus")
def _softplus(reader, m, x):
    return activations.softplus(reader, x, m.beta, m.threshold)


@_module("ELU")
def _elu(reader, m, x):
    return activations.elu(reader, x, m.alpha)


@_module("CELU")
def _celu(reader, m, x):
    return activations.celu(reader, x, m.alpha)


@_module("PixelShuffle")
def _pixel_shuffle(reader, m, x):
    return activations.pixel_shuffle(reader, x, m.upscale_factor)


@_module("Unflatten")
def _unflatten(reader, m, x):
    return tensors.unflatten(reader, x, m.dim, m.unflattened_size)


@_module("ZeroPad1d", "ZeroPad2d", "ConstantPad1d", "ConstantPad2d")
def _pad(reader, m, x):
    return tensors.pad(reader, x, m.padding, "constant", getattr(m, "value", 0))


@_module("CrossEntropyLoss")
def _cross_entropy(reader, m, x, target):
    weight = reader.param(m.weight)
    return activations.cross_entropy(reader, x, target, weight, None, m.ignore_index, None, m.reduction, m.label_smoothing)


@_module("NLLLoss")
def _nll_loss(reader, m, x, target):
    return activations.nll_loss(reader, x, target, reader.param(m.weight), None, m.ignore_index, None, m.reduction)


@_module("MSELoss")
def _mse_loss(reader, m, x, target):
    return activations.mse_loss(reader, x, target, reduction=m.reduction)


@_module("L1Loss")
def _l1_loss(reader, m, x, target):
    return activations.l1_loss(reader, x, target, reduction=m.reduction)


@_module("Dropout", "Dropout1d", "Dropout2d", "Identity")
def _same(reader, m, x):
    return x


def _function(name):
    return lambda reader, m, x: f.FUNCTIONS[name](reader, x)


MODULES.update({name: _function(name.lower()) for name in ("ReLU", "SiLU", "Sigmoid", "Tanh", "Hardsigmoid", "Hardswish", "SELU", "Softsign", "Mish",
                                                           "LogSigmoid")})
