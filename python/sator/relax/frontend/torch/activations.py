"""Activations, normalizations and losses of torch.nn.functional."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import cast, in_float32
from sator.relax.frontend.torch.networks import batch_norm
from sator.relax.frontend.torch.table import apply, const_like, converter, dtype, known, rank, shape
from sator.relax.frontend.torch.values import dtype_of


def _negative_side(reader, x, negative):
    """x where it is positive, else another value."""
    return relax.op.where(apply(reader, "greater", x, const_like(0, x)), x, negative)


def _less_one(reader, x, scale=1.0):
    """exp(min(x / scale, 0)) - 1: what lies left of 0 does not overflow."""
    below = apply(reader, "minimum", x if scale == 1 else apply(reader, "divide", x, const_like(scale, x)), const_like(0, x))
    return apply(reader, "subtract", apply(reader, "exp", below), const_like(1, x))


@converter("elu", "elu_", method=False)
@in_float32
def elu(reader, x, alpha=1.0, inplace=False):
    return _negative_side(reader, x, apply(reader, "multiply", _less_one(reader, x), const_like(alpha, x)))


@converter("celu", method=False)
@in_float32
def celu(reader, x, alpha=1.0, inplace=False):
    return _negative_side(reader, x, apply(reader, "multiply", _less_one(reader, x, alpha), const_like(alpha, x)))


@converter("selu", method=False)
@in_float32
def _selu(reader, x, inplace=False):
    return relax.op.nn.selu(x)


@converter("softplus", method=False)
@in_float32
def softplus(reader, x, beta=1.0, threshold=20.0):
    return relax.op.nn.softplus(x, float(beta), float(threshold))


@converter("logsigmoid", "log_sigmoid", method=False)
@in_float32
def _logsigmoid(reader, x):
    return relax.op.negative(reader.emit(relax.op.nn.softplus(apply(reader, "negative", x), 1.0, 20.0)))


@converter("softsign", method=False)
@in_float32
def _softsign(reader, x):
    return relax.op.divide(x, apply(reader, "add", apply(reader, "abs", x), const_like(1, x)))


@converter("mish", method=False)
@in_float32
def _mish(reader, x, inplace=False):
    return relax.op.multiply(x, apply(reader, "tanh", reader.emit(relax.op.nn.softplus(x, 1.0, 20.0))))


@converter("hardtanh", "hardtanh_", method=False)
def hardtanh(reader, x, min_val=-1.0, max_val=1.0, inplace=False):
    return relax.op.clip(x, min_val, max_val)


@converter("threshold", "threshold_", method=False)
def _threshold(reader, x, threshold, value, inplace=False):
    return relax.op.where(apply(reader, "greater", x, const_like(threshold, x)), x, const_like(value, x))


@converter("hardshrink", method=False)
def _hardshrink(reader, x, lambd=0.5):
    return relax.op.where(apply(reader, "less_equal", apply(reader, "abs", x), const_like(lambd, x)), const_like(0, x), x)


@converter("softshrink", method=False)
def _softshrink(reader, x, lambd=0.5):
    inside = apply(reader, "clip", x, -lambd, lambd)
    return relax.op.subtract(x, inside)


@converter("glu", method=False)
def _glu(reader, x, dim=-1):
    parts = apply(reader, "split", x, 2, axis=dim)
    value, gate = (reader.emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
    return relax.op.multiply(value, apply(reader, "sigmoid", gate))


@converter("prelu")
def prelu(reader, x, weight):
    if rank(x) > 2:
        weight = apply(reader, "reshape", weight, [-1] + [1] * (rank(x) - 2))
    return _negative_side(reader, x, apply(reader, "multiply", x, weight))


@converter("pixel_shuffle", method=False)
def pixel_shuffle(reader, x, upscale_factor):
    return relax.op.nn.pixel_shuffle(x, upscale_factor)


@converter("group_norm", method=False)
def group_norm(reader, x, num_groups, weight=None, bias=None, eps=1e-5):
    channels = [shape(x)[1]]
    weight = apply(reader, "ones", channels, dtype(x)) if weight is None else weight
    bias = apply(reader, "zeros", channels, dtype(x)) if bias is None else bias
    return relax.op.nn.group_norm(x, weight, bias, num_groups=num_groups, channel_axis=1, axes=list(range(2, rank(x))), epsilon=eps)


@converter("instance_norm", method=False)
def instance_norm(reader, x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    if not use_input_stats:
        return batch_norm(reader, x, running_mean, running_var, weight, bias, False, momentum, eps)
    return group_norm(reader, x, known(shape(x)[1], "instance_norm"), weight, bias, eps)


@converter("rms_norm", method=False)
def rms_norm(reader, x, normalized_shape, weight=None, eps=None):
    axes = list(range(-len(normalized_shape), 0))
    weight = apply(reader, "ones", list(normalized_shape), dtype(x)) if weight is None else weight
    least = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}.get(dtype(x), 2.0**-23)  # torch.finfo(dtype).eps
    return relax.op.nn.rms_norm(x, weight, axes=axes, epsilon=least if eps is None else eps)


@converter("norm", "linalg_vector_norm")
def norm(reader, x, p=2, dim=None, keepdim=False, dtype=None):
    """(sum of |x|^p)^(1/p). Errors: a p that is no positive number, infinity or "fro"."""
    return _norm(reader, x if dtype is None else cast(reader, x, dtype_of(dtype)), p, dim, keepdim)


@in_float32
def _norm(reader, x, p, dim, keepdim):
    p = 2 if p in ("fro", None) else p
    size = apply(reader, "abs", x)
    if p in (float("inf"), float("-inf")):
        return (relax.op.max if p > 0 else relax.op.min)(size, dim, keepdims=keepdim)
    if not isinstance(p, (int, float)) or p <= 0:
        raise TVMError(f"error: norm of order {p!r}\n  needs: a positive number, infinity or \"fro\"\n  hint:  give a converter in call_function_map")
    if p == 1:
        return relax.op.sum(size, dim, keepdims=keepdim)
    powers = apply(reader, "square", x) if p == 2 else apply(reader, "power", size, const_like(float(p), x))
    total = reader.emit(relax.op.sum(powers, dim, keepdims=keepdim))
    return relax.op.sqrt(total) if p == 2 else relax.op.power(total, const_like(1 / p, x))


@converter("normalize", method=False)
@in_float32
def _normalize(reader, x, p=2.0, dim=1, eps=1e-12):
    size = reader.emit(norm(reader, x, p, dim, True))
    return relax.op.divide(x, apply(reader, "maximum", size, const_like(eps, x)))


@converter("cross_entropy", method=False)
def cross_entropy(reader, preds, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    """Errors: targets that are probabilities, label_smoothing."""
    if label_smoothing or dtype(target).startswith(("float", "bfloat")):
        raise TVMError(f"error: cross_entropy with targets of {dtype(target)}, label_smoothing={label_smoothing}\n"
                       "  needs: classes as integers, no label_smoothing\n  hint:  give a converter in call_function_map")
    likelihood = reader.emit(relax.op.nn.log_softmax(preds, axis=1 if rank(preds) > 2 else -1))
    return nll_loss(reader, likelihood, target, weight, None, ignore_index, None, reduction)


@converter("nll_loss", "nll_loss_nd", method=False)
def nll_loss(reader, preds, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    return relax.op.nn.nll_loss(preds, target, weight, reduction=reduction, ignore_index=ignore_index)


def _loss(name, difference):
    @converter(name, method=False)
    def loss(reader, x, target, size_average=None, reduce=None, reduction="mean", weight=None):
        each = apply(reader, difference, apply(reader, "subtract", x, target))
        return each if reduction == "none" else getattr(relax.op, reduction)(each)

    return loss


mse_loss, l1_loss = _loss("mse_loss", "square"), _loss("l1_loss", "abs")
