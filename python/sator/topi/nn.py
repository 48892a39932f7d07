"""Formulas of neural networks' ops: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, paths, te, tir
from sator.topi import signatures, tensors
from sator.topi.formulas import formula_of
from sator.topi.utils import get_const_tuple


def _pair(value, count=2):
    return list(value) if isinstance(value, (list, tuple)) else [value] * count


__path__ = []  # TVM's modules below are found by sator.paths
paths.keep_functions(__name__)


def _padding(padding, kernel, dilation):
    """Elements before and after each dimension; "SAME" keeps the size at stride 1, "VALID" adds none."""
    if not isinstance(padding, str):
        return _pair(padding, len(kernel))
    totals = [d * (k - 1) if padding == "SAME" else 0 for k, d in zip(get_const_tuple(kernel), dilation)]
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"padding is {padding!r}\n  needs: \"SAME\", \"VALID\" or numbers of elements\n  hint:  (top, left, bottom, right)")
    return [(t + 1) // 2 for t in totals] + [t // 2 for t in totals]


def _conv(dims, data, kernel, strides, padding, dilation, groups, layout, kernel_layout, out_dtype):
    dilation = _pair(dilation, dims)
    sizes = [kernel.shape[kernel_layout.index(c)] for c in "DHW"[-dims:]]
    options = {"out_dtype": out_dtype} if out_dtype else {}
    return _core.formula(f"nn.conv{dims}d", [data, kernel], {
        "strides": _pair(strides, dims), "padding": _padding(padding, sizes, dilation), "dilation": dilation, "groups": int(groups),
        "data_layout": layout, "kernel_layout": kernel_layout, **options})


_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "HWCN": "HWIO", "NCW": "OIW", "NWC": "WIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def _kernel(layout, kernel_layout):
    """The layout of kernels: as given, else the one beside that layout of data."""
    if not isinstance(layout, str) or layout not in _KERNELS:
        raise ValueError(f"layout is {layout!r}\n  needs: one of {', '.join(_KERNELS)}\n  hint:  topi.layout_transform first")
    return kernel_layout or _KERNELS[layout]


def conv2d(input, filter, strides, padding, dilation, data_layout="NCHW", kernel_layout="", out_dtype=None):  # noqa: A002
    """The convolution of images; padding an integer, (h, w), (top, left, bottom, right), "SAME" or "VALID"."""
    return _conv(2, input, filter, strides, padding, dilation, 1, data_layout, _kernel(data_layout, kernel_layout), out_dtype)


def conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """The convolution of images [n, c, h, w] with kernels [o, c, h, w]."""
    return _conv(2, Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype="float32", auto_scheduler_rewritten_layout="",  # noqa: N803
                meta_schedule_original_shape=None):
    """The convolution of images [n, h, w, c] with kernels [h, w, c, o]."""
    return _conv(2, Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """The convolution of groups of channels: images [n, c, h, w], kernels [o, c / groups, h, w]."""
    return _conv(2, Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def conv1d(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, data_layout="NCW", kernel_layout="", out_dtype=None):
    """The convolution of sequences [n, c, w] with kernels [o, c, w], or as the layouts say."""
    return _conv(1, data, kernel, strides, padding, dilation, groups, data_layout, _kernel(data_layout, kernel_layout), out_dtype)


def conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """The convolution of sequences [n, c, w] with kernels [o, c, w]."""
    return _conv(1, data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv3d_ncdhw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """The convolution of volumes [n, c, d, h, w] with kernels [o, c / groups, d, h, w]."""
    return _conv(3, Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv2d_transpose_nchw(Input, Filter, strides, padding, out_dtype, output_padding):  # noqa: N803
    """The transposed convolution of images [n, c, h, w] with kernels [c, o, h, w]."""
    options = {"out_dtype": out_dtype} if out_dtype else {}
    return _core.formula("nn.conv2d_transpose", [Input, Filter], {
        "strides": _pair(strides), "padding": _padding(padding, Filter.shape[2:], [1, 1]), "output_padding": _pair(output_padding), **options})


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False, auto_scheduler_rewritten_layout="",
           meta_schedule_original_shape=None):
    """As topi.matmul, and a bias added to each row."""
    from sator import topi

    product = tensors._product(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return product if bias is None else topi.add(product, bias)


def dense(data, weight, bias=None, out_dtype=None, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None):
    """data @ weight.T: weight is [out, in]."""
    return matmul(data, weight, bias, out_dtype, False, True)


def batch_matmul(tensor_a, tensor_b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True, auto_scheduler_rewritten_layout="",
                 meta_schedule_original_shape=None):
    """The products of pairs of matrices; tensor_b is transposed unless told otherwise, and a batch of one is used for all.

    tensor_a   [batch, m, k], or [batch, k, m] with transpose_a
    tensor_b   [batch, n, k], or [batch, k, n] without transpose_b
    oshape     the shape of the result, where it is known otherwise
    """
    a, b, dtype = tensor_a, tensor_b, out_dtype or tensor_a.dtype
    m, k = (a.shape[2], a.shape[1]) if transpose_a else a.shape[1:]
    n = b.shape[1] if transpose_b else b.shape[2]
    one_a, one_b = (get_const_tuple(t.shape)[0] == 1 for t in (a, b))
    axis = te.reduce_axis((0, k), name="k")

    def element(g, i, j):
        at_a, at_b = 0 if one_a else g, 0 if one_b else g
        left = a[at_a, axis, i] if transpose_a else a[at_a, i, axis]
        right = b[at_b, j, axis] if transpose_b else b[at_b, axis, j]
        return te.sum(left.astype(dtype) * right.astype(dtype), axis=axis)

    return te.compute(oshape or (b.shape[0] if one_a else a.shape[0], m, n), element,
                      name="T_batch_matmul_" + "NT"[bool(transpose_a)] + "NT"[bool(transpose_b)])


def bias_add(data, bias, axis=1):
    """A bias of one element per position of `axis` added."""
    from sator import topi

    at = axis % len(data.shape)
    return topi.add(data, topi.expand_dims(bias, 1, len(data.shape) - at - 1) if at + 1 < len(data.shape) else bias)


def flatten(data):
    """All dimensions but the first as one."""
    count = 1
    for extent in data.shape[1:]:
        count = count * extent
    return _core.formula("reshape", [data, (data.shape[0], count)], {})


def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput", attrs=None):
    """Elements of pad_value added before and after each dimension; as many after as before where that is not said."""
    after = pad_before if pad_after is None else pad_after
    widths = [w for pair in zip(get_const_tuple(pad_before), get_const_tuple(after), strict=True) for w in pair]
    value = _core.const(pad_value, data.dtype) if isinstance(pad_value, (int, float)) else pad_value
    return _core.formula("nn.pad", [data, widths, value], {})


def dilate(data, strides, dilation_value=0.0, name="DilatedInput"):
    """The elements strides apart, with dilation_value between them.

    Errors: ValueError where there is not one stride for each dimension.
    """
    if len(strides) != len(data.shape):
        raise ValueError(f"dilate: {len(strides)} strides for a tensor of rank {len(data.shape)}\n  needs: one for each dimension")
    value = _core.const(dilation_value, data.dtype) if isinstance(dilation_value, (int, float)) else dilation_value

    def element(*i):
        at = [p if s == 1 else _core.binary("//", p, s) for p, s in zip(i, strides)]
        between = [_core.binary("==", _core.binary("%", p, s), 0) for p, s in zip(i, strides) if s != 1]
        return tir.if_then_else(tir.all(*between), data(*at), value) if between else data(*at)

    return te.compute([(e - 1) * s + 1 for e, s in zip(data.shape, strides)], element, name=name)


def mirror_pad(data, pad_before, pad_after=None, mode="SYMMETRIC", name="MirrorPadInput"):
    """Elements mirrored before and after each dimension: at the edge ("SYMMETRIC"), or at the last element ("REFLECT").

    Errors: ValueError for another mode, and where there is not one number for each dimension.
    """
    after = pad_before if not pad_after else pad_after
    if mode not in ("SYMMETRIC", "REFLECT") or not len(pad_before) == len(after) == len(data.shape):
        raise ValueError(f"mirror_pad: mode {mode!r}, {len(pad_before)} and {len(after)} numbers for rank {len(data.shape)}\n"
                         "  needs: \"SYMMETRIC\" or \"REFLECT\", one number for each dimension")
    edge = int(mode == "SYMMETRIC")

    def mirrored(at, extent, before):
        inside = at - before
        return tir.if_then_else(inside < 0, -inside - edge, tir.if_then_else(inside >= extent, 2 * (extent - 1) - inside + edge, inside))

    return te.compute([e + b + a for e, b, a in zip(data.shape, pad_before, after)],
                      lambda *i: data(*(mirrored(p, e, b) if (b, a) != (0, 0) else p for p, e, b, a in zip(i, data.shape, pad_before, after))), name=name)


def lrn(data, size, axis=1, alpha=0.0001, beta=0.75, bias=2):
    """Each element divided by (bias + alpha / size * the sum of squares of `size` neighbours along `axis`) ** beta.

    size   odd; neighbours outside of the tensor are 0
    Errors: ValueError for an even size.
    """
    if size % 2 != 1:
        raise ValueError(f"lrn: size is {size}\n  needs: an odd number")
    at, half = axis % len(data.shape), size // 2
    padded = pad(data, [half if k == at else 0 for k in range(len(data.shape))])
    window = te.reduce_axis((0, size), name="rxs")

    def square(*i):
        value = padded(*i[:at], i[at] + window, *i[at + 1:])
        return te.sum(value * value, axis=window)

    total = te.compute(data.shape, square, name="sqr_sum")
    factor, power, least = (_core.const(v, data.dtype) for v in (alpha / size, beta, bias))
    return te.compute(data.shape, lambda *i: data(*i) / tir.power(least + factor * total(*i), power), name="T_lrn")


def prelu(x, slope, axis=1):
    """x where it is positive, else x times the slope of its position along `axis`."""
    return te.compute(x.shape, lambda *i: tir.Select(x(*i) > _core.const(0, x.dtype), x(*i), x(*i) * slope(i[axis])), name="T_prelu")


def scale_shift_nchw(Input, Scale, Shift):  # noqa: N803
    """Input [n, c, h, w] times Scale [c] plus Shift [c]."""
    return te.compute(Input.shape, lambda n, c, h, w: Input[n, c, h, w] * Scale[c] + Shift[c], name="ScaleShift")


def batch_norm(data, gamma, beta, moving_mean, moving_var, axis=None, epsilon=None, center=None, scale=None, training=None, momentum=None):
    """[the normalised data, the mean, the variance]: by the moving statistics, or in training by those of the data.

    axis       the dimension of channels, 1 if it is None
    epsilon    1e-5 if it is None
    center, scale   whether beta is added and gamma multiplied, which they are if it is None
    momentum   the weight of the data's statistics in the results of training, 0.1 if it is None
    """
    from sator import topi

    at, rank = (1 if axis is None else axis % len(data.shape)), len(data.shape)
    if training:
        return _core.formula("nn.batch_norm", [data, gamma, beta, moving_mean, moving_var], {
            "axis": at, "epsilon": 1e-5 if epsilon is None else epsilon, "center": center is not False, "scale": scale is not False,
            "momentum": 0.1 if momentum is None else momentum})

    def along(part):
        return topi.expand_dims(part, 1, rank - at - 1) if at + 1 < rank else part

    out = topi.divide(topi.subtract(data, along(moving_mean)), topi.sqrt(topi.add(along(moving_var), 1e-5 if epsilon is None else epsilon)))
    out = topi.multiply(out, along(gamma)) if scale is not False else out
    return [topi.add(out, along(beta)) if center is not False else out, moving_mean, moving_var]


def _pool(dims, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad):
    op = f"nn.{pool_type}_pool{dims}d"
    return formula_of(op, op)(data, pool_size=_pair(kernel, dims), strides=_pair(stride, dims), padding=list(padding),
                              dilation=_pair(dilation, dims), ceil_mode=ceil_mode, count_include_pad=count_include_pad, layout=layout)


def pool1d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCW", count_include_pad=True):
    """The maximum ("max") or the mean ("avg") over windows of one dimension: arguments as of pool2d."""
    return _pool(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW", count_include_pad=True):
    """The maximum ("max") or the mean ("avg") over windows of two dimensions.

    data               [n, c, h, w], or as `layout` says
    kernel             (h, w) of a window
    stride, dilation   (h, w), in elements
    padding            (top, left, bottom, right), in elements
    count_include_pad  whether padded elements count in a mean
    """
    return _pool(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCDHW", count_include_pad=True):
    """The maximum ("max") or the mean ("avg") over windows of three dimensions: arguments as of pool2d."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def global_pool(data, pool_type, layout="NCHW"):
    """The maximum ("max") or the mean ("avg") over the whole of each image."""
    from sator import topi

    axes = [layout.index("H"), layout.index("W")]
    reduced = topi.max(data, axes, True) if pool_type == "max" else topi.sum(data, axes, True)
    if pool_type == "max":
        return reduced
    return topi.divide(reduced, float(get_const_tuple(data.shape)[axes[0]] * get_const_tuple(data.shape)[axes[1]]))


def upsampling(data, scale_h, scale_w, layout="NCHW", method="nearest_neighbor", align_corners=False, output_shape=None):
    """Each element of an image repeated scale_h times downward and scale_w times to the right.

    data   [n, c, h, w]
    Errors: ValueError for another layout or method, for scales that are no positive integers, and for what only other methods
    have: align_corners, output_shape.
    """
    if align_corners or output_shape is not None:
        raise ValueError("upsampling to an output_shape, or with align_corners\n  needs: scales alone\n"
                         "  hint:  relax.op.image.resize2d has other methods")
    if layout != "NCHW" or method != "nearest_neighbor" or scale_h != int(scale_h) or scale_w != int(scale_w) or min(scale_h, scale_w) < 1:
        raise ValueError(f"upsampling of {layout} by {method}, {scale_h} x {scale_w}\n  needs: NCHW, nearest_neighbor, integers from 1 on\n"
                         "  hint:  relax.op.image.resize2d has other methods")
    n, c, h, w = data.shape
    y, x = int(scale_h), int(scale_w)
    return te.compute((n, c, h * y, w * x), lambda b, k, i, j: data(b, k, i // y, j // x), name="upsampling")


def adaptive_pool(data, output_size, pool_type, layout="NCHW"):
    """The mean over a grid of `output_size` (h, w) parts. Errors: ValueError for the maximum, which no op computes."""
    if pool_type != "avg":
        raise ValueError(f"adaptive_pool of type {pool_type}\n  needs: pool_type \"avg\"")
    return formula_of("nn.adaptive_pool", "nn.adaptive_avg_pool2d")(data, output_size=list(output_size), layout=layout)


from sator.topi.spatial import *  # noqa: E402,F401,F403


def space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value=0.0):
    """Blocks of the padded spatial dimensions as images of their own: [batch * blocks, spatial / block, ...].

    data          [batch, spatial..., rest...]
    block_shape   one size per spatial dimension
    Errors: ValueError where a padded extent is not a multiple of its block.
    """
    m, rest = len(block_shape), len(data.shape) - 1 - len(block_shape)
    padded = pad(data, [0, *pad_before, *[0] * rest], [0, *pad_after, *[0] * rest], pad_value)
    extents = get_const_tuple(padded.shape[1:1 + m])
    for extent, block in zip(extents, block_shape):
        if isinstance(extent, int) and extent % block:
            raise ValueError(f"space_to_batch_nd: a padded extent of {extent} in blocks of {block}\n  needs: a multiple\n  hint:  pad more behind")
    batch, blocks = data.shape[0], 1
    for block in block_shape:
        blocks *= block

    def element(b, *i):
        which, at = tir.floordiv(b, batch), [tir.floormod(b, batch)]
        for axis in reversed(range(m)):
            at.insert(1, i[axis] * block_shape[axis] + tir.floormod(which, block_shape[axis]))
            which = tir.floordiv(which, block_shape[axis])
        return padded(*at, *i[m:])

    return te.compute([batch * blocks, *(e // b for e, b in zip(extents, block_shape)), *data.shape[1 + m:]], element, name="space_to_batch_nd")


def batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list):
    """What space_to_batch_nd did, undone: images of blocks as one image, less what is cut off at its sides.

    data          [batch * blocks, spatial..., rest...]
    block_shape   one size per spatial dimension
    """
    m, blocks = len(block_shape), 1
    for block in block_shape:
        blocks *= block
    batch = data.shape[0] // blocks if isinstance(data.shape[0], int) else tir.floordiv(data.shape[0], blocks)
    extents = [e * b - begin - end for e, b, begin, end in zip(data.shape[1:1 + m], block_shape, crop_begin_list, crop_end_list)]

    def element(n, *i):
        which, at = 0, []
        for axis in range(m):
            position = i[axis] + crop_begin_list[axis]
            which = which * block_shape[axis] + tir.floormod(position, block_shape[axis])
            at.append(tir.floordiv(position, block_shape[axis]))
        return data(which * batch + n, *at, *i[m:])

    return te.compute([batch, *extents, *data.shape[1 + m:]], element, name="batch_to_space_nd")


def __getattr__(name):
    return formula_of("nn." + name, "nn." + name)


def __dir__():
    names = {name.removeprefix("nn.") for name in (*signatures.ROWS, *(op for op, _ in _core.ops())) if name.startswith("nn.")}
    return sorted({*globals(), *names})
