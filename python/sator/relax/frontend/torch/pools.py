"""Pooling: the largest values or the means of windows."""
import math

from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import in_float32
from sator.relax.frontend.torch.table import apply, as_batch, converter, dtype, known, per_dimension, rank, shape


_WITHOUT_PLACES = "error: pooling with return_indices=True\n  needs: return_indices=False\n  hint:  give a converter of one's own"


def _windows(extent, kernel, stride, padding, dilation):
    """Of ceil_mode: how many windows a dimension has, and how many elements of padding stand behind it. Each window begins inside of the data or before them.

    Source: pooling_output_shape, aten/src/ATen/native/Pool.h.
    Errors: an extent that is no number.
    """
    extent, reach = known(extent, "pooling with ceil_mode=True"), dilation * (kernel - 1) + 1
    count = -((extent + 2 * padding - reach) // -stride) + 1
    if (count - 1) * stride >= extent + padding:
        count -= 1
    return count, max(0, (count - 1) * stride + reach - extent - padding)


def _pools(count, *names):
    """Pooling over `count` dimensions: the largest, the mean, and both at a size that is given."""
    def extents(x):
        return shape(x)[-count:]

    @converter(f"max_pool{count}d", *names, method=False)
    def largest(reader, x, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
        if return_indices:
            raise TVMError(_WITHOUT_PLACES)
        kernel, strides, pads, dilation = per_dimension(count, kernel_size, stride or kernel_size, padding, dilation)
        after = [_windows(*of)[1] for of in zip(extents(x), kernel, strides, pads, dilation)] if ceil_mode else pads
        return as_batch(reader, x, count, lambda x: getattr(relax.op.nn, f"max_pool{count}d")(
            x, pool_size=kernel, strides=strides, padding=pads + after, dilation=dilation))

    @converter(f"avg_pool{count}d", method=False)
    @in_float32
    def mean(reader, x, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        """A window that reaches beyond the data and their padding is divided by what of it lies there."""
        kernel, strides, pads = per_dimension(count, kernel_size, stride or kernel_size, padding)
        windows = [_windows(*of, 1) for of in zip(extents(x), kernel, strides, pads)] if ceil_mode else None
        after = [w[1] for w in windows] if ceil_mode else pads
        counts_padding = count_include_pad or divisor_override is not None
        out = as_batch(reader, x, count, lambda x: getattr(relax.op.nn, f"avg_pool{count}d")(
            x, pool_size=kernel, strides=strides, padding=pads + after, count_include_pad=counts_padding))
        if divisor_override is not None:
            return relax.op.multiply(reader.emit(out), relax.const(math.prod(kernel) / divisor_override, dtype(x)))
        if not ceil_mode or not count_include_pad or all(a <= p for a, p in zip(after, pads)):
            return out
        return relax.op.multiply(reader.emit(out), relax.const(_shares(windows, extents(x), kernel, strides, pads), dtype(x)))

    @converter(f"adaptive_avg_pool{count}d", method=False)
    @in_float32
    def mean_at_size(reader, x, output_size):
        sizes = [e if s is None else s for s, e in zip(*per_dimension(count, output_size), extents(x))]
        return as_batch(reader, x, count, lambda x: getattr(relax.op.nn, f"adaptive_avg_pool{count}d")(x, sizes))

    @converter(f"adaptive_max_pool{count}d", method=False)
    def largest_at_size(reader, x, output_size, return_indices=False):
        """Windows from floor(i e / s) to ceil((i + 1) e / s), which overlap where s does not divide e. Source: adaptive_max_pool2d, aten/src/ATen/native."""
        if return_indices:
            raise TVMError(_WITHOUT_PLACES)
        for axis, size, extent in zip(range(-count, 0), *per_dimension(count, output_size), extents(x)):
            if size is None:
                continue
            extent = known(extent, f"adaptive_max_pool{count}d")
            firsts, ends = [i * extent // size for i in range(size)], [-((i + 1) * extent // -size) for i in range(size)]
            longest = max(e - f for f, e in zip(firsts, ends))
            places = [min(f + k, e - 1) for f, e in zip(firsts, ends) for k in range(longest)]
            lead, behind = shape(x)[:axis], shape(x)[axis:][1:]
            x = apply(reader, "take", x, relax.const(places, "int64"), axis=len(lead))
            x = apply(reader, "max", apply(reader, "reshape", x, [*lead, size, longest, *behind]), len(lead) + 1)
        return x


def _shares(windows, extents, kernel, strides, pads):
    """[windows...]: the elements of a whole window by those that lie in the data and their padding."""
    import numpy

    shares = numpy.ones((), "float64")
    for (count, _), extent, k, s, p in zip(windows, extents, kernel, strides, pads):
        first = numpy.arange(count) * s - p
        shares = shares[..., None] * (k / (numpy.minimum(first + k, extent + p) - first))
    return shares


_pools(1), _pools(2, "boolean_dispatch"), _pools(3)
