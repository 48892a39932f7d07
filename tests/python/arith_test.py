"""Integer expressions: simpler forms, proofs, bounds."""
import unittest

import sator
from sator import arith, ir, tir
from sator.script import tir as T


class Analyzer(unittest.TestCase):
    def test_expressions_are_simplified_by_what_is_known(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int32")
        analyzer = arith.Analyzer()
        self.assertTrue(analyzer.simplify(x - x + y).same_as(y))
        self.assertEqual(str(analyzer.simplify((x * 4 + 3) // 4)), "x")
        analyzer.bind(x, ir.Range(0, 8))
        self.assertEqual(str(analyzer.simplify(x // 8)), "0")
        self.assertEqual(str(analyzer.canonical_simplify((y // 4) * 4 + y % 4)), "y")
        self.assertEqual(str(analyzer.rewrite_simplify(y + 0)), "y")
        analyzer.bind(y, 3)
        self.assertEqual(str(analyzer.simplify(y + x)), "x + 3")

    def test_what_is_proven_holds_and_what_is_not_known_is_not(self):
        x, n = tir.Var("x", "int32"), tir.SizeVar("n", "int32")
        analyzer = arith.Analyzer()
        analyzer.bind(x, ir.Range(2, 10))
        self.assertTrue(analyzer.can_prove(x < 10))
        self.assertTrue(analyzer.can_prove(n >= 0))
        self.assertFalse(analyzer.can_prove(x < 9))
        self.assertTrue(analyzer.can_prove_equal(x * 2, x + x))
        self.assertFalse(analyzer.can_prove_equal(x, n))
        self.assertTrue(analyzer.can_prove(T.vscale() * 4 >= 4))

    def test_bounds_and_residues(self):
        x, y = tir.Var("x", "int32"), tir.Var("y", "int64")
        analyzer = arith.Analyzer()
        analyzer.bind(x, ir.Range(2, 10))
        self.assertEqual(analyzer.const_int_bound(x * 3 + 1), (7, 28))
        self.assertEqual(analyzer.const_int_bound(y), (arith.ConstIntBound.NEG_INF, arith.ConstIntBound.POS_INF))
        self.assertEqual(analyzer.modular_set(y * 6 + 4), (6, 4))
        with self.assertRaises(TypeError):
            analyzer.bind(3, ir.Range(0, 4))


class Parts(unittest.TestCase):
    def test_iterators_have_tvm_s_numbers(self):
        v = tir.Var("v", "int32")
        reduced = tir.IterVar(ir.Range(0, 4), v, tir.IterVar.CommReduce)
        self.assertEqual((reduced.iter_type, reduced.dom.extent.value), (2, 4))
        self.assertEqual(tir.IterVar((0, 4), v, tir.IterVar.DataPar).iter_type, 0)
        with self.assertRaisesRegex(ValueError, "needs: DataPar"):
            tir.IterVar((0, 4), v, tir.IterVar.Unrolled)
        thread = tir.IterVar(ir.Range(0, 256), v, tir.IterVar.ThreadIndex, "threadIdx.x")

        @T.prim_func(check_well_formed=False)
        def kernel(A: T.Buffer((256,), "float32")):
            T.attr(thread, "thread_extent", 256)
            A[v] = T.float32(0)

        self.assertIn('T.launch_thread("threadIdx.x", 256)', kernel.script())

    def test_buffers_are_read_and_written_in_vectors(self):
        A = tir.decl_buffer((16,), "float32", "A")
        self.assertEqual(A.vload([0], "float32x4").dtype, "float32x4")
        self.assertEqual(A.vload([0], "float32xvscalex4").dtype, "float32xvscalex4")
        mask = T.get_active_lane_mask("uint1x4", 0, 3)
        self.assertIn("A.vload([T.Ramp(0, 1, 4)], predicate=", str(A.vload([0], "float32x4", predicate=mask)))
        self.assertIn("A.vstore([T.Ramp(0, 1, 4)]", A.vstore([0], tir.Broadcast(T.float32(1), 4), predicate=mask).script())
        with self.assertRaisesRegex(sator.error.DiagnosticError, "a predicate of dtype bool "):
            A.vload([0], predicate=T.bool(True))

    def test_vectors_of_any_machine(self):
        ramp = tir.Ramp(0, 1, 4 * T.vscale())
        self.assertEqual((ramp.dtype, str(ramp.lanes)), ("int32xvscalex4", "T.vscale() * 4"))
        self.assertEqual(tir.Ramp(0, 1, 4).lanes, 4)
        self.assertEqual((ramp + 3).dtype, "int32xvscalex4")
        with self.assertRaises(TypeError):
            tir.Broadcast(0, T.vscale() + 3)

    def test_a_target_keeps_what_was_given_and_its_host(self):
        @T.prim_func
        def f():
            T.func_attr({"global_symbol": "f"})
            T.evaluate(0)

        bound = tir.transform.BindTarget(sator.Target("cuda", host="llvm"))(f)
        self.assertIn('{"host": T.target({"kind": "llvm"}), "kind": "cuda"}', bound.script())
        kept = tir.transform.Filter(lambda func: "mark" in func.attrs)(sator.IRModule({"f": f, "g": f.with_attr("mark", 1)}))
        self.assertEqual(list(kept.functions), ["g"])


class Called(unittest.TestCase):
    def test_a_function_that_a_program_calls_opens_its_scopes_there(self):
        def constants(data):
            return T.decl_buffer((2,), "float32", data=data)

        def both(i):
            return T.meta_var((i * 2, i + 1))

        @T.prim_func
        def called(A: T.Buffer((16,), "float32")):
            data = T.allocate_const([1.0, 2.0], "float32", [2])
            c = constants(data)
            for i in range(2):
                a, b = both(i)
                A[a] = c[i] + A[b]

        @T.prim_func
        def written(A: T.Buffer((16,), "float32")):
            data = T.allocate_const([1.0, 2.0], "float32", [2])
            c = T.decl_buffer((2,), "float32", data=data)
            for i in range(2):
                A[i * 2] = c[i] + A[i + 1]

        sator.ir.assert_structural_equal(called.with_attr("global_symbol", "f"), written.with_attr("global_symbol", "f"))


if __name__ == "__main__":
    unittest.main()
