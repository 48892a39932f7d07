"""Operators of ATen, as torch.export writes them: where their arguments are others than those of the functions and methods of the same name."""
import math

from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch import networks
from sator.relax.frontend.torch.functions import FUNCTIONS, METHODS
from sator.relax.frontend.torch.table import dtype, rank, shape
from sator.relax.frontend.torch.tensors import pad

_OPERATORS = {}


def operator(*names):
    """Enters a converter under names of operators, without their overload: "add" of aten.add.Tensor."""
    def add(function):
        _OPERATORS.update(dict.fromkeys(names, function))
        return function

    return add


def converter_of(name):
    """The converter of an operator, or None. One that changes its argument, relu_, has the value of the one that does not."""
    for known in (name, name[:-1] if name.endswith("_") and not name.endswith("__") else name):
        found = _OPERATORS.get(known) or FUNCTIONS.get(known) or METHODS.get(known)
        if found:
            return found
    return None


def names():
    """All operators with a converter."""
    return sorted({*_OPERATORS, *FUNCTIONS, *METHODS})


# Other names of what functions and methods do.
operator("alias", "lift_fresh", "lift_fresh_copy")(METHODS["clone"])
operator("_to_copy")(METHODS["to"])
operator("_unsafe_view")(METHODS["reshape"])
operator("split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")(METHODS["split"])
operator("_adaptive_avg_pool2d")(FUNCTIONS["adaptive_avg_pool2d"])
for _name in ("and", "or", "xor"):
    operator(f"__{_name}__")(FUNCTIONS[f"bitwise_{_name}"])


@operator("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size")
def _nothing(reader, *_args, **_options):
    """What torch checks of shapes and dtypes is known of a graph."""


@operator("sym_size")
def _sym_size(reader, x, dim):
    return shape(x)[dim]


@operator("embedding")
def _embedding(reader, weight, indices, *_options, **_named):
    return FUNCTIONS["embedding"](reader, indices, weight)


def _softmax(name):
    """Their third argument is a dtype, or whether a float16 tensor becomes float32, which on CPUs none does."""
    @operator(name, "_" + name)
    def convert(reader, x, dim, to=None):
        return FUNCTIONS[name](reader, x, dim, dtype=None if isinstance(to, bool) else to)


_softmax("softmax"), _softmax("log_softmax")


@operator("elu")
def _elu(reader, x, alpha=1, scale=1, input_scale=1):
    if input_scale != 1:
        x = reader.emit(relax.op.multiply(x, relax.const(input_scale, dtype(x))))
    out = FUNCTIONS["elu"](reader, x, alpha)
    return out if scale == 1 else relax.op.multiply(reader.emit(out), relax.const(scale, dtype(x)))


@operator("clamp_min")
def _clamp_min(reader, x, least):
    return FUNCTIONS["clamp"](reader, x, min=least)


@operator("clamp_max")
def _clamp_max(reader, x, most):
    return FUNCTIONS["clamp"](reader, x, max=most)


@operator("rsub")
def _rsub(reader, x, other, alpha=1):
    return FUNCTIONS["sub"](reader, other, x, alpha)


@operator("reciprocal")
def _reciprocal(reader, x):
    return FUNCTIONS["div"](reader, 1.0, x)


@operator("log1p")
def _log1p(reader, x):
    """ln(1 + x) also where x is small beside 1: the logarithm of u = 1 + x, times what rounding made of x."""
    one = relax.const(1, dtype(x))
    u = reader.emit(relax.op.add(one, x))
    kept = reader.emit(relax.op.subtract(u, one))
    logarithm = reader.emit(relax.op.log(u))
    scaled = reader.emit(relax.op.multiply(logarithm, reader.emit(relax.op.divide(x, kept))))
    plain = reader.emit(relax.op.where(reader.emit(relax.op.equal(kept, x)), logarithm, scaled))
    return relax.op.where(reader.emit(relax.op.equal(u, one)), x, plain)


def _logarithm(name, base):
    @operator(name)
    def convert(reader, x):
        return relax.op.multiply(reader.emit(relax.op.log(x)), relax.const(1 / math.log(base), dtype(x)))


_logarithm("log2", 2), _logarithm("log10", 10)


def _over_bools(name, reduction):
    @operator(name)
    def convert(reader, x, dim=None, keepdim=False):
        ones = reader.emit(relax.op.astype(x if dtype(x) == "bool" else reader.emit(relax.op.not_equal(x, relax.const(0, dtype(x)))), "int32"))
        return relax.op.astype(reader.emit(reduction(ones, dim, keepdims=keepdim)), "bool")


_over_bools("any", relax.op.max), _over_bools("all", relax.op.min)


@operator("bitwise_not")
def _bitwise_not(reader, x):
    return relax.op.logical_not(x) if dtype(x) == "bool" else relax.op.bitwise_not(x)


@operator("view_as", "reshape_as")
def _view_as(reader, x, other):
    return relax.op.reshape(x, shape(other))


@operator("expand")
def _expand(reader, x, size, implicit=False):
    return FUNCTIONS["expand"](reader, x, size)


@operator("expand_as")
def _expand_as(reader, x, other):
    return relax.op.broadcast_to(x, shape(other))


@operator("slice")
def _slice(reader, x, dim=0, start=None, end=None, step=1):
    return FUNCTIONS["getitem"](reader, x, (*[slice(None)] * (dim % rank(x)), slice(start, None if isinstance(end, int) and end >= 2**63 - 1 else end, step)))


@operator("index")
def _index(reader, x, indices):
    """The elements at one index per dimension that has one."""
    given = [(axis, i) for axis, i in enumerate(indices) if i is not None]
    if len(given) == 1:
        (axis, index), = given
        if dtype(index) == "bool":
            raise TVMError("error: index: a tensor of bool, whose result is as long as it has True\n  needs: a tensor of positions")
        return relax.op.take(x, _from_zero(reader, index, shape(x)[axis]), axis=axis)
    if [axis for axis, _ in given] != list(range(len(given))):
        raise TVMError(f"error: index: dimensions {', '.join(str(axis) for axis, _ in given)} are indexed\n  needs: one, or all from the first on\n"
                       "  hint:  permute the tensor before")
    positions = [_from_zero(reader, i, shape(x)[axis]) for axis, i in given]
    common = _broadcast([shape(p) for p in positions])
    columns = [reader.emit(relax.op.expand_dims(reader.emit(relax.op.broadcast_to(p, common)), -1)) for p in positions]
    return relax.op.gather_nd(x, reader.emit(relax.op.concat(columns, axis=-1)))


def _broadcast(shapes):
    """The shape that tensors of these shapes have together."""
    ranks = max(map(len, shapes))
    columns = zip(*([1] * (ranks - len(s)) + s for s in shapes))
    return [next((e for e in column if getattr(e, "value", e) != 1), 1) for column in columns]


def _from_zero(reader, index, extent):
    """Positions, of which negative ones count from the end."""
    if not hasattr(extent, "value"):  # a symbolic size
        return index
    is_negative = reader.emit(relax.op.less(index, relax.const(0, dtype(index))))
    from_end = reader.emit(relax.op.add(index, relax.const(extent.value, dtype(index))))
    return reader.emit(relax.op.where(is_negative, from_end, index))


@operator("diff")
def _diff(reader, x, n=1, dim=-1, prepend=None, append=None):
    parts = [t for t in (prepend, x, append) if t is not None]
    x = reader.emit(relax.op.concat(parts, axis=dim)) if len(parts) > 1 else x
    for _ in range(n):
        x = reader.emit(relax.op.subtract(reader.emit(_slice(reader, x, dim, 1)), reader.emit(_slice(reader, x, dim, 0, -1))))
    return x


@operator("scalar_tensor")
def _scalar_tensor(reader, value, dtype=None, **_options):
    return FUNCTIONS["full"](reader, [], value, dtype)


# Layers of networks.


@operator("convolution")
def _convolution(reader, x, weight, bias, stride, padding, dilation, is_transposed, output_padding, groups):
    name = f"conv{'_transpose' if is_transposed else ''}{rank(x) - 2}d"
    if name not in FUNCTIONS:
        raise TVMError(f"error: convolution, transposed={is_transposed}, of rank {rank(x)}\n  needs: conv1d, conv2d, conv3d, conv_transpose1d or conv_transpose2d")
    if is_transposed:
        return FUNCTIONS[name](reader, x, weight, bias, stride, padding, output_padding, groups, dilation)
    return FUNCTIONS[name](reader, x, weight, bias, stride, padding, dilation, groups)


@operator("batch_norm", "cudnn_batch_norm")
def _batch_norm(reader, x, weight, bias, mean, variance, training=False, momentum=0.1, eps=1e-5, cudnn=False):
    return networks.batch_norm(reader, x, mean, variance, weight, bias, training, momentum, eps)


@operator("_native_batch_norm_legit")
def _native_batch_norm_by_its_own(reader, x, weight, bias, *statistics_and_more):
    *statistics, training, momentum, eps = statistics_and_more
    mean, variance = statistics or (None, None)
    return reader.emit(networks.batch_norm(reader, x, mean, variance, weight, bias, training, momentum, eps)), None, None


@operator("_native_batch_norm_legit_no_training")
def _native_batch_norm(reader, x, weight, bias, mean, variance, momentum, eps):
    return reader.emit(networks.batch_norm(reader, x, mean, variance, weight, bias, False, momentum, eps)), None, None


@operator("layer_norm")
def _layer_norm(reader, x, extents, weight=None, bias=None, eps=1e-5, cudnn=False):
    return networks.layer_norm(reader, x, extents, weight, bias, eps)


@operator("native_layer_norm")
def _native_layer_norm(reader, x, extents, weight, bias, eps):
    return reader.emit(networks.layer_norm(reader, x, extents, weight, bias, eps)), None, None


@operator("group_norm")
def _group_norm(reader, x, groups, weight=None, bias=None, eps=1e-5, cudnn=False):
    return FUNCTIONS["group_norm"](reader, x, groups, weight, bias, eps)


@operator("native_group_norm")
def _native_group_norm(reader, x, weight, bias, _n, _channels, _elements, groups, eps):
    return reader.emit(FUNCTIONS["group_norm"](reader, x, groups, weight, bias, eps)), None, None


@operator("instance_norm")
def _instance_norm(reader, x, weight, bias, mean, variance, use_input_stats=True, momentum=0.1, eps=1e-5, cudnn=False):
    return FUNCTIONS["instance_norm"](reader, x, mean, variance, weight, bias, use_input_stats, momentum, eps)


@operator("dropout")
def _dropout(reader, x, p, train):
    """The tensor itself. Errors: a model in training drops elements."""
    if train and p > 0:
        raise TVMError(f"error: dropout of {p} in training\n  needs: a model that computes the same each time\n  hint:  export model.eval()")
    return x


@operator("native_dropout")
def _native_dropout(reader, x, p, train):
    return _dropout(reader, x, p, train), None


@operator("max_pool2d_with_indices")
def _max_pool2d_with_indices(reader, x, *args, **options):
    return reader.emit(FUNCTIONS["max_pool2d"](reader, x, *args, **options)), None


@operator("constant_pad_nd")
def _constant_pad(reader, x, widths, value=0):
    return pad(reader, x, widths, "constant", value)


@operator("reflection_pad1d", "reflection_pad2d")
def _reflection_pad(reader, x, widths):
    return pad(reader, x, widths, "reflect")


@operator("replication_pad1d", "replication_pad2d")
def _replication_pad(reader, x, widths):
    return pad(reader, x, widths, "replicate")


@operator("upsample_nearest2d")
def _upsample_nearest(reader, x, size=None, factors=None, *_more):
    return networks.interpolate(reader, x, size, None if size else factors, "nearest")


def _upsample(name, mode):
    @operator(name)
    def convert(reader, x, size, align_corners, factors=None, *_more):
        return networks.interpolate(reader, x, size, None if size else factors, mode, align_corners)


_upsample("upsample_bilinear2d", "bilinear"), _upsample("upsample_bicubic2d", "bicubic")


@operator("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(reader, query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    return reader.emit(FUNCTIONS["scaled_dot_product_attention"](reader, query, key, value, attn_mask, dropout_p, is_causal, scale)), None


def _new(name):
    @operator(name)
    def convert(reader, x, size, dtype=None, **_options):
        return METHODS[name](reader, x, size, dtype=dtype)


_new("new_zeros"), _new("new_ones"), _new("new_empty")
