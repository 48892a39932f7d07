"""Questions about programs: tir.analysis, relax.analysis, functions with known parameters, places in schedules."""
import unittest

import numpy as np

import sator
from sator import relax, tir
from sator.relax import analysis
from sator.script import ir as I, relax as R, tir as T


@T.prim_func
def workspace(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    T.func_attr({"global_symbol": "main"})
    first = T.allocate([10], "float32", "global")
    second = T.allocate([3], "int8", "shared")
    for i in range(8):
        B[i] = A[i] * T.float32(2) + T.float32(1)


@T.prim_func
def reads_behind(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(7):
        B[i] = A[i + 2]


@T.prim_func
def guarded(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(7):
        if i < 6:
            B[i] = A[i + 2]


@T.prim_func
def pure(A: T.Buffer((8,), "float32")) -> T.float32:
    T.ret(A[3])


@T.prim_func
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for i, j, k in T.grid(16, 16, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


class TensorPrograms(unittest.TestCase):
    def test_bytes_of_allocations(self):
        # 10 float32 and 3 bytes live together: 40 + 3, and 48 + 16 where each is rounded up to 16.
        self.assertEqual(tir.analysis.calculate_workspace_bytes(workspace, 1), 43)
        self.assertEqual(tir.analysis.calculate_workspace_bytes(workspace, 16), 64)
        self.assertEqual(tir.analysis.calculate_constant_bytes(workspace, 1), 0)
        self.assertEqual(tir.analysis.calculate_allocated_bytes(workspace), {"main": {"global": 40, "shared": 3}})
        self.assertEqual(tir.analysis.calculate_allocated_bytes(sator.IRModule({"f": workspace})), {"f": {"global": 40, "shared": 3}})

    def test_operations(self):
        self.assertEqual(tir.analysis.estimate_tir_flops(workspace), 8 * 2)
        self.assertEqual(tir.analysis.estimate_tir_flops(sator.IRModule({"main": matmul})), 2 * 16**3)

    def test_purity(self):
        self.assertTrue(tir.analysis.is_pure_function(pure))
        self.assertFalse(tir.analysis.is_pure_function(workspace))
        with self.assertRaisesRegex(ValueError, "stores in B"):
            tir.analysis.assert_pure_function(workspace)

    def test_accesses_out_of_bounds(self):
        check = tir.analysis.OOBChecker()
        with self.assertRaisesRegex(tir.ScheduleError, "i \\+ 2 of A runs from 2 to 8"):
            check(sator.IRModule({"main": reads_behind}))
        for inside in (guarded, matmul):
            mod = sator.IRModule({"main": inside})
            self.assertTrue(check(mod).same_as(mod))

    def test_well_formed(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        self.assertTrue(tir.analysis.verify_well_formed(matmul))
        free = tir.PrimFunc([x], tir.Evaluate(x + y))
        self.assertFalse(tir.analysis.verify_well_formed(free, assert_mode=False))
        with self.assertRaisesRegex(ValueError, "y is not defined"):
            tir.analysis.verify_well_formed(free)
        one, other = (tir.PrimFunc([x], tir.Evaluate(x + n)) for n in (1, 2))
        with self.assertRaisesRegex(ValueError, "f and g both bind the variable x"):
            tir.analysis.verify_well_formed(sator.IRModule({"f": one, "g": other}))

    def test_variables(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        inner = tir.For(x, 0, y, tir.ForKind.SERIAL, tir.Evaluate(x + y))
        self.assertEqual([v.name for v in tir.analysis.undefined_vars(inner)], ["y"])
        self.assertEqual(tir.analysis.undefined_vars(inner, [y]), [])
        self.assertTrue(tir.analysis.verify_ssa(tir.PrimFunc([y], inner)))
        self.assertFalse(tir.analysis.verify_ssa(tir.PrimFunc([x, y], inner)))
        self.assertTrue(tir.analysis.expr_deep_equal(x + 1, x + 1))
        self.assertFalse(tir.analysis.expr_deep_equal(x + 1, y + 1))

    def test_regions_of_a_block(self):
        block = matmul.body.block.body.body.body.body.block
        buffers = {b.data: b for b in matmul.buffer_map.values()}
        reads, writes, opaque = tir.analysis.get_block_access_region(block, buffers)
        self.assertEqual(([r.buffer.name for r in reads], [w.buffer.name for w in writes], opaque), (["A", "B"], ["C"], []))

    def test_places_in_a_schedule(self):
        sch = tir.Schedule(matmul)
        i, _, _ = sch.get_loops(sch.get_block("C"))
        place = sch.get_sref(i)
        self.assertEqual(place.stmt.extent, 16)
        self.assertTrue(place.same_as(sch.get_sref(place.stmt)))
        other = sch.copy()
        self.assertFalse(place.same_as(other.get_sref(other.get_loops(other.get_block("C"))[0])))
        outer, _ = sch.split(i, factors=[None, 4])
        self.assertEqual(sch.get_sref(outer).stmt.extent, 4)
        with self.assertRaises(tir.ScheduleError):
            place.stmt

    def test_rewriting_statements(self):
        def halved(node):
            return tir.For(node.loop_var, node.min, 4, tir.ForKind.SERIAL, node.body)

        loop = reads_behind.body
        changed = tir.stmt_functor.ir_transform(loop, None, halved, ["tir.For"])
        self.assertEqual((changed.extent, loop.extent), (4, 7))
        self.assertTrue(tir.stmt_functor.ir_transform(loop, None, lambda node: None).same_as(loop))
        func = reads_behind.with_body(changed)
        self.assertFalse(sator.ir.structural_equal(func, reads_behind))
        again = tir.stmt_functor.renew_defs(reads_behind)
        self.assertTrue(sator.ir.structural_equal(again, reads_behind))
        self.assertFalse(again.body.loop_var.same_as(loop.loop_var))

    def test_specialized(self):
        @T.prim_func
        def scaled(a: T.handle, n: T.int32):
            A = T.match_buffer(a, (n,), "float32")
            for i in range(n):
                A[i] = A[i] * T.float32(2)

        fixed = scaled.specialize({scaled.params[1]: 5})
        self.assertEqual([len(fixed.params), fixed.body.extent], [1, 5])
        at = tir.Var("at", "handle")
        plain = tir.PrimFunc([at], tir.Evaluate(0))
        with self.assertRaisesRegex(sator.TVMError, "the pointer at is given as"):
            plain.specialize({at: tir.address_of(tir.decl_buffer((4,))[1])})

    def test_buffers_and_maps(self):
        n = tir.Var("n", "int32")
        buffer = tir.decl_buffer((n, 4), "float16", name="A", strides=[8, 1], scope="shared")
        self.assertEqual((buffer.name, buffer.dtype, buffer.scope()), ("A", "float16", "shared"))
        self.assertEqual(list(map(int, buffer.strides)), [8, 1])
        with self.assertRaisesRegex(ValueError, "auto_broadcast"):
            tir.decl_buffer((4,), buffer_type="auto_broadcast")
        index_map, separators = tir.IndexMap.from_func_with_separators(lambda i: (i // 4, tir.IndexMap.AXIS_SEPARATOR, i % 4))
        self.assertEqual(separators, [1])
        self.assertTrue(index_map.is_equivalent_to(tir.IndexMap.from_func(lambda j: (j // 4, j % 4))))
        back = index_map.inverse([16])
        self.assertTrue(back.is_equivalent_to(tir.IndexMap.from_func(lambda i, j: [4 * i + j])))
        self.assertFalse(index_map.is_equivalent_to(tir.IndexMap.from_func(lambda j: (j // 8, j % 8))))
        with self.assertRaisesRegex(ValueError, "axis separators"):
            tir.IndexMap.from_func(lambda i: (i // 4, tir.IndexMap.AXIS_SEPARATOR, i % 4))

    def test_bits(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        terms = [x << 2, x >> y, 3 & x, x | 1, x ^ y, ~x]
        program = sator.build(tir.PrimFunc([x, y], tir.Evaluate(tir.ret(sum(terms[1:], terms[0])))).with_attr("global_symbol", "f"))
        for a, b in ((13, 2), (-7, 1)):
            self.assertEqual(program(a, b), (a << 2) + (a >> b) + (3 & a) + (a | 1) + (a ^ b) + ~a)

    def test_what_no_program_may_have(self):
        half, single = tir.Var("half", "float16"), tir.Var("single", "float32")
        with self.assertRaisesRegex(TypeError, "var of float16 and value of float32"):
            tir.Let(half, single, half)
        for value, dtype in ((-129, "int8"), (256, "uint8"), (2**31, "int32"), (-1, "uint64")):
            with self.assertRaisesRegex(ValueError, "does not hold"):
                tir.const(value, dtype)
        self.assertEqual([tir.const(v, t).value for v, t in ((-128, "int8"), (255, "uint8"), (-(2**31), "int32"))], [-128, 255, -(2**31)])
        for both in (relax.ShapeStructInfo, relax.TensorStructInfo):
            with self.assertRaisesRegex(ValueError, "are both given"):
                both([1, 2], ndim=2)
        with self.assertRaisesRegex(NotImplementedError, "FPrimalGradient"):
            sator.ir.register_op_attr("analysis_test.op", "FPrimalGradient", lambda call: call)
        sator.ir.register_op_attr("analysis_test.op", "note", 3)
        self.assertEqual([sator.ir.get_op_attr("analysis_test.op", k) for k in ("note", "other")], [3, None])

    def test_pass_of_a_function(self):
        marked = tir.transform.Apply(lambda func: func.with_attr("mark", 1))(sator.IRModule({"main": matmul}))
        self.assertEqual(marked["main"].attrs["mark"], 1)

    def test_constants(self):
        self.assertEqual([tir.const(v).dtype for v in (3, 2**31, 0.5, True, np.int8(3))], ["int32", "int64", "float32", "bool", "int8"])
        # TVM's relax.const takes the wide dtypes for the narrow ones, unless a dtype is given or the value is an NDArray.
        values = (3, [1, 2], 0.5, True, np.arange(2), np.zeros(2), np.float64(0.5), np.float16(1), np.zeros(1, "uint8"), sator.nd.array(np.zeros(2)))
        self.assertEqual([relax.const(v).struct_info.dtype for v in values],
                         ["int32", "int32", "float32", "bool", "int32", "float32", "float32", "float16", "uint8", "float64"])
        self.assertEqual(relax.const(np.arange(2), "int64").struct_info.dtype, "int64")
        with self.assertRaisesRegex(ValueError, "beyond int32"):
            relax.const(2**40)
        self.assertEqual(relax.const(2**40, "int64").data.numpy(), 2**40)

    def test_lowered(self):
        lowered = sator.lower(matmul)["main"]
        self.assertEqual(lowered.attrs["global_symbol"], "main")
        kinds = set()
        tir.stmt_functor.post_order_visit(lowered.body, lambda node: kinds.add(type(node).__name__))
        self.assertFalse({"Block", "BlockRealize"} & kinds)
        self.assertIn("For", kinds)


@I.ir_module
class Calls:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Calls
        y = cls.twice(x)
        unused = R.add(x, x)
        return y

    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        z = R.multiply(x, R.const(2, "float32"))
        return z


@I.ir_module
class Diamond:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            a = R.nn.relu(x)
            b = R.exp(x)
            c = R.add(a, x)
            d = R.multiply(a, x)
            e = R.add(c, d)
            R.output(e)
        return e


class Graphs(unittest.TestCase):
    def test_struct_info(self):
        n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
        known, ranked = relax.TensorStructInfo((n, 4), "float32"), relax.TensorStructInfo(ndim=2, dtype="float32")
        check, result = analysis.struct_info_base_check, analysis.BaseCheckResult
        self.assertEqual(check(ranked, known), result.PASS)
        self.assertEqual(check(known, relax.ObjectStructInfo()), result.FAIL_L1)
        self.assertEqual(check(known, ranked), result.FAIL_L2)
        self.assertEqual(check(known, relax.TensorStructInfo((m, 4), "float32")), result.FAIL_L2)
        self.assertEqual(check(known, relax.TensorStructInfo((n, 5), "float32")), result.FAIL_L0)
        self.assertTrue(ranked.is_base_of(known))
        self.assertTrue(sator.ir.structural_equal(analysis.struct_info_lca(known, relax.TensorStructInfo((m, 4), "float32")), ranked))
        self.assertTrue(sator.ir.structural_equal(analysis.erase_to_well_defined(known), ranked))
        self.assertEqual([v.name for v in analysis.tir_vars_in_struct_info(known)], ["n"])

    def test_parameters_bound(self):
        @R.function
        def f(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4,), "float32")):
            y = R.add(x, w)
            return y

        values = np.arange(4, dtype="float32")
        for key in ("w", f.params[1]):
            bound = f.bind_params({key: values})
            self.assertEqual(len(bound.params), 1)
            np.testing.assert_array_equal(bound.body.blocks[0].bindings[0].value.args[1].data.numpy(), values)
        with self.assertRaisesRegex(sator.TVMError, "no parameter named v"):
            f.bind_params({"v": values})
        sized = f.bind_symbolic_vars({"n": 8})
        self.assertEqual(list(map(int, sized.params[0].struct_info.shape)), [8, 4])
        by_pass = relax.transform.BindSymbolicVars({f.params[0].struct_info.shape[0]: 8})(sator.IRModule({"f": f}))
        self.assertTrue(sator.ir.structural_equal(by_pass["f"].params[0].struct_info, sized.params[0].struct_info))

    def test_inlined(self):
        inlined = Calls["main"].inline_functions({"twice": Calls["twice"]})
        self.assertEqual(analysis.all_global_vars(inlined), [])
        calls = [b.value.op.name for block in inlined.body.blocks for b in block.bindings if isinstance(b.value, relax.Call)]
        self.assertIn("relax.multiply", calls)

    def test_unused(self):
        kept = analysis.remove_all_unused(Calls["main"].body)
        self.assertEqual([b.var.name_hint for b in kept.blocks[0].bindings], ["y"])

    def test_pass_of_some_functions(self):
        @I.ir_module
        class Two:
            @R.function
            def first(x: R.Tensor((4,), "float32")):
                unused = R.add(x, x)
                return x

            @R.function
            def second(x: R.Tensor((4,), "float32")):
                unused = R.add(x, x)
                return x

        some = sator.transform.ApplyPassToFunction(relax.transform.DeadCodeElimination(), "fir.*")(Two)
        self.assertTrue(sator.ir.structural_equal(some["second"], Two["second"]))
        self.assertNotIn("add", some["first"].script())
        with self.assertRaisesRegex(ValueError, "no function matches third"):
            sator.transform.ApplyPassToFunction(relax.transform.DeadCodeElimination(), "third", True)(Two)

    def test_visited_after_their_parts(self):
        seen = []
        analysis.post_order_visit(Diamond["main"], seen.append)
        kinds = [type(e).__name__ for e in seen]
        self.assertEqual((kinds[-1], kinds.count("Call"), kinds.count("Function")), ("Function", 5, 1))
        at = {e.name_hint: i for i, e in enumerate(seen) if isinstance(e, relax.Var)}
        add = next(i for i, e in enumerate(seen) if isinstance(e, relax.Call) and e.op.name == "relax.add" and e.args[0].name_hint == "c")
        self.assertLess(max(at["c"], at["d"]), add)
        self.assertEqual(len(at), sum(isinstance(e, relax.Var) for e in seen))  # each once
        with self.assertRaisesRegex(TypeError, "needs: a function"):
            analysis.post_order_visit(Diamond["main"], 3)
        with self.assertRaises(ZeroDivisionError):
            analysis.post_order_visit(Diamond["main"], lambda e: 1 / 0)

    def test_memory_of_allocations(self):
        @R.function
        def func(x: R.Tensor(("n", 4), "float32")):
            n = T.int64()
            storage: R.Object = R.memory.alloc_storage(R.shape([64]), virtual_device_index=0, storage_scope="global", dtype="uint8")
            a = R.memory.alloc_tensor(storage, offset=0, shape=R.shape([4, 4]), dtype="float32")  # noqa: F841
            b = R.memory.alloc_tensor(storage, offset=0, shape=R.shape([4, 8]), dtype="float16")  # noqa: F841
            c = R.builtin.alloc_tensor(R.shape([2]), dtype="float32", runtime_device_index=0)  # noqa: F841
            d = R.builtin.alloc_tensor(R.shape([n]), dtype="float32", runtime_device_index=0)  # noqa: F841
            return x

        text = analysis.estimate_memory_usage(func)
        self.assertIn(f"there are 3 constant-size memory allocation(s) with total size {136 / 2**30:.4} GB, and 1 dynamic-size allocation(s).", text)
        self.assertIn(f"there are 2 constant-size memory allocation(s) with total size {72 / 2**30:.4} GB.", text)
        self.assertIn("to 52.9%.", text)

    def test_a_block_rewritten_by_bindings(self):
        func = Diamond["main"]
        block = func.body.blocks[0]
        var = {b.var.name_hint: b.var for b in block.bindings}
        rewrite = relax.DataflowBlockRewrite(block, func)
        with self.assertRaisesRegex(sator.TVMError, "a is read by c, d"):
            rewrite.remove_unused(var["a"])
        with self.assertRaisesRegex(sator.TVMError, "e is read by what follows the block"):
            rewrite.remove_unused(var["e"])
        self.assertTrue(rewrite.mutated_root_fn().same_as(func))
        rewrite.replace_all_uses(var["a"], var["b"])
        rewrite.remove_unused(var["a"])
        rewrite.add(relax.op.multiply(func.params[0], var["b"]), "f", is_dfvar=True)
        rewrite.add(relax.op.negative(func.params[0]))
        self.assertEqual(list(analysis.name_to_binding(rewrite.mutated_dfb())), ["b", "tmp", "f", "c", "d", "e"])
        mod = rewrite.mutate_irmodule(Diamond)
        self.assertTrue(mod["main"].same_as(rewrite.mutated_root_fn()))
        self.assertTrue(Diamond["main"].same_as(func))
        self.assertTrue(analysis.well_formed(mod))
        x = np.array([1, -2, 3, -4], "float32")
        b = np.exp(x)
        np.testing.assert_allclose(relax.VirtualMachine(relax.build(mod))["main"](x).numpy(), (b + x) + (b * x), rtol=1e-5)
        rewrite.remove_all_unused()
        self.assertEqual(list(analysis.name_to_binding(rewrite.mutated_dfb())), ["b", "c", "d", "e"])
        with self.assertRaisesRegex(sator.TVMError, "does not define"):
            rewrite.replace_all_uses(var["a"], var["b"])
        with self.assertRaisesRegex(sator.TVMError, "the block is not in the function"):
            relax.DataflowBlockRewrite(block, Calls["main"])


class Sizes(unittest.TestCase):
    def test_symbolic_sizes(self):
        @R.function
        def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(dtype="float32", ndim=1), w: R.Tensor((8, 8), "float32")):
            R.func_attr({"num_input": 2})
            n, m, k = T.int64(), T.int64(), T.int64()
            z = R.match_cast(y, R.Tensor((k,), "float32"))
            v = R.add(w, w)
            u = R.add(v, w)
            s = R.reshape(x, (m, n))
            return s

        self.assertEqual([v.name for v in analysis.defined_symbolic_vars(main)], ["n", "m", "k"])
        self.assertEqual(analysis.free_symbolic_vars(main), [])
        body = main.body.blocks[0].bindings[-1].value
        self.assertEqual({v.name for v in analysis.free_symbolic_vars(body)}, {"n", "m"})
        self.assertEqual([v.name_hint for v in analysis.computable_at_compile_time(main)], ["w", "v", "u"])
        self.assertEqual([str(e) for e in analysis.collect_non_negative_expressions(main.params[0].struct_info)], ["n", "m"])
        self.assertEqual(analysis.get_static_type(main.params[0].struct_info).ndim, 2)

    def test_functions_that_call_one_another(self):
        @I.ir_module
        class Calls:
            @R.function
            def a(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return Calls.b(x)

            @R.function
            def b(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return Calls.a(x)

            @R.function
            def c(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return Calls.c(x)

            @R.function
            def d(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return Calls.a(x)

        found = [[gv.name_hint for gv in group] for group in analysis.detect_recursion(Calls)]
        self.assertEqual(sorted(found), [["a", "b"], ["c"]])

    def test_sizes_that_struct_info_tells(self):
        """A number's value tells a size as an extent does; functions tell those of what they take and give."""
        n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
        number, product, tensor = relax.PrimStructInfo(value=n), relax.TensorStructInfo([n * m], "float32"), relax.TensorStructInfo([m, n], "float32")
        definable, used = relax.analysis.definable_tir_vars_in_struct_info, relax.analysis.tir_vars_in_struct_info
        for info, tells, uses in ((number, [n], [n]), (product, [], [n, m]), (tensor, [m, n], [m, n]),
                                  (relax.FuncStructInfo([product, number], tensor), [n, m], [n, m])):
            self.assertEqual(([v.name for v in definable(info)], [v.name for v in used(info)]), ([v.name for v in tells], [v.name for v in uses]))
        x, bb = relax.Var("x", product), relax.BlockBuilder()
        with bb.function("main", [relax.Var("n", number), relax.Var("m", relax.PrimStructInfo(value=m)), x]):
            bb.emit_func_output(relax.op.reshape(x, [n, m]))
        func = bb.get()["main"]
        self.assertEqual({v.name for v in relax.analysis.defined_symbolic_vars(func)}, {"n", "m"})
        self.assertEqual(relax.analysis.free_symbolic_vars(func), [])


if __name__ == "__main__":
    unittest.main()
