"""Functions of Python that kernels call: T.call_packed, in this process and in one that opens the library."""
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import relax, te, tir
from sator.script import ir as I, relax as R, tir as T


@T.prim_func
def calls_python(A: T.Buffer((2, 3), "float32"), n: T.int32):
    for i in range(2):
        for j in range(3):
            A[i, j] = A[i, j] + T.float32(1)
        T.evaluate(T.call_packed("packed_test.see", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(2, 3), 0, 2, T.float32(0), 0), i, n + 1, "text", T.float32(2.5)))
    for j in range(3):
        A[0, j] = A[0, j] - T.float32(1)


class CallsOfPython(unittest.TestCase):
    """T.call_packed inside of a kernel."""

    def test_a_kernel_calls_a_registered_function(self):
        seen = []

        def see(tensor, *rest):
            seen.append((tensor.numpy().tolist(), *rest))
            tensor.copyfrom(tensor.numpy() * 10)

        sator.register_func("packed_test.see", see, override=True)
        program = sator.build(calls_python)
        a = np.zeros((2, 3), "float32")
        program(a, 7)
        self.assertEqual(seen, [([[1] * 3, [0] * 3], 0, 8, "text", 2.5), ([[10] * 3, [1] * 3], 1, 8, "text", 2.5)])
        np.testing.assert_array_equal(a, [[99] * 3, [10] * 3])

        def fails(*_args):
            raise KeyError("the user's own")

        sator.register_func("packed_test.see", fails, override=True)
        for run in (lambda: program(a, 7), lambda: program.time_evaluator("calls_python", number=1)(a, 7)):
            with self.assertRaisesRegex(KeyError, "the user's own"):
                run()

    def test_a_call_has_the_dtype_that_it_states(self):
        sator.register_func("packed_test.half", lambda x: x / 2, override=True)

        @T.prim_func
        def halves(A: T.Buffer((3,), "float32")):
            for i in range(3):
                A[i] = T.call_packed("packed_test.half", A[i], dtype="float32")

        self.assertIn('T.call_packed("packed_test.half", A[i], dtype="float32")', halves.script())
        sator.ir.assert_structural_equal(sator.script.from_source(halves.script()), halves)
        a = np.array([1, 2, 5], "float32")
        sator.build(halves)(a)
        np.testing.assert_array_equal(a, [0.5, 1, 2.5])

    def test_a_failed_call_stores_nothing(self):
        @T.prim_func
        def halves(A: T.Buffer((3,), "float32"), B: T.Buffer((3,), "float32")):
            for i in range(3):
                B[i] = T.call_packed("packed_test.fails", T.call_packed("packed_test.first", A[i], dtype="float32"), dtype="float32") + A[i]

        seen = []
        sator.register_func("packed_test.first", lambda x: seen.append(x) or x, override=True)
        for fails in (lambda x: 1 / 0, lambda x: "text"):
            sator.register_func("packed_test.fails", fails, override=True)
            a, b = np.array([1, 2, 5], "float32"), np.full(3, 7, "float32")
            with self.assertRaises((ZeroDivisionError, TypeError)):
                sator.build(halves)(a, b)
            np.testing.assert_array_equal(b, [7, 7, 7])
        self.assertEqual(seen, [1, 1])

    def test_a_call_is_no_extent(self):
        with self.assertRaisesRegex(sator.TVMError, r'the extent T.call_packed\("packed_test.count"\) of buffer B is a call'):
            @T.prim_func
            def f(A: T.Buffer((3,), "float32")):
                B = T.alloc_buffer((T.call_packed("packed_test.count"),), "float32")
                B[0] = A[0]
                A[1] = B[0]

            sator.build(f)

    def test_a_kernel_of_a_graph_calls_a_registered_function(self):
        @I.ir_module
        class Graph:
            @T.prim_func
            def doubled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi] * T.float32(2)
                T.evaluate(T.call_packed("packed_test.times_ten", T.tvm_stack_make_array(B.data, T.tvm_stack_make_shape(4), 0, 1, T.float32(0), 0)))

            @R.function
            def main(x: R.Tensor((4,), "float32")):
                cls = Graph
                return R.call_tir(cls.doubled, (x,), out_sinfo=R.Tensor((4,), "float32"))

        sator.register_func("packed_test.times_ten", lambda t: t.copyfrom(t.numpy() * 10), override=True)
        vm = relax.VirtualMachine(relax.build(Graph), sator.cpu())
        np.testing.assert_array_equal(vm["main"](np.arange(4, dtype="float32")).numpy(), [0, 20, 40, 60])

    def test_another_process_runs_its_own_function_of_the_name(self):
        sator.register_func("packed_test.see", lambda *_args: None, override=True)
        script = """
import sys, numpy as np, sator
program = sator.runtime.load_module(sys.argv[1])
try:
    program(np.zeros((2, 3), "float32"), 7)
except sator.TVMError as error:
    print(error.hint)
seen = []
sator.register_func("packed_test.see", lambda tensor, *rest: seen.append((tensor.numpy().tolist(), *rest)))
program(np.zeros((2, 3), "float32"), 7)
print(seen == [([[1.0] * 3, [0.0] * 3], 0, 8, "text", 2.5), ([[1.0] * 3, [1.0] * 3], 1, 8, "text", 2.5)])
"""
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "a.so")
            sator.build(calls_python).export_library(path)
            ran = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True)
        self.assertEqual((ran.stdout, ran.stderr), ('@sator.register_func("packed_test.see")\nTrue\n', ""))

    def test_each_thread_gets_what_its_own_call_raised(self):
        @T.prim_func
        def in_parallel(A: T.Buffer((4,), "float32"), n: T.int32):
            for i in T.parallel(4):
                A[i] = T.float32(1)
                T.evaluate(T.call_packed("packed_test.raises", n))

        def raises(n):
            raise KeyError(n)

        sator.register_func("packed_test.raises", raises, override=True)
        wrong = []

        def run(first):
            program = sator.build(in_parallel)
            for n in range(first, first + 100):
                try:
                    program(np.zeros(4, "float32"), n)
                    wrong.append((n, None))
                except KeyError as error:
                    if error.args != (n,):
                        wrong.append((n, error.args))

        threads = [threading.Thread(target=run, args=(1000 * k,)) for k in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_a_loop_whose_callback_calls_the_same_program(self):
        # A worker of the loop would wait for the call that waits for the loop.
        @T.prim_func
        def in_parallel(A: T.Buffer((4,), "float32")):
            for i in T.parallel(4):
                T.evaluate(T.call_packed("packed_test.again", i))

        program = sator.build(in_parallel)
        sator.register_func("packed_test.again", lambda _i: program(np.zeros(4, "float32")), override=True)
        with self.assertRaisesRegex(sator.TVMError, "not inside of a parallel loop"):
            program(np.zeros(4, "float32"))

    def test_extern_of_te(self):
        # TVM's tutorial of external functions.
        n = te.size_var("n")
        A = te.placeholder((n,), name="A")
        B = te.extern(A.shape, [A], lambda ins, outs: tir.call_packed("packed_test.add_one", ins[0], outs[0]), name="B")
        sator.register_func("packed_test.add_one", lambda x, y: sator.nd.array(x.numpy() + 1).copyto(y) and None, override=True)
        a, b = np.arange(10, dtype="float32"), np.zeros(10, "float32")
        sator.build(te.create_schedule(B.op), [A, B], "llvm")(a, b)
        np.testing.assert_array_equal(b, a + 1)

    def test_parts_of_a_buffer(self):
        """Rows that follow each other are a tensor of their own; columns are not, and are refused before anything runs."""
        def add_one(part):
            np.from_dlpack(part)[:] += 1

        sator.register_func("packed_test.add_one", add_one, override=True)

        @T.prim_func
        def rows(A: T.Buffer((8, 4), "float32")):
            for i in range(3):
                with T.block("part"):
                    v = T.axis.spatial(3, i)
                    T.reads(A[v * 2 : v * 2 + 2, 0:4])
                    T.writes(A[v * 2 : v * 2 + 2, 0:4])
                    B = T.match_buffer(A[v * 2 : v * 2 + 2, 0:4], (2, 4), offset_factor=1)
                    T.evaluate(T.call_packed("packed_test.add_one", B))

        @T.prim_func
        def columns(A: T.Buffer((8, 4), "float32")):
            for i in range(2):
                with T.block("part"):
                    v = T.axis.spatial(2, i)
                    T.reads(A[0:8, v * 2 : v * 2 + 2])
                    T.writes(A[0:8, v * 2 : v * 2 + 2])
                    B = T.match_buffer(A[0:8, v * 2 : v * 2 + 2], (8, 2), offset_factor=1)
                    T.evaluate(T.call_packed("packed_test.add_one", B))

        a = np.zeros((8, 4), "float32")
        sator.build(rows)(a)
        np.testing.assert_array_equal(a, [[1.0] * 4] * 6 + [[0.0] * 4] * 2)
        with self.assertRaisesRegex(ValueError, "a part of A whose rows do not follow each other"):
            sator.build(columns)

    def test_values_of_calls(self):
        """Where they stand decides when they are called: in a store, a condition, a loop's condition and extent, an argument."""
        @T.prim_func
        def values(A: T.Buffer((4,), "float32"), B: T.Buffer((8,), "int32")):
            for i in T.parallel(4):
                with T.block("squared"):
                    v = T.axis.spatial(4, i)
                    if T.call_packed("packed_test.is_even", v) != 0:
                        B[v] = T.call_packed("packed_test.rounded", A[v])
                    else:
                        B[v] = -1
                    A[v] = T.Call("float32", "tir.tvm_call_packed", ["packed_test.halved", A[v]])
            while T.call_packed("packed_test.counted", B[4]) < 3:
                B[4] = B[4] + 5
            for j in range(T.call_packed("packed_test.rounded", 1.6)):
                B[5 + j] = 7
            x: T.int32 = T.call_packed("packed_test.rounded", T.call_packed("packed_test.rounded", T.float32(4.25)))
            B[7] = x

        counted = []
        sator.register_func("packed_test.is_even", lambda v: v % 2 == 0, override=True)
        sator.register_func("packed_test.rounded", round, override=True)
        sator.register_func("packed_test.halved", lambda x: np.float32(x / 2), override=True)
        sator.register_func("packed_test.counted", lambda v: (counted.append(v), len(counted))[1], override=True)
        a, b = np.array([0.4, 1.5, 2.75, 3], "float32"), np.zeros(8, "int32")
        program = sator.build(values)
        program(a, b)
        np.testing.assert_array_equal(a, np.array([0.2, 0.75, 1.375, 1.5], "float32"))
        self.assertEqual((b.tolist(), counted), ([0, -1, 3, -1, 10, 7, 7, 4], [0, 5, 10]))

        def fails(_v):
            raise KeyError("the user's own")

        for wrong, error, message in ((fails, KeyError, "the user's own"), (lambda v: None, TypeError, "None is a NoneType\n.*int32, as the call of"),
                                      (lambda v: 2 ** 40, ValueError, "1099511627776, which int32 does not hold")):
            for name in ("is_even", "rounded", "counted"):
                with self.subTest(name, message=message):
                    whole = sator.get_global_func("packed_test." + name)
                    sator.register_func("packed_test." + name, wrong, override=True)
                    with self.assertRaisesRegex(error, message):
                        program(a, b)
                    sator.register_func("packed_test." + name, whole, override=True)
        counted.clear()
        program(a, b)  # nothing is left of the failures

    def test_values_as_indices_are_checked(self):
        @T.prim_func
        def moved(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
            for i in T.parallel(8):
                with T.block("b"):
                    v = T.axis.spatial(8, i)
                    x: T.int32 = T.call_packed("packed_test.place", v)
                    B[x] = A[7 - x]

        a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
        sator.register_func("packed_test.place", lambda v: v ^ 1, override=True)
        sator.build(moved)(a, b)
        np.testing.assert_array_equal(b, a[::-1])
        for far in (300, -1, 2 ** 31 - 1):
            sator.register_func("packed_test.place", lambda v, f=far: f if v == 5 else v, override=True)
            with self.subTest(far), self.assertRaisesRegex(sator.TVMError, "an index of . is out of range"):
                sator.build(moved)(a, b)

        @T.prim_func
        def unnamed(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
            for i in range(8):
                B[i] = A[T.call_packed("packed_test.place", i)]

        with self.assertRaisesRegex(ValueError, "in an index of A\n"):
            sator.build(unnamed)

    def test_what_a_kernel_cannot_pass(self):
        @T.prim_func
        def passes_a_pointer(A: T.Buffer((2,), "float32")):
            T.evaluate(T.call_packed("packed_test.see", A.data))

        with self.assertRaisesRegex(ValueError, "needs: buffers, numbers and constants"):
            sator.build(passes_a_pointer)

        @T.prim_func
        def in_a_binding(A: T.Buffer((8,), "float32")):
            for i in range(2):
                with T.block("b"):
                    v = T.axis.spatial(8, T.call_packed("packed_test.rounded", i))
                    A[v] = T.float32(0)

        with self.assertRaisesRegex(ValueError, "the binding or predicate of the block b\n"):
            sator.build(in_a_binding)

        @T.prim_func
        def unnamed(A: T.Buffer((2,), "float32")):
            T.evaluate(T.call_packed(A.data))

        with self.assertRaisesRegex(sator.TVMError, "names no function"):
            sator.build(unnamed)

        @T.prim_func
        def unknown(A: T.Buffer((2,), "float32")):
            T.evaluate(T.call_packed("packed_test.nobody", T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(2), 0, 1, T.float32(0), 0)))

        with self.assertRaisesRegex(sator.TVMError, 'register_func\\("packed_test.nobody"\\)'):
            sator.build(unknown)(np.zeros(2, "float32"))


if __name__ == "__main__":
    unittest.main()
