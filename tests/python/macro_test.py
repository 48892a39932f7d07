"""Macros of scripts: what a call of one stands for, and whose names it sees."""
import unittest

import numpy as np

import sator
from sator.script import ir as I, relax as R, tir as T

STEP = 4


@T.macro
def add_to(A, i, by=2):
    """Adds `by` and STEP to an element."""
    v = A[i] + T.float32(by)
    A[i] = v + T.float32(STEP)


@T.macro(hygienic=False)
def add_twice(A, i):
    add_to(A, i)
    add_to(A, i + 1, by=STEP)


STEP = 8  # what hygienic macros do not see


class Macros(unittest.TestCase):
    def test_a_call_is_written_out_with_its_arguments_and_its_own_variables(self):
        @T.prim_func
        def called(A: T.Buffer((16,), "float32")):
            for i in range(8):
                v: T.int32 = i * 2  # noqa: F841  (the macro has another v)
                add_twice(A, i)
                A[v] = T.float32(0)

        @T.prim_func
        def written(A: T.Buffer((16,), "float32")):
            for i in range(8):
                v: T.int32 = i * 2
                first: T.float32 = A[i] + T.float32(2)
                A[i] = first + T.float32(4)
                second: T.float32 = A[i + 1] + T.float32(8)
                A[i + 1] = second + T.float32(4)
                A[v] = T.float32(0)

        sator.ir.assert_structural_equal(called.with_attr("global_symbol", "f"), written.with_attr("global_symbol", "f"))

    def test_a_macro_of_graphs_gives_a_value(self):
        @R.macro
        def doubled(x):
            lv = R.add(x, x)
            return R.nn.relu(lv)

        @I.ir_module
        class Called:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = R.multiply(doubled(x), x)
                return y

        @I.ir_module
        class Written:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                a = R.add(x, x)
                y = R.multiply(R.nn.relu(a), x)
                return y

        sator.ir.assert_structural_equal(Called, Written)

    def test_what_a_macro_assigns_is_not_seen_outside(self):
        with self.assertRaises(sator.error.DiagnosticError):

            @R.macro
            def add_two(value):
                x = value + R.const(1)
                return x + R.const(1)

            @R.function
            def main(t: R.Tensor((), "int32")):
                u = add_two(t)  # noqa: F841
                return x  # noqa: F821

    def test_wrong_arguments_are_refused_with_the_macro_s_own(self):
        with self.assertRaises(TypeError) as caught:

            @T.prim_func
            def main(A: T.Buffer((16,), "float32")):
                add_to(A)

        self.assertIn("add_to(A, i, by=2)", str(caught.exception))

    def test_on_one_line(self):
        c = 3.0

        @T.macro
        def twice(X, i): X[i] = X[i] * 2.0; X[i] = X[i] + 1.0  # noqa: E702

        @T.macro(hygienic=False)
        def own(): A[i] = A[i] + c  # noqa: F821

        @T.prim_func
        def called(A: T.Buffer((4,), "float32")):
            c = T.float32(10)  # noqa: F841
            for i in range(4):
                for k in range(1): twice(A, i); add_to(A, i)  # noqa: E702
                if i < 2: own()
                else: A[i] = A[i] - c; own()  # noqa: E702

        a = np.arange(4, dtype="float32")
        sator.build(called)(a)
        x = np.arange(4, dtype="float32") * 2 + 1 + 6
        np.testing.assert_array_equal(a, np.where(np.arange(4) < 2, x + 10, x))
        self.assertEqual(c, 3.0)

    def test_a_hygienic_macro_does_not_see_the_caller_s_names(self):
        @T.macro
        def load(X):
            X[0] = X[index]  # noqa: F821

        with self.assertRaisesRegex(NameError, "the name index is not defined where the macro is"):

            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                for index in range(4):
                    load(A)

    def test_outside_of_a_program_it_is_not_called(self):
        with self.assertRaises(TypeError) as caught:
            add_to(1, 2)
        self.assertIn("add_to is called outside of a program", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
