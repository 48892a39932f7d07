"""Formulas of neural networks' ops."""
from sator import te
from sator.topi.formulas import formula_of, matmul as _matmul


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False, **_options):
    """As topi.matmul, and a bias added to each row."""
    from sator import topi

    product = _matmul(tensor_a, tensor_b, transpose_a, transpose_b, out_dtype)
    return product if bias is None else topi.add(product, bias)


def dense(data, weight, bias=None, out_dtype=None, **_options):
    """data @ weight.T: weight is [out, in]."""
    return matmul(data, weight, bias, out_dtype, False, True)


def pool2d(data, kernel, stride, dilation, padding, pool_type="max", ceil_mode=False, layout="NCHW", count_include_pad=True):
    """The maximum ("max") or the mean ("avg") over windows of two dimensions.

    data               [n, c, h, w], or as `layout` says
    kernel             (h, w) of a window
    stride, dilation   (h, w), in elements
    padding            (top, left, bottom, right), in elements
    count_include_pad  whether padded elements count in a mean
    """
    return formula_of(f"nn.{pool_type}_pool2d", f"nn.{pool_type}_pool2d")(
        data, pool_size=list(kernel), strides=list(stride), padding=list(padding), dilation=list(dilation), ceil_mode=ceil_mode,
        count_include_pad=count_include_pad, layout=layout)


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


def adaptive_pool(data, output_size, pool_type="avg", layout="NCHW"):
    """The mean over a grid of `output_size` (h, w) parts. Errors: ValueError for the maximum, which no op computes."""
    if pool_type != "avg":
        raise ValueError(f"adaptive_pool of type {pool_type}\n  needs: pool_type \"avg\"")
    return formula_of("nn.adaptive_pool", "nn.adaptive_avg_pool2d")(data, output_size=list(output_size), layout=layout)


def __getattr__(name):
    return formula_of("nn." + name, "nn." + name)
