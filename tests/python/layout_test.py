"""Layouts by letters: positions, shapes, and that the way between two is one to one."""
import itertools
import unittest

import numpy as np

from sator import tir


class Letters(unittest.TestCase):
    def test_axes(self):
        layout = tir.layout("NCHW16c")
        self.assertEqual([layout.index_of(a) for a in "NCHWcO"], [0, 1, 2, 3, 4, -1])
        self.assertEqual([layout.factor_of(a) for a in "cCN"], [16, 16, -1])
        self.assertEqual((len(layout), layout[0], layout[-1], "c" in layout, "O" in layout), (5, "N", "c", True, False))
        self.assertEqual([a.var.dtype for a in tir.layout("NC", dtype="int64").axes], ["int64", "int64"])

    def test_what_has_not_the_same_axes(self):
        for pair in (("NCHW", "ABCD"), ("__undef__", "NCHW"), ("", ""), ("NCHW", "")):
            self.assertIsNone(tir.bijective_layout(*pair))

    def test_wrong_layouts(self):
        for words, kind, wrong in (
            ("the layout NC16\n  needs: letters, and a number before each small one", ValueError, lambda: tir.layout("NC16")),
            ("the layout NHW16c: 16c\n  needs: a positive number", ValueError, lambda: tir.layout("NHW16c")),
            ("the layout NCC: C\n  needs: each capital once", ValueError, lambda: tir.layout("NCC")),
            ("layout: dtype = 'float32'\n  needs: a dtype of integers", TypeError, lambda: tir.layout("NC", "float32")),
            ("layout: 3 is a int", TypeError, lambda: tir.layout(3)),
            ("an index of 1 for the layout NC\n  needs: 2", ValueError, lambda: tir.bijective_layout("NC", "CN").forward_index([1])),
            ("axis 3 of the layout NC", IndexError, lambda: tir.layout("NC")[3]),
        ):
            with self.subTest(words), self.assertRaises(kind) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))


class Ways(unittest.TestCase):
    def test_groups_of_channels(self):
        """The way is a reshape and a transposition, which NumPy makes."""
        x = np.arange(1 * 32 * 3 * 2).reshape(1, 32, 3, 2)
        packed = x.reshape(1, 2, 16, 3, 2).transpose(0, 1, 3, 4, 2)
        way = tir.bijective_layout("NCHW", "NCHW16c")
        self.assertEqual(tuple(map(int, way.forward_shape(x.shape))), packed.shape)
        self.assertEqual(tuple(map(int, way.backward_shape(packed.shape))), x.shape)
        for index in itertools.product(*map(range, x.shape)):
            there = tuple(map(int, way.forward_index(index)))
            self.assertEqual(packed[there], x[index])
            self.assertEqual(tuple(map(int, way.backward_index(there))), index)

    def test_a_letter_twice(self):
        shape = (4, 2, 3, 8)
        way = tir.bijective_layout("OIH8i", "OIH4i2o4i")
        self.assertEqual(list(map(int, way.forward_shape(shape))), [2, 1, 3, 4, 2, 4])
        there = {tuple(map(int, way.forward_index(index))) for index in itertools.product(*map(range, shape))}
        self.assertEqual(len(there), 4 * 2 * 3 * 8)
        self.assertEqual(tuple(1 + max(t[i] for t in there) for i in range(6)), (2, 1, 3, 4, 2, 4))

    def test_symbols(self):
        n = tir.Var("n", "int32")
        way = tir.bijective_layout("NCHW", "NCHW16c")
        self.assertEqual(list(map(str, way.forward_index([0, n, 6, 6]))), ["0", "n // 16", "6", "6", "n % 16"])
        self.assertEqual(str(way.forward_shape((1, n, 7, 7))[1]), "(n + 15) // 16")  # a group that is not full counts


if __name__ == "__main__":
    unittest.main()
