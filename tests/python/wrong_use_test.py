"""What a user does wrong: each is answered in words, by the name of what was called, and nothing crashes."""
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import ir, relax, te, tir
from sator.relax.dpl import is_op, rewrite_call, wildcard
from sator.script import ir as I, relax as R, tir as T


@I.ir_module
class Program:
    I.module_attrs({"version": 1, "words": "two\nlines"})

    @T.prim_func
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.func_attr({"wide": T.int64(3)})
        for i in range(16):
            with T.block("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + T.float32(1)

    @R.function
    def main(x: R.Tensor(("n",), "float32")):
        n = T.int64()
        y = R.add(x, R.const(np.arange(3, dtype="float32").reshape(3, 1)))
        return y


@I.ir_module
class Sums:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y


def schedule():
    return tir.Schedule(Program["add"])


def loop(sch):
    return sch.get_loops("B")[0]


def deep(levels):
    e = x = tir.Var("x", "int32")
    for k in range(1, levels):
        e = e + x * k
    return e


def deep_from(e, levels):
    for k in range(levels):
        e = e * (k % 3) + k
    return e


def loops(levels):
    s = tir.Evaluate(0)
    for i in range(levels):
        s = tir.For(tir.Var("i", "int32"), 0, 2, 0, s)
    return s


def tuples(levels):
    t = relax.Var("v", R.Tensor((4,), "float32"))
    for _ in range(levels):
        t = relax.Tuple([t])
    return t


class InWords(unittest.TestCase):
    def check(self, kind, words, wrong):
        with self.assertRaises(kind) as raised:
            wrong()
        said = str(raised.exception)
        self.assertIn(words, said)
        self.assertNotIn("incompatible function arguments", said)
        self.assertNotIn("internal error", said)

    def test_arrays_and_constants(self):
        for array, name in ((np.ones(2, ">f4"), ">f4"), (np.array(["a"]), "<U1"), (np.array([None]), "object"), (np.ones(2, "complex64"), "complex64")):
            self.check(TypeError, f"dtype {name}", lambda: sator.nd.array(array))
            self.check(TypeError, f"dtype {name}", lambda: relax.const(array))
        ones = np.ones((2, 3))
        self.assertEqual(relax.const(ones, relax.TensorStructInfo((2, 3), "float16")).struct_info.dtype, "float16")
        self.check(ValueError, "shape (2, 3)", lambda: relax.const(ones, relax.TensorStructInfo((2, 2), "float32")))

        x = relax.Var("x", R.Tensor((2,), "float32"))
        for wrong in (lambda: x + np.ones(2), lambda: np.ones(2) * x, lambda: x < sator.nd.array(np.ones(2))):
            self.check(TypeError, "relax.const(array)", wrong)

    def test_functions_of_the_user_s(self):
        @I.ir_module
        class Calls:
            @R.function
            def main(x: R.Tensor((4,), "float32")):
                y = R.call_dps_packed("wrong_use.never_registered", (x,), R.Tensor((4,), "float32"))
                return y

        self.check(sator.TVMError, "register_func(\"wrong_use.never_registered\")", lambda: relax.VirtualMachine(relax.build(Calls))["main"](np.ones(4, "float32")))
        add = is_op("relax.add")(wildcard(), wildcard())
        self.check(TypeError, "the rewriter gave None", lambda: rewrite_call(add, lambda call, found: None, Program["main"]))
        groups = relax.transform.FuseOpsByPattern([("wrong_use.add", add)], annotate_codegen=True)(Sums)
        for given, words in ((None, "gave None, a NoneType"), ([3], "gave 3, a int")):
            sator.register_func("relax.ext.wrong_use", lambda functions, options, names, given=given: given, override=True)
            self.check(sator.TVMError, words, lambda: relax.transform.RunCodegen()(groups))

    def test_commands_and_compat(self):
        self.check(TypeError, "needs: the folder of a study", lambda: sator.explain(sator.schemes))
        with self.assertRaisesRegex(sator.TVMError, "no quantization scheme \"int9\""):  # one name is one scheme, not its letters
            sator.study(Path(__file__).resolve().parents[2] / "examples" / "gpt2-stories", quant="int9", chip="edge_npu32")
        for args, status, words in ((["--help"], 0, "FILE.py [ARGUMENT...]"), (["/no/such/file.py"], 1, "there is no /no/such/file.py")):
            ran = subprocess.run([sys.executable, "-m", "sator.compat", *args], capture_output=True, text=True)
            self.assertEqual(ran.returncode, status)
            self.assertIn(words, ran.stdout + ran.stderr)
            self.assertNotIn("Traceback", ran.stderr)

    def test_arguments_of_another_type(self):
        for words, wrong in (
            ("None is a NoneType\n  needs: an IRModule or a PrimFunc, for a Schedule", lambda: tir.Schedule(None)),
            ("Var: 3 is a int\n  needs: a text", lambda: tir.Var(3, "int32")),
            ("Var: name = None is a NoneType\n  needs: a text", lambda: relax.Var(None)),
            ("parse: text = None is a NoneType\n  needs: a text", lambda: sator.script.parse(None)),
            ("parse: '\\ud800' holds half of a surrogate pair", lambda: sator.script.parse("\ud800")),
            ("simplify: None is a NoneType", lambda: sator.arith.Analyzer().simplify(None)),
            ("with_attr: key = 3 is a int\n  needs: a text", lambda: Program["add"].with_attr(3, 4)),
            ("None is a NoneType\n  needs: a part of a program", lambda: relax.transform.FuseOps()(None)),
            ("build: None is a NoneType", lambda: relax.build(None)),
            ("'x' is a str\n  needs: an IRModule, a tensor program", lambda: sator.build("x")),
            ("IRModule: 3 is a int", lambda: sator.IRModule(3)),
            ("3 is a int\n  needs: the name of a function", lambda: Program[3]),
            ("Sequential: 3 is a int\n  needs: passes", lambda: sator.transform.Sequential([3])),
            ("save_json: 3 is a int", lambda: ir.save_json(3)),
            ("register_func: 3 is a int\n  needs: a function", lambda: sator.register_func("wrong.use", 3)),
            ("Target: None is a NoneType", lambda: sator.Target(None)),
            ("cpu: dev_id = 'x' is a str", lambda: sator.cpu("x")),
        ):
            self.check(TypeError, words, wrong)

    def test_classes_whose_objects_others_make(self):
        for words, wrong in (
            ("NDArray() makes no object\n  needs: sator.nd.array(values)", sator.nd.NDArray),
            ("LoopRV() makes no object\n  needs: sch.get_loops(block)", tir.schedule.LoopRV),
            ("BlockRV() makes no object\n  needs: sch.get_block(name)", tir.schedule.BlockRV),
            ("Tensor() makes no object\n  needs: te.placeholder(shape)", te.Tensor),
            ("Stmt() makes no object\n  needs: one of its kinds", tir.Stmt),
            ("PrimExpr() makes no object", lambda: tir.PrimExpr(3)),
            ("StructInfo() makes no object\n  needs: one of its kinds, such as relax.TensorStructInfo", relax.StructInfo),
            ("Schedule takes one program\n  needs: an IRModule or a PrimFunc", tir.Schedule),
            ("'\\ud800' holds half of a surrogate pair", lambda: sator.LM("\ud800")),
        ):
            self.check(TypeError, words, wrong)

    def test_what_ended_the_process(self):
        """Found by garbage_test.py: parts that are None, attributes that are no dictionary."""
        add = ir.Op.get("relax.add")
        for words, wrong in (
            ("Range: None for extent\n  needs: a part of a program", lambda: ir.Range(None)),
            ("BindingBlock: None for bindings", lambda: relax.BindingBlock([None])),
            ("VarBinding: None for", lambda: relax.VarBinding(None, None)),
            ("MatchCast: None for", lambda: relax.MatchCast(None, None, None)),
            ("BufferRegion: None for", lambda: tir.BufferRegion(None, None)),
            ("'x' is a str\n  needs: a dictionary of attributes", lambda: relax.Call(add, [], "x")),
            ("None is a NoneType\n  needs: struct info", lambda: relax.Call(add, [], {}, [None])),
            ("None for fields", lambda: relax.TupleStructInfo([None])),
            ("needs: a text and a number of inputs below 65536", lambda: relax.ExecBuilder().function("f", 2**70)),
        ):
            self.check(TypeError, words, wrong)

    def test_what_a_pass_or_a_builder_is_not_given(self):
        self.check(TypeError, "too many positional arguments\n  needs: LegalizeOps(customize_legalize_map=None, enable_warning=False, form=None)",
                   lambda: relax.transform.LegalizeOps(1, 2, 3, 4))
        self.assertEqual(str(inspect.signature(relax.transform.ConvertLayout)), "(desired_layouts=...)")
        self.assertEqual(str(inspect.signature(relax.transform.FuseOps)), "(fuse_opt_level=-1)")
        x = relax.Var("x", R.Tensor((4,), "float32"))

        def without_parameters():
            builder = relax.BlockBuilder()
            with builder.function("f"):
                builder.emit_func_output(builder.emit(relax.op.add(x, x)))

        self.check(sator.error.UseError, "the function f has no list of parameters", without_parameters)

        @R.function
        def func(x: R.Tensor((4,), "float32")):
            y = R.add(x, x)
            return y

        self.check(ValueError, "LegalizeOps makes 2 functions of one: add, func\n  needs: a module", lambda: relax.transform.LegalizeOps()(func))
        self.check(TypeError, "the extents 'abc' are a text", lambda: te.placeholder("abc"))
        self.check(sator.error.DiagnosticError, "call_tir of a tensor program itself\n",
                   lambda: relax.call_tir(Program["add"], (x,), R.Tensor((16,), "float32")))

        @relax.expr_functor.mutator
        class Forgetful(relax.PyExprMutator):
            def visit_call_(self, call):
                self.visit_expr_post_order(call)

        self.check(TypeError, "visit_call_ of Forgetful gives nothing", lambda: Forgetful().visit_expr(func))

    def test_what_python_says_under_our_functions(self):
        """The call and the function's help stand beside it; what a user's function raises arrives as it was raised."""
        with self.assertRaises(AttributeError) as raised:
            te.extern((4,), [None], lambda i, o: None)
        self.assertEqual(str(raised.exception).split("\n")[0].partition(": ")[0], "extern((4,), [None], <function InWords.test_what_python_sa...)")
        self.assertIn("\n  needs: extern(shape, inputs, fcompute, ", str(raised.exception))
        self.assertIn("\n  hint:  help(extern) says what each is: Tensors that a statement computes", str(raised.exception))
        self.assertIsInstance(raised.exception.__cause__, AttributeError)

        def mine(*_):
            return None.shape

        for call in (lambda: te.compute((4,), mine), lambda: relax.BlockBuilder().call_te(mine), lambda: tir.IndexMap.from_func(lambda i: mine(i))):
            with self.assertRaises(AttributeError) as raised:
                call()
            self.assertEqual(str(raised.exception), "'NoneType' object has no attribute 'shape'")
        self.check(TypeError, "missing 1 required positional argument: 'arr'", sator.nd.array)

    def test_modules_that_are_not_here(self):
        import sator.relay  # noqa: F401  (a file that imports it and uses something else runs)

        self.check(sator.TVMError, "relay.op: graphs are Relax's\n  needs: a name that sator has\n  hint:  sator.relax", lambda: sator.relay.op)
        self.check(sator.TVMError, "autotvm.task: schedules are not searched", lambda: sator.autotvm.task)
        self.check(sator.TVMError, "contrib.cutlass: libraries of kernels", lambda: __import__("sator.contrib.cutlass"))
        self.check(sator.TVMError, "vulkan(0): no device that programs are compiled for", sator.vulkan)

    def test_numbers(self):
        self.check(ValueError, "a number that int64 does not hold", lambda: schedule().split(loop(schedule()), [2**70, None]))
        self.check(ValueError, "300, which int8 does not hold", lambda: tir.IntImm("int8", 300))
        self.check(tir.ScheduleError, "factor T.float32(2.5) is no integer", lambda: (lambda s: s.split(loop(s), [2.5, 8]))(schedule()))
        self.check(ValueError, "cannot convert float NaN", lambda: relax.const(float("nan"), "int32"))
        module = sator.build(Program["add"])
        self.check(ValueError, "number = -3\n  needs: at least 1", lambda: module.time_evaluator("add", number=-3))

    def test_names(self):
        self.check(ValueError, "no pass has the option no.such", lambda: sator.transform.PassContext(config={"no.such": 1}))
        self.check(ValueError, "the nearest are: tir.LoopPartition.partition_const_loop",
                   lambda: sator.transform.PassContext(config={"tir.LoopPartitio": {"partition_const_loop": True}}))
        self.check(ValueError, "an empty text names no target", lambda: sator.Target(""))
        self.check(sator.TVMError, 'llvm has no attribute "x"', lambda: sator.Target("llvm --x").kind)
        self.check(sator.TVMError, "the nearest are: mcpu", lambda: sator.Target({"kind": "llvm", "mcpuu": "x"}).kind)
        self.check(AttributeError, "no attribute 'Layouts'", lambda: tir.Layouts)
        self.check(AttributeError, "the nearest are prim_func", lambda: sator.script.parser.prim_fun)
        self.check(sator.TVMError, "foo(0): no device", lambda: sator.device("foo"))
        self.check(ValueError, "is not of save_json", lambda: ir.load_json('{"sator": 1}'))
        self.check(ValueError, "is made of other parts", lambda: ir.load_json('{"sator": 1, "nodes": [["tir.Add", [{"node": 5}, 1]]]}'))

    def test_texts_with_quotes_lines_and_zeros(self):
        for text in ("\"'\\\n\r\t", "\0", "é\u2028", "{x}", "%s"):
            func = Program["add"].with_attr("text", text)
            self.assertEqual(func.attrs["text"], text)
            self.assertEqual(pickle.loads(pickle.dumps(func)).attrs["text"], text)
        self.check(Exception, "no block is named", lambda: schedule().get_block("\"\n'"))

    def test_depth(self):
        module = sator.build(Program["add"])
        out = sator.nd.empty((16,))
        nested = []
        nested.append(nested)
        self.check(RecursionError, "", lambda: Program["add"].with_attr("list", nested))
        e = deep(2000)
        self.assertTrue(ir.structural_equal(pickle.loads(pickle.dumps(e)), e, True))
        module["add"](np.ones(16, "float32"), out)
        self.assertEqual(out.numpy()[3], 2)

    def test_what_is_nested_too_deeply(self):
        for kind, build in (("Add", lambda: deep(20000)), ("For", lambda: loops(20000)), ("Tuple", lambda: tuples(20000))):
            self.check(sator.TVMError, f"the {kind} would have 40", build)
        # What is as deep as may be is printed, compared, simplified, substituted, stored and built.
        e = deep(3990)
        again = ir.load_json(ir.save_json(e))
        self.assertTrue(ir.structural_equal(e, again, True))
        self.assertEqual(ir.structural_hash(e, True), ir.structural_hash(again, True))
        self.assertEqual(len(str(e).split("+")), 3990)
        sator.arith.Analyzer().simplify(e)
        var = next(iter(tir.analysis.undefined_vars(tir.Evaluate(e), [])))
        tir.stmt_functor.substitute(e, {var: tir.Var("y", "int32")})
        A = te.placeholder((4,), "int32", name="A")
        B = te.compute((4,), lambda i: deep_from(A[i], 1900), name="B")
        module = sator.build(te.create_prim_func([A, B]))
        out = sator.nd.empty((4,), "int32")
        module(np.arange(4, dtype="int32"), out)
        value = np.arange(4, dtype="int32")
        for k in range(1900):
            value = value * (k % 3) + k
        self.assertEqual(list(out.numpy()), list(value))
        str(loops(1900))

    def test_objects_that_callbacks_delete(self):
        held = {"mod": sator.IRModule({"add": Program["add"]})}

        @sator.transform.module_pass(name="Forgets")
        def forgets(mod, ctx):
            held.clear()
            gc.collect()
            return mod

        self.assertEqual(len(forgets(held["mod"])), 1)
        sator.register_func("wrong.use.forgets", lambda x: (sator.register_func("wrong.use.forgets", lambda y: y, override=True), x)[1], override=True)
        mod = sator.script.parse("""
@R.function(pure=False)
def main(x: R.Tensor((2,), "float32")):
    y = R.call_packed("wrong.use.forgets", x, sinfo_args=R.Tensor((2,), "float32"))
    return y
""")
        vm = relax.VirtualMachine(relax.build(sator.IRModule({"main": mod})), sator.cpu())
        run = vm["main"]
        del vm
        gc.collect()
        for _ in range(3):
            self.assertEqual(list(run(np.ones(2, "float32")).numpy()), [1, 1])

    def test_threads(self):
        wrong = []

        def work():
            try:
                for _ in range(5):
                    s = schedule()
                    s.split(loop(s), [None, 4])
                    relax.transform.LegalizeOps()(Program)
                    out = sator.nd.empty((16,))
                    module["add"](np.ones(16, "float32"), out)
                    assert out.numpy()[0] == 2
            except BaseException as error:  # noqa: BLE001
                wrong.append(error)

        module = sator.build(Program["add"])
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Pickled(unittest.TestCase):
    def test_every_kind_of_node(self):
        for node in (Program, Program["add"], Program["main"], Program["add"].body, tir.Var("x", "int64") + 1, tir.const(2**63, "uint64"),
                     relax.TensorStructInfo((3, 4)), tir.StringImm("\n\0é"), tir.const(float("inf"), "float16")):
            for again in (pickle.loads(pickle.dumps(node)), ir.load_json(ir.save_json(node))):
                self.assertIs(type(again), type(node))
                self.assertTrue(ir.structural_equal(again, node, True), node)
        v = tir.Var("x", "int32")
        twice = pickle.loads(pickle.dumps(v + v))
        self.assertTrue(twice.a.same_as(twice.b))
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(sator.nd.array(np.arange(3)))).numpy(), np.arange(3))


class DeepPaths(unittest.TestCase):
    def test_paths_hold_what_the_modules_hold(self):
        from sator.ir.transform import PassContext
        from sator.relax.expr import Call
        from sator.relax.op.nn import relu
        from sator.relax.struct_info import TensorStructInfo
        from sator.script.parser import tir as other
        from sator.te.tensor import Tensor
        from sator.tir.expr import Add
        from sator.tir.function import PrimFunc
        from sator.tir.stmt import For
        import sator.relax.transform.transform
        import sator.tir.buffer

        self.assertIs(PassContext, sator.transform.PassContext)
        self.assertEqual((Call, TensorStructInfo, Tensor), (relax.Call, relax.TensorStructInfo, te.Tensor))
        self.assertEqual((Add, PrimFunc, For), (tir.Add, tir.PrimFunc, tir.For))
        self.assertIs(sator.tir.buffer.decl_buffer, tir.decl_buffer)
        self.assertIs(other.prim_func, T.prim_func)
        self.assertEqual(repr(relu(relax.Var("x", R.Tensor((2,), "float32"))).op), repr(relax.op.nn.relu(relax.Var("x", R.Tensor((2,), "float32"))).op))
        from sator.tir.tensor_intrin.cuda import WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN, get_wmma_intrin_group

        self.assertEqual(WMMA_LOAD_16x16x16_F16_A_DYN_INTRIN, "wmma_load_16x16x16_f16_a_shared_dyn")
        self.assertEqual(get_wmma_intrin_group("shared", "shared.dyn", "int8", "int32", True)["compute"], "wmma_sync_16x16x16_s8s8s32_trans")
        with self.assertRaises(ValueError):
            get_wmma_intrin_group("shared", "global", "int4", "int32", True)
        from sator.tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN

        self.assertEqual([str(p.dtype) for p in tir.TensorIntrin.get(VNNI_DOT_16x4_INTRIN).desc.buffer_map.values()], ["uint8", "int8", "int32"])
        with self.assertRaises(ImportError):
            from sator.tir.tensor_intrin import VNNI_DOT_32x4_INTRIN  # noqa: F401
        with self.assertRaises(ImportError):
            from sator.relax.expr import NoSuchNode  # noqa: F401
        with self.assertRaises(ModuleNotFoundError):
            import sator.relax.no_such_module  # noqa: F401

    def test_instruments(self):
        from sator.ir.instrument import PassTimingInstrument, pass_instrument

        seen = []

        @pass_instrument
        class Names:
            def run_before_pass(self, mod, info):
                seen.append(info.name)

        timing = PassTimingInstrument()
        with sator.transform.PassContext(instruments=[Names(), timing]):
            sator.transform.Sequential([relax.transform.Normalize(), relax.transform.LegalizeOps()])(Program)
            text = timing.render()
        self.assertEqual(seen, ["sequential", "Normalize", "LegalizeOps"])
        self.assertRegex(text, r"sequential: \d+us\n  Normalize: \d+us\n  LegalizeOps: \d+us\n")

    def test_a_stage_knows_its_operation(self):
        A = te.placeholder((8, 8), name="A")
        k = te.reduce_axis((0, 8), "k")
        C = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="C")
        s = te.create_schedule(C.op)
        (axis,) = s[C].op.reduce_axis
        s[C].split(axis, factor=4)
        self.assertIn("k_1", sator.lower(s, [A, C], simple_mode=True).script())
        self.assertEqual(str(tir.decl_buffer((16,)).vload([0], "float32x4")), "buffer[0:4]")


if __name__ == "__main__":
    unittest.main()
