"""topi's formulas that choose elements, and those of convolutions and norms beside them: TVM v0.17's arguments, values against NumPy."""
import inspect
import math
import unittest

import numpy as np

from sator import te, topi
from topi_test import rows, Topi as _Topi

SIGNATURES = """
adv_index(data, indices)
argwhere(output_shape, condition)
invert_permutation(data)
scatter_nd(data, indices, updates, mode)
strided_set(a, v, begin, end, strides=None)
expand_like(a, shape_like, axis)
fast_erf fast_exp fast_tanh(x)
matrix_set_diag(data, diagonal, k=0, align='RIGHT_LEFT')
reverse_sequence(a, seq_lengths, seq_axis=1, batch_axis=0)
searchsorted(sorted_sequence, values, right=False, out_dtype='int64')
sequence_mask(data, valid_length, mask_value=0, axis=0)
sliding_window(data, axis, window_shape, strides)
unravel_index(indices, shape)
"""
NN_SIGNATURES = """
batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list)
space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value=0.0)
conv1d_nwc(data, kernel, strides=1, padding='VALID', dilation=1, out_dtype=None)
conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding)
depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None)
dilate(data, strides, dilation_value=0.0, name='DilatedInput')
instance_norm(data, gamma, beta, axis, epsilon=1e-05)
lrn(data, size, axis=1, alpha=0.0001, beta=0.75, bias=2)
mirror_pad(data, pad_before, pad_after=None, mode='SYMMETRIC', name='MirrorPadInput')
space_to_depth(data, block_size, layout='NCHW')
"""


def value(make, *arrays):
    return _Topi().value(make, *map(np.ascontiguousarray, arrays))


def random(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype("float32")


class Indexing(unittest.TestCase):
    def check(self, got, wanted, **tolerance):
        self.assertEqual(got.shape, np.shape(wanted))
        np.testing.assert_allclose(got, wanted, **(tolerance or {"rtol": 0}))

    def test_signatures(self):
        for module, table in ((topi, SIGNATURES), (topi.nn, NN_SIGNATURES)):
            for name, wanted in rows(table):
                self.assertEqual(str(inspect.signature(getattr(module, name))), str(wanted), name)

    def test_coordinates(self):
        at, shape = np.array([22, 41, 37], "int32"), np.array([7, 6], "int32")
        self.check(value(topi.unravel_index, at, shape), np.unravel_index(at, shape))
        at, shape = np.arange(60, dtype="int64"), np.array([3, 4, 5], "int64")
        self.check(value(topi.unravel_index, at, shape), np.unravel_index(at, shape))

    def test_expanded(self):
        a, like = random(3), random(3, 3, 2)
        self.check(value(lambda x, y: topi.expand_like(x, y, [1, 2]), a, like), np.broadcast_to(a[:, None, None], (3, 3, 2)))
        self.check(value(lambda x, y: topi.expand_like(x, y, [0, -1]), a, like), np.broadcast_to(a[None, :, None], (3, 3, 2)))
        self.check(value(lambda x, y: topi.expand_like(x, y, [0, 1, 2]), a[:1], like), np.full((3, 3, 2), a[0]))
        with self.assertRaisesRegex(ValueError, "rank 1 and the axes .1. for a shape of rank 3"):
            value(lambda x, y: topi.expand_like(x, y, [1]), a, like)

    def test_diagonals(self):
        for (m, n), low, high in ((3, 4), 0, 0), ((3, 4), 1, 1), ((4, 3), -2, -2), ((3, 4), -1, 2), ((5, 3), -3, 1):
            data = random(2, m, n)
            lengths = {d: min(m + min(d, 0), n - max(d, 0)) for d in range(low, high + 1)}
            longest = max(lengths.values())
            for align in "RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT":
                given = random(2, high - low + 1, longest) if low != high else random(2, longest)
                wanted = data.copy()
                for d, length in lengths.items():
                    rows_ = given if low == high else given[:, high - d]
                    is_right = align.split("_")[d < 0] == "RIGHT"
                    for t in range(length):
                        wanted[:, t - min(d, 0), t + max(d, 0)] = rows_[:, t + (longest - length if is_right else 0)]
                k = low if low == high else (low, high)
                self.check(value(lambda x, y: topi.matrix_set_diag(x, y, k, align), data, given), wanted)
        with self.assertRaisesRegex(ValueError, "MIDDLE"):
            value(lambda x, y: topi.matrix_set_diag(x, y, 0, "MIDDLE"), random(3, 3), random(3))

    def test_paddings(self):
        from sator.topi.nn.utils import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic

        self.assertEqual([get_pad_tuple(p, (3, 4)) for p in (1, (1, 2), (1, 2, 3, 4), "SAME", "VALID")],
                         [(1, 1, 1, 1), (1, 2, 1, 2), (1, 2, 3, 4), (1, 2, 1, 1), (0, 0, 0, 0)])
        self.assertEqual((get_pad_tuple1d((1, 0), (3,)), get_pad_tuple1d("SAME", (4,)), get_pad_tuple3d("SAME", (3, 3, 2))), ((1, 0), (2, 1), (1, 1, 1, 1, 1, 0)))
        self.assertEqual(get_pad_tuple_generic((1, 2), (3, 3)), ([1, 2], [1, 2]))
        for padding in "FULL", (1, 2, 3), 1.5:
            with self.assertRaisesRegex(ValueError, "padding is .*\n  needs: an integer, 2 or 4"):
                get_pad_tuple(padding, (3, 3))

    def test_sequences(self):
        x, lengths = random(5, 3, 2), np.array([0, 5, 2], "int32")
        past = np.arange(5)[:, None] >= lengths
        self.check(value(topi.sequence_mask, x, lengths), np.where(past[..., None], 0, x))
        self.check(value(lambda a, n: topi.sequence_mask(a, n, -1.5, 1), x.swapaxes(0, 1), lengths), np.where(past.T[..., None], np.float32(-1.5), x.swapaxes(0, 1)))
        reversed_ = x.swapaxes(0, 1).copy()
        for k, n in enumerate(lengths):
            reversed_[k, :n] = reversed_[k, :n][::-1]
        self.check(value(topi.reverse_sequence, x.swapaxes(0, 1), lengths), reversed_)
        self.check(value(lambda a, n: topi.reverse_sequence(a, n, 0, 1), x, lengths), reversed_.swapaxes(0, 1))

    def test_positions(self):
        rows_, values = np.sort(random(3, 7), 1), random(3, 4)
        values[:, 0] = rows_[:, 2]  # where left and right differ
        for right in (False, True):
            side = "right" if right else "left"
            self.check(value(lambda s, v: topi.searchsorted(s, v, right), rows_, values), np.stack([np.searchsorted(r, v, side) for r, v in zip(rows_, values)]))
            self.check(value(lambda s, v: topi.searchsorted(s, v, right, "int32"), rows_[0], values), np.searchsorted(rows_[0], values, side))
        x = random(4, 5, 6)
        i, j = np.array([[3], [0]], "int32"), np.array([1, 4, 2], "int32")
        self.check(value(lambda a, m, n: topi.adv_index(a, [m, n]), x, i, j), x[i, j])
        self.check(value(lambda a, n: topi.adv_index(a, [n]), x, j % 4), x[j % 4])

    def test_argwhere(self):
        x = (random(4, 5) > 0.3) * random(4, 5)
        found = np.argwhere(x)
        more = np.zeros((20, 2), "int32")
        more[:len(found)] = found
        self.check(value(lambda c: topi.argwhere((20, 2), c), x), more)
        self.check(value(lambda c: topi.argwhere((3, 2), c), x), found[:3])
        self.check(value(lambda c: topi.argwhere((2, 1), c), np.array([0, 3, 0, 1], "int32")), [[1], [3]])
        with self.assertRaisesRegex(ValueError, r"needs: \(3, 2\)"):
            topi.argwhere((3, 1), te.placeholder((4, 5)))

    def test_windows(self):
        x = random(2, 9, 8)
        wanted = np.lib.stride_tricks.sliding_window_view(x, (3, 2), (1, 2))[:, ::2, ::3]
        self.check(value(lambda a: topi.sliding_window(a, 1, [3, 2], [2, 3]), x), wanted)

    def test_functions(self):
        x = random(11)
        for name, exact in (("exp", np.exp), ("tanh", np.tanh), ("erf", np.vectorize(math.erf))):
            self.check(value(getattr(topi, "fast_" + name), x), exact(x), rtol=2e-6, atol=1e-7)

    def test_padding_and_dilation(self):
        x = random(4, 5)
        wanted = np.full((7, 13), -2, "float32")
        wanted[::2, ::3] = x
        self.check(value(lambda a: topi.nn.dilate(a, [2, 3], -2.0), x), wanted)
        self.check(value(lambda a: topi.nn.dilate(a, [1, 1]), x), x)
        for mode in ("SYMMETRIC", "REFLECT"):
            self.check(value(lambda a: topi.nn.mirror_pad(a, [2, 0], [1, 3], mode), x), np.pad(x, ((2, 1), (0, 3)), mode.lower()))
        self.check(value(lambda a: topi.nn.mirror_pad(a, [1, 2]), x), np.pad(x, ((1, 1), (2, 2)), "symmetric"))

    def test_convolutions(self):
        x, w = random(2, 3, 9), random(4, 3, 3)
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1))), 3, 2)[:, :, ::2]
        wanted = np.einsum("ncwk,ock->now", windows, w)
        self.check(value(lambda a, b: topi.nn.conv1d_nwc(a, b, 2, 1), x.transpose(0, 2, 1), w.transpose(2, 1, 0)), wanted.transpose(0, 2, 1), rtol=1e-4, atol=1e-5)

        image, kernels = random(1, 3, 6, 7), random(3, 2, 3, 3)
        windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
        wanted = np.einsum("nchwij,cmij->ncmhw", windows, kernels).reshape(1, 6, 4, 5)
        self.check(value(lambda a, b: topi.nn.depthwise_conv2d_nchw(a, b, 1, 0, 1), image, kernels), wanted, rtol=1e-4, atol=1e-5)

        kernel, wanted = random(3, 4, 3), np.zeros((2, 4, 2 * 8 + 3 + 1), "float32")
        for at in range(9):
            wanted[:, :, 2 * at:2 * at + 3] += np.einsum("nc,cok->nok", x[:, :, at], kernel)
        self.check(value(lambda a, b: topi.nn.conv1d_transpose_ncw(a, b, 2, 1, "float32", 1), x, kernel), wanted[:, :, 1:-1], rtol=1e-4, atol=1e-5)

    def test_norms(self):
        x, gamma, beta = random(2, 5, 3, 4), random(3, 4), random(3, 4) + 1
        mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
        self.check(value(lambda a, g, b: topi.nn.instance_norm(a, g, b, [2, 3]), x, gamma, beta), (x - mean) / np.sqrt(var + 1e-5) * gamma + beta, rtol=1e-3, atol=1e-5)
        for axis in (1, 3):
            moved = np.moveaxis(x, axis, -1)
            sums = sum(np.pad(moved ** 2, [(0, 0)] * 3 + [(1, 1)])[..., k:k + moved.shape[-1]] for k in range(3))
            wanted = np.moveaxis(moved / (1.5 + 0.3 / 3 * sums) ** 0.75, -1, axis)
            self.check(value(lambda a: topi.nn.lrn(a, 3, axis, 0.3, 0.75, 1.5), x), wanted, rtol=1e-5)

    def test_scatter_nd(self):
        """Positions stand along the first dimension; two updates of one element are both added."""
        data, updates = random(4, 5, 3), random(2, 3, 3)
        indices = np.array([[[0, 1, 2], [3, 0, 0]], [[4, 0, 1], [2, 4, 4]]], "int32")
        wanted = data.copy()
        np.add.at(wanted, (indices[0], indices[1]), updates)
        self.check(value(lambda a, i, u: topi.scatter_nd(a, i, u, "add"), data, indices, updates), wanted, rtol=1e-6)
        wanted = data.copy()
        wanted[indices[0, 0], indices[1, 0]] = updates[0]
        self.check(value(lambda a, i, u: topi.scatter_nd(a, i, u, "update"), data, indices[:, 0], updates[0]), wanted)

    def test_invert_permutation(self):
        self.check(value(topi.invert_permutation, np.array([3, 4, 0, 2, 1], "int64")), np.array([2, 4, 3, 0, 1], "int64"))

    def test_strided_set(self):
        """As NumPy sets slices: from lists or from tensors, backwards, from the end, in some dimensions only."""
        a = random(7, 9)
        for begin, end, step in (([1, 2], [6, 9], [2, 3]), ([5, 8], [1, 0], [-2, -3]), ([-6, 1], [-1, 5], [1, 2]), ([2], [5], [1]), ([0, 3], [9, 20], [3, 2])):
            place = tuple(slice(b, e, s) for b, e, s in zip(begin, end, step))
            v, wanted = random(*a[place].shape) + 10, a.copy()
            wanted[place] = v
            self.check(value(lambda x, y: topi.strided_set(x, y, begin, end, step), a, v), wanted)
            given = [np.array(n, "int32") for n in (begin, end, step)]
            self.check(value(lambda x, y, b, e, s: topi.strided_set(x, y, b, e, s), a, v, *given), wanted)
        v, wanted = random(2, 3), a.copy()
        wanted[1:3, 4:7] = v
        self.check(value(lambda x, y: topi.strided_set(x, y, [1, 4], [3, 7]), a, v), wanted)

    def test_blocks_in_the_batch(self):
        """Image (n, y, x) of the blocks has what stands at (y, x) of each block of the padded image; and back."""
        x = random(2, 3, 6, 4)
        padded = np.pad(x, ((0, 0), (1, 0), (0, 3), (0, 0)), constant_values=5)
        wanted = padded.reshape(2, 2, 2, 3, 3, 4).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 3, 4)
        made = value(lambda a: topi.nn.space_to_batch_nd(a, [2, 3], [1, 0], [0, 3], 5.0), x)
        self.check(made, wanted)
        self.check(value(lambda a: topi.nn.batch_to_space_nd(a, [2, 3], [1, 0], [0, 3]), wanted), x)
        with self.assertRaisesRegex(ValueError, "an extent|a padded extent of 7 in blocks of 2"):
            topi.nn.space_to_batch_nd(te.placeholder((1, 7)), [2], [0], [0])

    def test_space_to_depth(self):
        x = random(2, 3, 4, 6)
        wanted = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
        self.check(value(lambda a: topi.nn.space_to_depth(a, 2), x), wanted)
        self.check(value(lambda a: topi.nn.space_to_depth(a, 2, "NHWC"), x.transpose(0, 2, 3, 1)), wanted.transpose(0, 2, 3, 1))


if __name__ == "__main__":
    unittest.main()
