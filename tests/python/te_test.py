"""Formulas: reducers, several results, statements, tags, schedules' errors."""
import os
import subprocess
import sys
import unittest

import numpy as np

import sator
from sator import relax, te, tir, topi
from sator.script import ir as I, relax as R, tir as T


def run(args, *arrays):
    """The arrays after the program of these tensors ran on them."""
    sator.build(te.create_prim_func(args))(*arrays)
    return arrays


def double_and_shift(x, by):
    return te.compute(x.shape, lambda *i: x(*i) * 2 + by, name="doubled")


class Formulas(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def test_position_counts_as_its_axis(self):
        """An axis of int32 gives int32 positions, and an identity that int32 holds."""
        x = te.placeholder((3, 7), "int32", "x")
        program = te.create_prim_func([x, topi.argmax(x, axis=1)])
        self.assertNotIn(str(2**63 - 1), program.script())
        values = self.rng.integers(-9, 9, (3, 7)).astype("int32")
        _, got = run([x, topi.argmax(x, axis=1)], values, np.zeros(3, "int32"))
        np.testing.assert_array_equal(got, values.argmax(1))

    def test_results_of_rank_0(self):
        """The one index of their block counts as the function's other indices do."""
        x, scalar = te.placeholder((4,), name="x"), te.placeholder((), name="scalar")
        values = np.arange(4, dtype="float32") + 1
        for made, expected in [(te.compute((), lambda: x[2] * 2.0, name="one"), 6), (topi.divide(topi.sum(x), 4.0), 2.5)]:
            self.assertEqual(run([x, made], values, np.zeros((), "float32"))[1], expected)
            program = sator.build(te.create_schedule(made.op), [x, made], "llvm")
            got = np.zeros((), "float32")
            program(values, got)
            self.assertEqual(got, expected)
        self.assertAlmostEqual(float(run([scalar, topi.exp(scalar)], np.array(1, "float32"), np.zeros((), "float32"))[1]), np.e, 6)

    def test_scans_and_scatters_of_int32_shapes(self):
        """Loops count in the dtype of the extents that they run over."""
        x = te.placeholder((3, 5), name="x")
        values = self.rng.standard_normal((3, 5)).astype("float32")
        before = np.hstack([np.zeros((3, 1)), values.cumsum(1)[:, :-1]])
        for out, expected in ((topi.cumsum(x, 1), values.cumsum(1)), (topi.cumprod(x, 0), values.cumprod(0)),
                              (topi.cumsum(x, 1, "float32", True), before), (topi.cumsum(x), values.cumsum())):
            got = run([x, out], values, np.zeros(expected.shape, "float32"))[1]
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
        at, new = te.placeholder((3, 1), "int64", "at"), te.placeholder((3, 1), name="new")
        where, what = np.array([[4], [0], [2]]), np.array([[1], [2], [3]], "float32")
        expected = values.copy()
        np.put_along_axis(expected, where, what, 1)
        got = run([x, at, new, topi.scatter_elements(x, at, new, axis=1)], values, where, what, np.zeros_like(values))[3]
        np.testing.assert_array_equal(got, expected)

    def test_reducer(self):
        n = 7
        index, value = te.placeholder((3, n), "int32", "index"), te.placeholder((3, n), "float32", "value")
        k = te.reduce_axis((0, n), "k")
        argmax = te.comm_reducer(
            lambda x, y: (tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])),
            lambda t0, t1: (tir.const(-1, t0), te.min_value(t1)), name="argmax")
        where, most = te.compute((3,), lambda i: argmax((index[i, k], value[i, k]), axis=k), name="argmax")
        values = self.rng.standard_normal((3, n)).astype("float32")
        indices = np.tile(np.arange(n, dtype="int32"), (3, 1))
        _, _, got, top = run([index, value, where, most], indices, values, np.zeros(3, "int32"), np.zeros(3, "float32"))
        np.testing.assert_array_equal(got, values.argmax(1))
        np.testing.assert_array_equal(top, values.max(1))
        product = te.comm_reducer(lambda x, y: x * y, lambda t: tir.const(1, t))
        out = te.compute((3,), lambda i: product(value[i, k], axis=k), name="product")
        np.testing.assert_allclose(run([value, out], values, np.zeros(3, "float32"))[1], values.prod(1), rtol=1e-5)

    def test_initial_value(self):
        value, k = te.placeholder((3, 5), name="value"), te.reduce_axis((0, 5), "k")
        values = self.rng.standard_normal((3, 5)).astype("float32")
        plus = te.comm_reducer(lambda x, y: x + y, lambda t: tir.const(0, t))
        for formula, wanted in ((lambda i: te.sum(value[i, k], axis=k, init=7), values.sum(1) + 7),
                                (lambda i: te.max(value[i, k], axis=k, init=0.5), np.maximum(values.max(1), np.float32(0.5))),
                                (lambda i: te.prod(value[i, k], axis=k, where=k < 2, init=3), values[:, :2].prod(1) * 3),
                                (lambda i: plus(value[i, k], axis=k, init=-2.5), values.sum(1) - 2.5)):
            np.testing.assert_allclose(run([value, te.compute((3,), formula)], values, np.zeros(3, "float32"))[1], wanted, rtol=1e-5)
        with self.assertRaisesRegex(sator.TVMError, "needs: a number for each expression"):
            te.sum(value[0, k], axis=k, init=value[0, 0])

    def test_several_results(self):
        a, b = te.placeholder((4, 3), name="a"), te.placeholder((4, 3), name="b")
        plus, times = te.compute((4, 3), lambda i, j: (a[i, j] + 2, b[i, j] * 3), name="both")
        self.assertEqual((plus.name, times.name, times.value_index, plus.op.num_outputs), ("both.v0", "both.v1", 1, 2))
        x, y = (self.rng.standard_normal((4, 3)).astype("float32") for _ in range(2))
        _, _, p, t = run([a, b, plus, times], x, y, np.zeros_like(x), np.zeros_like(x))
        np.testing.assert_array_equal(p, x + 2)
        np.testing.assert_array_equal(t, y * np.float32(3))

    def test_statement(self):
        a = te.placeholder((6,), name="a")

        def reversed_into(ins, outs):
            i = tir.Var("i", "int32")
            return tir.For(i, 0, 6, tir.ForKind.SERIAL, tir.BufferStore(outs[0], ins[0][5 - i], [i]))

        out = te.extern((6,), [a], reversed_into, name="reversed")
        x = np.arange(6, dtype="float32")
        np.testing.assert_array_equal(run([a, out], x, np.zeros_like(x))[1], x[::-1])
        with self.assertRaisesRegex(ValueError, "its result is not known"):
            te.extern((6,), [a, te.placeholder((6,), "int32")], reversed_into)

    def test_scan(self):
        x = te.placeholder((6, 3), name="x")
        state = te.placeholder((6, 3), name="state")
        doubled = te.compute((6, 3), lambda t, i: state[t - 1, i] * 2, name="doubled")
        outside = te.compute((6, 3), lambda t, i: x[t, i] + 1, name="outside")
        out = te.scan(te.compute((1, 3), lambda _, i: x[0, i]), te.compute((6, 3), lambda t, i: doubled[t, i] + outside[t, i]), state)
        values = self.rng.integers(0, 5, (6, 3)).astype("float32")
        wanted = values.copy()
        for t in range(1, 6):
            wanted[t] = wanted[t - 1] * 2 + values[t] + 1
        np.testing.assert_array_equal(run([x, out], values, np.zeros_like(values))[1], wanted)
        # Fibonacci's numbers, and the sums of those before, in step.
        n, k, s = (te.placeholder((10,), "int32", name) for name in ("n", "k", "s"))
        fib, sums = te.scan(
            [te.compute((2,), lambda i: n[i]), te.compute((2,), lambda i: tir.const(0, "int32"))],
            [te.compute((10,), lambda t: k[t - 1] + k[t - 2]), te.compute((10,), lambda t: s[t - 1] + k[t - 1])], [k, s])
        self.assertEqual((fib.value_index, sums.value_index), (0, 1))
        _, f, total = run([n, fib, sums], np.ones(10, "int32"), np.zeros(10, "int32"), np.zeros(10, "int32"))
        np.testing.assert_array_equal(f, [1, 1, 2, 3, 5, 8, 13, 21, 34, 55])
        np.testing.assert_array_equal(total, [0, 0, 1, 3, 6, 11, 19, 32, 53, 87])
        axis = te.reduce_axis((0, 3), "axis")
        with self.assertRaisesRegex(sator.TVMError, "no formula of elements"):
            te.scan(te.compute((1,), lambda _: x[0, 0]), te.compute((6,), lambda t: te.sum(x[t, axis], axis=axis)), te.placeholder((6,)))

    def test_shifts(self):
        a = te.placeholder((5,), "int32", "a")
        x = np.arange(5, dtype="int32")
        np.testing.assert_array_equal(run([a, topi.left_shift(a, 3)], x, np.zeros_like(x))[1], x << 3)
        np.testing.assert_array_equal(run([a, topi.right_shift(a, a)], x, np.zeros_like(x))[1], x >> x)

    def test_pool(self):
        a = te.placeholder((1, 2, 4, 4), name="a")
        x = self.rng.standard_normal((1, 2, 4, 4)).astype("float32")
        windows = x.reshape(1, 2, 2, 2, 2, 2)
        for kind, wanted in (("max", windows.max((3, 5))), ("avg", windows.mean((3, 5)))):
            out = topi.nn.pool2d(a, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), kind)
            np.testing.assert_allclose(run([a, out], x, np.zeros((1, 2, 2, 2), "float32"))[1], wanted, rtol=1e-6)

    def test_upsampling(self):
        a = te.placeholder((1, 2, 2, 3), name="a")
        x = self.rng.standard_normal((1, 2, 2, 3)).astype("float32")
        got = run([a, topi.nn.upsampling(a, 2.0, 3)], x, np.zeros((1, 2, 4, 9), "float32"))[1]
        np.testing.assert_array_equal(got, x.repeat(2, 2).repeat(3, 3))
        with self.assertRaisesRegex(ValueError, "integers from 1 on"):
            topi.nn.upsampling(a, 1.5, 2)

    def test_tags_and_operations(self):
        n = te.var("n")
        a, b = te.placeholder((4, 3), name="a"), te.placeholder((4, 3), name="b")
        self.assertEqual([(1 + a).op.tag, (a * n).op.tag, (n - a).op.tag, (a + b).op.tag],
                         [topi.tag.ELEMWISE] * 3 + [topi.tag.BROADCAST])
        with te.tag_scope("gemm"):
            c = te.compute((4, 3), lambda i, j: a[i, j], attrs={"hello": 1})
            with self.assertRaises(ValueError), te.tag_scope("conv"):
                pass
        self.assertEqual((c.op.tag, c.op.attrs["hello"].value), ("gemm", 1))
        d = te.compute((4, 3), lambda i, j: c[i, j] + b[i, j], name="d")
        graph = te.schedule.CreateReadGraph([d.op])
        self.assertEqual(graph[d.op], [c, b])
        order = te.schedule.PostDFSOrder([d.op], graph)
        self.assertEqual(order, [a.op, c.op, b.op, d.op])

    def test_number_beside_a_tensor(self):
        n = tir.Var("n", "int32")
        a = te.placeholder((4,), name="a")
        program = sator.build(te.create_prim_func([a, n, n - a]))
        out = np.zeros(4, "float32")
        program(np.arange(4, dtype="float32"), 10, out)
        np.testing.assert_array_equal(out, 10 - np.arange(4, dtype="float32"))

    def test_extremes_of_several_and_over_axes(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        self.assertEqual((str(tir.max(x, y, 3)), str(tir.min(7, 4, 5))), ("T.max(T.max(x, y), 3)", "4"))
        a = te.placeholder((4, 8), name="a")
        k = te.reduce_axis((0, 8), "k")
        values = self.rng.standard_normal((4, 8)).astype("float32")
        for function, wanted in ((tir.max, values.max(1)), (tir.min, values.min(1))):
            _, out = run([a, te.compute((4,), lambda i: function(a[i, k], k))], values, np.zeros(4, "float32"))
            np.testing.assert_array_equal(out, wanted)
        self.assertEqual((sator.DataType("int8x4").itemsize(), sator.DataType("float64").itemsize()), (4, 8))

    def test_schedule_errors(self):
        a = te.placeholder((8, 4), name="a")
        k = te.reduce_axis((0, 4), "k")
        c = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="c")
        stage = te.create_schedule(c.op)[c]
        with self.assertRaisesRegex(ValueError, "reduction"):
            stage.vectorize(k)
        outer, inner = stage.split(c.op.axis[0], factor=2)
        for wrong in ((outer, k), (inner, outer)):
            with self.assertRaisesRegex(ValueError, "do not follow each other"):
                stage.fuse(*wrong)
        with self.assertRaisesRegex(ValueError, "is no loop"):
            stage.parallel(c.op.axis[0]) or stage.split(c.op.axis[0], factor=2)
        stage.fuse(outer, inner)

    def test_formula_in_a_graph(self):
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((2, 3), "float32")):
                with R.dataflow():
                    y = R.emit_te(double_and_shift, x, 5)
                    R.output(y)
                return y

        x = self.rng.standard_normal((2, 3)).astype("float32")
        vm = relax.VirtualMachine(relax.build(Module, "llvm"), sator.cpu())
        np.testing.assert_allclose(vm["main"](x).numpy(), x * 2 + 5, rtol=1e-6)

    def test_a_variable_where_te_is_all_that_is_loaded(self):
        made = subprocess.run([sys.executable, "-c", "from sator import te; print(te.var('n') + 1)"], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual((made.stdout, made.stderr), ("n + 1\n", ""))

    def test_axes_of_a_reduction_in_arithmetic(self):
        """A convolution by every form of an index, against NumPy."""
        a, w = np.arange(20, dtype="float32"), np.array([2, -1, 3], "float32")
        A, W = te.placeholder((20,), name="A"), te.placeholder((3,), name="W")
        k = te.reduce_axis((0, 3), "k")
        for make, at in ((lambda i: A[i + k * 2], lambda i, k: i + k * 2), (lambda i: A[i + 2 * k], lambda i, k: i + k * 2),
                         (lambda i: A[i + (2 - k)], lambda i, k: i + 2 - k), (lambda i: A[i + k // 2 + k % 2], lambda i, k: i + k // 2 + k % 2)):
            C = te.compute((6,), lambda i: te.sum(make(i) * W[k], axis=k), name="C")
            wanted = [sum(a[at(i, j)] * w[j] for j in range(3)) for i in range(6)]
            np.testing.assert_array_equal(run([A, W, C], a, w, np.zeros(6, "float32"))[2], wanted)
        C = te.compute((6,), lambda i: te.sum(tir.if_then_else(tir.all(k >= 1, k < 2), A[i], 0.0), axis=k), name="C")
        np.testing.assert_array_equal(run([A, C], a, np.zeros(6, "float32"))[1], a[:6])

    def test_reductions_of_two_values_and_under_a_condition(self):
        a = np.array([[-2, 5, 1], [4, -1, -3]], "float32")
        A, k = te.placeholder((2, 3), name="A"), te.reduce_axis((0, 3), "k")
        for reduce, numpys in ((te.max, np.maximum), (te.min, np.minimum), (te.sum, np.add), (te.prod, np.multiply)):
            out = te.compute((2, 3), lambda i, j: reduce(A[i, j], 2))
            np.testing.assert_array_equal(run([A, out], a, np.zeros_like(a))[1], numpys(a, np.float32(2)))
            out = te.compute((2,), lambda i: reduce(A[i, k], axis=k, where=A[i, k] < 3))
            np.testing.assert_array_equal(run([A, out], a, np.zeros(2, "float32"))[1], [numpys.reduce(row[row < 3]) for row in a])

        longest = te.comm_reducer(lambda x, y: tir.max(x, y), lambda dtype: tir.const(-99, dtype), name="longest")
        out = te.compute((2,), lambda i: longest(A[i, k], axis=k, where=A[i, k] < 0))
        np.testing.assert_array_equal(run([A, out], a, np.zeros(2, "float32"))[1], [-2, -1])

    def test_names_of_functions(self):
        A = te.placeholder((4,), name="A")
        C = te.compute((4,), lambda i: A[i] + 1.0, name="C")
        x = np.arange(4, dtype="float32")
        program = te.create_prim_func([A, C])
        lowered = sator.lower(te.create_schedule(C.op), [A, C], name="plus")
        self.assertEqual([v.name_hint for v in lowered.get_global_vars()], ["plus"])
        for built, name in ((sator.build(te.create_schedule(C.op), [A, C], "llvm", name="plus"), "plus"), (sator.build(lowered, target="llvm"), "plus"),
                            (sator.build(program, name="one"), "one"), (sator.build(program.with_attr("global_symbol", "own")), "own"),
                            (sator.build(program), "main")):
            out = np.zeros(4, "float32")
            built[name](x, out)
            np.testing.assert_array_equal(out, x + 1)
        with self.assertRaisesRegex(sator.TVMError, "cuda"):  # a text in the place of args is the target
            sator.build(program, "cuda")
        with self.assertRaisesRegex(TypeError, "only with a schedule"):
            sator.build(program, [A, C])

    def test_a_sum_over_as_many_terms_as_a_tensor_says(self):
        W, X = te.placeholder((5,), "int32", name="W"), te.placeholder((8,), name="X")
        with self.assertRaisesRegex(ValueError, "(?s)the bound W.* reads a tensor.*hint:  go over the largest extent"):
            te.compute((4,), lambda i: te.sum(X[0], axis=te.reduce_axis((0, W[i + 1] - W[i]))))
        k = te.reduce_axis((0, 8), "k")
        summed = te.compute((4,), lambda i: te.sum(X[k], axis=k, where=tir.all(W[i] <= k, k < W[i + 1])), name="summed")
        x, w, out = np.arange(8, dtype="float32"), np.array([0, 2, 2, 7, 8], "int32"), np.zeros(4, "float32")
        sator.build(te.create_prim_func([X, W, summed]))(x, w, out)
        np.testing.assert_array_equal(out, [1, 0, 20, 7])

    def test_formulas_over_integers_of_memory_wrap(self):
        """What is read may be any number of its dtype: a formula is not simplified as if it were an index."""
        big = np.array([3, 2**31 - 1, 2**30 + 7, 2**31 - 5, 2**32 - 1, 70000], "uint64")
        three, four = tir.const(3, "int32"), tir.const(4, "int32")
        for dtype, formula, expected in (
                ("uint32", lambda x: tir.max(x.astype("int32"), 1), lambda a: np.maximum(a.astype("int32"), 1)),
                ("uint64", lambda x: tir.Select(x.astype("int64") < 0, three, four), lambda a: np.where(a.astype("int64") < 0, 3, 4)),
                ("int64", lambda x: tir.Select(x.astype("int32") < 0, three, four), lambda a: np.where(a.astype("int32") < 0, 3, 4)),
                ("uint16", lambda x: tir.Select(x.astype("int8") < 0, three, four), lambda a: np.where(a.astype("int8") < 0, 3, 4)),
                ("int32", lambda x: tir.FloorMod(x * 3, three), lambda a: (a * np.int32(3)) % 3),
                ("int32", lambda x: tir.Select(x + 1 > x, three, four), lambda a: np.where(a + np.int32(1) > a, 3, 4)),
                ("int32", lambda x: tir.FloorDiv(x * 4, four), lambda a: (a * np.int32(4)) // 4),
                ("int32", lambda x: ((x + 1).astype("int64") - x.astype("int64")).astype("int32"),
                 lambda a: ((a + np.int32(1)).astype("int64") - a).astype("int32"))):
            a = big.astype(dtype)
            A = te.placeholder((6,), dtype, name="A")
            O = te.compute((6,), lambda i: formula(A[i]), name="O")  # noqa: B023
            out = np.zeros(6, "int32")
            sator.build(te.create_prim_func([A, O]))(a, out)
            with self.subTest(dtype=dtype, formula=te.create_prim_func([A, O])), np.errstate(all="ignore"):
                np.testing.assert_array_equal(out, expected(a).astype("int32"))


if __name__ == "__main__":
    unittest.main()
