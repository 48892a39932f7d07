"""Arguments and names of TVM v0.17 that its users write: what each does here."""
import contextlib
import io
import unittest
import warnings

import numpy as np

import sator
from sator import relax, te, tir
from sator.relax.dpl import is_op, wildcard
from sator.script import ir as I, relax as R, tir as T


@I.ir_module
class Graph:
    @R.function(private=True)
    def part(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.exp(x)

    @R.function(private=True)
    def unused(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.nn.relu(y)
            R.output(z)
        return z

    @R.function
    def other(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Graph
        with R.dataflow():
            y = R.exp(x)
            z = R.nn.relu(y)
            R.output(z)
        w = cls.part(z)
        return w


@I.ir_module
class Products:
    @R.function
    def main(x: R.Tensor((2, 4), "float32"), a: R.Tensor((4, 3), "float32"), b: R.Tensor((4, 5), "float32")):
        with R.dataflow():
            y = R.matmul(x, a)
            z = R.matmul(x, b)
            R.output(y, z)
        return (y, z)


@T.prim_func
def scaled(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    for i, j in T.grid(4, 8):
        B[i * 8 + j] = A[i * 8 + j] * T.float32(2)


def ops(func):
    return [b.value.op.name for block in func.body.blocks for b in block.bindings if isinstance(b.value, relax.Call) and isinstance(b.value.op, relax.Op)]


class Passes(unittest.TestCase):
    def test_fuse_ops_by_level(self):
        mod = relax.transform.AnnotateTIROpPattern()(relax.transform.LegalizeOps()(Graph))
        fused = relax.transform.FuseOps(fuse_opt_level=2)(mod)
        self.assertGreater(len(fused.functions), len(mod.functions))
        sator.ir.assert_structural_equal(fused, relax.transform.FuseOps()(mod))
        self.assertTrue(relax.transform.FuseOps(0)(mod).same_as(mod))
        with sator.transform.PassContext(opt_level=0):
            self.assertTrue(relax.transform.FuseOps()(mod).same_as(mod))

    def test_dead_code_from_named_entries(self):
        self.assertEqual(set(relax.transform.DeadCodeElimination()(Graph).functions), {"main", "other", "part"})
        self.assertEqual(set(relax.transform.DeadCodeElimination(["main"])(Graph).functions), {"main", "other", "part"})
        self.assertEqual(set(relax.transform.DeadCodeElimination(entry_functions=["unused"])(Graph).functions), {"main", "other", "part", "unused"})
        with self.assertRaisesRegex(sator.TVMError, "no function nobody"):
            relax.transform.DeadCodeElimination(["nobody"])(Graph)

    def test_products_that_a_check_leaves_alone(self):
        seen = []

        def check(answer):
            def asked(x, weights, biases, values):
                seen.append((x.name_hint, [w.name_hint for w in weights], list(biases), sorted(v.name_hint for v in values)))
                return answer

            return asked

        after = {answer: relax.transform.CombineParallelMatmul(check=check(answer))(Products)["main"] for answer in (True, False)}
        self.assertEqual(ops(after[False]), ["relax.matmul", "relax.matmul"])
        self.assertEqual(ops(after[True]), ops(relax.transform.CombineParallelMatmul()(Products)["main"]))
        self.assertEqual(ops(after[True]).count("relax.matmul"), 1)
        self.assertEqual(seen, [("x", ["a", "b"], [], ["y", "z"])] * 2)

    def test_parameters_with_other_struct_info(self):
        alone = sator.IRModule({"main": Graph["main"]})
        mod = relax.transform.UpdateParamStructInfo(lambda p: R.Tensor((9,), "float16") if p.name_hint == "x" else None)(alone)
        self.assertEqual([int(d) for d in mod["main"].params[0].struct_info.shape], [9])
        self.assertEqual((mod["main"].ret_struct_info.dtype, int(mod["main"].ret_struct_info.shape[0])), ("float16", 9))
        self.assertTrue(relax.transform.UpdateParamStructInfo(lambda p: None)(Graph)["main"].same_as(Graph["main"]))

    def test_patterns_of_entries_alone(self):
        patterns = [("own.exp_relu", is_op("relax.nn.relu")(is_op("relax.exp")(wildcard())))]
        both = relax.transform.FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False)(Graph)
        one = relax.transform.FuseOpsByPattern(patterns=patterns, entry_functions=["main"])(Graph)
        self.assertEqual((ops(both["main"]), ops(both["other"])), ([], []))
        self.assertEqual((ops(one["main"]), ops(one["other"])), ([], ["relax.exp", "relax.nn.relu"]))
        self.assertTrue(relax.analysis.well_formed(one))
        self.assertEqual(sum("Composite" in f.attrs for f in one.functions.values()), 1)
        with self.assertRaisesRegex(sator.TVMError, "entry_functions has nobody"):
            relax.transform.FuseOpsByPattern(patterns, entry_functions=["nobody"])(Graph)
        with self.assertRaisesRegex(TypeError, "FuseOpsByPattern.*wrong"):
            relax.transform.FuseOpsByPattern(patterns, wrong=1)

    def test_passes_over_dataflow_blocks(self):
        @relax.transform.dataflowblock_pass(opt_level=1, name="negates")
        def negates(block, mod, ctx):
            return relax.DataflowBlock([relax.VarBinding(b.var, relax.op.negative(b.value.args[0])) if b.var.name_hint == "y" else b for b in block.bindings])

        @relax.transform.dataflowblock_pass(opt_level=1)
        class Counts:
            def __init__(self):
                self.count = 0

            def transform_dataflowblock(self, block, mod, ctx):
                self.count += len(block.bindings)
                return block

        self.assertEqual((negates.info.name, negates.info.opt_level), ("negates", 1))
        self.assertEqual(ops(negates(Graph)["main"]), ["relax.negative", "relax.nn.relu"])
        counts = Counts()
        self.assertTrue(counts(Graph)["main"].same_as(Graph["main"]))
        self.assertEqual(counts.count, 4)
        self.assertIsInstance(negates, relax.transform.DataflowBlockPass)
        self.assertIsInstance(relax.transform.function_pass(lambda f, m, c: f, name="n"), relax.transform.FunctionPass)
        self.assertEqual(relax.transform.FusionPattern("a.b", wildcard()).name, "a.b")

    def test_the_pipeline_of_build(self):
        lowered = relax.get_pipeline("default_build")(Graph)
        self.assertIn("vm.builtin", str(lowered["main"]))
        x = np.array([-1, 0, 1, 2], "float32")
        vm = relax.VirtualMachine(relax.build(Graph, "llvm", pipeline=relax.get_pipeline("default_build")), sator.cpu())
        np.testing.assert_allclose(vm["main"](x).numpy(), np.exp(x), rtol=1e-6)


class Options(unittest.TestCase):
    def test_options_without_effect_say_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with sator.transform.PassContext(config={"tir.usmp.enable": True, "relay.FuseOps.max_depth": 3}):
                sator.build(scaled, target="llvm")
        with self.assertRaisesRegex(ValueError, "no pass has the option tir.reorg_dma"):
            sator.transform.PassContext(config={"tir.reorg_dma": True})

    def test_unrolling(self):
        def loops(config):
            mod = sator.IRModule({"main": scaled})
            kinds = []
            with sator.transform.PassContext(config={"tir.UnrollLoop": config}):
                tir.stmt_functor.post_order_visit(tir.transform.UnrollLoop()(mod)["main"].body,
                                                  lambda n: kinds.append((int(n.extent), tir.ForKind(n.kind).name)) if isinstance(n, tir.For) else None)
            return kinds

        self.assertEqual(loops({}), [(8, "SERIAL"), (4, "SERIAL")])
        self.assertEqual(loops({"auto_max_step": 8}), [(4, "SERIAL")])
        self.assertEqual(loops({"auto_max_step": 32}), [])
        self.assertEqual(loops({"auto_max_step": 32, "auto_max_depth": 0}), [(4, "SERIAL")])
        self.assertEqual(loops({"auto_max_extent": 8}), [])
        self.assertEqual(loops({"auto_max_step": 8, "explicit_unroll": False}), [(8, "UNROLLED"), (4, "SERIAL")])

    def test_passes_of_ones_own_in_lower_and_build(self):
        calls = []

        def noting(name):
            @tir.transform.prim_func_pass(opt_level=0, name=name)
            def noted(func, mod, ctx):
                calls.append((name, "T.block(" in func.script()))
                return func

            return noted

        with sator.transform.PassContext(config={"tir.add_lower_pass": [(3, noting("last")), (0, noting("first")), (1, noting("flat")), (2, noting("unrolled"))]}):
            blocks = te.create_prim_func([a := te.placeholder((8,)), te.compute((8,), lambda i: a[i] + 1)])
            sator.lower(blocks)
            self.assertEqual(calls, [("first", True), ("flat", False), ("unrolled", False), ("last", False)])
            calls.clear()
            relax.build(Graph, "llvm")
            names, blocks = [name for name, _ in calls], dict(calls)
            self.assertEqual(blocks, {"first": True, "flat": False, "unrolled": False, "last": False})
            self.assertEqual(names, sorted(names, key=["first", "flat", "unrolled", "last"].index))

        @tir.transform.prim_func_pass(opt_level=0)
        def triples(func, mod, ctx):
            return func.with_body(tir.stmt_functor.ir_transform(func.body, None, lambda n: tir.FloatImm("float32", 3), ["tir.FloatImm"]))

        x, y = np.arange(32, dtype="float32"), np.zeros(32, "float32")
        for phase in (0, 1, 3):
            with sator.transform.PassContext(config={"tir.add_lower_pass": [(phase, triples)]}):
                sator.build(scaled, target="llvm")(x, y)
            np.testing.assert_array_equal(y, 3 * x)
        for build in lambda: sator.build(scaled, target="llvm"), lambda: relax.build(Graph, "llvm"):
            with self.assertRaisesRegex(ValueError, "tir.add_lower_pass has"):
                with sator.transform.PassContext(config={"tir.add_lower_pass": [triples]}):
                    build()

    def test_passes_of_ones_own_in_graphs(self):
        """x @ w + 2 whose 2 becomes 3 in a pass of each phase: the default schedules, several levels and the builtins of the machine stay."""
        @I.ir_module
        class Model:
            @R.function
            def main(x: R.Tensor(("n", 24), "float32"), w: R.Tensor((24, 40), "float32")):
                with R.dataflow():
                    y = R.add(R.matmul(x, w), R.const(2, "float32"))
                    z = R.sort(R.nn.softmax(y))
                    R.output(y, z)
                return (y, z)

        @tir.transform.prim_func_pass(opt_level=0)
        def to_three(func, mod, ctx):
            seen.append(func)
            return func.with_body(tir.stmt_functor.ir_transform(func.body, None, lambda n: tir.FloatImm("float32", 3) if n.value == 2 else None, ["tir.FloatImm"]))

        @sator.transform.module_pass(opt_level=0)
        def programs_alone(mod, ctx):
            self.assertTrue(all(isinstance(f, tir.PrimFunc) for f in mod.functions.values()))
            return mod

        x, w = np.random.rand(5, 24).astype("float32"), np.random.rand(24, 40).astype("float32")
        for target, phase in ("llvm", 2), ("native", 0), ("native", 1), ("native", 2), ("native", 3), ("native", 7):
            seen = []
            with sator.transform.PassContext(config={"tir.add_lower_pass": [(phase, to_three), (phase, programs_alone)]}):
                vm = relax.VirtualMachine(relax.build(Model, target), sator.cpu())
            y, z = vm["main"](x, w)
            self.assertTrue(seen)
            np.testing.assert_allclose(y.numpy(), x @ w + 3, rtol=1e-5)
            e = np.exp(y.numpy() - y.numpy().max(-1, keepdims=True))
            np.testing.assert_allclose(z.numpy(), np.sort(e / e.sum(-1, keepdims=True)), rtol=1e-5)

        @tir.transform.prim_func_pass(opt_level=0)
        def fails(func, mod, ctx):
            raise KeyError("mine")

        with sator.transform.PassContext(config={"tir.add_lower_pass": [(1, fails)]}), self.assertRaisesRegex(KeyError, "mine"):
            relax.build(Model, "llvm")


class Signatures(unittest.TestCase):
    """Arguments by TVM's names, and those that say nothing here."""

    def test_nodes(self):
        x, c = relax.Var("x", R.Tensor((2,), "float32")), relax.Var("c", R.Tensor((), "bool"))
        for first, second in ((relax.If(cond=c, true_branch=x, false_branch=x, span=None), relax.If(c, x, x)),
                              (relax.Constant(np.ones(2, "float32"), struct_info=None, span=None), relax.const(np.ones(2, "float32"))),
                              (relax.BindingBlock(bindings=[relax.VarBinding(x, x, span=None)], span=None), relax.BindingBlock([relax.VarBinding(x, x)], None)),
                              (relax.TensorStructInfo((2,), "float32", None, -1, None), x.struct_info),
                              (relax.FuncStructInfo.opaque_func(ret=x.struct_info, span=None), relax.FuncStructInfo.opaque_func(ret=x.struct_info)),
                              (relax.extern("f", struct_info=relax.ObjectStructInfo(), span=None), relax.ExternFunc("f", relax.ObjectStructInfo())),
                              (sator.ir.Range.from_min_extent(min_value=1, extent=3, span=None), sator.ir.Range(1, 4)),
                              (sator.ir.load_json(json_str=sator.ir.save_json(x.struct_info)), x.struct_info)):
            sator.ir.assert_structural_equal(first, second, map_free_vars=True)
        told = relax.Constant(np.ones(2, "float32"), relax.TensorStructInfo((2,), "float32"))
        sator.ir.assert_structural_equal(told, relax.const(np.ones(2, "float32")))
        self.assertEqual(sator.ir.Op.get(op_name="relax.add").name, "relax.add")
        self.assertIn("relax.nn.softmax", sator.ir.Op.list_op_names())

    def test_modules(self):
        func = Graph["main"].with_attr(attr_key_or_dict="a", attr_value=1)
        self.assertEqual((func.attrs["a"], scaled.with_attr(attr_key_or_dict={"a": 2}).attrs["a"]), (1, 2))
        self.assertNotIn("a", func.without_attr(attr_key="a").attrs)
        mod = sator.IRModule({"main": func}).with_attr(attr_key="b", attr_value=3)
        self.assertEqual((mod.attrs["b"], mod.without_attr(attr_key="b").attrs), (3, {}))
        before = mod.clone()
        mod.update_global_info("vdevice", [sator.ir.VDevice("llvm", 0, "global")])
        self.assertEqual((len(mod.global_infos["vdevice"]), mod.global_infos["vdevice"][0].vdevice_id, before.global_infos), (1, 0, {}))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            sator.transform.Sequential([sator.transform.PrintIR(header="here", show_meta_data=False)], traceable=False)(mod)
        self.assertTrue(out.getvalue().startswith("here") and "def main" in out.getvalue())

    def test_builders(self):
        x, bb = relax.Var("x", R.Tensor((4,), "float32")), relax.BlockBuilder()
        with bb.function("main", [x]):
            y = bb.emit_te(sator.topi.add, x, x, primfunc_name_hint="twice", name_hint="doubled")
            bb.emit_func_output(y)
        self.assertEqual(y.name_hint, "doubled")
        self.assertIn("twice", bb.finalize().functions)
        ib = relax.ExecBuilder()
        ib.declare_function("double", relax.exec_builder.VMFuncKind.VM_FUNC)
        with ib.function("main", num_inputs=1):
            ib.emit_call("vm.builtin.make_tuple", args=[ib.r(0), ib.void_arg()], dst=ib.r(1))
            ib.emit_call("vm.builtin.tuple_getitem", args=[ib.r(1), ib.imm(0)], dst=ib.void_arg())
            ib.emit_call("vm.builtin.invoke_closure", args=[ib.vm_state(), ib.f("double"), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        with ib.function("double", num_inputs=1):
            ib.emit_call("vm.builtin.make_tuple", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        self.assertEqual(relax.VirtualMachine(ib.get(), sator.cpu())["main"](3), [[3, None], [3, None]])

    def test_targets(self):
        Target = sator.target.Target
        self.assertEqual([Target(t).get_target_device_type() for t in ("llvm", "cuda", "metal", "rocm")], [1, 2, 8, 10])
        self.assertTrue({"llvm", "cuda", "webgpu"} <= set(Target.list_kinds()))
        self.assertEqual((Target.from_device("cpu").kind.name, Target.from_device(sator.cpu()).kind.name), ("llvm", "llvm"))
        with self.assertRaisesRegex(sator.TVMError, "no device"):
            Target.from_device("cuda")
        cuda = sator.target.cuda(arch="sm_80", options="-max_num_threads=512")
        self.assertEqual((cuda.kind.name, cuda.arch, cuda.max_num_threads, cuda.max_function_args), ("cuda", "sm_80", 512, 0))
        self.assertEqual([sator.target.mali().device_name, sator.target.intel_graphics().thread_warp_size, sator.target.arm_cpu("rk3399").model,
                          sator.target.rocm(options=["-mcpu=gfx90a"]).mcpu], ["mali", 16, "rk3399", "gfx90a"])
        with self.assertRaisesRegex(sator.TVMError, "stm32"):
            sator.target.stm32()

    def test_schedules_of_te(self):
        a = te.placeholder((10,), name="A")
        b = te.compute((10,), lambda i: a[i] + 1, name="B")
        s = te.create_schedule(b.op)
        outer, inner = s[b].split(b.op.axis[0], factor=5, disable_predication=True)
        s[b].unroll(var=inner)
        s[b].parallel(var=outer)
        x, y = np.arange(10, dtype="float32"), np.zeros(10, "float32")
        sator.build(s, [a, b], "llvm")(x, y)
        np.testing.assert_array_equal(y, x + 1)
        shifted = sator.topi.left_shift(lhs=te.placeholder((2,), "int32"), rhs=te.placeholder((2,), "int32"))
        self.assertEqual(shifted.dtype, "int32")

    def test_the_runtime(self):
        x = sator.nd.array(np.zeros(2))
        self.assertEqual(x.copyfrom(source_array=[1, 2]).copyto(target=sator.nd.empty((2,), "float64"), mem_scope=None).numpy().tolist(), [1, 2])
        self.assertTrue(sator.nd.from_dlpack(dltensor=x).same_as(x))
        from sator.runtime.module import BenchmarkResult
        from sator.runtime.profiling import Report

        library = sator.build(scaled, target="llvm")
        self.assertTrue(library.implements_function(name="scaled", query_imports=False))
        a, b = np.ones(32, "float32"), np.zeros(32, "float32")
        library.get_function(name="scaled", query_imports=False)(a, b)
        np.testing.assert_array_equal(b, 2 * a)
        vm = relax.VirtualMachine(relax.Executable(mod=relax.build(Products, "llvm", system_lib=None).jit(None)), sator.cpu())
        inputs = [np.full(shape, 2, "float32") for shape in ((2, 4), (4, 3), (4, 5))]
        vm.save_function("main", "kept", b=inputs[2], a=inputs[1], x=inputs[0])
        inputs[0][:] = 0
        self.assertEqual(vm["kept"]()[1].numpy().tolist(), [[16] * 5] * 2)
        self.assertIsInstance(vm.time_evaluator("kept", sator.cpu(), number=2)(), BenchmarkResult)
        report = vm.profile("main", *inputs)
        self.assertIsInstance(report, Report)
        lines = [line.split() for line in report.table(sort=False, aggregate=False, col_sums=False).splitlines()]
        calls = [line[0] for line in lines[1:1 + len(report.calls)]]
        self.assertEqual(calls, [call["Name"] for call in report.calls])
        self.assertNotIn("Sum", [line[0] for line in lines if line])
        self.assertIn("\nSum ", report.table())
        with self.assertRaisesRegex(TypeError, "save_function.*no parameter is called z"):
            vm.save_function("main", "other", z=inputs[0])


class Names(unittest.TestCase):
    def test_arguments_by_name(self):
        self.assertEqual(set(sator.IRModule.from_expr(expr=scaled).functions), {"scaled"})
        self.assertEqual(set(sator.IRModule.from_expr(scaled, {"more": scaled}).functions), {"scaled", "more"})
        mod = sator.IRModule({"main": scaled})
        mod.update_func(var=sator.ir.GlobalVar("more"), func=scaled)
        self.assertEqual(set(mod.functions), {"main", "more"})
        self.assertTrue(relax.analysis.well_formed(obj=Graph))
        found = []
        tir.stmt_functor.post_order_visit(stmt=scaled.body, fvisit=found.append)
        self.assertTrue(found[-1].same_as(scaled.body))
        x, y = np.arange(32, dtype="float32"), np.zeros(32, "float32")
        sator.build(inputs=scaled, target="llvm")(x, y)
        np.testing.assert_array_equal(y, 2 * x)

    def test_buffers_of_arguments(self):
        m = te.var("m")
        a = te.placeholder((m,), name="A")
        b = te.compute((m,), lambda i: a[i] + 1, name="B")
        bound = tir.decl_buffer((m,), "float32", name="bound", strides=[2])
        self.assertIn("strides=(2,)", sator.lower(te.create_schedule(b.op), [a, b], binds={a: bound}, simple_mode=True).script())
        with self.assertRaisesRegex(sator.TVMError, "bound has (the )?stride 2"):
            sator.build(te.create_schedule(b.op), [a, b], "llvm", binds={a: bound})
        x = np.arange(8, dtype="float32")
        for buffer in (tir.decl_buffer((m,), "float32", strides=[1]), tir.decl_buffer((m,), "float32", offset_factor=4)):
            y = np.zeros(8, "float32")
            sator.build(te.create_schedule(b.op), [a, b], "llvm", binds={a: buffer})(x, y)
            np.testing.assert_array_equal(y, x + 1)
        with self.assertRaisesRegex(ValueError, "needs: tensors among args"):
            sator.lower(te.create_schedule(b.op), [a, b], binds={te.placeholder((4,)): bound})

    def test_buffers_as_parameters(self):
        a, b, n = tir.decl_buffer((4,), "float32", "A"), tir.decl_buffer((4,), "float32", "B"), tir.Var("n", "int32")
        i = tir.Var("i", "int32")
        body = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(b, a[i] + tir.Cast("float32", n), [i]))
        func = tir.PrimFunc([a, n, b], body)
        self.assertEqual([p.name for p in func.params], ["A", "n", "B"])
        self.assertTrue(func.buffer_map[func.params[0]].same_as(a))
        x, y = np.arange(4, dtype="float32"), np.zeros(4, "float32")
        sator.build(func.with_attr("global_symbol", "main"), target="llvm")(x, 5, y)
        np.testing.assert_array_equal(y, x + 5)
        handle = tir.Var("h", "handle")
        mixed = tir.PrimFunc([handle, b], body, buffer_map={handle: a})
        self.assertEqual(len(mixed.buffer_map), 2)

    def test_calls_of_intrinsics_and_arrays_through_index_maps(self):
        x = tir.Var("x", "float32")
        sator.ir.assert_structural_equal(tir.call_intrin("float32", "tir.exp", x), tir.exp(x))
        values = np.arange(12, dtype="int16").reshape(3, 4)
        tiles = tir.IndexMap.from_func(lambda i, j: (j // 2, i, j % 2))
        np.testing.assert_array_equal(tiles.map_ndarray(sator.nd.array(values)).numpy(), values.reshape(3, 2, 2).transpose(1, 0, 2))
        padded = tir.IndexMap.from_func(lambda i: (i // 4, i % 4)).map_ndarray(sator.nd.array(np.arange(1, 7)))
        np.testing.assert_array_equal(padded.numpy(), [[1, 2, 3, 4], [5, 6, 0, 0]])

    def test_inputs_of_call_tir(self):
        n = tir.Var("n", "int64")
        x = relax.Var("x", R.Tensor((4, n), "float32"))
        func, args, infos, sizes = relax.utils.gen_call_tir_inputs(lambda a, k: te.compute(a.shape, lambda i, j: a[i, j] + k.astype("float32")), x, n + 1)
        self.assertIsInstance(func, tir.PrimFunc)
        self.assertEqual([a.same_as(x) for a in args.fields], [True])
        self.assertEqual(len(infos), 1)
        self.assertTrue(infos[0].shape[1].same_as(n))
        self.assertIsNone(sizes)  # the argument's shape tells n
        *_, infos, sizes = relax.utils.gen_call_tir_inputs(lambda k: [te.compute((2,), lambda i: k), te.compute((3,), lambda i: k + 1)], n)
        self.assertEqual(len(infos), 2)
        self.assertTrue(sizes.values[0].same_as(n))


class Formulas(unittest.TestCase):
    def test_operations(self):
        a = te.placeholder((4, 3), name="A")
        b = te.compute((4, 3), lambda i, j: a[i, j] * 2, name="B")
        k = te.reduce_axis((0, 3), name="k")
        total = te.compute((4,), lambda i: te.sum(a[i, k], axis=k))
        rows = te.placeholder((4, 3))
        scan = te.scan(te.compute((1, 3), lambda _, i: a[0, i]), te.compute((4, 3), lambda t, i: rows[t - 1, i] + a[t, i]), rows)
        outer = te.extern((4, 3), [a], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]))
        for tensor, kind in ((a, te.PlaceholderOp), (b, te.ComputeOp), (total, te.ComputeOp), (scan, te.ScanOp), (outer, te.ExternOp)):
            self.assertIs(type(tensor.op), kind)
        self.assertEqual(str(b.op.body[0]), "A[i, j] * T.float32(2)")
        self.assertEqual([r.axis[0].same_as(k) for r in total.op.body], [True])
        values, out = np.array([[1.5, -2.5, 0]] * 4, "float32"), np.zeros((4, 3), "int32")
        sator.build(te.create_prim_func([a, a.astype("int32")]), target="llvm")(values, out)
        np.testing.assert_array_equal(out, values.astype("int32"))
        with self.assertRaisesRegex(AttributeError, "module 'sator.te' has no attribute 'no_such_name'"):
            te.no_such_name

    def three(self, read=lambda b, i: b[i] * 2, extent=None):
        m = te.var("m")
        a = te.placeholder((m,), name="A")
        b = te.compute((m,), lambda i: a[i] + 1, name="B")
        c = te.compute((extent or m,), lambda i: read(b, i), name="C")
        return a, b, c, te.create_schedule(c.op)

    def test_a_parameter_is_computed_inside_of_its_reader(self):
        for n in (8, 11):
            for split in (False, True):
                a, b, c, s = self.three()
                axis = c.op.axis[0]
                if split:
                    axis, inner = s[c].split(axis, factor=4)
                    s[c].unroll(inner)
                s[b].compute_at(s[c], axis)
                func = sator.lower(s, [a, b, c], simple_mode=True)["main"]
                self.assertEqual(len(func.buffer_map), 3)
                x, y, z = np.arange(n, dtype="float32"), np.zeros(n, "float32"), np.zeros(n, "float32")
                sator.build(s, [a, b, c], "llvm")(x, y, z)
                np.testing.assert_array_equal(y, x + 1)
                np.testing.assert_array_equal(z, 2 * x + 2)

    def test_a_parameter_of_which_parts_would_be_left_out_or_computed_twice_is_refused(self):
        for read in (lambda b, i: b[2 * i], lambda b, i: b[i] + b[i + 1]):
            a, b, c, s = self.three(read, 4)
            s[b].compute_at(s[c], c.op.axis[0])
            with self.assertRaisesRegex(sator.tir.schedule.schedule.ScheduleError, "(?s)B is a parameter.*needs:.*hint:"):
                sator.lower(s, [a, b, c])
            self.assertEqual(len(sator.lower(s, [a, c], simple_mode=True)["main"].params), 2)  # as what lies between it is fine


class Traces(unittest.TestCase):
    def schedule(self):
        a = te.placeholder((64,), name="A")
        sch = tir.Schedule(te.create_prim_func([a, te.compute((64,), lambda i: a[i] + 1, name="B")]), seed=1)
        (loop,) = sch.get_loops(sch.get_block("B"))
        sch.split(loop, sch.sample_perfect_tile(loop, 2, 16))
        sch.enter_postproc()
        sch.vectorize(sch.get_loops(sch.get_block("B"))[-1])
        return sch

    def test_the_text_is_a_function_that_replays_it(self):
        sch = self.schedule()
        text = str(sch.trace)
        self.assertEqual(text.splitlines()[:2], ["# from tvm import tir", "def apply_trace(sch: tir.Schedule) -> None:"])
        names = {"tir": tir}
        exec(text, names)
        again = tir.Schedule(self.fresh())
        names["apply_trace"](again)
        sator.ir.assert_structural_equal(again.mod, sch.mod)
        exec(str(tir.Schedule(self.fresh()).trace), names)
        names["apply_trace"](again)  # of no steps

    def fresh(self):
        a = te.placeholder((64,), name="A")
        return te.create_prim_func([a, te.compute((64,), lambda i: a[i] + 1, name="B")])

    def test_decisions(self):
        trace = self.schedule().trace
        chooses = next(i for i in trace.insts if i.kind.name == "SamplePerfectTile")
        chosen = [int(v) for v in trace.get_decision(chooses)]
        self.assertEqual(chosen[0] * chosen[1], 64)
        other = trace.with_decision(chooses, [32, 2], remove_postproc=True)
        self.assertEqual([int(v) for v in other.get_decision(chooses)], [32, 2])
        self.assertEqual([int(v) for v in trace.get_decision(chooses)], chosen)
        self.assertEqual([int(v) for v in list(other.decisions.values())[0]], [32, 2])
        sch = tir.Schedule(self.fresh())
        other.apply_to_schedule(sch)
        self.assertEqual([int(sch.get(loop).extent) for loop in sch.get_loops(sch.get_block("B"))], [32, 2])
        self.assertIsNone(trace.get_decision(trace.insts[0]))
        with self.assertRaisesRegex(ValueError, "chooses nothing"):
            trace.with_decision(trace.insts[0], 1)

    def test_steps_taken_out_and_put_in(self):
        sch = self.schedule()
        trace, count = sch.trace, len(sch.trace.insts)
        last = trace.pop()
        self.assertEqual((last.kind.name, len(trace.insts), len(sch.trace.insts)), ("Vectorize", count - 1, count))
        self.assertEqual((len(last.inputs), last.outputs), (1, []))
        trace.append(last)
        self.assertEqual(trace.as_python(), sch.trace.as_python())
        self.assertEqual(tir.schedule.schedule.Trace(sch.trace.insts).as_python(), sch.trace.as_python())
        without = trace.as_python(remove_postproc=True)
        self.assertEqual(without, trace.as_python()[:len(without)])
        self.assertFalse(any("enter_postproc" in line or "vectorize" in line for line in without))
        self.assertIsNone(tir.schedule.schedule.Trace([]).pop())
        sch.remove_rv(sch.get_block("B"))


class Commands(unittest.TestCase):
    def test_extents_of_a_workload_as_numbers(self):
        given = {form: sator.estimate(workload=form, chip="edge_npu32").to_dict() for form in ((64, 64, 64), "64,64,64")}
        self.assertEqual(given[64, 64, 64], given["64,64,64"])


if __name__ == "__main__":
    unittest.main()
