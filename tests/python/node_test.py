"""Constants of each dtype, equality of lists, and whether programs for GPUs touch memory by threads alone."""
import copy
import pickle
import unittest

import numpy as np

import sator
from sator import ir, relax, te, tir, topi
from sator.script import tir as T


class Constants(unittest.TestCase):
    def test_dtypes_that_values_have(self):
        for value, dtype in ((1, "int32"), (2**31, "int64"), (True, "bool"), (1.5, "float32"), (1e39, "float64"), (np.float64(1.5), "float64"), (np.int8(1), "int8"),
                             (tir.IntImm("int16", 4), "int16"), (float("inf"), "float32")):
            self.assertEqual(tir.const(value).dtype, dtype, value)

    def test_what_a_dtype_holds(self):
        for dtype in ("float16", "float32"):
            largest = float(np.finfo(dtype).max)
            self.assertEqual(tir.const(-largest, dtype).value, -largest)
            self.assertEqual(tir.const(float("inf"), dtype).value, float("inf"))
            for make in (lambda d, v: tir.const(v, d), tir.FloatImm):
                with self.assertRaisesRegex(ValueError, "is outside of " + dtype):
                    make(dtype, largest * 1.001)
        with self.assertRaisesRegex(ValueError, "floating dtype"):
            tir.FloatImm("int32", 1.0)

    def test_as_numbers_of_python(self):
        self.assertEqual((float(tir.FloatImm("float32", 0.5)), float(tir.IntImm("int64", 3)), int(tir.IntImm("int8", -3))), (0.5, 3.0, -3))
        with self.assertRaisesRegex(TypeError, "no constant"):
            float(tir.Var("x", "float32"))

    def test_sizes(self):
        self.assertEqual(sator.DataType("int8x4").itemsize(), 4)
        with self.assertRaisesRegex(ValueError, "fixed number of lanes"):
            sator.DataType("int32xvscalex4").itemsize()


class Literals(unittest.TestCase):
    """Python's floats beside float64 are the doubles that were written."""

    def test_in_scripts(self):
        third, pi = np.float64(1 / 3), np.pi

        @T.prim_func
        def program(A: T.Buffer((2,), "float64"), B: T.Buffer((9,), "float64")):
            B[0] = 0.1
            B[1] = A[0] * 0.1
            B[2] = 1e-300
            B[3] = -1e39
            B[4] = A[0] + third
            B[5] = pi
            B[6] = T.if_then_else(A[0] > 0.1, A[0], 0.1)
            B[7] = T.max(A[1], 0.4)
            B[8] = T.Cast("float64", T.float32(0.1))

        a, b = np.array([0.1, 0.3]), np.zeros(9)
        sator.build(program)(a, b)
        np.testing.assert_array_equal(b, [0.1, 0.1 * 0.1, 1e-300, -1e39, 0.1 + 1 / 3, np.pi, 0.1, 0.4, float(np.float32(0.1))])

    def test_in_expressions(self):
        x = tir.Var("x", "float64")
        for made in (x * 0.1, 0.1 - x, tir.max(x, 0.1), tir.if_then_else(x > 0, x, 0.1)):
            self.assertIn("T.float64(0.10000000000000001)", str(made))
        self.assertEqual((tir.Var("h", "float32") * 1e39).dtype, "float64")
        self.assertEqual((tir.Var("h", "float32") * float("inf")).dtype, "float32")
        wide = tir.Broadcast(x, 4) * tir.FloatImm("float32", 0.1)
        self.assertEqual(wide.b.value.value, 0.1)

    def test_in_formulas(self):
        a = te.placeholder((3,), "float64", name="a")
        b = te.compute((3,), lambda i: te.max(a[i] / 0.3, 0.4) + te.if_then_else(a[i] > 0.7, a[i], 0.1))
        c = topi.clip(a, 0.2, 0.6)
        x, y, z = np.array([0.01, 0.5, 0.9]), np.zeros(3), np.zeros(3)
        sator.build(te.create_prim_func([a, b, c]))(x, y, z)
        np.testing.assert_array_equal(y, np.maximum(x / 0.3, 0.4) + np.where(x > 0.7, x, 0.1))
        np.testing.assert_array_equal(z, np.clip(x, 0.2, 0.6))

    def test_in_graphs(self):
        x = relax.Var("x", relax.TensorStructInfo((3,), "float64"))
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            made = [builder.emit(e) for e in (relax.op.clip(x, 0.2, 0.6), relax.op.arange(0, 1, 0.1, "float64"), relax.op.full_like(x, 0.1),
                                              relax.op.masked_fill(x, relax.op.greater(x, relax.const(0.4, "float64")), 0.1),
                                              relax.op.nn.pad(x, [1, 0], 0.1))]
            builder.emit_func_output(relax.Tuple(made))
        values = np.array([0.1, 0.5, 0.9])
        machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), sator.cpu())
        clipped, numbers, filled, masked, padded = machine["main"](values)
        np.testing.assert_array_equal(clipped.numpy(), np.clip(values, 0.2, 0.6))
        np.testing.assert_array_equal(numbers.numpy(), np.arange(0, 1, 0.1))
        np.testing.assert_array_equal(filled.numpy(), np.full_like(values, 0.1))
        np.testing.assert_array_equal(masked.numpy(), np.where(values > 0.4, 0.1, values))
        np.testing.assert_array_equal(padded.numpy(), np.pad(values, (1, 0), constant_values=0.1))


class Names(unittest.TestCase):
    def test_one_name_of_a_module_is_one(self):
        @T.prim_func
        def g(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i] + T.float32(1)

        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
        gv = builder.add_func(g, "g")
        with builder.function("main", [x]):
            builder.emit_func_output(builder.emit(relax.call_tir(gv, [x], relax.TensorStructInfo((4,), "float32"))))
        mod = builder.get()
        called, known, other = mod["main"].body.blocks[0].bindings[0].value.args[0], mod.get_global_var("g"), mod.get_global_var("main")
        self.assertTrue(called == known and known == called and called.same_as(known) and not called != known)
        self.assertTrue(known != other and not known == other and not known.same_as(other))
        self.assertEqual({known: 1}[called], 1)
        self.assertEqual(len({known, called, other}), 2)
        self.assertTrue(called in mod and called in mod.functions and called in list(mod.functions))
        self.assertIs(mod.functions.get(relax.GlobalVar("absent"), None), None)
        self.assertTrue(mod.functions.get(called).same_as(mod["g"]) and mod.functions[called].same_as(mod["g"]))
        self.assertEqual([name == called for name in mod.functions], [True, False])
        self.assertFalse(known == "g" or known == None or relax.GlobalVar("absent") in mod)  # noqa: E711


class Ops(unittest.TestCase):
    def test_of_tensor_programs_and_graphs(self):
        exp = tir.exp(tir.Var("x", "float32")).op
        self.assertIsInstance(exp, ir.Op)
        self.assertTrue(exp.same_as(ir.Op.get("tir.exp")) and exp == ir.Op.get("tir.exp") and exp == "tir.exp")
        self.assertFalse(exp.same_as(ir.Op.get("tir.log")) or exp.same_as(ir.Op.get("relax.exp")) or ir.Op.get("relax.exp").same_as(exp))
        self.assertEqual(({exp: 1}[ir.Op.get("tir.exp")], exp.name, ir.Op.get("tir.exp").name), (1, "tir.exp", "tir.exp"))
        for copied in (copy.deepcopy(exp), pickle.loads(pickle.dumps(exp))):
            self.assertIsInstance(copied, ir.Op)
            self.assertEqual(copied, exp)
        x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
        add = relax.op.add(x, x).op
        self.assertTrue(add.same_as(ir.Op.get("relax.add")) and not add.same_as(ir.Op.get("relax.exp")))
        self.assertIn("tir.exp", ir.Op.list_op_names())
        with self.assertRaisesRegex(sator.TVMError, "there is no op tir.nothing"):
            ir.Op.get("tir.nothing")


class Iterators(unittest.TestCase):
    def test_by_name_and_bounds(self):
        axis = tir.IterVar((tir.const(2, "int64"), 10), "k", tir.IterVar.CommReduce)
        self.assertEqual((axis.var.name, axis.var.dtype, axis.dom.extent.value, axis.iter_type), ("k", "int64", 8, tir.IterVar.CommReduce))
        var = tir.Var("i", "int32")
        self.assertTrue(tir.IterVar(sator.ir.Range(4), var, 0).var.same_as(var))
        with self.assertRaisesRegex(TypeError, "begin and end"):
            tir.IterVar((1, 2, 3), "i", 0)


class Lists(unittest.TestCase):
    def test_struct_info_is_equal_where_it_says_the_same(self):
        n = tir.Var("n", "int64")
        tensor = relax.TensorStructInfo((n, 4), "float32")
        self.assertIsInstance(tensor, relax.TensorStructInfo)
        self.assertIsInstance(relax.Var("x", tensor).struct_info, relax.struct_info.TensorStructInfo)
        self.assertTrue(tensor == relax.TensorStructInfo((n, 4), "float32"))
        self.assertTrue(tensor != relax.TensorStructInfo((n + 1, 4), "float32"))
        self.assertTrue(tensor != relax.TensorStructInfo((tir.Var("n", "int64"), 4), "float32"))
        self.assertTrue(tensor != 3)
        self.assertEqual(len({relax.PrimStructInfo("int64"), relax.PrimStructInfo("int64"), relax.ShapeStructInfo(ndim=2)}), 2)

    def test_functions_in_modules_are_functions(self):
        bb = relax.BlockBuilder()
        with self.assertRaisesRegex(TypeError, "needs: a function: a relax.Function or a tir.PrimFunc"):
            bb.add_func(relax.extern("printf"), "printf")
        with self.assertRaisesRegex(TypeError, "needs: a function"):
            bb.update_func("f", tir.Var("x", "int32"))

    def test_structural_equal(self):
        n, m = tir.Var("n", "int32"), tir.Var("m", "int32")
        equal = sator.ir.structural_equal
        self.assertTrue(equal([n, n + 1], [n, n + 1]))
        self.assertFalse(equal([n], [n, n]) or equal([n], n) or equal([n], [m]))
        self.assertTrue(equal([n, n + m], [m, m + n], map_free_vars=True))
        self.assertFalse(equal([n, n], [n, m], map_free_vars=True))


@T.prim_func
def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.thread_binding(8, "threadIdx.x"):
        B[i] = A[i]
    for i in range(8):
        B[i] = B[i] + T.float32(1)


@T.prim_func
def by_threads(A: T.Buffer((8,), "float32")):
    x = T.launch_thread("threadIdx.x", 8)
    A[x] = A[x] + T.float32(1)


class Containers(unittest.TestCase):
    def test_dictionaries_and_tensors(self):
        equal, hashed = ir.structural_equal, ir.structural_hash
        make = lambda value, **more: {"tile": [1, tir.const(2)], "weight": sator.nd.array([1.0, value]), **more}
        self.assertTrue(equal(make(2.0), make(2.0)))
        self.assertEqual(hashed(make(2.0)), hashed(make(2.0)))
        self.assertFalse(equal(make(2.0), make(3.0)))
        self.assertFalse(equal(make(2.0), make(2.0, more=1)))
        self.assertFalse(equal({}, []))
        self.assertFalse(equal(sator.nd.array(np.ones(2, "float32")), sator.nd.array(np.ones(2, "float64"))))
        x = tir.Var("x", "int32")  # the same variable in all items of a side
        self.assertTrue(equal({"a": x, "b": x + 1}, {"b": x + 1, "a": x}))
        with self.assertRaises(ValueError):
            ir.assert_structural_equal({"a": 1}, {"a": 2})


class Memory(unittest.TestCase):
    def test_verify_memory(self):
        def on(func, kind):
            return func.with_attr("target", sator.target.Target(kind))

        verify = tir.analysis.verify_memory
        self.assertFalse(verify(on(twice, "cuda")))
        self.assertTrue(verify(on(twice, "llvm")) and verify(on(by_threads, "cuda")) and verify(on(by_threads, "vulkan")))
        self.assertTrue(verify(on(twice, "cuda").with_attr("calling_conv", 2)))
        mod = sator.IRModule({"f": on(by_threads, "cuda")})
        self.assertTrue(sator.ir.structural_equal(tir.transform.VerifyMemory()(mod), mod))
        with self.assertRaisesRegex(sator.TVMError, "function f touches B outside of threads"):
            tir.transform.VerifyMemory()(sator.IRModule({"f": on(twice, "opencl")}))
        for wrong, error in ((twice, ValueError), (3, TypeError)):
            with self.assertRaisesRegex(error, "needs:"):
                verify(wrong)


if __name__ == "__main__":
    unittest.main()
