"""Formulas of images, volumes and their convolutions in other layouts: TVM v0.17's names, order and defaults of arguments."""
from sator import _core, te
from sator.topi import nn
from sator.topi.formulas import formula_of
from sator.topi.utils import get_const_tuple

__all__ = ["adaptive_pool1d", "adaptive_pool3d", "conv1d_nwc", "conv1d_transpose_ncw", "conv2d_hwcn", "conv3d_ndhwc",
           "depth_to_space", "depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "group_conv1d_ncw", "group_conv2d_nhwc",
           "group_conv2d_transpose_nchw", "layout_transform", "scale_shift_nhwc", "softmax_common", "space_to_depth"]


def _formula(name):
    return formula_of(name, name)


def _moved(x, axes):
    return _formula("permute_dims")(x, list(axes))


def conv1d_nwc(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """The convolution of sequences [n, w, c] with kernels [w, c, o]."""
    return nn._conv(1, data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def group_conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, out_dtype=None):
    """The convolution of groups of channels: sequences [n, c, w], kernels [o, c / groups, w]."""
    return nn._conv(1, data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


def group_conv2d_nhwc(Input, Filter, stride, padding, dilation, groups, out_dtype=None):  # noqa: N803
    """The convolution of groups of channels: images [n, h, w, c], kernels [h, w, c / groups, o]."""
    return nn._conv(2, Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def conv2d_hwcn(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """The convolution of images [h, w, c, n] with kernels [h, w, c, o]: [h, w, o, n]."""
    return _moved(nn._conv(2, _moved(Input, (3, 0, 1, 2)), Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype), (1, 2, 3, 0))


def conv3d_ndhwc(Input, Filter, stride, padding, dilation, groups, out_dtype="float32", auto_scheduler_rewritten_layout="",  # noqa: N803
                 meta_schedule_origin_shape=None):
    """The convolution of volumes [n, d, h, w, c] with kernels [d, h, w, c / groups, o]."""
    return nn._conv(3, Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)


def depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):  # noqa: N803
    """Each channel by its own kernels: images [n, c, h, w], kernels [c, m, h, w]: channel o is of input channel o // m."""
    channels, times, height, width = get_const_tuple(Filter.shape)
    kernel = _formula("reshape")(Filter, (channels * times, 1, height, width))
    return nn._conv(2, Input, kernel, stride, padding, dilation, channels, "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(Input, Filter, stride, padding, dilation, kernel_layout="HWOI", out_dtype=None):  # noqa: N803
    """Each channel by its own kernels: images [n, h, w, c], kernels [h, w, c, m] ("HWOI") or [h, w, m, c] ("HWIO")."""
    if kernel_layout not in ("HWOI", "HWIO"):
        raise ValueError(f"kernel_layout is {kernel_layout!r}\n  needs: \"HWOI\" or \"HWIO\"")
    kernel = _moved(Filter, (2, 3, 0, 1) if kernel_layout == "HWOI" else (3, 2, 0, 1))
    return _moved(depthwise_conv2d_nchw(_moved(Input, (0, 3, 1, 2)), kernel, stride, padding, dilation, out_dtype), (0, 2, 3, 1))


def _transposed(dims, data, kernel, stride, padding, output_padding, groups, out_dtype):
    options = {"out_dtype": out_dtype} if out_dtype else {}
    return _core.formula(f"nn.conv{dims}d_transpose", [data, kernel], {
        "strides": nn._pair(stride, dims), "padding": nn._padding(padding, kernel.shape[2:], [1] * dims),
        "output_padding": nn._pair(output_padding, dims), "groups": int(groups), **options})


def conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding):
    """The transposed convolution of sequences [n, c, w] with kernels [c, o, w]."""
    return _transposed(1, data, kernel, stride, padding, output_padding, 1, out_dtype)


def group_conv2d_transpose_nchw(data, kernel, stride, padding, out_dtype, output_padding, groups):
    """The transposed convolution of groups of channels: images [n, c, h, w], kernels [c, o / groups, h, w]."""
    return _transposed(2, data, kernel, stride, padding, output_padding, groups, out_dtype)


def _adaptive(dims, data, output_size, pool_type, layout):
    if pool_type != "avg":
        raise ValueError(f"adaptive_pool{dims}d of type {pool_type}\n  needs: pool_type \"avg\"")
    return _formula(f"nn.adaptive_avg_pool{dims}d")(data, output_size=nn._pair(output_size, dims), layout=layout)


def adaptive_pool1d(data, output_size, pool_type, layout="NCW"):
    """The mean over `output_size` parts. Errors: ValueError for the maximum, which no op computes."""
    return _adaptive(1, data, output_size, pool_type, layout)


def adaptive_pool3d(data, output_size, pool_type, layout="NCDHW"):
    """The mean over a grid of `output_size` (d, h, w) parts. Errors: ValueError for the maximum, which no op computes."""
    return _adaptive(3, data, output_size, pool_type, layout)


def layout_transform(tensor, current_layout, desired_layout):
    """topi.layout_transform."""
    from sator.topi import tensors

    return tensors.layout_transform(tensor, current_layout, desired_layout)


def softmax_common(x, axis, use_fast_exp):
    """softmax along an axis."""
    return formula_of("nn.softmax", "nn.softmax")(x, axis)


def scale_shift_nhwc(Input, Scale, Shift):  # noqa: N803
    """Input [n, h, w, c] times Scale [c] plus Shift [c]."""
    return te.compute(Input.shape, lambda n, h, w, c: Input[n, h, w, c] * Scale[c] + Shift[c], name="ScaleShift")


def _of_nchw(data, layout, formula):
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"layout is {layout!r}\n  needs: NCHW or NHWC")
    return formula(data) if layout == "NCHW" else _moved(formula(_moved(data, (0, 3, 1, 2))), (0, 2, 3, 1))


def depth_to_space(data, block_size, layout="NCHW", mode="DCR"):
    """Groups of block_size^2 channels as blocks of elements: c / block_size^2 channels, block_size times as high and wide.

    mode   "DCR": a channel's number is place in the block * channels + channel; "CRD": channel * block_size^2 + place
    """
    if mode not in ("DCR", "CRD"):
        raise ValueError(f"mode is {mode!r}\n  needs: \"DCR\" or \"CRD\"")
    s = int(block_size)

    def formula(x):
        n, c, h, w = x.shape
        channels = c // (s * s)

        def element(b, k, i, j):
            place = i % s * s + j % s
            return x(b, place * channels + k if mode == "DCR" else k * (s * s) + place, i // s, j // s)

        return te.compute((n, channels, h * s, w * s), element, name="depth_to_space")

    return _of_nchw(data, layout, formula)


def space_to_depth(data, block_size, layout="NCHW"):
    """Blocks of elements as channels: depth_to_space undone, by "DCR"."""
    s = int(block_size)

    def formula(x):
        n, c, h, w = x.shape
        return te.compute((n, c * s * s, h // s, w // s), lambda b, k, i, j: x(b, k % c, i * s + k // c // s, j * s + k // c % s),
                          name="space_to_depth")

    return _of_nchw(data, layout, formula)
