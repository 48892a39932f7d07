"""topi with TVM v0.17's arguments: the signatures, and values against NumPy."""
import inspect
import re
import unittest

import numpy as np

import sator
from sator import te, topi

# Names, order and defaults of python/tvm/topi of TVM v0.17.0: the functions of one row have the same arguments.
SIGNATURES = """
abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor identity isfinite isinf isnan log log10 log2 negative round rsqrt sigmoid
    sign sin sinh sqrt tan tanh trunc(x)
add bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal less less_equal logical_and logical_or
    logical_xor maximum minimum mod multiply not_equal power subtract(lhs, rhs)
all any max min prod sum(data, axis=None, keepdims=False)
arange(start, stop=None, step=1, dtype='float32')
argmax argmin(data, axis=None, keepdims=False, select_last_index=False)
argsort(data, valid_count=None, axis=-1, is_ascend=1, dtype='float32')
bitwise_not logical_not(data)
broadcast_to(data, shape)
cast(x, dtype, span=None)
clip(x, a_min, a_max)
concatenate(a_tuple, axis=0)
cumprod cumsum(data, axis=None, dtype=None, exclusive=None)
einsum(subscripts, *operand)
elemwise_sum(xs)
expand_dims(a, axis, num_newaxis=1)
flip(a, axis=0)
full(shape, dtype, fill_value)
full_like(x, fill_value)
gather(data, axis, indices)
gather_nd(a, indices)
layout_transform(array, src_layout, dst_layout, schedule_rule='None')
left_shift right_shift(lhs, rhs)
matmul(a, b, transp_a=False, transp_b=False)
ndarray_size shape(array, dtype='int32')
one_hot(indices, on_value, off_value, depth, axis, dtype)
repeat(a, repeats, axis)
reshape(a, newshape)
scatter_elements(data, indices, updates, axis=0, reduction='update')
sort(data, axis=-1, is_ascend=1)
split(ary, indices_or_sections, axis=0)
squeeze(a, axis=None)
stack(a, axis)
strided_slice(a, begin, end, strides=None, axes=None, slice_mode='end')
take(a, indices, axis=None, batch_dims=0, mode='clip')
tensordot(a, b, axes)
tile(a, reps)
topk(data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int64')
transpose(a, axes=None)
trilu(data, k, upper)
where(condition, x, y)
"""
NN_SIGNATURES = """
adaptive_pool(data, output_size, pool_type, layout='NCHW')
batch_matmul(tensor_a, tensor_b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True, auto_scheduler_rewritten_layout='',
    meta_schedule_original_shape=None)
batch_norm(data, gamma, beta, moving_mean, moving_var, axis=None, epsilon=None, center=None, scale=None, training=None, momentum=None)
conv1d(data, kernel, strides=1, padding='VALID', dilation=1, groups=1, data_layout='NCW', kernel_layout='', out_dtype=None)
conv1d_ncw(data, kernel, strides=1, padding='VALID', dilation=1, out_dtype=None)
conv2d(input, filter, strides, padding, dilation, data_layout='NCHW', kernel_layout='', out_dtype=None)
conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None)
conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype='float32', auto_scheduler_rewritten_layout='',
    meta_schedule_original_shape=None)
conv2d_transpose_nchw(Input, Filter, strides, padding, out_dtype, output_padding)
conv3d_ncdhw group_conv2d_nchw(Input, Filter, stride, padding, dilation, groups, out_dtype=None)
dense(data, weight, bias=None, out_dtype=None, auto_scheduler_rewritten_layout='', meta_schedule_original_shape=None)
flatten(data)
global_pool(data, pool_type, layout='NCHW')
group_norm(data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-05)
layer_norm(data, gamma, beta, axis, epsilon=1e-05)
leaky_relu(x, alpha)
log_softmax softmax(x, axis=-1)
matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False, auto_scheduler_rewritten_layout='',
    meta_schedule_original_shape=None)
nll_loss(predictions, targets, weights, reduction, ignore_index)
pad(data, pad_before, pad_after=None, pad_value=0.0, name='PadInput', attrs=None)
pool1d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout='NCW', count_include_pad=True)
pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout='NCHW', count_include_pad=True)
pool3d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout='NCDHW', count_include_pad=True)
prelu(x, slope, axis=1)
relu(x)
rms_norm(data, weight, axis, epsilon=1e-05)
scale_shift_nchw(Input, Scale, Shift)
upsampling(data, scale_h, scale_w, layout='NCHW', method='nearest_neighbor', align_corners=False, output_shape=None)
"""


def rows(table):
    for row in re.sub(r"\n    ", " ", table).strip().split("\n"):
        names, _, parameters = row.rstrip(")").partition("(")
        for name in names.split():
            yield name, inspect.signature(eval(f"lambda {parameters}: None"))


class Topi(unittest.TestCase):
    def test_signatures(self):
        for module, table in ((topi, SIGNATURES), (topi.nn, NN_SIGNATURES)):
            for name, wanted in rows(table):
                with self.subTest(name=name):
                    self.assertEqual(str(inspect.signature(getattr(module, name))), str(wanted))

    def value(self, make, *arrays):
        inputs = [te.placeholder(a.shape, str(a.dtype), name=f"x{i}") for i, a in enumerate(arrays)]
        result = make(*inputs)
        result = result[0] if isinstance(result, (list, tuple)) else result
        out = np.zeros([int(d) for d in result.shape], result.dtype)
        sator.build(te.create_prim_func([*inputs, result]), target="llvm")(*arrays, out)
        return out

    def test_values(self):
        x = np.random.default_rng(1).standard_normal((8, 10)).astype("float32")
        b, i = np.arange(8, dtype="float32"), np.array([[0, 7], [3, -9]], "int32")
        lines = [
            (lambda t: topi.sort(t, 1, 0), -np.sort(-x, 1)), (lambda t: topi.sort(t, 0), np.sort(x, 0)),
            (lambda t: topi.topk(t, 3, 1, "values", False), -np.sort(-x, 1)[:, :3]), (lambda t: topi.topk(t, 2, 0, "values", True), np.sort(x, 0)[:2]),
            (lambda t: topi.topk(t, 3, 1, "indices"), np.argsort(-x, 1)[:, :3]), (lambda t: topi.argsort(t, None, 1, 0), np.argsort(-x, 1)),
            (lambda t: topi.strided_slice(t, [0, 1], [8, 10], [1, 1]), x[:, 1:]), (lambda t: topi.strided_slice(t, [1], [-1], [2], axes=[1]), x[:, 1:-1:2]),
            (lambda t: topi.strided_slice(t, [7, 9], [0, 0], [-2, -3]), x[7:0:-2, 9:0:-3]),
            (lambda t: topi.strided_slice(t, [2, 3], [4, -1], slice_mode="size"), x[2:6, 3:]),
            (lambda t: topi.expand_dims(t, 1, 2), x[:, None, None]), (lambda t: topi.expand_dims(t, -1), x[..., None]),
            (lambda t: topi.full((2, 3), "float32", 3.5), np.full((2, 3), 3.5)), (lambda t: topi.full_like(t, 2), np.full_like(x, 2)),
            (lambda t: topi.arange(1, 10, 3, "int32"), np.arange(1, 10, 3)), (lambda t: topi.shape(t), np.array([8, 10])),
            (lambda t: topi.einsum("ij,kj->ik", t, t), x @ x.T), (lambda t: topi.tensordot(t, t, ([0, 1], [0, 1])) + 0 * t, (x * x).sum() + 0 * x),
            (lambda t: topi.tensordot(t, topi.transpose(t), 1), x @ x.T), (lambda t: topi.trilu(t, 1, True), np.triu(x, 1)),
            (lambda t: topi.trunc(t), np.trunc(x)), (lambda t: topi.all(topi.greater(t, -1.0), 1), (x > -1).all(1)), (lambda t: -t, -x),
            (lambda t: topi.any(topi.greater(t, 1.5), axis=0, keepdims=True), (x > 1.5).any(0, keepdims=True)), (topi.identity, x),
            (lambda t: topi.elemwise_sum([t, t, t]), 3 * x), (lambda t: topi.clip(t, -0.5, 0.5), np.clip(x, -0.5, 0.5)),
            (lambda t: topi.nn.pad(t, [1, 1], [0, 2]), np.pad(x, ((1, 0), (1, 2)))), (lambda t: topi.nn.pad(t, (1, 2)), np.pad(x, ((1, 1), (2, 2)))),
            (lambda t: topi.nn.pad(t, [1, 1], [1, 1], 3.0), np.pad(x, 1, constant_values=3)), (lambda t: topi.nn.flatten(topi.reshape(t, (2, 4, 10))), x.reshape(2, 40)),
            (lambda t: topi.nn.leaky_relu(t, 0.1), np.where(x > 0, x, x * np.float32(0.1))),
            (lambda t: topi.nn.batch_matmul(topi.expand_dims(t, 0), topi.expand_dims(t, 0)), (x @ x.T)[None]),
            (lambda t: topi.nn.batch_matmul(topi.reshape(t, (2, 4, 10)), topi.reshape(t, (2, 10, 4)), None, None, False, False),
             x.reshape(2, 4, 10) @ x.reshape(2, 10, 4)),
        ]
        for k, (make, wanted) in enumerate(lines):
            with self.subTest(row=k):
                np.testing.assert_allclose(self.value(make, x), wanted, rtol=1e-4, atol=1e-5)
        pairs = [
            (lambda t, v: topi.nn.bias_add(t, v, 0), b, x + b[:, None]), (lambda t, v: topi.take(t, v), i, x.ravel()[np.clip(i, 0, 79)]),
            (lambda t, v: topi.take(t, v, 0, mode="wrap"), i, x[i % 8]), (lambda t, v: topi.gather(t, 1, v), np.abs(i), np.take_along_axis(x[:2], np.abs(i), 1)),
            (lambda t, v: topi.gather_nd(t, v), np.abs(i) % 8, x[tuple(np.abs(i) % 8)]),
            (lambda t, v: topi.one_hot(v, 2, -1, 8, 0, "float32"), i, np.where(i[None] == np.arange(8)[:, None, None], 2, -1)),
            (lambda t, v: topi.nn.prelu(t, v, 0), b, np.where(x > 0, x, x * b[:, None])),
        ]
        for k, (make, second, wanted) in enumerate(pairs):
            with self.subTest(pair=k):
                y = x[:2] if k == 3 else x
                np.testing.assert_allclose(self.value(make, y, second), wanted, rtol=1e-5)

    def test_images(self):
        rng = np.random.default_rng(2)
        x, w = rng.standard_normal((1, 3, 8, 8)).astype("float32"), rng.standard_normal((4, 3, 3, 3)).astype("float32")

        def conv(stride, before, after):
            windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (before, after), (before, after))), (3, 3), axis=(2, 3))
            return np.einsum("nchwij,ocij->nohw", windows[:, :, ::stride, ::stride], w)

        for k, (make, wanted) in enumerate((
                (lambda a, b: topi.nn.conv2d(a, b, (2, 2), (1, 1), (1, 1), "NCHW"), conv(2, 1, 1)),
                (lambda a, b: topi.nn.conv2d(a, b, 1, "SAME", 1), conv(1, 1, 1)), (lambda a, b: topi.nn.conv2d_nchw(a, b, 1, "VALID", 1), conv(1, 0, 0)),
                (lambda a, b: topi.nn.conv2d_nhwc(topi.layout_transform(a, "NCHW", "NHWC"), topi.transpose(b, [2, 3, 1, 0]), 1, 1, 1),
                 conv(1, 1, 1).transpose(0, 2, 3, 1)),
                (lambda a, b: topi.nn.global_pool(a, "avg"), x.mean((2, 3), keepdims=True)),
                (lambda a, b: topi.nn.global_pool(a, "max"), x.max((2, 3), keepdims=True)))):
            with self.subTest(row=k):
                np.testing.assert_allclose(self.value(make, x, w), wanted, rtol=1e-3, atol=1e-4)
        parts = [rng.random(3).astype("float32") for _ in range(4)]
        gamma, beta, mean, var = (p[:, None, None] for p in parts)
        np.testing.assert_allclose(self.value(topi.nn.batch_norm, x, *parts), (x - mean) / np.sqrt(var + 1e-5) * gamma + beta, rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
