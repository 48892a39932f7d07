"""Layouts by letters: positions, shapes, and that the way between two is one to one. What buffers and variables say of themselves."""
import itertools
import unittest

import numpy as np

from sator import ir, relax, script, tir, topi
from sator.script import relax as R


class Buffers(unittest.TestCase):
    def test_pointers_and_flat_buffers(self):
        n = tir.Var("n", "int32")
        x = tir.decl_buffer((4, n), "float32", name="x", elem_offset=100)
        pointer = x.access_ptr("rw", offset=8)
        self.assertEqual((pointer.args[1].same_as(x.data), str(pointer.args[2]), pointer.args[4].value), (True, "108", x.READ | x.WRITE))
        self.assertEqual([str(e) for e in x.offset_of([2, 3])], ["n * 2 + 103"])  # TVM's test_buffer_offset_of
        parts = tir.decl_buffer([4, 16, 32], axis_separators=[2])
        flat = parts.get_flattened_buffer()
        self.assertEqual(([int(e) for e in flat.shape], flat.data.same_as(parts.data)), ([64, 32], True))
        self.assertEqual([int(e) for e in parts.offset_of([1, 2, 3])], [18, 3])
        line = tir.decl_buffer([16])
        self.assertTrue(line.get_flattened_buffer().same_as(line))
        self.assertEqual([str(r) for r in x[1:3, n].region], ["1:3", "n:n + 1"])
        with self.assertRaisesRegex(ValueError, "needs: slices without a step"):
            x[0:4:2, 0]
        with self.assertRaisesRegex(ValueError, 'access_mask = \'q\'\n  needs: "r", "w" or "rw"'):
            x.access_ptr("q")

    def test_types_of_variables(self):
        pointer = tir.Var("p", ir.PointerType(ir.PrimType("float16"), "shared"))
        self.assertEqual((pointer.dtype, tir.decl_buffer((4,), "float16", data=pointer).scope()), ("handle", "shared"))
        self.assertEqual(pointer.type_annotation, ir.PointerType(ir.PrimType("float16"), "shared"))
        self.assertEqual(tir.Var("i", "int64").type_annotation, ir.PrimType("int64"))
        self.assertEqual(repr(pointer.type_annotation), 'T.handle("float16", "shared")')

    def test_what_is_known_of_functions(self):
        mod = script.parse("""
@I.ir_module
class M:
    @T.prim_func
    def product(A: T.Buffer((16, 4), "float32"), n: T.int32) -> T.float32:
        T.ret(A[0, 0] * T.Cast("float32", n))

    @T.prim_func
    def copy(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i]

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.add(x, x)
""")
        tensor, number = relax.TensorStructInfo, relax.PrimStructInfo
        for name, wanted in (("product", relax.FuncStructInfo([tensor((16, 4), "float32"), number("int32")], number("float32"), True)),
                             ("copy", relax.FuncStructInfo([tensor((16,), "float32")] * 2, relax.TupleStructInfo([]), False)),
                             ("main", relax.FuncStructInfo([tensor((2,), "float32")], tensor((2,), "float32"), True))):
            ir.assert_structural_equal(mod[name].struct_info, wanted)
        ir.assert_structural_equal(mod["main"].params[0].struct_info, R.Tensor((2,), "float32"))
        self.assertFalse(ir.structural_equal(R.Tensor((2,), "float32"), R.Tensor((3,), "float32")))

    def test_attributes_of_calls(self):
        x = relax.Var("x", relax.TensorStructInfo((2, 3, 8, 8), "float32"))
        w = relax.Var("w", relax.TensorStructInfo((4, 3, 3, 3), "float32"))
        attrs = relax.op.nn.conv2d(x, w, padding=(1, 2)).attrs
        self.assertEqual((attrs["padding"], list(map(int, attrs.padding)), attrs.padding[0].dtype, attrs.groups), ([1, 2, 1, 2], [1, 2, 1, 2], "int64", 1))
        with self.assertRaisesRegex(AttributeError, "the call has no attribute axis\n  needs: one of "):
            attrs.axis

    def test_shapes_as_integers(self):
        n = tir.Var("n", "int32")
        self.assertEqual(topi.utils.get_const_tuple([tir.const(2) + 1, 4, n])[:2], (3, 4))
        self.assertEqual(topi.utils.ravel_index((1, 2, 3), (4, 5, 6)), np.ravel_multi_index((1, 2, 3), (4, 5, 6)))
        self.assertEqual([int(e) for e in topi.utils.unravel_index(tir.const(45), (4, 5, 6))], list(np.unravel_index(45, (4, 5, 6))))
        with self.assertRaisesRegex(ValueError, "n is not constant"):
            topi.utils.get_const_int(n)


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
