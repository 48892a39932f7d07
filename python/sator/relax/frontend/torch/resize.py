"""Images at other sizes."""
import math

from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import in_float32
from sator.relax.frontend.torch.table import FUNCTIONS, apply, const_like, converter, dtype, is_known, known, per_dimension, rank, shape

_METHODS = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}  # of resize2d
_DIMENSIONS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


@converter("interpolate", method=False)
@in_float32
def interpolate(reader, x, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False):
    """An image [n, c, ...] of one to three dimensions at another size. Errors: a mode that torch has not for such images, antialias."""
    count = rank(x) - 2
    if antialias or mode not in ("nearest", "nearest-exact", "area") and _DIMENSIONS.get(mode) != count:
        raise TVMError(f"error: interpolate of rank {rank(x)} by {mode!r}, antialias={antialias}\n"
                       "  needs: nearest, nearest-exact, area, linear (rank 3), bilinear or bicubic (4), trilinear (5), no antialias\n"
                       "  hint:  give a converter of one's own")
    extents = shape(x)[2:]
    factors = per_dimension(count, scale_factor)[0] if size is None else [None] * count
    sizes = per_dimension(count, size)[0] if size is not None else [_scaled(e, f) for e, f in zip(extents, factors)]
    if mode == "area":
        return FUNCTIONS[f"adaptive_avg_pool{count}d"](reader, x, sizes)
    is_exact = all(f is None or f == int(f) or is_known(e) and f * e == s for f, e, s in zip(factors, extents, sizes))
    if count == 2 and is_exact and mode in _METHODS:
        transform = "asymmetric" if mode == "nearest" else "align_corners" if align_corners else "half_pixel"
        return relax.op.image.resize2d(x, sizes, layout="NCHW", method=_METHODS[mode], coordinate_transformation_mode=transform,
                                       rounding_method="floor" if mode == "nearest" else "", cubic_alpha=-0.75)
    for axis, (extent, to, factor) in enumerate(zip(extents, sizes, factors)):
        extent, to = known(extent, f"interpolate by {mode!r}"), known(to, f"interpolate by {mode!r}")
        step = extent / to if factor is None or recompute_scale_factor else 1 / factor
        x = _resampled(reader, x, 2 + axis, _taps(extent, to, step, mode, align_corners))
    return x


def _scaled(extent, factor):
    """The size by a factor, rounded down. Errors: an extent without a number times a fraction."""
    if factor == int(factor):
        return extent * int(factor)
    return math.floor(known(extent, f"interpolate by {factor}") * factor)


def _taps(extent, size, step, mode, align_corners):
    """[(positions, weights), ...] of each element of the result. Source: aten/src/ATen/native/UpSample.h."""
    import numpy

    at, step = numpy.arange(size, dtype="float32"), numpy.float32(step)
    if mode.startswith("nearest"):
        return [(numpy.minimum(numpy.floor((at + numpy.float32(0.5 if mode == "nearest-exact" else 0)) * step), extent - 1), None)]
    if align_corners:
        source = at * numpy.float32((extent - 1) / (size - 1) if size > 1 else 0)
    else:
        source = (at + numpy.float32(0.5)) * step - numpy.float32(0.5)
        source = source if mode == "bicubic" else numpy.maximum(source, 0)
    first = numpy.floor(source)
    rest = source - first
    weights = [1 - rest, rest] if mode != "bicubic" else [_cubic(rest + 1), _cubic(rest), _cubic(1 - rest), _cubic(2 - rest)]
    begin = -1 if mode == "bicubic" else 0
    return [(numpy.clip(first + begin + k, 0, extent - 1), weight) for k, weight in enumerate(weights)]


def _cubic(x, a=-0.75):
    """The kernel of cubic convolution at x of 0 to 2. Source: Keys, "Cubic convolution interpolation for digital image processing", 1981."""
    import numpy

    return numpy.where(x <= 1, ((a + 2) * x - (a + 3)) * x * x + 1, ((a * x - 5 * a) * x + 8 * a) * x - 4 * a)


def _resampled(reader, x, axis, taps):
    import numpy

    total = None
    for positions, weights in taps:
        part = apply(reader, "take", x, relax.const(numpy.asarray(positions, "int64")), axis=axis)
        if weights is not None:
            part = apply(reader, "multiply", part, const_like(weights.reshape([-1] + [1] * (rank(x) - axis - 1)).astype(dtype(x)), x))
        total = part if total is None else apply(reader, "add", total, part)
    return total
