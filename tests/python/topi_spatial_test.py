"""Formulas of sator.topi.spatial, image and sequences, against NumPy."""
import unittest

import numpy as np

import sator
from sator import te, tir, topi


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def run(formula, *arrays):
    """What a formula gives of arrays."""
    given = [te.placeholder(a.shape, str(a.dtype), name=f"p{i}") for i, a in enumerate(arrays)]
    out = formula(*given)
    result = np.zeros([int(getattr(e, "value", e)) for e in out.shape], out.dtype)
    sator.build(te.create_prim_func([*given, out]))(*(np.ascontiguousarray(a) for a in arrays), result)
    return result


def conv(x, k, stride, padding, dilation, groups):
    """The convolution of [n, c, h, w] with [o, c / groups, h, w], by its definition."""
    (n, _, h, w), (o, ci, kh, kw) = x.shape, k.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    spans = [(e + 2 * padding - dilation * (ke - 1) - 1) // stride + 1 for e, ke in ((h, kh), (w, kw))]
    out = np.zeros((n, o, *spans))
    for c in range(o):
        group = c // (o // groups)
        for i, j in np.ndindex(*spans):
            part = x[:, group * ci:(group + 1) * ci, i * stride:i * stride + dilation * (kh - 1) + 1:dilation,
                     j * stride:j * stride + dilation * (kw - 1) + 1:dilation]
            out[:, c, i, j] = (part * k[c]).sum((1, 2, 3))
    return out


def conv1d_transposed(x, k, stride, padding, more):
    """The transposed convolution of [n, c, w] with [c, o, w], by its definition."""
    n, _, w = x.shape
    out = np.zeros((n, k.shape[1], (w - 1) * stride + k.shape[2] + more))
    for i in range(w):
        out[:, :, i * stride:i * stride + k.shape[2]] += np.einsum("nc,cok->nok", x[:, :, i], k)
    return out[:, :, padding:out.shape[2] - padding]


class Formulas(unittest.TestCase):
    def check(self, expected, formula, *arrays):
        np.testing.assert_allclose(run(formula, *arrays), expected, rtol=1e-4, atol=1e-5, strict=False)

    def test_convolutions_in_other_layouts(self):
        x, nn = floats(2, 4, 7, 6), topi.nn
        nhwc, k = x.transpose(0, 2, 3, 1), floats(4, 2, 3, 3)
        whole = k.reshape(8, 1, 3, 3)
        self.check(conv(x, whole, 2, 1, 1, 4), lambda a, b: nn.depthwise_conv2d_nchw(a, b, 2, 1, 1), x, k)
        self.check(conv(x, whole, 1, 1, 2, 4).transpose(0, 2, 3, 1), lambda a, b: nn.depthwise_conv2d_nhwc(a, b, 1, 1, 2), nhwc, k.transpose(2, 3, 0, 1))
        k = floats(6, 2, 3, 3)
        self.check(conv(x, k, 1, 1, 1, 2).transpose(0, 2, 3, 1), lambda a, b: nn.group_conv2d_nhwc(a, b, 1, 1, 1, 2), nhwc, k.transpose(2, 3, 1, 0))
        k = floats(5, 4, 3, 3)
        self.check(conv(x, k, 1, 1, 1, 1).transpose(2, 3, 1, 0), lambda a, b: nn.conv2d_hwcn(a, b, 1, 1, 1), x.transpose(2, 3, 1, 0), k.transpose(2, 3, 1, 0))
        self.check(conv(x, k, 1, 0, 1, 1)[:, None].transpose(0, 1, 3, 4, 2), lambda a, b: nn.conv3d_ndhwc(a, b, 1, 0, 1, 1),
                   x[:, None].transpose(0, 1, 3, 4, 2), k[:, :, None].transpose(2, 3, 4, 1, 0))
        line, k = floats(2, 4, 9), floats(6, 4, 3)
        self.check(conv(line[:, :, None], k[:, :, None], 1, 0, 1, 1)[:, :, 0].transpose(0, 2, 1), lambda a, b: nn.conv1d_nwc(a, b),
                   line.transpose(0, 2, 1), k.transpose(2, 1, 0))
        k, padded = floats(6, 2, 3), np.pad(line, ((0, 0), (0, 0), (1, 1)))
        self.check(conv(padded[:, :, None], k[:, :, None], 1, 0, 1, 2)[:, :, 0, ::2], lambda a, b: nn.group_conv1d_ncw(a, b, 2, 1, 1, 2), line, k)

    def test_transposed_convolutions(self):
        x, k = floats(2, 4, 9), floats(4, 3, 3)
        self.check(conv1d_transposed(x, k, 2, 1, 1), lambda a, b: topi.nn.conv1d_transpose_ncw(a, b, 2, 1, "float32", 1), x, k)
        k = floats(4, 1, 1, 3)
        groups = [conv1d_transposed(x[:, g:g + 2], k[g:g + 2, :, 0], 2, 0, 0) for g in (0, 2)]
        self.check(np.concatenate(groups, 1)[:, :, None], lambda a, b: topi.nn.group_conv2d_transpose_nchw(a, b, (1, 2), 0, "float32", 0, 2),
                   x[:, :, None], k)

    def test_pools_and_norms(self):
        x, volume, line, nn = floats(2, 4, 7, 6), floats(2, 3, 4, 6, 8), floats(2, 4, 9), topi.nn
        self.check(volume.reshape(2, 3, 2, 2, 3, 2, 4, 2).mean((3, 5, 7)), lambda a: nn.adaptive_pool3d(a, (2, 3, 4), "avg"), volume)
        self.check(line.reshape(2, 4, 3, 3).mean(3), lambda a: nn.adaptive_pool1d(a, 3, "avg"), line)
        gamma, beta = floats(4), floats(4) * 2
        normed = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
        scale, shift = floats(7, 6), floats(7, 6) * 2  # of the axes that are normalised, as in TVM
        self.check(normed * scale + shift, lambda a, g, b: nn.instance_norm(a, g, b, [2, 3]), x, scale, shift)
        self.check(x.transpose(0, 2, 3, 1) * gamma + beta, lambda a, g, b: nn.scale_shift_nhwc(a, g, b), x.transpose(0, 2, 3, 1), gamma, beta)
        e = np.exp(x)
        self.check(e / e.sum(1, keepdims=True), lambda a: nn.softmax_common(a, 1, True), x)

    def test_space_and_depth(self):
        y, nn = floats(2, 12, 3, 5), topi.nn
        by_place = y.reshape(2, 2, 2, 3, 3, 5).transpose(0, 3, 4, 1, 5, 2).reshape(2, 3, 6, 10)
        self.check(by_place, lambda a: nn.depth_to_space(a, 2), y)
        self.check(by_place.transpose(0, 2, 3, 1), lambda a: nn.depth_to_space(a, 2, "NHWC"), y.transpose(0, 2, 3, 1))
        self.check(y.reshape(2, 3, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 10), lambda a: nn.depth_to_space(a, 2, mode="CRD"), y)
        self.check(y, lambda a: nn.space_to_depth(a, 2), by_place)

    def test_sizes_of_images(self):
        x, nn = floats(2, 4, 7, 6), topi.nn
        self.check(x.repeat(2, 2).repeat(2, 3), lambda a: topi.image.resize2d(a, None, (14, 12), method="nearest_neighbor",
                                                                              coordinate_transformation_mode="asymmetric"), x)
        self.check(x.transpose(0, 2, 3, 1), lambda a: nn.layout_transform(a, "NCHW", "NHWC"), x)

    def test_sequences(self):
        x, lengths = floats(2, 4, 7, 6), np.array([3, 0], "int32")
        inside = np.arange(4)[None, :, None, None] < lengths[:, None, None, None]
        self.check(np.where(inside, x, -1), lambda a, n: topi.sequence_mask(a, n, -1, 1), x, lengths)
        self.check(np.where(inside, x, 0).transpose(1, 0, 2, 3), lambda a, n: topi.sequence_mask(a, n), x.transpose(1, 0, 2, 3), lengths)

    def test_parts_of_tensors(self):
        m = floats(2, 4, 5)
        self.check(m[0][1::2, 1:4], lambda a, b, e, s: topi.dynamic_strided_slice(a, b, e, s, (2, 3)), m[0], *np.array([[1, -4], [4, 5], [2, 1]]))
        self.check(m.sum((0, 2))[:, None], lambda a: topi.collapse_sum(a, (4, 1)), m)

    def test_elements(self):
        x, n = floats(2, 4), np.array([1, 2, 3, 8, 9], "int32")
        self.check(np.exp(x), topi.fast_exp, x)
        np.testing.assert_array_equal(run(lambda a: topi.reinterpret(a, "int32"), x), x.view("int32"))
        self.check(np.ceil(np.log2(n)), lambda a: te.compute(a.shape, lambda i: topi.ceil_log2(a[i])), n)

    def test_what_formulas_share(self):
        n, u = tir.Var("n", "int32"), topi.utils
        self.assertEqual([str(u.prod([2, n, 3])), u.prod([]).value, u.get_const_float(tir.const(2.5)), u.ceil_div(7, 2)], ["2 * n * 3", 1, 2.5, 4])
        self.assertEqual([u.equal_const_int(n - n, 0), u.is_empty_shape([n, 0]), u.is_dynamic_shape([1, n]), u.is_dynamic_shape([1, 2])],
                         [True, True, True, False])
        self.assertEqual([u.get_max_power2_factor(48, 8), u.swap([0, 1, 2, 3], 1), u.get_shape((1, 3, 8, 9), "NCHW", "NHWC")],
                         [8, [0, 3, 2, 1], (1, 8, 9, 3)])
        with self.assertRaisesRegex(ValueError, "needs: two orders"):
            u.get_shape((1, 3), "NC", "NH")


if __name__ == "__main__":
    unittest.main()
