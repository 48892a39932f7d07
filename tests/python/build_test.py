"""Building and running from Python: results against NumPy, memory that is shared, callbacks."""
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import weakref
from pathlib import Path

import numpy as np

import sator
from sator import ir, relax, te, tir, transform
from sator.script import ir as I, relax as R, tir as T


@I.ir_module
class Layer:
    @T.prim_func
    def mm(a: T.handle, B: T.Buffer((8, 4), "float32"), c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 8))
        C = T.match_buffer(c, (n, 4))
        for i, j, k in T.grid(n, 4, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")):
        n = T.int64()
        cls = Layer
        with R.dataflow():
            lv = R.call_tir(cls.mm, (x, w), out_sinfo=R.Tensor((n, 4), "float32"))
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv


@T.prim_func
def added(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
    for i in range(128):
        with T.block("C"):
            vi = T.axis.spatial(128, i)
            C[vi] = A[vi] + B[vi]


@I.ir_module
class Sum:
    @T.prim_func(private=True)
    def total(A: T.Buffer((4096,), "float32"), S: T.Buffer((1,), "float32")):
        for i in range(4096):
            with T.block("S"):
                vi = T.axis.reduce(4096, i)
                with T.init():
                    S[0] = T.float32(0)
                S[0] = S[0] + A[vi]

    @R.function
    def main(x: R.Tensor((4096,), "float32")):
        cls = Sum
        with R.dataflow():
            y = R.negative(x)
            s = R.call_tir(cls.total, (y,), out_sinfo=R.Tensor((1,), "float32"))
            R.output(s)
        return s


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


class Running(unittest.TestCase):
    def test_a_graph_with_a_symbolic_size(self):
        vm = relax.VirtualMachine(relax.build(Layer, "llvm"), sator.cpu())
        w = random(8, 4)
        for n in (1, 3, 17):
            x = random(n, 8)
            y = vm["main"](sator.nd.array(x), sator.nd.array(w))
            np.testing.assert_allclose(y.numpy(), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
        self.assertIn("Duration (us)", vm.profile("main", x, w))

    def test_tensor_programs_before_and_after_a_schedule(self):
        sch = tir.Schedule(added)
        _, inner = sch.split(sch.get_loops("C")[0], [None, 8])
        sch.vectorize(inner)
        a, b = random(128), random(128)[::-1].copy()
        for mod in (added, sch.mod):
            module = sator.build(mod, target="llvm")
            c = sator.nd.empty((128,))
            module[module.entry_name](sator.nd.array(a), sator.nd.array(b), c)
            np.testing.assert_array_equal(c.numpy(), a + b)
            self.assertGreater(module.time_evaluator(module.entry_name, sator.cpu(), number=3)(a, b, c).mean, 0)

    def test_build_leaves_the_loops_as_they_are(self):
        # A program whose loops run in an order that a rule would change: the last of equal stores wins.
        @T.prim_func
        def last(A: T.Buffer((1,), "int32")):
            for i in range(10):
                A[0] = i

        out = sator.nd.array(np.zeros(1, "int32"))
        module = sator.build(last)
        module["last"](out)
        self.assertEqual(out.numpy()[0], 9)

    def test_a_function_goes_by_the_name_that_the_module_knows(self):
        @R.function
        def f(x: R.Tensor((4,), "float32")):
            return R.add(x, x)

        machine = relax.VirtualMachine(relax.build(sator.IRModule({"main": f}), "llvm"), sator.cpu())
        np.testing.assert_array_equal(machine["main"](random(4)).numpy(), 2 * random(4))

    def test_relax_build_leaves_what_a_schedule_left(self):
        x = random(4096)
        serial = np.float32(0)
        for v in x:
            serial -= v

        def sum_of(mod):
            return relax.VirtualMachine(relax.build(mod), sator.cpu())["main"](x).numpy()[0]

        self.assertNotEqual(sum_of(Sum), serial)  # the rules sum in lanes
        sch = tir.Schedule(Sum)
        sch.work_on("total")
        sch.get_block("S")
        self.assertNotEqual(sum_of(sch.mod), serial)  # nothing was rewritten
        sch.split(sch.get_loops("S")[0], [None, 16])
        self.assertTrue(ir.structural_equal(sator.script.parse(sch.mod.script()), sch.mod))
        self.assertEqual(sum_of(sch.mod), serial)
        # Also where it is fused with others first.
        fused = transform.Sequential([relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern(),
                                      relax.transform.FuseOps(), relax.transform.FuseTIR()])(sch.mod)
        self.assertEqual(len(fused.functions), 2)
        self.assertEqual(sum_of(fused), serial)

    def test_ctrl_c_ends_what_takes_long(self):
        sums = relax.VirtualMachine(relax.build(Sum), sator.cpu())
        x = random(4096)
        bb = relax.BlockBuilder()
        v = relax.Var("v", R.Tensor((64, 64), "float32"))
        with bb.function("main", [v]):
            y = v
            for k in range(400):
                y = bb.emit(relax.op.nn.softmax(relax.op.matmul(y, relax.op.add(v, relax.const(float(k))))))
            bb.emit_func_output(y)
        large = bb.get()
        for work in (lambda: sums.time_evaluator("main", sator.cpu(), number=10**9)(x), lambda: relax.build(large)):
            timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                for _ in range(1000):
                    work()
            timer.join()
        np.testing.assert_allclose(sums["main"](x).numpy()[0], -x.sum(dtype="float64"), atol=1e-3)

    def test_wrong_arguments_name_the_parameter(self):
        vm = relax.VirtualMachine(relax.build(Layer))
        with self.assertRaises(sator.TVMError) as caught:
            vm["main"](random(3, 7), random(8, 4))
        self.assertIn("7", str(caught.exception))
        with self.assertRaises(sator.TVMError) as caught:
            vm["predict"]
        self.assertIn("one of main", str(caught.exception))

    def test_an_exported_library_is_opened_again(self):
        x, w = random(3, 8), random(8, 4)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "layer.so"
            relax.build(Layer).export_library(path)
            vm = relax.VirtualMachine(sator.runtime.load_module(path), sator.cpu())
            np.testing.assert_allclose(vm["main"](x, w).numpy(), np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
            sator.build(added).export_library(path)
            c = sator.nd.empty((128,))
            sator.runtime.load_module(path)["added"](random(128), random(128), c)
            np.testing.assert_array_equal(c.numpy(), random(128) * 2)
            with self.assertRaises(sator.TVMError):
                sator.runtime.load_module(path.with_name("none.so"))

    def test_a_gpu_is_refused_by_name(self):
        with self.assertRaises(sator.TVMError) as caught:
            sator.cuda(0)
        self.assertIn("cuda(0)", str(caught.exception))
        with self.assertRaises(sator.TVMError) as caught:
            sator.build(added, target="cuda -arch=sm_90")
        self.assertIn("cuda", str(caught.exception))

    def test_other_threads_run_meanwhile(self):
        @T.prim_func
        def busy(A: T.Buffer((1,), "float32")):
            for i in range(400000000):
                A[0] = A[0] * T.float32(0.5) + T.float32(1)

        module, a = sator.build(busy), sator.nd.array(np.zeros(1, "float32"))
        ticks, done = 0, threading.Event()

        def run():
            module["busy"](a)
            done.set()

        thread = threading.Thread(target=run)
        thread.start()
        while not done.wait(0.001) and ticks < 20:
            ticks += 1
        still_running = not done.is_set()
        thread.join()
        self.assertTrue(ticks >= 20 and still_running, f"{ticks} ticks of another thread while the program ran")


class Memory(unittest.TestCase):
    def test_dlpack_shares_both_ways(self):
        x = random(3, 4)
        t = sator.nd.from_dlpack(x)
        self.assertEqual(t.data_ptr, x.ctypes.data)
        x[1, 2] = 42
        self.assertEqual(t[1, 2], 42)
        back = np.from_dlpack(t)
        self.assertEqual(back.ctypes.data, x.ctypes.data)

    def test_arrays_are_shared_with_a_called_program_and_copied_by_nd_array(self):
        a, b, c = random(128), random(128), np.zeros(128, "float32")
        sator.build(added)["added"](a, b, c)
        np.testing.assert_array_equal(c, a + b)
        self.assertNotEqual(sator.nd.array(a).data_ptr, a.ctypes.data)

    def test_a_shared_array_lives_as_long_as_the_tensor(self):
        class Held(np.ndarray):
            pass

        x = random(4).view(Held)
        gone = weakref.ref(x)
        t = sator.nd.from_dlpack(x)
        del x
        gc.collect()
        self.assertEqual(t.shape, (4,))
        self.assertIsNotNone(gone())
        del t
        gc.collect()
        self.assertIsNone(gone())

    def test_what_is_not_row_major_is_refused(self):
        with self.assertRaises(ValueError) as caught:
            sator.nd.from_dlpack(random(3, 4).T)
        self.assertIn("ascontiguousarray", str(caught.exception))

    def test_dtypes(self):
        for dtype in ("float16", "float64", "int8", "uint8", "int64", "bool"):
            values = np.array([[0, 1], [1, 0]]).astype(dtype)
            t = sator.nd.array(values)
            self.assertEqual((t.dtype, t.shape), (dtype, (2, 2)))
            np.testing.assert_array_equal(t.numpy(), values)


    def test_bfloat16_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        values = random(4, 8).astype(ml_dtypes.bfloat16)
        t = sator.nd.from_dlpack(values)
        self.assertEqual((t.dtype, t.data_ptr), ("bfloat16", values.ctypes.data))
        self.assertEqual(t.numpy().dtype, ml_dtypes.bfloat16)
        np.testing.assert_array_equal(sator.nd.array(values).numpy().view("uint16"), values.view("uint16"))
        np.testing.assert_array_equal(relax.const(values).data.numpy().view("uint16"), values.view("uint16"))

        @T.prim_func
        def widen(A: T.Buffer((4, 8), "bfloat16"), B: T.Buffer((4, 8), "float32"), C: T.Buffer((4, 8), "bfloat16")):
            for i, j in T.grid(4, 8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = T.Cast("float32", A[vi, vj]) * T.float32(2)
                    C[vi, vj] = A[vi, vj]

        b, c = np.zeros((4, 8), "float32"), np.zeros((4, 8), ml_dtypes.bfloat16)
        sator.build(widen)(values, b, c)
        np.testing.assert_array_equal(b, values.astype("float32") * 2)
        np.testing.assert_array_equal(c.view("uint16"), values.view("uint16"))

    def test_vectors_that_only_another_machine_has_are_refused(self):
        @T.prim_func
        def copy(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
            B[0:T.vscale() * 4] = A[0:T.vscale() * 4]

        self.assertEqual(sator.script.parse(copy.script()).script(), copy.script())
        with self.assertRaisesRegex(sator.TVMError, "(?s)xvscalex4.*SVE.*constant factor"):
            sator.build(copy)

    def test_a_predicate_leaves_lanes_out(self):
        @T.prim_func
        def added(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
            B.vstore([T.Ramp(0, 1, 8)], A.vload([T.Ramp(0, 1, 8)], predicate=T.get_active_lane_mask("uint1x8", 2, n)) + T.Broadcast(T.float32(1), 8),
                     predicate=T.get_active_lane_mask("uint1x8", 0, n))

        a, b = np.arange(8, dtype="float32") + 10, np.zeros(8, "float32")
        sator.build(added)(a, b, 6)
        np.testing.assert_array_equal(b, [11, 12, 13, 14, 1, 1, 0, 0])

    def test_read_only_arrays_are_copied_and_not_shared(self):
        x = np.frombuffer(random(4).tobytes(), "float32")
        np.testing.assert_array_equal(sator.nd.array(x).numpy(), x)
        with self.assertRaises(TypeError) as caught:
            sator.nd.from_dlpack(x)
        self.assertIn("read-only", str(caught.exception))

    def test_graphs_read_read_only_arrays_and_tensor_programs_do_not_write_them(self):
        @R.function
        def same(x: R.Tensor((4,), "float32"), y: R.Tuple(R.Tensor((4,), "float32"))):
            return R.tuple(x, R.add(x, y[0]))

        x = np.frombuffer(random(4).tobytes(), "float32")
        machine = relax.VirtualMachine(relax.build(sator.IRModule({"main": same}), "llvm"), sator.cpu())
        given, doubled = machine["main"](x, [x])
        np.testing.assert_array_equal(doubled.numpy(), x + x)
        given.numpy()[0] += 1  # a copy
        np.testing.assert_array_equal(x, random(4))
        a, c = np.ones(128, "float32"), np.zeros(128, "float32")
        c.flags.writeable = False
        with self.assertRaisesRegex(TypeError, "read-only"):
            sator.build(added)(a, a, c)
        self.assertEqual(c.sum(), 0)


class Callbacks(unittest.TestCase):
    @staticmethod
    def machine(name):
        text = f'''
@R.function
def main(x: R.Tensor((3,), "float32")):
    y = R.call_pure_packed("{name}", x, R.prim_value(3), sinfo_args=R.Tensor((3,), "float32"))
    return y
'''
        return relax.VirtualMachine(relax.build(sator.script.parse("@I.ir_module\nclass M:" + text.replace("\n", "\n    "))))

    def test_a_program_calls_a_function_of_python_s(self):
        @sator.register_func("test.scale")
        def scale(x, k):
            return sator.nd.array(x.numpy() * k)

        vm = self.machine("test.scale")
        np.testing.assert_array_equal(vm["main"](np.ones(3, "float32")).numpy(), [3, 3, 3])
        self.assertIs(sator.get_global_func("test.scale"), scale)
        with self.assertRaises(sator.TVMError):
            sator.register_func("test.scale", scale)

    def test_names_of_functions_are_listed_and_taken_away(self):
        from sator._ffi import registry

        @sator.register_func("test.once")
        def once(x, k):
            registry.remove_global_func("test.once")
            return x

        vm = self.machine("test.once")
        self.assertIn("test.once", registry.list_global_func_names())
        self.assertIsInstance(sator.get_global_func("test.once"), sator.runtime.PackedFunc)
        self.assertIsInstance(vm["main"], sator.runtime.PackedFunc)
        self.assertNotIsInstance(max, sator.runtime.PackedFunc)
        np.testing.assert_array_equal(vm["main"](np.ones(3, "float32")).numpy(), [1, 1, 1])
        self.assertIsNone(sator.get_global_func("test.once", allow_missing=True))
        with self.assertRaisesRegex(sator.TVMError, "calls the function \"test.once\", which is not registered"):
            vm["main"](np.ones(3, "float32"))
        with self.assertRaisesRegex(ValueError, "list_global_func_names"):
            registry.remove_global_func("test.once")

    def test_its_exception_arrives_with_its_traceback(self):
        @sator.register_func("test.fails")
        def fails(x, k):
            raise LookupError("in the callback")

        vm, names = self.machine("test.fails"), []
        try:
            vm["main"](np.ones(3, "float32"))
        except LookupError as e:
            names = [frame.name for frame in traceback.extract_tb(e.__traceback__)]
        self.assertIn("fails", names)

    def test_ten_thousand_calls_leave_nothing(self):
        @sator.register_func("test.same", override=True)
        def same(x, k):
            return x

        vm, x = self.machine("test.same"), np.ones(3, "float32")
        for _ in range(100):
            vm["main"](x)
        gc.collect()
        before, begin = len(gc.get_objects()), time.perf_counter()
        for _ in range(10000):
            vm["main"](x)
        seconds = time.perf_counter() - begin
        gc.collect()
        self.assertLess(len(gc.get_objects()) - before, 50)
        self.assertLess(seconds, 20)


class Programs(unittest.TestCase):
    def test_memory_of_a_block_and_empty_arrays(self):
        @T.prim_func
        def pick(A: T.Buffer((100,), "int32"), P: T.Buffer((10,), "int32")):
            for b in range(10):
                with T.block("pick"):
                    vb = T.axis.spatial(10, b)
                    at = T.alloc_buffer((1,), "int32", scope="local")
                    at[0] = 3 * vb
                    P[vb] = A[at[0]] + vb

        a, p = np.arange(100, dtype="int32"), sator.nd.array(np.zeros(10, "int32"))
        sator.build(pick, target="llvm")(sator.nd.array(a), p)
        np.testing.assert_array_equal(p.numpy(), np.arange(10) * 4)
        for shape in ((0, 5), (3, 0), (0,)):
            self.assertEqual(sator.nd.array(np.zeros(shape, "float32")).numpy().shape, shape)

    def test_accesses_that_leave_their_buffer(self):
        for access, words in (("B[vi + 1] = A[vi]", "an index of B is out of range: vi + 1 comes to 16"),
                              ("B[vi] = A[vi * 2 - 1]", "an index of A is out of range: vi * 2 - 1 comes to -1"),
                              ("B[vi] = A[-1]", "an index of A is out of range: -1 comes to -1")):
            module = sator.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            {access}
""")
            with self.subTest(access=access), self.assertRaisesRegex(Exception, words.replace("+", "\\+").replace("*", "\\*")):
                sator.build(module, target="llvm")
        guarded = sator.script.parse("""
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("b"):
            vi = T.axis.spatial(16, i)
            B[vi] = T.if_then_else(vi < 15, A[vi + 1], T.float32(0))
""")
        a, b = np.arange(16, dtype="float32"), sator.nd.array(np.zeros(16, "float32"))
        sator.build(guarded, target="llvm")(sator.nd.array(a), b)
        np.testing.assert_array_equal(b.numpy(), np.append(a[1:], 0))

    def test_nothing_in_the_place_of_a_part(self):
        v, x = tir.Var("v", "int32"), relax.Var("x", R.Tensor((4, 5), "float32"))
        for make in (lambda: tir.Add(v, None), lambda: tir.Not(None), lambda: tir.SeqStmt([None]), lambda: tir.Evaluate(None),
                     lambda: relax.SeqExpr([None], x), lambda: relax.BlockBuilder().emit_normalized(x), lambda: sator.topi.add(1, 2),
                     lambda: list(x), lambda: relax.Tuple(x), lambda: x[0], lambda: tir.Shuffle([], []),
                     lambda: list(sator.te.placeholder((3,)))):
            self.assertRaises(TypeError, make)
        endless = []
        endless.append(endless)
        for make in (relax.Tuple, relax.PrimValue, relax.op.abs):
            self.assertRaises(RecursionError, make, endless)
        pair = relax.Var("p", R.Tuple([R.Tensor((4,), "float32"), R.Tensor((2,), "float32")]))
        self.assertEqual(len(list(pair)), 2)

    def test_shapes_as_arguments(self):
        @I.ir_module
        class Shapes:
            @R.function
            def fill(s: R.Shape(["a", "b"]), t: R.Tuple(R.Prim("int64"), R.Prim("int64")), u: R.Shape(ndim=1)):
                a, b = T.int64(), T.int64()
                y = R.zeros(R.shape([a, b]), "float32")
                return y

            @R.function
            def twice(x: R.Tensor(("n",), "float32")):
                n = T.int64()
                return R.shape([n, n * 2])

        vm = relax.VirtualMachine(relax.build(Shapes))
        for shape in (sator.runtime.ShapeTuple([3, 6]), (3, 6), [3, 6], vm["twice"](np.ones(3, "float32"))):
            self.assertEqual(vm["fill"](shape, (1, 2), (5,)).shape, (3, 6))
        with self.assertRaisesRegex(sator.TVMError, "needs: a shape of rank 2"):
            vm["fill"]((3, 6, 9), (1, 2), (5,))

    def test_functions_keep_their_parameters(self):
        builder = relax.BlockBuilder()
        x, w, s = (relax.Var(name, R.Tensor((8, 8), "float32")) for name in "xws")
        with builder.function("main", [x, w, s], attrs={"num_input": 1}):
            with builder.dataflow():
                product = builder.emit(relax.op.matmul(x, builder.emit(relax.op.cumsum(w, axis=1))))
                out = builder.emit_output(relax.op.add(product, s))
            builder.emit_func_output(out)
        given = [np.random.default_rng(n).random((8, 8)).astype("float32") for n in range(3)]
        machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), sator.cpu())
        got = machine["main"](*map(sator.nd.array, given)).numpy()
        np.testing.assert_allclose(got, given[0] @ given[1].cumsum(1) + given[2], rtol=1e-5)

    def test_what_is_read_before_it_is_overwritten(self):
        x, y = (np.random.default_rng(n).random((5, 5)).astype("float32") for n in range(2))
        e = np.exp(x)
        for read, use, want in (
            ("R.tril(a, 2)", "R.multiply(b, R.const(0.5, 'float32'))", np.tril(e, 2) * np.float32(0.5)),
            ("R.reshape(a, (25,))", "R.multiply(b, R.const(2, 'float32'))", e.ravel() * 2),
            ("R.negative(a)", "R.sum(b, axis=[0])", -e.sum(0)),
            ("R.permute_dims(a)", "R.matmul(x, b)", x @ e.T),
            ("R.negative(a)", "R.add(b, x)", x - e),
        ):
            module = sator.script.parse(f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add_to(A: T.Buffer((5, 5), "float32"), B: T.Buffer((5, 5), "float32")):
        for i, j in T.grid(5, 5):
            with T.block("add"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] + B[vi, vj]
    @R.function
    def main(x: R.Tensor((5, 5), "float32"), y: R.Tensor((5, 5), "float32")):
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            b = {read}
            c = R.call_tir_inplace(cls.add_to, (a, y), inplace_indices=[0], out_sinfo=R.Tensor((5, 5), "float32"))
            d = {use}
            R.output(c, d)
        return (c, d)
""")
            machine = relax.VirtualMachine(relax.build(module, "llvm"), sator.cpu())
            c, d = machine["main"](sator.nd.array(x), sator.nd.array(y))
            with self.subTest(read=read, use=use):
                np.testing.assert_allclose(c.numpy(), e + y, rtol=1e-5)
                np.testing.assert_allclose(d.numpy(), want, rtol=1e-5)

    def test_statements_outside_of_blocks(self):
        for between in ("m[0] = A[3]", "while m[0] < T.float32(3):\n        m[0] = m[0] + T.float32(1)",
                        "for i in range(8):\n        m[0] = T.max(m[0], B[i])", "if A[0] > T.float32(0):\n        B[2] = T.float32(9)"):
            module = sator.script.parse(f"""
@T.prim_func
def main(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((8,))
    m = T.alloc_buffer((1,))
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * T.float32(2)
    m[0] = T.float32(0)
    {between}
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + m[0]
""")
            a = np.arange(1, 9, dtype="float32")
            b, m = a * 2, np.float32(0)
            if "A[3]" in between:
                m = a[3]
            elif "while" in between:
                m = np.float32(3)
            elif "max" in between:
                m = b.max()
            else:
                b[2] = 9
            c = sator.nd.array(np.zeros(8, "float32"))
            with self.subTest(between=between):
                sator.build(module, target="llvm")(sator.nd.array(a), c)
                np.testing.assert_array_equal(c.numpy(), b + m)

    def test_negative_constants_of_32_bits(self):
        for dtype in ("int8", "int16", "int32", "int64"):
            self.assertEqual(str(relax.const(-3, dtype)), f'R.const(-3, "{dtype}")')
            mod = sator.script.parse(f"""@R.function
def main(x: R.Tensor((2,), "float32")):
    return R.add(x, R.astype(R.const(-3, "{dtype}"), "float32"))""")
            np.testing.assert_array_equal(relax.VirtualMachine(relax.build(mod))["main"](np.ones(2, "float32")).numpy(), [-2, -2])

    def test_a_block_that_is_called_as_the_root(self):
        @I.ir_module
        class Reversed:
            @T.prim_func
            def rev(a: T.Buffer((4,), "float32"), o: T.Buffer((4,), "float32")):
                cur = T.alloc_buffer((1,), "int64")
                with T.block("root"):
                    T.reads(a[0:4])
                    T.writes(o[0:4])
                    cur[0] = T.int64(3)
                    for t in range(4):
                        o[t] = a[cur[0]]
                        cur[0] = cur[0] - T.int64(1)

            @R.function
            def main(a: R.Tensor((4,), "float32")):
                cls = Reversed
                return R.call_tir(cls.rev, (a,), out_sinfo=R.Tensor((4,), "float32"))

        a = np.arange(4, dtype="float32")
        np.testing.assert_array_equal(relax.VirtualMachine(relax.build(Reversed))["main"](a).numpy(), a[::-1])

    def test_graphs_use_what_programs_return(self):
        @I.ir_module
        class Scalars:
            @T.prim_func(private=True)
            def area(p: T.int64, q: T.int64) -> T.int64:
                return p * q

            @T.prim_func(private=True)
            def half(p: T.int64) -> T.float32:
                return T.Cast("float32", p) / T.float32(2)

            @R.function
            def main(x: R.Tensor(("p", "q"), "float32")):
                p, q = T.int64(), T.int64()
                cls = Scalars
                n: R.Prim("int64") = cls.area(R.prim_value(p), R.prim_value(q))
                h: R.Prim("float32") = cls.half(R.prim_value(p))
                return n, h

        vm = relax.VirtualMachine(relax.build(Scalars))
        self.assertEqual([vm["main"](np.zeros(s, "float32"))[i] for s in ((2, 3), (5, 1)) for i in (0, 1)], [6, 1.0, 5, 2.5])


class Exported(unittest.TestCase):
    """export_library, and the library in a process of its own."""

    SCRIPT = """
import sys, numpy as np, sator as tvm
from sator import relax
x, w = np.load(sys.argv[2]), np.load(sys.argv[3])
for library in (tvm.runtime.load_module(sys.argv[1]), relax.vm_build.Executable(tvm.runtime.load_module(sys.argv[1]))):
    vm = relax.VirtualMachine(library, tvm.cpu())
    for n in (1, 5):
        given = [] if sys.argv[4] == "bound" else [w]
        np.testing.assert_allclose(vm["main"](x[:n], *given).numpy(), np.maximum(x[:n] @ w, 0), rtol=1e-5, atol=1e-6)
try:
    vm["main"](x[:, :3].copy(), *given)
except tvm.TVMError as error:
    print(error.needs)
"""

    def test_round_trip(self):
        x, w = random(5, 8), random(8, 4)
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/x.npy", x)
            np.save(f"{folder}/w.npy", w)
            for kind, mod in (("free", Layer), ("bound", relax.transform.BindParams("main", {"w": w})(Layer))):
                relax.build(mod, target="llvm").export_library(f"{folder}/{kind}.so")
                ran = subprocess.run([sys.executable, "-c", self.SCRIPT, f"{folder}/{kind}.so", f"{folder}/x.npy", f"{folder}/w.npy", kind],
                                     capture_output=True, text=True)
                self.assertEqual((ran.stdout, ran.stderr), ("8 there\n", ""))
            with self.assertRaisesRegex(FileNotFoundError, "there is no folder"):
                relax.build(Layer).export_library(f"{folder}/none/a.so")

    def test_what_an_executable_says_of_itself(self):
        executable = relax.build(relax.transform.BindParams("main", {"w": random(8, 4)})(Layer))
        stats = executable.stats()
        self.assertIn("Relax VM executable statistics:\n  Constant pool (# ", stats)
        self.assertIn("[8, 4]", stats)
        self.assertRegex(stats, r"Globals \(#\d+\): \[.*main, vm\.builtin\.")
        code = executable.as_python()
        self.assertIn('with ib.function("main", num_inputs=1):\n    ib.emit_call("vm.builtin.', code)
        self.assertRegex(code, r"args=\[ib\.r\(0\), ib\.imm\(2\), ib\.c\(\d+\), .*dst=ib\.r\(\d+\)\)")
        self.assertRegex(code, r"ib\.emit_ret\(ib\.r\(\d+\)\)\n$")
        compile(code, "code", "exec")
        module = executable.jit()
        self.assertTrue(module.implements_function("main") and not module.implements_function("other"))
        self.assertEqual((module.type_key, module["main"].name), ("library", "main"))
        self.assertIs(executable["vm_load_executable"](), executable)
        for refused in (module.get_source, lambda: module.import_module(module)):
            with self.assertRaisesRegex(sator.TVMError, "needs: "):
                refused()
        with self.assertRaisesRegex(TypeError, "needs: what relax.build"):
            relax.vm_build.Executable(3)

    def test_branches_as_python(self):
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
            if c:
                y = R.add(x, x)
            else:
                y = R.multiply(x, x)
            return y

        self.assertRegex(relax.build(main).as_python(), r"ib\.emit_if\(ib\.r\(\d+\), \d+\)\n(.*\n)*    ib\.emit_goto\(\d+\)")


if __name__ == "__main__":
    unittest.main()
