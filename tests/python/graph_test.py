"""Graphs from Python: the builder, rewrites, formulas of te and topi, default schedules. The Fashion-MNIST experiment of the seed 003."""
import unittest

import numpy as np

import sator
from sator import dlight, relax, te, tir, topi
from sator.script import ir as I, relax as R, tir as T


def weights():
    rng = np.random.default_rng(3)
    return {name: (rng.standard_normal(shape) * 0.1).astype("float32")
            for name, shape in {"w0": (128, 784), "b0": (128,), "w1": (10, 128), "b1": (10,)}.items()}


def mlp(params):
    """The course's model, by the builder: two linear layers and a ReLU between them."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 784), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            w0, b0, w1, b1 = (relax.const(params[k]) for k in ("w0", "b0", "w1", "b1"))
            lv0 = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)))
            lv1 = bb.emit(relax.op.nn.relu(relax.op.add(lv0, b0)))
            lv2 = bb.emit(relax.op.matmul(lv1, relax.op.permute_dims(w1)))
            out = bb.emit_output(relax.op.add(lv2, b1))
        bb.emit_func_output(out)
    return bb.finalize()


def expected(params, x):
    return np.maximum(x @ params["w0"].T + params["b0"], 0) @ params["w1"].T + params["b1"]


# The pass of the course's chapter 7, which the seed uses and does not define.
@relax.expr_functor.mutator
class LowerToTensorIR(relax.PyExprMutator):
    def __init__(self, mod, op_map):
        super().__init__(mod)
        self.mod_ = mod
        self.op_map = {sator.ir.Op.get(k): v for k, v in op_map.items()}

    def visit_call_(self, call):
        call = self.visit_expr_post_order(call)
        if call.op in self.op_map:
            return self.op_map[call.op](self.builder_, call)
        return call

    def transform(self):
        for name, func in self.mod_.functions.items():
            if not isinstance(func, relax.Function):
                continue
            self.builder_.update_func(name, self.visit_expr(func))
        return self.builder_.get()


OP_MAP = {
    "relax.matmul": lambda bb, call: bb.call_te(topi.nn.matmul, *call.args, primfunc_name_hint="matmul"),
    "relax.permute_dims": lambda bb, call: bb.call_te(topi.transpose, call.args[0]),
    "relax.add": lambda bb, call: bb.call_te(topi.add, *call.args),
    "relax.nn.relu": lambda bb, call: bb.call_te(topi.nn.relu, call.args[0]),
}


@sator.transform.module_pass(opt_level=0, name="LowerToTensorIR")
class LowerToTensorIRPass:
    def transform_module(self, mod, ctx):
        return LowerToTensorIR(mod, OP_MAP).transform()


# As the seed has them.
def tile_matmul(schedule, func_name, block_name, tile_i_factor, tile_j_factor):
    block_Y = schedule.get_block(block_name, func_name=func_name)
    i, j, k = schedule.get_loops(block_Y)
    i0, i1 = schedule.split(i, factors=[None, tile_i_factor])
    j0, j1 = schedule.split(j, factors=[None, tile_j_factor])
    schedule.reorder(i0, j0, i1, j1, k)
    schedule.reverse_compute_at(block_Y, i0)
    return schedule


def apply_tiling_pass(mod, tile_i_factor, tile_j_factor, refused=None):
    sch = tir.Schedule(mod)
    for gv in mod.functions:
        func_name = gv.name_hint
        func = mod[gv]
        if isinstance(func, sator.tir.PrimFunc):
            try:
                sch = tile_matmul(sch, func_name, "T_matmul_NN", tile_i_factor, tile_j_factor)
            except sator.tir.schedule.schedule.ScheduleError as e:
                if refused is not None:
                    refused.append(str(e))
                continue
    return sch.mod


class FashionMnist(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.params = weights()
        cls.model = mlp(cls.params)
        cls.image = np.random.default_rng(5).random((1, 784)).astype("float32")

    def run_on_image(self, mod):
        vm = relax.VirtualMachine(relax.build(mod, target="llvm"), sator.cpu(), profile=True)
        return vm["main"](sator.nd.array(self.image)).numpy(), vm.profile("main", sator.nd.array(self.image))

    def test_the_builder_s_model_computes_what_numpy_does(self):
        got, _ = self.run_on_image(self.model)
        np.testing.assert_allclose(got, expected(self.params, self.image), rtol=1e-4, atol=1e-4)

    def test_lowered_by_the_course_s_map_and_tiled_by_the_seed_s_pass(self):
        lowered = LowerToTensorIRPass()(self.model)
        self.assertTrue(any(isinstance(f, tir.PrimFunc) for f in lowered.functions.values()))
        matmuls = [f for f in lowered.functions.values() if isinstance(f, tir.PrimFunc) and '"T_matmul_NN"' in f.script()]
        self.assertEqual(len(matmuls), 2)
        calls = [b.value.op.name for block in lowered["main"].body.blocks for b in block.bindings]
        self.assertEqual(set(calls), {"relax.call_tir"})
        refused = []
        tiled = apply_tiling_pass(lowered, 64, 64, refused)
        # Its last step asks that a block be computed at a loop around itself.
        self.assertTrue(any("reverse_compute_at" in words for words in refused))
        for mod in (lowered, tiled):
            got, table = self.run_on_image(mod)
            np.testing.assert_allclose(got, expected(self.params, self.image), rtol=1e-4, atol=1e-4)
            self.assertIn("matmul", table)
            self.assertIn("Total", table)


class Rewrites(unittest.TestCase):
    def test_ewise_fma_as_the_slides_rewrite_it(self):
        @I.ir_module
        class MyModule:
            @R.function
            def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
                with R.dataflow():
                    lv0 = R.multiply(x, y)
                    gv0 = R.add(lv0, y)
                    R.output(gv0)
                return gv0

        @relax.expr_functor.mutator
        class EwiseFMARewriter(relax.PyExprMutator):
            def visit_call_(self, call):
                call = self.visit_expr_post_order(call)
                add_op = sator.ir.Op.get("relax.add")
                multiply_op = sator.ir.Op.get("relax.multiply")
                ewise_fma_op = sator.ir.Op.get("relax.ewise_fma")

                if call.op != add_op:
                    return call

                value = self.lookup_binding(call.args[0])
                if not isinstance(value, relax.Call) or value.op != multiply_op:
                    return call

                fma_call = relax.Call(ewise_fma_op, [value.args[0], value.args[1], call.args[1]], None, None)
                return fma_call

        updated = EwiseFMARewriter().visit_expr(MyModule["main"])
        self.assertIn("R.ewise_fma(x, y, y)", updated.script())
        self.assertIn("R.multiply(x, y)", updated.script())  # left in the code, as the slide says
        mod = relax.transform.DeadCodeElimination()(sator.IRModule({"main": updated}))
        self.assertNotIn("multiply", mod.script())

    def test_a_visitor_counts_calls(self):
        class Count(relax.PyExprVisitor):
            def __init__(self):
                self.names = []

            def visit_call_(self, call):
                super().visit_call_(call)
                self.names.append(call.op.name)

        count = Count()
        count.visit_expr(mlp(weights())["main"])
        self.assertEqual(count.names.count("relax.matmul"), 2)
        self.assertEqual(count.names.count("relax.permute_dims"), 2)

    def test_a_variable_whose_value_has_another_shape_gets_its_struct_info(self):
        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                z = R.nn.relu(y)
                R.output(z)
            return z

        class Sums(relax.PyExprMutator):
            done = False

            def visit_call_(self, call):
                call = self.visit_expr_post_order(call)
                if self.done:
                    return call
                self.done = True
                return relax.op.sum(call.args[0], axis=1)

        out = Sums().visit_expr(main)
        self.assertEqual(str(out.ret_struct_info), 'R.Tensor((4,), dtype="float32")')


class Building(unittest.TestCase):
    def test_symbolic_sizes_and_match_cast(self):
        n = tir.SizeVar("n", "int64")
        x = relax.Var("x", R.Tensor((n, 4), "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            y = bb.emit(relax.op.add(x, x))
            bb.emit_func_output(y)
        mod = bb.get()
        vm = relax.VirtualMachine(relax.build(mod))
        a = np.ones((3, 4), "float32")
        np.testing.assert_array_equal(vm["main"](a).numpy(), a + a)

    def test_bindings_outside_of_a_function_are_refused(self):
        bb, x = relax.BlockBuilder(), relax.Var("x", R.Tensor((4,), "float32"))
        for step in (lambda: bb.emit(relax.op.exp(x)), lambda: bb.emit_output(relax.op.exp(x)),
                     lambda: bb.match_cast(x, R.Tensor((4,), "float32")), lambda: bb.emit_normalized(relax.VarBinding(x, x)),
                     lambda: bb.normalize(relax.op.exp(relax.op.exp(x)))):
            with self.assertRaisesRegex(sator.TVMError, "outside of a (dataflow )?block\n  needs: a"):
                step()

    def test_a_variable_that_nothing_is_known_of_is_refused(self):
        bb, x = relax.BlockBuilder(), relax.Var("x")
        with self.assertRaisesRegex(sator.TVMError, "nothing is known of the variable x"):
            with bb.function("main", [x]):
                bb.emit(relax.op.exp(x))

    def test_a_function_without_a_result_is_refused(self):
        bb = relax.BlockBuilder()
        with self.assertRaises(ValueError) as caught:
            with bb.function("main", []):
                pass
        self.assertIn("emit_func_output", str(caught.exception))

    def test_what_inference_refuses_arrives_from_emit(self):
        bb = relax.BlockBuilder()
        x, y = relax.Var("x", R.Tensor((2, 3), "float32")), relax.Var("y", R.Tensor((4, 5), "float32"))
        with self.assertRaises(sator.TVMError) as caught:
            with bb.function("main", [x, y]):
                bb.emit(relax.op.matmul(x, y))
        self.assertIn("matmul", caught.exception.what)
        self.assertTrue(caught.exception.needs and caught.exception.hint)


@I.ir_module
class TwoBlocks:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        with R.dataflow():
            wt = R.permute_dims(w)
            y = R.matmul(x, wt)
            z = R.add(y, y)
            R.output(z)
        u = R.nn.relu(z)
        return u


class Hooks(unittest.TestCase):
    """The methods of TVM's visitors and mutators that a class may define."""

    def test_a_visitor_s_blocks_and_definitions(self):
        seen = []

        @relax.expr_functor.visitor
        class Visitor(relax.PyExprVisitor):
            def visit_dataflow_block_(self, block):
                seen.append("dataflow")
                super().visit_dataflow_block_(block)

            def visit_binding_block_(self, block):
                seen.append("bindings")
                super().visit_binding_block_(block)

            def visit_var_def_(self, var):
                seen.append(var.name_hint)

            def visit_dataflow_var_def_(self, var):
                seen.append("lv:" + var.name_hint)

        Visitor().visit_expr(TwoBlocks["main"])
        self.assertEqual(seen, ["x", "w", "dataflow", "lv:wt", "lv:y", "z", "bindings", "u"])

    def test_a_mutator_s_blocks_and_definitions(self):
        @relax.expr_functor.mutator
        class Renames(relax.PyExprMutator):
            def visit_dataflow_var_def_(self, var):
                return relax.DataflowVar(var.name_hint + "_new", var.struct_info)

            def visit_var_def_(self, var):
                return self.with_struct_info(var, relax.TensorStructInfo((4, 8), "float32")) if var.name_hint == "x" else var

            def visit_binding_block_(self, block):  # what the other blocks hold is left out
                return block if not block.bindings else super().visit_binding_block_(block)

        renames = Renames(TwoBlocks)
        f = renames.visit_expr(TwoBlocks["main"])
        x = TwoBlocks["main"].params[0]
        self.assertTrue(renames.get_var_remap(x.vid).same_as(f.params[0]))
        with self.assertRaises(KeyError):
            renames.get_var_remap(TwoBlocks["main"].params[1])

        @R.function
        def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32")):
            with R.dataflow():
                wt_new = R.permute_dims(w)
                y_new = R.matmul(x, wt_new)
                z = R.add(y_new, y_new)
                R.output(z)
            u = R.nn.relu(z)
            return u

        sator.ir.assert_structural_equal(f, main)
        self.assertTrue(relax.PyExprMutator(TwoBlocks).visit_expr(TwoBlocks["main"]).same_as(TwoBlocks["main"]))

    def test_what_is_emitted_in_a_branch_stays_there(self):
        @R.function
        def main(c: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
            if c:
                y = R.add(x, x)
            else:
                y = R.multiply(x, x)
            return y

        class Twice(relax.PyExprMutator):
            def visit_call_(self, call):
                first = self.builder_.emit(call)
                return relax.op.negative(first)

        mod = sator.IRModule({"main": Twice().visit_expr(main)})
        self.assertTrue(relax.analysis.well_formed(mod))
        vm = relax.VirtualMachine(relax.build(mod), sator.cpu())
        x = np.array([1, 2, 3], "float32")
        for c, expected in ((True, -2 * x), (False, -x * x)):
            np.testing.assert_array_equal(vm["main"](np.array(c), x).numpy(), expected)

    def test_a_functor_says_which_method_it_lacks(self):
        class Depth(relax.ExprFunctor):
            def visit_call_(self, call):
                return 1 + max(self.visit_expr(a) for a in call.args)

            def visit_var_(self, _var):
                return 0

        x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
        self.assertEqual(Depth().visit_expr(relax.op.add(relax.op.add(x, x), x)), 2)
        with self.assertRaisesRegex(NotImplementedError, "visit_constant_"):
            Depth().visit_expr(relax.op.add(x, relax.const(1.0)))

    def test_passes_over_dataflow_blocks(self):
        seen = []

        @relax.transform.dataflowblock_pass(opt_level=0)
        def count(block, mod, ctx):
            seen.append(len(block.bindings))
            return block

        self.assertIsInstance(count, relax.transform.DataflowBlockPass)
        sator.ir.assert_structural_equal(count(TwoBlocks), TwoBlocks)
        self.assertEqual(seen, [3])

        @relax.transform.dataflowblock_pass(opt_level=0)
        class Drops:
            def transform_dataflowblock(self, block, mod, ctx):
                return None

        with self.assertRaisesRegex(TypeError, "needs: a DataflowBlock"):
            Drops()(TwoBlocks)

    def test_scopes_of_a_builder(self):
        bb = relax.BlockBuilder()
        n = tir.Var("n", "int64")
        self.assertIsNone(relax.BlockBuilder.current())
        with bb.testing_scope(def_vars=[n]):
            x = relax.Var("x", relax.TensorStructInfo((n, 4), "float32"))
            self.assertTrue(bb.current_block_is_dataflow())
            self.assertEqual(str(bb.emit(relax.op.add(x, x)).struct_info.shape.values[0]), "n")
        with bb.function("main", [x]):
            self.assertIs(relax.BlockBuilder.current(), bb)
            self.assertFalse(bb.current_block_is_dataflow())
            call = bb.call_te_with_grad(topi.add, x, x, te_grad_name="times_two", primfunc_name_hint="twice")
            self.assertEqual((call.op.name, call.attrs["te_grad_name"]), ("relax.call_tir_with_grad", "times_two"))
            bb.emit_func_output(bb.emit(call))
        self.assertIsNone(relax.BlockBuilder.current())
        ones = np.ones((2, 4), "float32")
        np.testing.assert_array_equal(relax.VirtualMachine(relax.build(bb.get()), sator.cpu())["main"](ones).numpy(), 2 * ones)

    def test_arguments_become_expressions(self):
        @relax.args_converter.auto
        def both(one: relax.Expr, more: "List[Expr]" = None):
            return one, more

        one, more = both(3, [1, "x"])
        self.assertEqual([type(e).__name__ for e in (one, *more)], ["PrimValue", "PrimValue", "StringImm"])
        with self.assertRaisesRegex(TypeError, "needs: an expression"):
            relax.convert_to_expr(object())
        x = relax.Var("x", relax.TensorStructInfo((2, 4), "float32"))
        func, args, (info,), sizes = relax.utils.gen_call_tir_inputs(topi.add, x, x)
        self.assertIsInstance(func, tir.PrimFunc)
        self.assertEqual((len(args), [e.value for e in info.shape.values], sizes), (2, [2, 4], None))
        self.assertEqual([e.value for e in relax.expr.te_tensor(x).shape], [2, 4])


class Formulas(unittest.TestCase):
    def test_a_formula_becomes_the_program_of_the_slides(self):
        def vector_add(n):
            A = te.placeholder((n,), name="a")
            B = te.placeholder((n,), name="b")
            C = te.compute(A.shape, lambda i: A[i] + B[i], name="c")
            return A, B, C

        func = te.create_prim_func(vector_add(100))
        a, b, c = (np.arange(100, dtype="float32"), np.ones(100, "float32"), np.zeros(100, "float32"))
        sator.build(func)(a, b, c)
        np.testing.assert_array_equal(c, a + b)

        @T.prim_func
        def same(a: T.Buffer((100,), "float32"), b: T.Buffer((100,), "float32"), c: T.Buffer((100,), "float32")):
            T.func_attr({"global_symbol": "main", "tir.noalias": True})
            for i in range(100):
                with T.block("c"):
                    v_i = T.axis.spatial(100, i)
                    c[v_i] = a[v_i] + b[v_i]

        sator.ir.assert_structural_equal(func, same.with_attr("global_symbol", "main"))

    def test_reductions_and_inputs_of_their_own(self):
        A, B = te.placeholder((8, 16), name="A"), te.placeholder((16, 4), name="B")
        k = te.reduce_axis((0, 16), name="k")
        C = te.compute((8, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
        D = te.compute((8, 4), lambda *i: C(*i) * 2 + tir.min(i[0], i[1]), name="D")
        func = te.create_prim_func([A, B, D])
        rng = np.random.default_rng(0)
        a, b = rng.random((8, 16), "float32"), rng.random((16, 4), "float32")
        d = np.zeros((8, 4), "float32")
        sator.build(func)(a, b, d)
        i, j = np.indices((8, 4))
        np.testing.assert_allclose(d, a @ b * 2 + np.minimum(i, j), rtol=1e-5)
        self.assertEqual([x.var.name for x in C.op.reduce_axis], ["k"])

    def test_topi_by_the_table_of_ops(self):
        A, B = te.placeholder((3, 5), name="A"), te.placeholder((5,), name="B")
        for out, value in ((topi.add(A, B), lambda a, b: a + b), (topi.nn.relu(A), lambda a, b: np.maximum(a, 0)),
                           (A * B, lambda a, b: a * b), (topi.exp(A), lambda a, b: np.exp(a)),
                           (topi.sum(A, axis=1), lambda a, b: a.sum(1)),
                           (topi.nn.softmax(A, axis=-1), lambda a, b: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
                           (topi.transpose(A), lambda a, b: a.T)):
            func = te.create_prim_func([A, B, out])
            rng = np.random.default_rng(1)
            a, b = rng.standard_normal((3, 5)).astype("float32"), rng.standard_normal(5).astype("float32")
            got = np.zeros([int(d) for d in out.shape], "float32")
            sator.build(func)(a, b, got)
            np.testing.assert_allclose(got, value(a, b), rtol=1e-5, atol=1e-6)
        with self.assertRaises(AttributeError):
            topi.no_such_formula

    def test_names_of_products(self):
        A, B, C = te.placeholder((4, 8), name="A"), te.placeholder((8, 6), name="B"), te.placeholder((6, 8), name="C")
        self.assertEqual(topi.nn.matmul(A, B).name, "T_matmul_NN")
        self.assertEqual(topi.nn.dense(A, C).name, "T_matmul_NT")
        self.assertEqual([int(d) for d in topi.nn.dense(A, C).shape], [4, 6])

    def test_te_schedules_as_the_slides_write_them(self):
        def default(n):
            A, B = (te.placeholder((n, n), name=x) for x in "AB")
            k = te.reduce_axis((0, n), name="k")
            C = te.compute((n, n), lambda x, y: te.sum(A[x, k] * B[k, y], axis=k), name="C")
            return te.create_schedule(C.op), (A, B, C)

        def reorder(n):
            s, (A, B, C) = default(n)
            (x, y), (k,) = C.op.axis, C.op.reduce_axis
            s[C].reorder(x, k, y)
            return s, (A, B, C)

        s, args = reorder(32)
        (x, _), C = args[2].op.axis, args[2]
        outer, inner = s[C].split(x, factor=8)
        s[C].parallel(outer)
        loops = [line.strip() for line in sator.lower(s, args).script().splitlines() if "for " in line]
        self.assertEqual(loops, ["for x_0 in T.parallel(4):", "for x_1, k, y in T.grid(8, 32, 32):"])
        a, b = (np.random.default_rng(i).random((32, 32), "float32") for i in (1, 2))
        c = np.zeros((32, 32), "float32")
        sator.build(s, args, target="llvm")(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-5)
        with self.assertRaises(AttributeError) as caught:
            s[C].pipeline(x)
        self.assertIn("tir.Schedule", str(caught.exception))
        self.assertIsNotNone(inner)

    def test_a_formula_of_the_wrong_rank_is_refused(self):
        A = te.placeholder((4, 8), name="A")
        self.assertEqual(str(A[1, 2] + 3), "A[1, 2] + T.float32(3)")
        self.assertEqual(str(A[0][2]), "A[0, 2]")
        with self.assertRaises(sator.TVMError):
            A[0] + 1
        with self.assertRaises(sator.TVMError):
            A[0, 1, 2]
        with self.assertRaises(sator.TVMError):
            te.compute((4,), lambda i, j: A[i, j])


class DefaultSchedules(unittest.TestCase):
    def test_a_rule_written_in_python_takes_what_it_knows(self):
        class Vectorized(dlight.ScheduleRule):
            def apply(self, func, target, tunable):
                sch = tir.Schedule(func)
                try:
                    loops = sch.get_loops(sch.get_block("T_add"))
                except tir.ScheduleError:
                    return None
                _, inner = sch.split(sch.fuse(*loops), [None, 4])
                sch.vectorize(inner)
                return sch

        mod = relax.transform.LegalizeOps()(mlp(weights()))
        with sator.Target("llvm"):
            scheduled = dlight.ApplyDefaultSchedule(Vectorized())(mod)
        changed = [name for name, f in scheduled.functions.items() if "T.vectorized(T.int64(4))" in f.script()]
        self.assertTrue(changed and all(name.startswith("add") for name in changed))
        self.assertTrue(all(scheduled[name].attrs["tir.is_scheduled"] for name in changed))

    def test_the_compiler_s_rules(self):
        mod = relax.transform.LegalizeOps()(mlp(weights()))
        with sator.Target("llvm"):
            scheduled = dlight.ApplyDefaultSchedule()(mod)
        self.assertIn("tir.is_scheduled", scheduled["matmul"].attrs)

    def test_calls_in_place_stay_outside_of_groups_that_do_not_own_the_memory(self):
        @I.ir_module
        class Shared:
            @R.function
            def main(x: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 4), "float32")):
                with R.dataflow():
                    m = R.nn.relu(R.matmul(x, w))
                    q = R.permute_dims(R.permute_dims(x, [1, 0]), [1, 0])
                    y = R.permute_dims(R.add(m, q), [0, 1])
                    s = R.cumsum(R.matmul(y, x), axis=0)
                    R.output(s)
                return s

        x, w = np.arange(16, dtype="float32").reshape(4, 4) - 5, np.ones((4, 4), "float32")
        given = sator.nd.array(x)
        vm = relax.VirtualMachine(relax.build(relax.transform.DataflowUseInplaceCalls()(Shared)))
        wanted = np.cumsum((np.maximum(x @ w, 0) + x) @ x, axis=0)
        for _ in range(2):
            np.testing.assert_array_equal(vm["main"](given, w).numpy(), wanted)
        np.testing.assert_array_equal(given.numpy(), x)


if __name__ == "__main__":
    unittest.main()
