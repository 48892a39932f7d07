"""Pooling: the largest values or the means of windows."""
import math

from sator import relax
from sator.error import TVMError
from sator.relax.frontend.torch.arithmetic import in_float32
from sator.relax.frontend.torch.table import as_batch, converter, dtype, per_dimension, rank, shape


def _windows(extent, kernel, stride, padding, dilation):
    """Of ceil_mode: how many windows a dimension has, and how many elements of padding stand behind it. Each window begins inside of the data or before them.

    Source: pooling_output_shape, aten/src/ATen/native/Pool.h.
    Errors: an extent that is no number.
    """
    if not hasattr(extent, "value"):
        raise TVMError(f"error: pooling with ceil_mode=True of a dimension of {extent} elements\n  needs: an extent that is a number\n"
                       "  hint:  ceil_mode=False, or export the model with this size fixed")
    extent, reach = int(extent), dilation * (kernel - 1) + 1
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
            raise TVMError("error: max_pool with return_indices=True\n  needs: return_indices=False\n  hint:  give a converter of one's own")
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
        sizes = [int(e) if s is None else s for s, e in zip(*per_dimension(count, output_size), extents(x))]
        return as_batch(reader, x, count, lambda x: getattr(relax.op.nn, f"adaptive_avg_pool{count}d")(x, sizes))

    @converter(f"adaptive_max_pool{count}d", method=False)
    def largest_at_size(reader, x, output_size, return_indices=False):
        """Errors: sizes that do not divide the extents, for which windows have different sizes."""
        (sizes,) = per_dimension(count, output_size)
        sizes = [int(e) if s is None else s for s, e in zip(sizes, extents(x))]
        if any(not hasattr(e, "value") or int(e) % s for s, e in zip(sizes, extents(x))):
            raise TVMError(f"error: adaptive_max_pool{count}d of {extents(x)} to {sizes}\n  needs: sizes that divide the extents\n"
                           "  hint:  give a converter of one's own")
        return largest(reader, x, [int(e) // s for s, e in zip(sizes, extents(x))], return_indices=return_indices)


def _shares(windows, extents, kernel, strides, pads):
    """[windows...]: the elements of a whole window by those that lie in the data and their padding."""
    import numpy

    shares = numpy.ones((), "float64")
    for (count, _), extent, k, s, p in zip(windows, extents, kernel, strides, pads):
        first = numpy.arange(count) * s - p
        shares = shares[..., None] * (k / (numpy.minimum(first + k, int(extent) + p) - first))
    return shares


_pools(1), _pools(2, "boolean_dispatch"), _pools(3)
