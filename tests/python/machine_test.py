"""What programs give and ask while they run: numbers, properties of tensors, functions in place, instructions by hand."""
import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import relax, tir
from sator.script import ir as I, relax as R, tir as T


@T.prim_func
def scaled(x: T.handle, e: T.Buffer((64,), "int32"), y: T.handle, out: T.handle, following: T.handle):
    X = T.match_buffer(x, (64,), "float32")
    Y = T.match_buffer(y, (64,), "float32")
    Out = T.match_buffer(out, (64,), "float32")
    Following = T.match_buffer(following, (64,), "float32")
    for i in T.vectorized(64):
        Out[i] = T.ldexp(X[i], e[i])
        Following[i] = T.nextafter(X[i], Y[i])


@T.prim_func
def clipped(x: T.float32, low: T.float32) -> T.float32:
    if x < low:
        T.evaluate(T.ret(low))
    else:
        T.evaluate(T.ret(x))


@T.prim_func
def returns_early(A: T.Buffer((8,), "float32")) -> T.float32:
    for i in range(8):
        T.evaluate(T.ret(A[i]))


@T.prim_func
def last(A: T.Buffer((8,), "int32"), i: T.int32) -> T.int32:
    T.evaluate(T.ret(A[7 - i] * 2))


@I.ir_module
class Properties:
    @R.function
    def bits(x: R.Tensor):
        return x.dtype.bits

    @R.function
    def code(x: R.Tensor):
        return x.dtype.type_code

    @R.function
    def lanes(x: R.Tensor):
        return x.dtype.lanes

    @R.function
    def rank(x: R.Tensor):
        return x.ndim

    @R.function
    def extent(x: R.Tensor, axis: R.Prim("int64")):
        return x.shape[axis]

    @R.function
    def stride(x: R.Tensor, axis: R.Prim("int64")):
        return x.strides[axis]

    @R.function
    def offset(x: R.Tensor):
        return x.elem_offset


def machine(mod):
    return relax.VirtualMachine(relax.build(mod, "llvm"), sator.cpu())


class Elementary(unittest.TestCase):
    def test_ldexp_and_nextafter(self):
        numbers = [0, -0.0, 1, -1, 3e38, -3e38, 1e-45, -1e-45, 1.2e-38, -1.2e-38, np.inf, -np.inf, np.nan, 0.1, -2.5, 7]
        x, y = np.repeat(np.float32(numbers), 4), np.tile(np.float32([0, np.inf, -np.inf, np.nan]), 16)
        e = np.tile(np.int32([1, -1, 300, -300]), 16)
        out, following = np.empty_like(x), np.empty_like(x)
        sator.build(scaled)(x, e, y, out, following)
        with np.errstate(all="ignore"):
            for got, expected in (out, np.ldexp(x, e)), (following, np.nextafter(x, y)):
                np.testing.assert_array_equal(got, expected)
                signs = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(got[signs]), np.signbit(expected[signs]))


class Numbers(unittest.TestCase):
    def test_returned(self):
        program = sator.build(sator.IRModule({"clipped": clipped, "last": last}))
        self.assertEqual((program["clipped"](3.0, 4.0), program["clipped"](5.0, 4.0)), (4.0, 5.0))
        a = np.arange(8, dtype="int32")
        self.assertEqual([program["last"](a, i) for i in (0, 7)], [14, 0])
        self.assertIsInstance(program["last"](a, np.int32(3)), int)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "numbers.so"
            program.export_library(path)
            self.assertEqual(sator.runtime.load_module(path)["last"](a, 1), 12)

    def test_integers_wrap(self):
        x, y = tir.Var("x", "int8"), tir.Var("y", "int8")
        add = tir.PrimFunc([x, y], tir.Evaluate(tir.ret(x + y))).with_attr("global_symbol", "add")
        self.assertEqual(sator.build(add)(127, 1), -128)

    def test_return_inside_of_a_loop(self):
        with self.assertRaisesRegex(sator.TVMError, "not the last statement"):
            sator.build(returns_early)


class Tensors(unittest.TestCase):
    def test_properties(self):
        vm = machine(Properties)
        for dtype, code, bits in (("int8", 0, 8), ("uint16", 1, 16), ("float32", 2, 32), ("bool", 1, 1)):
            x = sator.nd.empty((3, 5), dtype)
            self.assertEqual((vm["code"](x), vm["bits"](x), vm["lanes"](x), vm["rank"](x)), (code, bits, 1, 2))
        x = np.zeros((3, 5, 7), "float32")
        self.assertEqual([vm["extent"](x, i) for i in range(3)], [3, 5, 7])
        self.assertEqual([vm["stride"](x, i) for i in range(3)], [35, 7, 1])
        self.assertEqual((vm["rank"](np.zeros((), "float32")), vm["offset"](x)), (0, 0))
        with self.assertRaisesRegex(sator.TVMError, "axis"):
            vm["extent"](x, 3)

    def test_known_properties(self):
        @R.function
        def f(x: R.Tensor(("n", 4), "float16")):
            y = x.ndim
            z = x.shape[1]
            return (y, z)

        infos = [b.var.struct_info for b in f.body.blocks[0].bindings[:2]]
        self.assertEqual([int(i.value) for i in infos], [2, 4])
        with self.assertRaisesRegex(sator.TVMError, "axis 2"):
            sator.script.parse('@R.function\ndef f(x: R.Tensor((4, 4), "float16")):\n    z = x.shape[2]\n    return z\n')

    def test_functions_in_place(self):
        @I.ir_module
        class InPlace:
            @R.function
            def main(x: R.Tensor((3,), "float32"), y: R.Tensor((3,), "float32")):
                z = R.call_inplace_packed("machine_test.add_to", x, y, inplace_indices=0, sinfo_args=(R.Tensor((3,), dtype="float32")))
                return z

        def add_to(a, b):
            a.copyfrom(a.numpy() + b.numpy())
            return a

        sator.register_func("machine_test.add_to", add_to, override=True)
        x = sator.nd.array(np.arange(3, dtype="float32"))
        result = machine(InPlace)["main"](x, sator.nd.array(np.ones(3, "float32")))
        for got in (x, result):
            np.testing.assert_array_equal(got.numpy(), [1, 2, 3])


class Instructions(unittest.TestCase):
    def setUp(self):
        sator.register_func("machine_test.add", lambda a, b: a + b, override=True)

    def summing(self):
        """sum_to(n): 1 + ... + n, by a loop."""
        ib = relax.ExecBuilder()
        with ib.function("sum_to", num_inputs=1):
            ib.emit_call("machine_test.add", args=[ib.imm(0), ib.imm(0)], dst=ib.r(1))
            ib.emit_if(ib.r(0), 4)
            ib.emit_call("machine_test.add", args=[ib.r(1), ib.r(0)], dst=ib.r(1))
            ib.emit_call("machine_test.add", args=[ib.r(0), ib.imm(-1)], dst=ib.r(0))
            ib.emit_goto(-3)
            ib.emit_ret(ib.r(1))
        return ib

    def test_loop_and_calls(self):
        ib = self.summing()
        with ib.function("twice", num_inputs=1):
            ib.emit_call("sum_to", args=[ib.r(0)], dst=ib.r(1))
            ib.emit_call("machine_test.add", args=[ib.r(1), ib.r(1)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        code = ib.get()
        vm = relax.VirtualMachine(code, sator.cpu())
        self.assertEqual([vm["sum_to"](n) for n in (0, 1, 4, 100)], [0, 1, 10, 5050])
        self.assertEqual(vm["twice"](4), 20)
        self.assertIn("machine_test.add", code.as_text())
        self.assertEqual(relax.testing.vm.check_saved_func(vm, "twice", 3), 12)

    def test_constants(self):
        ib = relax.ExecBuilder()
        value = sator.nd.array(np.arange(3, dtype="int32"))
        self.assertEqual(ib.convert_constant(value), ib.convert_constant(sator.nd.array(np.arange(3, dtype="int32"))))
        self.assertNotEqual(ib.convert_constant("a"), ib.convert_constant("b"))
        with ib.function("shape_of", num_inputs=0):
            ib.emit_call("vm.builtin.shape_of", args=[ib.c(ib.convert_constant(value))], dst=ib.r(0))
            ib.emit_ret(ib.r(0))
        self.assertEqual(tuple(relax.VirtualMachine(ib.get(), sator.cpu())["shape_of"]()), (3,))

    def test_errors(self):
        ib = self.summing()
        with self.assertRaisesRegex(ValueError, "outside of a function"):
            ib.emit_ret(ib.r(0))
        with self.assertRaisesRegex(ValueError, "sum_to cannot begin here"):
            ib.function("sum_to", num_inputs=1)
        with ib.function("out", num_inputs=0):
            ib.emit_goto(7)
        with self.assertRaisesRegex(ValueError, "a jump by 7"):
            ib.get()
        missing = relax.ExecBuilder()
        with missing.function("f", num_inputs=0):
            missing.emit_call("machine_test.no_such", args=[], dst=missing.r(0))
            missing.emit_ret(missing.r(0))
        with missing.function("g", num_inputs=1):
            missing.emit_ret(missing.r(0))
        machine = relax.VirtualMachine(missing.get(), sator.cpu())
        self.assertEqual(machine["g"](3), 3)
        with self.assertRaisesRegex(sator.TVMError, r'"machine_test.no_such", which is not registered(.|\n)*@sator.register_func\("machine_test.no_such"\)'):
            machine["f"]()
        builtin = relax.ExecBuilder()
        with builtin.function("f", num_inputs=0):
            builtin.emit_call("vm.builtin.no_such", args=[], dst=builtin.r(0))
            builtin.emit_ret(builtin.r(0))
        with self.assertRaisesRegex(sator.TVMError, 'the builtin "vm.builtin.no_such", which is not there'):
            relax.VirtualMachine(builtin.get(), sator.cpu())


class Calls(unittest.TestCase):
    def test_functions_of_the_module(self):
        @I.ir_module
        class M:
            @T.prim_func
            def main(A: T.Buffer((80, 16), "float32"), B: T.Buffer((64, 16), "float32")):
                for i in range(64):
                    M.sums(T.address_of(A[i, 0]), T.address_of(B[i, 0]))
                M.doubled(B.data, B.data)
                for i in range(64):
                    with T.block("first"):
                        vi = T.axis.spatial(64, i)
                        B[vi, 0] = M.clipped(B[vi, 0], T.float32(9))

            @T.prim_func(private=True)
            def sums(a: T.handle("float32"), b: T.handle("float32")):
                A = T.decl_buffer((16, 16), "float32", data=a)
                B = T.decl_buffer((16,), "float32", data=b)
                for i in range(16):
                    B[i] = 0.0
                    for j in range(16):
                        B[i] = B[i] + A[i, j]

            @T.prim_func(private=True)
            def doubled(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
                for i in range(1024):
                    with T.block("doubled"):
                        vi = T.axis.spatial(1024, i)
                        B[vi] = A[vi] * T.float32(2)

            @T.prim_func
            def clipped(x: T.float32, low: T.float32) -> T.float32:
                if x < low:
                    T.evaluate(T.ret(low))
                else:
                    T.evaluate(T.ret(x))

        a, b = np.random.default_rng(0).standard_normal((80, 16)).astype("float32"), np.zeros((64, 16), "float32")
        program = sator.build(M)
        program["main"](a, b)
        expected = 2 * np.lib.stride_tricks.sliding_window_view(a.sum(1), 16)[:64]
        expected[:, 0] = np.maximum(expected[:, 0], 9)
        np.testing.assert_allclose(b, expected, rtol=1e-4, atol=1e-5)
        self.assertEqual(program["clipped"](3.0, 4.0), 4.0)

        @I.ir_module
        class Again:
            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                Again.main(A.data)
        with self.assertRaisesRegex(sator.TVMError, "calls the function main of its module"):
            sator.build(Again)

    def test_pointers_of_parts(self):
        """access_ptr counts from the argument's first element, in a matched buffer too."""
        @T.prim_func
        def moved(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
            T.evaluate(T.call_extern("int32", "memcpy", B.access_ptr("w", offset=4), A.access_ptr("r", offset=8), 32))

        a, b = np.arange(16, dtype="float32"), np.zeros(16, "float32")
        sator.build(moved)(a, b)
        np.testing.assert_array_equal(b, np.concatenate([np.zeros(4), a[8:], np.zeros(4)]))

        @T.prim_func
        def copied(A: T.Buffer((3, 16), "float32"), B: T.Buffer((3, 16), "float32")):
            for r, i in T.grid(3, 4):
                with T.block("part"):
                    vr, vi = T.axis.remap("SS", [r, i])
                    T.reads(A[vr, vi * 4:vi * 4 + 4])
                    T.writes(B[vr, vi * 4:vi * 4 + 4])
                    X = T.match_buffer(A[vr, vi * 4:vi * 4 + 4], (4,), offset_factor=1)
                    Y = T.match_buffer(B[vr, vi * 4:vi * 4 + 4], (4,), offset_factor=1)
                    T.evaluate(T.call_extern("int32", "memcpy", Y.access_ptr("w"), X.access_ptr("r"), 16))

        a, b = np.random.default_rng(1).random((3, 16), "float32"), np.zeros((3, 16), "float32")
        sator.build(copied)(a, b)
        np.testing.assert_array_equal(b, a)

    def test_strides_of_parameters(self):
        """Arguments are dense: strides by name are a dense array's, others are refused, as are offsets."""
        def program(declared, sizes="pass"):
            return sator.script.parse(f'''
@T.prim_func
def main(a: T.handle, b: T.handle):
    {sizes}
    A = T.match_buffer(a, (3, 4), "float32", {declared})
    B = T.match_buffer(b, (3, 4), "float32")
    for i, j in T.grid(3, 4):
        B[i, j] = A[i, j]
''')

        a = np.arange(12, dtype="float32").reshape(3, 4)
        for declared, sizes in [("strides=[4, 1]", "pass"), ("strides=[s, t]", "s = T.int32(); t = T.int64()"), ("strides=[s, 1], elem_offset=t", "s = T.int64(); t = T.int32()")]:
            b = np.zeros((3, 4), "float32")
            sator.build(program(declared, sizes))(a, b)
            np.testing.assert_array_equal(b, a, declared)
        for declared, words in [("strides=[8, 1]", "stride 8 in dimension 0, a dense array 4"), ("strides=[4, 2]", "stride 2"), ("elem_offset=4", "begins at element 4")]:
            with self.assertRaisesRegex(sator.TVMError, words):
                sator.build(program(declared))


class Messages(unittest.TestCase):
    def setUp(self):
        @R.function(pure=False)
        def main(x: R.Tensor((2, 2), "float32"), holds: R.Tensor((), "bool"), many: R.Tensor((2000,), "float16")):
            _ = R.print(x, R.shape([2, 5]), format="x is {} of {}!")
            _1 = R.print(many)
            _2 = R.assert_op(holds, R.prim_value(3), format="{} is too many")
            return x
        self.vm = machine(sator.IRModule({"main": main}))
        self.args = [np.array([[0.1, 2], [np.nan, -0.0]], "float32"), np.arange(2000).astype("float16")]

    def test_print(self):
        """Values stand in the place of {}; floats are the shortest that read back; long tensors are cut, as NumPy's."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.vm["main"](self.args[0], np.array(True), self.args[1])
        self.assertEqual(said.getvalue(), "x is [[0.1, 2.0],\n [nan, -0.0]] of [2, 5]!\n[0.0, 1.0, 2.0, ..., 1997.0, 1998.0, 1999.0]\n")

    def test_assertion(self):
        with contextlib.redirect_stdout(io.StringIO()), self.assertRaisesRegex(sator.TVMError, "assertion failed: 3 is too many"):
            self.vm["main"](self.args[0], np.array(False), self.args[1])
        x = relax.Var("x", R.Tensor((3,), "float32"))
        made = relax.op.assert_op(condition=relax.const(True), format_args=[x], format="x {}")
        self.assertTrue(sator.ir.structural_equal(made, relax.op.assert_op(relax.const(True), x, format="x {}"), True))


class Ends(unittest.TestCase):
    def test_threads_inside_of_kernels(self):
        """Python ends while daemons compute: they ask for its lock when it is gone."""
        script = """
import threading, time, numpy as np, sator
from sator.script import tir as T
@T.prim_func
def f(A: T.Buffer((200000,), "float32")):
    for i in range(200000):
        A[i] = T.sin(A[i])
program, a, ran = sator.build(f), np.ones(200000, "float32"), threading.Event()
def work():
    while True:
        program(a)
        ran.set()
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
ran.wait()
"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ends.py"
            path.write_text(script)
            done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Surroundings(unittest.TestCase):
    def test_modules_of_python(self):
        text = '''@R.function
def f(x: R.Tensor((2, 2), "int32")):
    y = R.add(x, R.const(np.array([[1, 2], [3, 4]], dtype="int32"), dtype="int32"))
    z = relax.Call(relax.Op.get("add"), [y, x])
    return z
'''
        f = sator.script.parse(text, extra_vars={"np": np, "relax": relax})
        x = np.ones((2, 2), "int32")
        np.testing.assert_array_equal(machine(sator.IRModule({"f": f.with_attr("global_symbol", "f")}))["f"](x).numpy(), [[3, 4], [5, 6]])
        # R.Call is of the language itself.
        alone = sator.script.parse(text, extra_vars={"np": np})
        self.assertTrue(sator.ir.structural_equal(alone, f))
        with self.assertRaisesRegex(sator.TVMError, "R.Tuples is not part"):
            sator.script.parse(text.replace("relax.Call", "relax.Tuples"), extra_vars={"np": np})
        with self.assertRaisesRegex(sator.TVMError, "did you mean R.nn.relu"):
            sator.script.parse(text.replace("R.add", "R.nn.reluu"), extra_vars={"np": np, "relax": relax})

    def test_functions_of_indices(self):
        swapped = lambda i, j: (j, i)  # noqa: E731

        @R.function
        def f(x: R.Tensor((2, 3), "float32")):
            y = R.layout_transform(x, index_map=swapped)
            return y

        self.assertEqual(list(map(int, f.ret_struct_info.shape)), [3, 2])
        again = sator.script.parse(f.script(show_meta=True))
        self.assertTrue(sator.ir.structural_equal(again, f))


if __name__ == "__main__":
    unittest.main()
