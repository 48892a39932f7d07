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


class Sets(unittest.TestCase):
    """The examples of TVM's tests of arith, by hand."""

    def setUp(self):
        self.x, self.y, self.n = tir.Var("x", "int32"), tir.Var("y", "int32"), tir.SizeVar("n", "int32")
        self.ranges = {self.x: ir.Range(0, 3), self.y: ir.Range(0, 4)}

    def ends(self, s):
        return [str(s.min_value), str(s.max_value)]

    def test_linear_forms(self):
        x, y, n = self.x, self.y, self.n
        self.assertEqual([str(c) for c in arith.detect_linear_equation(x * 4 + n * y + 3, [x, y])], ["4", "n", "3"])
        self.assertEqual(arith.detect_linear_equation(x * y, [x, y]), [])
        clip = arith.detect_clip_bound(tir.all(x > 1, x < n, y >= 2), [x, y])
        self.assertEqual([str(c) for c in clip], ["2", "n - 1", "2", "None"])

    def test_bounds_of_a_variable(self):
        a, b = self.x, self.y
        low = arith.IntervalSet(0, 4)
        found = arith.deduce_bound(a, b + a * 4 < 17, {b: low}, {b: low})
        self.assertEqual(self.ends(found), ["neg_inf", "3"])
        self.assertIs(found.min_value, arith.neg_inf())
        self.assertTrue(arith.deduce_bound(a, a * a < 4, {}, {}).is_nothing())

    def test_sets(self):
        x, n = self.x, self.n
        found = arith.Analyzer().int_set(x + n, {x: arith.IntervalSet(0, 9)})
        self.assertTrue(arith.Analyzer().can_prove_equal(found.max_value - found.min_value, 9))
        self.assertEqual(self.ends(arith.IntSet.vector(tir.Ramp(2, 3, 4))), ["2", "11"])
        self.assertTrue(arith.IntervalSet(arith.neg_inf(), arith.pos_inf()).is_everything())
        self.assertFalse(arith.IntSet.single_point(x).is_nothing())
        self.assertEqual(self.ends(arith.int_set.union_lower_bound([arith.IntervalSet(0, 3), arith.IntervalSet(4, 8)])), ["0", "8"])

    def test_regions(self):
        x, y = self.x, self.y
        covered = [ir.Range.from_min_extent(x * 4 + y, 2)]
        for estimate in (arith.estimate_region_lower_bound, arith.estimate_region_strict_bound, arith.estimate_region_upper_bound):
            self.assertEqual(self.ends(estimate(covered, self.ranges, True)[0]), ["0", "12"])
        with_gaps = [ir.Range.from_min_extent(x * 5, 2)]
        self.assertIsNone(arith.estimate_region_strict_bound(with_gaps, self.ranges))
        self.assertEqual(self.ends(arith.estimate_region_upper_bound(with_gaps, self.ranges)[0]), ["0", "11"])

    def test_facts_of_a_while(self):
        x, y, z = self.x, self.y, tir.Var("z", "int32")
        analyzer = arith.Analyzer()
        with analyzer.constraint_scope(x < 5):
            self.assertTrue(analyzer.can_prove(x < 6))
        self.assertFalse(analyzer.can_prove(x < 6))
        analyzer.update(x, arith.ConstIntBound(0, 7))
        self.assertEqual(analyzer.const_int_bound(x + 1), (1, 8))
        analyzer.update(y, arith.ModularSet(4, 1))
        self.assertEqual(analyzer.modular_set(y + 1), (4, 2))
        with self.assertRaisesRegex(TypeError, "needs: a ConstIntBound"):
            analyzer.update(x, 3)
        chain = arith.Analyzer()
        a, b = tir.Var("a", "int32"), tir.Var("b", "int32")
        for flags, known in ((arith.Extension.NoExtensions, False), (arith.Extension.TransitivelyProveInequalities, True)):
            chain.enabled_extensions = flags
            self.assertEqual(chain.enabled_extensions, flags)
            with chain.constraint_scope(tir.all(a + z < b, b < y + z)):
                self.assertEqual(chain.can_prove(a + z < y + z), known)


class IterMaps(unittest.TestCase):
    def setUp(self):
        self.x, self.y = tir.Var("x", "int32"), tir.Var("y", "int32")
        self.ranges = {self.x: ir.Range(0, 3), self.y: ir.Range(0, 4)}

    def test_a_fused_index(self):
        found = arith.detect_iter_map([self.x * 4 + self.y], self.ranges)
        (index,) = found.indices
        self.assertEqual((found.errors, index.args[0].extent.value, index.args[0].scale.value, index.base.value), ([], 12, 1, 0))
        self.assertEqual([s.scale.value for s in index.args[0].source.source.args], [4, 1])
        self.assertEqual(str(arith.normalize_iter_map_to_expr(index)), "x * 4 + y")
        refused = arith.detect_iter_map([self.x * self.x], self.ranges)
        self.assertEqual((refused.indices, len(refused.errors)), ([], 1))

    def test_the_way_back(self):
        a, b = tir.Var("a", "int32"), tir.Var("b", "int32")
        fused = self.x * 4 + self.y
        there = arith.detect_iter_map([fused // 3, fused % 3], self.ranges, check_level="bijective").indices
        back = arith.inverse_affine_iter_map(there, [a, b])
        for x in range(3):
            for y in range(4):
                at = {a: tir.const((x * 4 + y) // 3, "int32"), b: tir.const((x * 4 + y) % 3, "int32")}
                values = [arith.Analyzer().simplify(tir.stmt_functor.substitute(back[v], at)).value for v in (self.x, self.y)]
                self.assertEqual(values, [x, y])

    def test_padding(self):
        i = tir.Var("i", "int32")
        found = arith.detect_iter_map([i // 4, i % 4], {i: ir.Range(0, 18)}, check_level=arith.IterMapLevel.NoCheck)
        self.assertEqual([s.args[0].extent.value for s in found.indices], [5, 4])
        self.assertNotEqual(str(found.padding_predicate), "T.bool(False)")

    def test_division(self):
        outer_inner, predicates = arith.subspace_divide([self.x * 4 + self.y], self.ranges, [self.y])
        self.assertEqual([str(arith.normalize_iter_map_to_expr(m.source)) for m in outer_inner], ["x", "y"])
        self.assertEqual([m.extent.value for m in outer_inner], [3, 4])
        self.assertEqual([bool(m.extent.value) for m in predicates], [True, True])
        self.assertEqual(arith.subspace_divide([self.x * self.x], self.ranges, [self.y]), [])

    def test_simpler_indices(self):
        i = tir.Var("i", "int32")
        self.assertEqual([str(e) for e in arith.iter_map_simplify([i // 4 * 4 + i % 4], {i: ir.Range(0, 16)})], ["i"])
        whole = arith.normalize_to_iter_sum(self.y * 2 + self.x * 8 + 5, self.ranges)
        self.assertEqual(([s.scale.value for s in whole.args], whole.base.value), ([8, 2], 5))
        self.assertEqual(arith.IterMapLevel.from_str("NoCheck"), 3)
        with self.assertRaisesRegex(ValueError, "needs: one of"):
            arith.detect_iter_map([i], {i: ir.Range(0, 4)}, check_level="some")

    def test_a_range_from_a_number_to_a_64_bit_size(self):
        n, i = tir.Var("n", "int64"), tir.Var("i", "int64")
        around = ir.Range(0, n)
        self.assertEqual((around.min.dtype, around.extent.dtype), ("int64", "int64"))
        analyzer = arith.Analyzer()
        analyzer.bind(i, around)
        self.assertTrue(analyzer.can_prove(i < n) and analyzer.can_prove(i >= 0))


if __name__ == "__main__":
    unittest.main()
