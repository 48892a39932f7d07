"""TVM's names: those that are here under TVM's paths, and those that are not, each of which says what there is instead."""
import contextlib
import importlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import ir, refused, relax, te, tir, transform
from sator.relax.testing import nn
from sator.script import ir as I, tir as T


def resolved(path):
    """What stands under a dotted path below sator."""
    value = sator
    for name in path.split("."):
        value = getattr(value, name)
    return value


class Refused(unittest.TestCase):
    def test_each_name_says_what_there_is_instead(self):
        for path in refused._BELOW:
            with self.subTest(path):
                with self.assertRaises(sator.TVMError) as caught:
                    resolved(path)
                self.assertIn(f"error: {path}: ", str(caught.exception))
                self.assertIn("  hint:  ", str(caught.exception))

    def test_each_module_can_be_imported_and_is_empty(self):
        for path in refused.NAMES:
            with self.subTest(path):
                module = importlib.import_module(f"sator.{path}")
                with self.assertRaisesRegex(sator.TVMError, f"error: {path}.anything: .*\n.*\n  hint:  "):
                    module.anything  # noqa: B018
                self.assertIs(resolved(path), module)

    def test_a_session_on_this_machine(self):
        """What TVM's tutorial of cross compilation does, where the other machine is this one."""
        from sator import rpc
        from sator.contrib import utils

        n = tir.Var("n", "int32")
        A = te.placeholder((n,), name="A")
        B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
        built = sator.build(te.create_prim_func([A, B]).with_attr("global_symbol", "add_one"), target="llvm")
        folder = utils.tempdir()
        path = folder.relpath("lib.tar")
        built.export_library(path)
        remote = rpc.LocalSession()
        remote.upload(path)
        program, dev = remote.load_module("lib.tar"), remote.cpu()
        a, b = sator.nd.array(np.arange(16, dtype="float32"), dev), sator.nd.array(np.zeros(16, "float32"), dev)
        program(a, b)
        np.testing.assert_array_equal(b.numpy(), np.arange(16) + 1)
        self.assertEqual(remote.download("lib.tar"), Path(path).read_bytes())
        remote.remove("lib.tar")
        with self.assertRaises(FileNotFoundError):
            remote.download("lib.tar")
        with self.assertRaisesRegex(sator.TVMError, "programs run on this machine"):
            rpc.connect  # noqa: B018

    def test_a_file_that_imports_relay_decorates_programs(self):
        """The decorators look at what modules of a file are: those that are refused are no language."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "user.py"
            file.write_text("from sator import relay, autotvm\nfrom sator.script import tir as T\n@T.prim_func\ndef main(x: T.int32):\n    T.evaluate(x)\n")
            spec = importlib.util.spec_from_file_location("user_of_relay", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.assertIsInstance(module.main, tir.PrimFunc)

    def test_imports_from_them(self):
        for statement in ("from sator.relax.frontend.onnx import from_onnx", "from sator.relax.backend.contrib.cublas import partition_for_cublas",
                          "from sator.relax.frontend.nn import SourceModule", "from sator.topi.cuda import schedule_injective"):
            with self.subTest(statement), self.assertRaisesRegex(sator.TVMError, "hint: "):
                exec(statement, {})

    def test_a_name_that_nobody_has_is_no_attribute(self):
        for path in ("tir.Vra", "relax.analysis.fre_vars", "arith.Analyser", "te.placehold", "testing.assert_allclos"):
            with self.subTest(path), self.assertRaisesRegex(AttributeError, "the nearest are"):
                resolved(path)

    def test_ops_that_there_are_not(self):
        self.assertEqual([hasattr(relax.op, n) for n in ("linear", "linearr", "call_tir", "nn", "unique")], [True, False, True, True, True])
        self.assertEqual([hasattr(relax.op.nn, n) for n in ("relu", "linear")], [True, False])
        self.assertFalse(hasattr(relax.op.memory, "ensure_zero_offset"))


class Present(unittest.TestCase):
    def test_the_same_things_under_tvm_s_names(self):
        same = {"runtime.Object": "ir.Object", "ir.Node": "ir.Object", "gpu": "cuda", "ir.RelayExpr": "relax.Expr", "testing.utils.assert_allclose":
                "testing.assert_allclose", "arith.int_set.IntSet": "arith.IntSet", "tir.generic.add": "tir.add", "te.add": "tir.add"}
        for name, ours in same.items():
            self.assertIs(resolved(name), resolved(ours), name)
        self.assertTrue(issubclass(sator.error.OpNotImplemented, NotImplementedError) and issubclass(sator.error.OpNotImplemented, sator.TVMError))

    def test_operators_as_functions(self):
        x = tir.Var("x", "float32")
        for made, written in ((tir.add(x, 1), x + 1), (tir.subtract(1, x), 1 - x), (te.multiply(x, x), x * x), (tir.divide(x, 2), x / 2),
                              (tir.call_intrin("float32", "tir.exp", x), tir.exp(x))):
            ir.assert_structural_equal(made, written, map_free_vars=False)
        A, k = te.placeholder((8,), name="A"), te.reduce_axis((0, 8), "k")
        program = sator.build(te.create_prim_func([A, te.compute((1,), lambda _i: tir.sum(A[k], axis=k))]))
        a, out = np.arange(8, dtype="float32"), np.zeros(1, "float32")
        program(a, out)
        self.assertEqual(out[0], 28)
        self.assertEqual(str(tir.get_vscale_expr("float32", 256)), "T.vscale() * 8")

    def test_arguments_in_tvm_s_order(self):
        """TVM's last argument is a span, before it a predicate of loads and stores; modules have types of Relay's second."""
        x, buffer = tir.Var("x", "int32"), tir.decl_buffer((4,))
        ir.assert_structural_equal(tir.BufferLoad(buffer, [0], None, None), buffer[0])
        ir.assert_structural_equal(tir.BufferStore(buffer, tir.const(1.0, "float32"), [0], predicate=None), tir.BufferStore(buffer, tir.const(1.0, "float32"), [0]))
        self.assertEqual(tir.StringImm("a", None).value, "a")
        with self.assertRaisesRegex(TypeError, "given 3 by position"):
            tir.BufferLoad(buffer, [0], x)
        self.assertEqual(str(tir.all(x > 1, x < 3, span=None)), "x > 1 and x < 3")
        self.assertEqual(str(tir.floordiv(x, 3, None)), "x // 3")
        self.assertEqual(sator.IRModule({}, None, {"version": 1}, None).attrs["version"], 1)
        with self.assertRaisesRegex(TypeError, "types are not defined"):
            sator.IRModule({}, {"version": 1})
        program = sator.script.parse("@T.prim_func\ndef f(x: T.int32):\n    T.evaluate(x + seven)", {"seven": 7})
        self.assertIn("x + 7", program.script())

    def test_nodes_by_the_keys_of_their_classes(self):
        self.assertEqual(ir.make_node("DictAttrs", a=1), {"a": 1})
        self.assertEqual(ir.make_node("tir.Var", name="x", dtype="int64", span=None).dtype, "int64")
        with self.assertRaisesRegex(ValueError, "there is no class relay.Id"):
            ir.make_node("relay.Id")

    def test_what_is_asked_of_targets(self):
        a100 = sator.target.Target("nvidia/nvidia-a100")
        self.assertEqual((a100.max_threads_per_block, a100.thread_warp_size, a100.max_shared_memory_per_block), (1024, 32, 49152))
        self.assertEqual(a100.export()["arch"], "sm_80")
        cpu = sator.target.Target("llvm -mcpu=znver3 -mattr=+avx2,+fma")
        self.assertEqual((cpu.mcpu, cpu.mattr, cpu.libs, cpu.model), ("znver3", ["+avx2", "+fma"], [], "unknown"))
        self.assertEqual(a100.with_host("llvm").export()["host"]["kind"], "llvm")
        self.assertEqual([str(t) for t in sator.target.Target.canon_target_and_host("cuda", "llvm")], ["cuda", "llvm"])
        with self.assertRaisesRegex(ValueError, "there is no target"):
            sator.target.Target.target_or_current(None)
        self.assertTrue(sator.runtime.enabled("llvm") and not sator.runtime.enabled("cuda"))
        self.assertGreater(sator.runtime.num_threads(), 0)

    def test_instruments(self):
        @I.ir_module
        class Mod:
            @T.prim_func
            def main(A: T.Buffer((1,), "int32")):
                A[0] = 1 + 2

        text = io.StringIO()
        printing = ir.instrument.PassPrintingInstrument(["Simplify"], ["RemoveNoOp"])
        with contextlib.redirect_stdout(text), transform.PassContext(instruments=[printing]) as context:
            tir.transform.Simplify()(Mod)
            tir.transform.RemoveNoOp()(Mod)
            context.override_instruments([])
            tir.transform.Simplify()(Mod)
        self.assertEqual([line for line in text.getvalue().splitlines() if "running pass" in line],
                         [f"Before running pass: {tir.transform.Simplify().info}", f"After running pass: {tir.transform.RemoveNoOp().info}"])
        self.assertIn("tir.LoopPartition", " ".join(transform.PassContext.list_configs()))

        @ir.instrument.pass_instrument
        class Skips:
            def should_run(self, mod, info):
                return super().should_run(mod, info) and info.name != "Simplify"

        with transform.PassContext(instruments=[Skips()]):
            self.assertIs(tir.transform.Simplify()(Mod), Mod)


class Operations(unittest.TestCase):
    def test_kinds_of_te_s_operations(self):
        x = te.placeholder((4,), name="x")
        y, z = te.compute((4,), lambda i: x[i] + 1), te.compute((), lambda: x[0])
        self.assertEqual([isinstance(t.op, te.PlaceholderOp) for t in (x, y, z)], [True, False, False])
        self.assertEqual([isinstance(t.op, te.tensor.ComputeOp) for t in (x, y, z)], [False, True, True])
        self.assertEqual(y.axis, y.op.axis)

    def test_patterns_of_backends(self):
        from sator.relax.backend import patterns
        from sator.relax.backend.pattern_registry import get_pattern, register_patterns

        x, w, b = (relax.Var(n, relax.TensorStructInfo(s, "float32")) for n, s in (("x", (4, 8)), ("w", (6, 8)), ("b", (6,))))
        bb = relax.BlockBuilder()
        with bb.function("main", [x, w, b]):
            with bb.dataflow():
                y = bb.emit(relax.op.matmul(x, bb.emit(relax.op.permute_dims(w))))
                out = bb.emit_output(relax.op.nn.relu(bb.emit(relax.op.add(y, b))))
            bb.emit_func_output(out)
        pattern, parts = patterns.make_matmul_pattern(with_bias=True, activation="relax.nn.relu", transposed_rhs=True)
        self.assertEqual(set(parts), {"lhs", "rhs", "root", "bias"})
        register_patterns([("names_test.matmul", pattern, parts)])
        fused = relax.transform.FuseOpsByPattern([get_pattern("names_test.matmul")])(bb.get())
        self.assertEqual([f.attrs["Composite"] for n, f in fused.functions.items() if n != "main"], ["names_test.matmul"])
        other, _ = patterns.make_conv2d_pattern()
        self.assertEqual(len(relax.transform.FuseOpsByPattern([("names_test.conv", other)])(bb.get()).functions), 1)
        _, parts = patterns.make_residual_block_pattern(patterns.make_fused_bias_activation_pattern("relax.matmul"), activation="relax.nn.relu")
        self.assertEqual(set(parts), {"lhs", "rhs", "root", "residual"})
        self.assertEqual(set(patterns.make_attention_pattern(with_bias=True)[1]), {"query", "key", "value", "bias"})


class Layers(unittest.TestCase):
    def test_the_model_of_tvm_s_examples(self):
        builder = relax.BlockBuilder()
        with builder.function("main"):
            model = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4), nn.LogSoftmax())
            data = nn.Placeholder((tir.Var("n", "int64"), 8), name="data")
            builder.emit_func_output(model(data), params=[data] + model.parameters())
        mod = builder.get()
        self.assertEqual([p.name_hint for p in mod["main"].params], ["data", "linear_weight", "linear_bias", "linear_weight1", "linear_bias1"])
        self.assertEqual([p.shape for p in nn.init_params(mod)], [(8, 6), (6,), (6, 4), (4,)])
        rng = np.random.default_rng(0)
        x, *w = (rng.standard_normal(s).astype("float32") for s in ((3, 8), (8, 6), (6,), (6, 4), (4,)))
        y = np.maximum(x @ w[0] + w[1], 0) @ w[2] + w[3]
        got = relax.VirtualMachine(relax.build(mod), sator.cpu())["main"](x, *w).numpy()
        np.testing.assert_allclose(got, y - np.log(np.exp(y).sum(-1, keepdims=True)), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(RuntimeError, "outside of a function"):
            nn.ReLU()(data)


class TestTools(unittest.TestCase):
    """What tests of users call."""

    def test_expressions(self):
        x = tir.Var("x", "int32")
        sator.testing.assert_prim_expr_equal(x + x, x * 2)
        with self.assertRaisesRegex(ValueError, "not known to be equal"):
            sator.testing.assert_prim_expr_equal(x, x + 1)
        sator.testing.check_bool_expr_is_true(x * x < 17, {x: ir.Range(-4, 5)})
        sator.testing.check_bool_expr_is_true(x < 4, {x: ir.Range(0, 5)}, cond=x != 4)
        with self.assertRaisesRegex(AssertionError, "x = 4"):
            sator.testing.check_bool_expr_is_true(x < 4, {x: ir.Range(0, 5)})

    def test_gradients(self):
        a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        sator.testing.check_numerical_grads(lambda x, y: (x * y).sum(), [a, b], [b, a])
        sator.testing.check_numerical_grads(lambda x: (x * x).sum(), {"x": a}, {"x": 2 * a})
        with self.assertRaisesRegex(AssertionError, "the gradient of input 0"):
            sator.testing.check_numerical_grads(lambda x: (x * x).sum(), [a], [b])

    def test_traces(self):
        @T.prim_func
        def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
            for i, j in T.grid(16, 16):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vj, vi] * T.float32(2)

        sch = tir.Schedule(main)
        i, j = sch.get_loops(sch.get_block("B"))
        outer, inner = sch.split(i, [None, 4])
        sch.reorder(inner, j, outer)
        again = tir.schedule.testing.verify_trace_roundtrip(sch, main)
        ir.assert_structural_equal(again.mod, sch.mod)
        with self.assertRaisesRegex(ValueError, "needs: \"python\" or \"json\""):
            tir.schedule.testing.verify_trace_roundtrip(sch, main, text_format="xml")
        tir.schedule.testing.assert_structural_equal_ignore_global_symbol(main, main.with_attr("global_symbol", "other"))

    FILE = """
import pytest, numpy as np, sator as tvm, sator.testing
from sator.script import tir as T

size = tvm.testing.parameter(1, 2, 3)
dtype = tvm.testing.parameter(by_dict={"f": "float32", "i": "int32"})

@tvm.testing.fixture
def data(size, dtype):
    return np.ones(size, dtype)

def test_data(data, size):
    assert data.shape == (size,)

@tvm.testing.parametrize_targets("llvm", "cuda")
def test_target(target, dev):
    assert target == "llvm" and dev == tvm.cpu()

@tvm.testing.requires_cuda
def test_cuda():
    assert False

class Simplify(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()

class TestSame(Simplify):
    def before(A: T.Buffer(1, "int32")):
        if True:
            A[0] = 42
    def expected(A: T.Buffer(1, "int32")):
        A[0] = 42

class TestRaises(Simplify):
    @pytest.fixture
    def transform(self):
        def fails(mod):
            raise ValueError("no")
        return fails
    def before(A: T.Buffer(1, "int32")):
        A[0] = 42
    expected = ValueError

class TestOther(Simplify):
    def before(A: T.Buffer(1, "int32")):
        A[0] = 42
    def expected(A: T.Buffer(1, "int32")):
        A[0] = 43
"""

    def test_pytest_s_parts(self):
        if importlib.util.find_spec("pytest") is None:
            with self.assertRaisesRegex(sator.TVMError, "hint:  pip install pytest"):
                sator.testing.parameter(1, 2)
            self.skipTest("pytest is not installed")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "test_it.py"
            file.write_text(self.FILE)
            ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)], capture_output=True, text=True,
                                 env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.assertIn("1 failed, 9 passed, 2 skipped", ran.stdout)
        self.assertIn("TestOther::test_compare", ran.stdout)


if __name__ == "__main__":
    unittest.main()
