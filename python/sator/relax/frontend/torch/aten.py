"""Operators of ATen, as torch.export writes them: where their arguments are others than those of the functions and methods of the same name."""
from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch import activations, arithmetic, indexing, mathematics, networks, pools, resize, tensors  # noqa: F401
from sator.relax.frontend.torch.functions import FUNCTIONS, METHODS
from sator.relax.frontend.torch.table import Unknown, apply, dtype, find, rank, shape

_OPERATORS = {}


def operator(*names):
    """Enters a converter under names of operators, without their overload: "add" of aten.add.Tensor."""
    def add(function):
        _OPERATORS.update(dict.fromkeys(names, function))
        return function

    return add


def converter_of(name):
    """The converter of an operator, or None. One that changes its argument, relu_, has the value of the one that does not."""
    return find(name, _OPERATORS, FUNCTIONS, METHODS)


def names():
    """All operators with a converter."""
    return sorted({*_OPERATORS, *FUNCTIONS, *METHODS})


# Other names of what functions and methods do.
operator("alias", "lift_fresh", "lift_fresh_copy")(METHODS["clone"])
operator("_to_copy")(METHODS["to"])
operator("_unsafe_view")(METHODS["reshape"])
operator("split_with_sizes", "unsafe_split", "unsafe_split_with_sizes")(METHODS["split"])
operator("unfold")(METHODS["unfold"])


@operator("_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range", "sym_constrain_range_for_size")
def _nothing(reader, *_args, **_options):
    """What torch checks of shapes and dtypes is known of a graph."""


@operator("sym_size")
def _sym_size(reader, x, dim):
    return shape(x)[dim]


for _name, _attribute in (("numpy_T", "T"), ("mT", "mT"), ("mH", "mT"), ("matrix_H", "mT")):
    operator(_name)(lambda reader, x, attribute=_attribute: FUNCTIONS["getattr"](reader, x, attribute))


@operator("copy")
def _copy(reader, x, source, non_blocking=False):
    """The elements of another tensor in the shape and dtype of x."""
    return relax.op.broadcast_to(arithmetic.cast(reader, source, dtype(x)), shape(x))


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


@operator("broadcast_tensors")
def _broadcast_tensors(reader, tensors):
    together = indexing.broadcast([shape(t) for t in tensors])
    return tuple(apply(reader, "broadcast_to", t, together) for t in tensors)


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
    return indexing.indexed(reader, x, indices)


@operator("diff")
def _diff(reader, x, n=1, dim=-1, prepend=None, append=None):
    parts = [t for t in (prepend, x, append) if t is not None]
    x = reader.emit(relax.op.concat(parts, axis=dim)) if len(parts) > 1 else x
    for _ in range(n):
        x = reader.emit(relax.op.subtract(reader.emit(_slice(reader, x, dim, 1)), reader.emit(_slice(reader, x, dim, 0, -1))))
    return x


@operator("empty_permuted")
def _empty_permuted(reader, size, _layout, **options):
    return FUNCTIONS["empty"](reader, size, **options)


@operator("scalar_tensor")
def _scalar_tensor(reader, value, dtype=None, **_options):
    return FUNCTIONS["full"](reader, [], value, dtype or "float32")


# Losses, whose reduction is a number.

_REDUCTIONS = ("none", "mean", "sum")


@operator("cross_entropy_loss")
def _cross_entropy(reader, preds, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    return activations.cross_entropy(reader, preds, target, weight, None, ignore_index, None, _REDUCTIONS[reduction], label_smoothing)


@operator("nll_loss", "nll_loss2d", "nll_loss_nd")
def _nll_loss(reader, preds, target, weight=None, reduction=1, ignore_index=-100):
    return activations.nll_loss(reader, preds, target, weight, None, ignore_index, None, _REDUCTIONS[reduction])


@operator("nll_loss_forward", "nll_loss2d_forward")
def _nll_loss_forward(reader, *arguments):
    return reader.emit(_nll_loss(reader, *arguments)), Unknown("the sum of weights that nll_loss gives has no value")


@operator("mse_loss")
def _mse_loss(reader, x, target, reduction=1):
    return activations.mse_loss(reader, x, target, reduction=_REDUCTIONS[reduction])


@operator("l1_loss")
def _l1_loss(reader, x, target, reduction=1):
    return activations.l1_loss(reader, x, target, reduction=_REDUCTIONS[reduction])


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


def _largest_with_places(name, function):
    """A program that uses the places of the largest elements is refused where it does."""
    @operator(name)
    def convert(reader, x, *args, **options):
        return reader.emit(FUNCTIONS[function](reader, x, *args, **options)), Unknown(f"the places that {name} gives have no value")


for _count in (1, 2, 3):
    _largest_with_places(f"max_pool{_count}d_with_indices", f"max_pool{_count}d")
    _largest_with_places(f"adaptive_max_pool{_count}d", f"adaptive_max_pool{_count}d")
    operator(f"_adaptive_avg_pool{_count}d")(FUNCTIONS[f"adaptive_avg_pool{_count}d"])


@operator("constant_pad_nd")
def _constant_pad(reader, x, widths, value=0):
    return tensors.pad(reader, x, widths, "constant", value)


@operator("reflection_pad1d", "reflection_pad2d")
def _reflection_pad(reader, x, widths):
    return tensors.pad(reader, x, widths, "reflect")


@operator("replication_pad1d", "replication_pad2d")
def _replication_pad(reader, x, widths):
    return tensors.pad(reader, x, widths, "replicate")


def _nearest(name, mode):
    @operator(name)
    def convert(reader, x, size=None, factors=None, *_more):
        return resize.interpolate(reader, x, size, None if size else factors, mode)


for _count in (1, 2, 3):
    _nearest(f"upsample_nearest{_count}d", "nearest"), _nearest(f"_upsample_nearest_exact{_count}d", "nearest-exact")


def _upsample(name, mode):
    @operator(name)
    def convert(reader, x, size, align_corners, factors=None, *_more):
        return resize.interpolate(reader, x, size, None if size else factors, mode, align_corners)


for _mode, _count in (("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)):
    _upsample(f"upsample_{_mode}{_count}d", _mode)


@operator("_scaled_dot_product_flash_attention_for_cpu")
def _flash_attention(reader, query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    return reader.emit(FUNCTIONS["scaled_dot_product_attention"](reader, query, key, value, attn_mask, dropout_p, is_causal, scale)), None


def _new(name):
    @operator(name)
    def convert(reader, x, size, dtype=None, **_options):
        return METHODS[name](reader, x, size, dtype=dtype)


_new("new_zeros"), _new("new_ones"), _new("new_empty")
