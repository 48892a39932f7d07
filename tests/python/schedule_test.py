"""Schedules from Python: every primitive of the table, handles, traces, errors, index maps, tensor intrinsics."""
import contextlib
import io
import unittest

import numpy as np

import sator
from sator import te, tir
from sator.script import ir as I, tir as T


@I.ir_module
class Added:
    @T.prim_func
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32"), C: T.Buffer((128,), "float32")):
        for i in range(128):
            with T.block("C"):
                vi = T.axis.spatial(128, i)
                C[vi] = A[vi] + B[vi]


@T.prim_func
def matmul(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


# The last of the notebook's programs (the seed 001), as its slides show it.
PARALLEL = '''for i_0 in T.parallel(8):
            for i_2, i_1 in T.grid(4, 4):
                with T.block("C"):
                    vi = T.axis.spatial(128, i_0 * 16 + i_1 * 4 + i_2)
                    T.reads(A[vi], B[vi])
                    T.writes(C[vi])
                    C[vi] = A[vi] + B[vi]'''


class Modules(unittest.TestCase):
    def test_functions_by_name(self):
        mod = sator.IRModule({"add": Added["main"], "matmul": matmul}, attrs={"version": 1})
        self.assertEqual((list(mod), len(mod), "add" in mod, "x" in mod), (["add", "matmul"], 2, True, False))
        self.assertEqual([list(mod.keys()), [n for n, _ in mod.items()], [n for n, _ in mod.functions_items()]], [["add", "matmul"]] * 3)
        name = mod.get_global_var("add")
        self.assertTrue(mod.functions[name].same_as(mod["add"]) and mod[name].same_as(mod.get("add")))
        self.assertEqual((mod.get("x"), mod.get_attr("version"), mod.get_attr("x"), mod.without_attr("version").attrs), (None, 1, None, {}))
        for wrong in (lambda: mod["x"], lambda: mod.functions["x"], lambda: mod.get_global_var("x"), lambda: mod.__delitem__("x")):
            with self.assertRaisesRegex(ValueError, "the module has no function x\n  needs: one of add, matmul"):
                wrong()
        same = mod.clone()
        del mod["add"]
        self.assertEqual((list(mod), list(same)), (["matmul"], ["add", "matmul"]))


class Steps(unittest.TestCase):
    def test_a_factor_near_the_greatest_int32_makes_one_outer_iteration(self):
        for factors in ([None, 2**31 - 1], [None, 2**31 - 8], [2**31 - 1, None]):
            sch = tir.Schedule(Added)
            extents = [int(sch.get(loop).extent) for loop in sch.split(sch.get_loops("C")[0], factors)]
            self.assertEqual(extents, [1 if f is None else f for f in factors])

    def test_the_notebook_s_steps(self):
        sch = sator.tir.Schedule(Added)
        self.assertEqual(f"{type(sch).__module__}.{type(sch).__name__}", "sator.tir.schedule.schedule.Schedule")
        block_c = sch.get_block("C")
        (i,) = sch.get_loops(block_c)
        i_0, i_1, i_2 = sch.split(i, factors=[None, 4, 4])
        sch.reorder(i_0, i_2, i_1)
        sch.parallel(i_0)
        self.assertIn(PARALLEL, sch.mod.script())
        self.assertEqual(sch.get_loops(block_c), [i_0, i_2, i_1])
        self.assertEqual(sch.get(i_0).kind, tir.ForKind.PARALLEL)
        self.assertEqual(sch.get(block_c).name_hint, "C")

    def test_index_maps_of_any_number_of_indices(self):
        """`lambda *i` takes as many as the buffer has dimensions, or the block iterators; to ask is no step."""
        for index_map, same in ((lambda *i: i[::-1], lambda i, j: (j, i)), (lambda i, *rest: (*rest, i // 4, i % 4), lambda i, j: (j, i // 4, i % 4))):
            made = []
            for written in (index_map, same):
                sch = tir.Schedule(matmul)
                sch.transform_layout("C", ("read", 1), written)
                sch.transform_block_layout(sch.get_block("C"), lambda *i: i)
                made.append(sch)
            sator.ir.assert_structural_equal(made[0].mod, made[1].mod)
            self.assertEqual(len(made[0].trace.insts), len(made[1].trace.insts))
        sch = tir.Schedule(matmul)
        sch.cache_read(sch.get_block("C"), 0, "global")
        sch.transform_layout("C", "A_global", lambda *i: [i[0], tir.IndexMap.AXIS_SEPARATOR, i[1]])
        self.assertIn("set_axis_separator", str(sch.trace))

    def test_the_state_of_a_schedule(self):
        sch = tir.Schedule(matmul)
        block, (i, j, k) = sch.get_block("C"), sch.get_loops("C")
        self.assertTrue(sch.state.mod.same_as(sch.mod))
        place = sch.state.get_sref(sch.get(block))
        self.assertTrue(place.parent.stmt.same_as(sch.get(k)))
        self.assertTrue(place.parent.parent.stmt.same_as(sch.get(j)))
        root = sch.get_sref(i).parent
        self.assertEqual((root.stmt.name_hint, root.parent), ("root", None))

    def test_a_failed_step_leaves_all_as_it_was(self):
        sch = tir.Schedule(matmul, debug_mask="all", error_render_level="fast")
        i, j, k = sch.get_loops("C")
        mod, steps, text = sch.mod, sch.trace.as_python(), sch.mod.script()
        for wrong in (lambda: sch.parallel(k), lambda: sch.split(i, [2, 3]), lambda: sch.fuse(i, k), lambda: sch.get_block("D"),
                      lambda: sch.compute_inline("C"), lambda: sch.reorder(i, i)):
            with self.assertRaises(tir.ScheduleError):
                wrong()
            self.assertTrue(sch.mod.same_as(mod) and sch.state.mod.same_as(mod))
            self.assertEqual((sch.trace.as_python(), sch.mod.script()), (steps, text))
        sch.parallel(i)  # the handles go on
        self.assertEqual(sch.get(sch.get_sref(i)).kind, tir.ForKind.PARALLEL)

    def test_arguments_of_other_kinds(self):
        """Arithmetic on what was sampled, integers of NumPy, constants, axes of te."""
        sch = tir.Schedule(matmul, seed=1)
        i, j, k = sch.get_loops("C")
        width = sch.sample_categorical([2, 4], [0.5, 0.5], decision=1)
        outer, inner = sch.split(i, (None, width * 2))
        sch.split(j, [np.int64(2), None, tir.IntImm("int32", 4)])
        sch.bind(outer, te.thread_axis("blockIdx.x"))
        sch.bind(inner, te.thread_axis((0, 8), "threadIdx.x"))
        sch.annotate(k, "unrolled", width - 1)
        loops = [sch.get(loop) for loop in sch.get_loops("C")]
        self.assertEqual([int(loop.extent) for loop in loops], [8, 8, 2, 8, 4, 64])
        self.assertEqual([loops[0].thread, loops[1].thread, int(loops[-1].annotations["unrolled"])], ["blockIdx.x", "threadIdx.x", 3])
        again = tir.Schedule(matmul)
        sch.trace.apply_to_schedule(again)
        sator.ir.assert_structural_equal(again.mod, sch.mod)

    def test_a_copy_goes_its_own_way(self):
        sch = tir.Schedule(matmul, seed=5)
        block, (i, j, k) = sch.get_block("C"), sch.get_loops("C")
        drawn = sch.sample_categorical([1, 2, 4], [0.2, 0.3, 0.5])
        other = sch.copy()
        other.split(i, [None, drawn])
        self.assertEqual((len(sch.get_loops(block)), len(other.get_loops(block))), (3, 4))
        self.assertEqual((len(sch.trace.insts), sch.get(drawn)), (4, other.get(drawn)))
        self.assertIsInstance(sch.get(drawn), int)
        numbers = list(range(1000))

        def draws(s):
            return [s.get(s.sample_categorical(numbers, [0.001] * 1000)) for _ in range(4)]

        drawn = [draws(s) for s in (sch, sch.copy(), sch.copy(), other)]
        self.assertEqual(len({tuple(d) for d in drawn}), 4)

    def test_forked_seeds(self):
        def seeds(seed):
            sch = tir.Schedule(matmul, seed=seed)
            return [sch.fork_seed() for _ in range(50)]

        self.assertEqual(seeds(3), seeds(3))
        self.assertEqual(len({*seeds(3), *seeds(4)}), 100)
        self.assertTrue(all(1 <= s < 2**31 for s in seeds(3)))

    def test_the_function_worked_on(self):
        sch = tir.Schedule(sator.IRModule({"add": Added["main"], "matmul": matmul}))
        self.assertIsNone(sch.func_working_on)
        with self.assertRaises(tir.ScheduleError):
            sch.get_block("C")
        sch.work_on("matmul")
        self.assertIsInstance(sch.func_working_on, sator.ir.GlobalVar)
        self.assertEqual((sch.func_working_on.name_hint, len(sch.get_loops(sch.get_block("C")))), ("matmul", 3))
        self.assertTrue(sch.mod[sch.func_working_on].same_as(sch.mod["matmul"]))
        self.assertEqual(len(sch.get_loops(sch.get_block("C", func_name="add"))), 1)
        self.assertEqual(len(sch.get_loops(sch.get_block("C", func_name=None))), 3)
        with self.assertRaisesRegex(tir.ScheduleError, "mul"):
            sch.work_on("mul")
        self.assertEqual(tir.Schedule(matmul).func_working_on.name_hint, "main")

    def test_steps_on_several_functions_in_turns(self):
        """A step is about the function that has its handles, whatever the function worked on."""
        mod = sator.IRModule({"main": Added["main"], "matmul": matmul})
        sch = tir.Schedule(mod)
        added, product = sch.get_block("C"), sch.get_block("C", func_name="matmul")
        (i,), (j, k, l) = sch.get_loops(added), sch.get_loops(product)
        i_0, i_1 = sch.split(i, [None, 16])
        sch.reorder(k, j)
        sch.vectorize(i_1)
        with self.assertRaises(tir.ScheduleError):
            sch.parallel(l)
        sch.parallel(k)
        self.assertEqual([sch.get(loop).kind for loop in (i_1, k, l)], [tir.ForKind.VECTORIZED, tir.ForKind.PARALLEL, tir.ForKind.SERIAL])
        self.assertEqual((sch.func_working_on.name_hint, len(sch.get_loops("C"))), ("main", 2))
        with self.assertRaisesRegex(tir.ScheduleError, "(?s)consumed it.*split|split.*consumed it"):
            sch.unroll(i)
        alone = {name: tir.Schedule(mod[name]) for name in ("main", "matmul")}
        s = alone["main"]
        s.vectorize(s.split(s.get_loops("C")[0], [None, 16])[1])
        s = alone["matmul"]
        s.reorder(*[s.get_loops("C")[n] for n in (1, 0)])
        s.parallel(s.get_loops("C")[0])
        again = tir.Schedule(mod)
        sch.trace.apply_to_schedule(again)
        for name, one in alone.items():
            for several in sch, again:
                sator.ir.assert_structural_equal(several.mod[name].without_attr("global_symbol"), one.mod["main"].without_attr("global_symbol"))

    def test_options(self):
        for options in {"debug_mask": "some"}, {"debug_mask": 1.5}, {"error_render_level": "low"}, {"enable_check": 1}, {"seed": "7"}, {"seed": True}:
            with self.assertRaisesRegex((TypeError, ValueError), f"{next(iter(options))} = .*\n  needs: "):
                tir.Schedule(matmul, **options)
        self.assertEqual(tir.schedule.ScheduleState(matmul, debug_mask="all").debug_mask, 3)

    def test_shown(self):
        sch = tir.Schedule(Added)
        sch.parallel(sch.get_loops("C")[0])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            sch.show(black_format=False, show_meta=False)
        self.assertIn("T.parallel(128)", out.getvalue())
        self.assertIn("sch.parallel(", out.getvalue())
        with self.assertRaises(TypeError):
            sch.show(colour=True)

    def test_whether_padding_can_be_decomposed(self):
        @T.prim_func
        def padded(x: T.Buffer((14,), "int8"), y: T.Buffer((16,), "int8"), z: T.Buffer((14,), "int8")):
            for i in range(16):
                with T.block("pad"):
                    v = T.axis.spatial(16, i)
                    y[v] = T.if_then_else(1 <= v and v < 15, x[v - 1], T.int8(0))
            for i in range(14):
                with T.block("copy"):
                    v = T.axis.spatial(14, i)
                    z[v] = y[v + 1]

        sch = tir.Schedule(padded)
        answers = {name: sch.can_decompose_padding(sch.get_block(name), sch.get_loops(name)[0]) for name in ("pad", "copy")}
        self.assertEqual(answers, {"pad": True, "copy": False})
        self.assertNotIn("decompose", str(sch.trace))
        self.assertTrue(sch.mod["main"].same_as(padded) or sch.mod["main"].script().count("with T.block(") == 3)
        sch.decompose_padding("pad", sch.get_loops("pad")[0])
        self.assertEqual(sch.mod["main"].script().count("with T.block(") - 1, 3)  # the root is one, in a comment

    def test_a_trace_replays_on_the_same_program(self):
        sch = tir.Schedule(matmul)
        i, j, k = sch.get_loops("C")
        sch.reorder(k, i, j)
        sch.vectorize(sch.split(j, [None, 8])[-1])
        again = tir.Schedule(matmul)
        sch.trace.apply_to_schedule(again)
        sator.ir.assert_structural_equal(again.mod, sch.mod)
        self.assertIn("sch.reorder(", str(sch.trace))
        self.assertEqual(len(sch.trace.insts), 4)

    def test_a_sampled_location_may_be_no_loop(self):
        """TVM: -1 leaves the block where it is, -2 inlines it. An output block stays."""
        @T.prim_func
        def func(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
            B = T.alloc_buffer((8,))
            for i in range(8):
                with T.block("B"):
                    vi = T.axis.spatial(8, i)
                    B[vi] = A[vi] + T.float32(1)
            for i in range(8):
                with T.block("C"):
                    vi = T.axis.spatial(8, i)
                    C[vi] = B[vi] * T.float32(2)

        for name, move, decision, blocks in (("B", "compute_at", -1, ["B", "C"]), ("B", "compute_at", -2, ["C"]),
                                             ("C", "reverse_compute_at", -1, ["B", "C"]), ("C", "reverse_compute_at", -2, ["B", "C"])):
            sch = tir.Schedule(func)
            getattr(sch, move)(sch.get_block(name), sch.sample_compute_location(sch.get_block(name), decision=decision))
            left = [sch.get(b).name_hint for b in sch.get_child_blocks(sch.get_block("root"))]
            self.assertEqual(left, blocks, f"{move} {decision}")

    def test_sampled_factors_name_what_was_chosen(self):
        def sampled(seed):
            sch = tir.Schedule(matmul, seed=seed)
            i, j, k = sch.get_loops(sch.get_block("C"))
            sch.split(i, sch.sample_perfect_tile(i, n=2, max_innermost_factor=8))
            width = sch.sample_categorical([2, 4, 8], [0.5, 0.25, 0.25])
            sch.split(j, [None, width])
            sch.enter_postproc()
            sch.parallel(sch.get_loops("C")[0])
            return sch, width

        sch, width = sampled(7)
        self.assertIn(int(sch.get(width)), (2, 4, 8))
        sator.ir.assert_structural_equal(sch.mod, sampled(7)[0].mod)
        self.assertGreater(len({sampled(seed)[0].mod.script() for seed in range(12)}), 3)
        trace = sch.trace.as_json()
        chosen = trace[1][0]
        self.assertEqual([kind for kind, *_ in trace[0]][chosen[0]], "SamplePerfectTile")
        again = tir.Schedule(matmul)
        tir.schedule.Trace.apply_json_to_schedule(trace, again)
        sator.ir.assert_structural_equal(again.mod, sch.mod)
        chosen[1] = [64, 1]  # another decision reaches the step that uses it
        other = tir.Schedule(matmul)
        tir.schedule.Trace.apply_json_to_schedule(trace, other)
        self.assertEqual(int(other.get(other.get_loops("C")[1]).extent), 1)
        self.assertNotIn("parallel", str(sch.trace.simplified(remove_postproc=True)))
        with self.assertRaises(tir.ScheduleError) as caught:
            tir.Schedule(matmul).sample_categorical([1, 2], [1.0])
        self.assertIn("2 candidates with 1 probabilities", caught.exception.what)

    def test_every_primitive_is_a_method_with_its_parameters_in_its_help(self):
        for name, parameter in (("split", "factors"), ("compute_at", "preserve_unit_loops"), ("tensorize", "tensor_intrin"),
                                ("cache_read", "storage_scope"), ("rfactor", "factor_axis"), ("blockize", "target")):
            self.assertIn(parameter, getattr(tir.Schedule, name).__doc__)

    def test_a_refused_step_tells_six_parts_and_leaves_the_program(self):
        sch = tir.Schedule(matmul)
        i, j, k = sch.get_loops(sch.get_block("C"))
        before = sch.mod
        with self.assertRaises(tir.ScheduleError) as caught:
            sch.parallel(k)
        e = caught.exception
        self.assertIsInstance(e, sator.tir.schedule.schedule.ScheduleError)
        self.assertIsInstance(e, sator.TVMError)
        self.assertIn("parallel(k)", e.what)
        self.assertIn("in func main, after 2 steps", e.where)
        self.assertIn("^", e.program)
        self.assertTrue(e.needs and e.hint)
        sator.ir.assert_structural_equal(sch.mod, before)

    def test_a_consumed_handle_names_the_step(self):
        sch = tir.Schedule(Added)
        (i,) = sch.get_loops("C")
        sch.split(i, [None, 32])
        with self.assertRaises(tir.ScheduleError) as caught:
            sch.parallel(i)
        self.assertIn("split(i", caught.exception.hint)

    def test_an_unknown_parameter_names_the_nearest(self):
        sch = tir.Schedule(Added)
        with self.assertRaises(tir.ScheduleError) as caught:
            sch.split(sch.get_loops("C")[0], factor=[None, 4])
        self.assertIn("factors", caught.exception.hint)

    def test_a_layout_by_a_lambda_and_by_an_index_map(self):
        tiled = tir.Schedule(matmul)
        tiled.transform_layout("C", ("read", 0), lambda i, j: (i // 16, j // 16, i % 16, j % 16))
        mapped = tir.Schedule(matmul)
        mapped.transform_layout("C", ("read", 0), tir.IndexMap.from_func(lambda *i: (i[0] // 16, i[1] // 16, i[0] % 16, i[1] % 16), ndim=2))
        sator.ir.assert_structural_equal(tiled.mod, mapped.mod)
        self.assertIn("(4, 4, 16, 16)", tiled.mod.script())

    def test_python_exceptions_of_an_index_map_arrive(self):
        def wrong(i, j):
            raise IndexError("in the map")

        with self.assertRaises(IndexError):
            tir.Schedule(matmul).transform_layout("C", ("read", 0), wrong)


class IndexMaps(unittest.TestCase):
    def test_shape_point_and_inverse(self):
        tiles = tir.IndexMap.from_func(lambda i: (i // 4, i % 4))
        self.assertEqual([int(d) for d in tiles.map_shape([14])], [4, 4])
        self.assertEqual([int(d) for d in tiles.map_indices([13])], [3, 1])
        back = tiles.inverse([16])
        self.assertEqual([int(d) for d in back.map_indices([3, 1])], [13])

    def test_a_map_that_loses_points_has_no_inverse(self):
        with self.assertRaises(sator.TVMError) as caught:
            tir.IndexMap.from_func(lambda i: (i // 4,)).inverse([16])
        self.assertIn("no inverse", str(caught.exception))


class Intrinsics(unittest.TestCase):
    def test_a_registered_intrinsic_takes_the_place_of_its_block(self):
        @T.prim_func
        def desc(a: T.handle, b: T.handle, c: T.handle):
            A = T.match_buffer(a, (16,), "float32", offset_factor=1)
            B = T.match_buffer(b, (16,), "float32", offset_factor=1)
            C = T.match_buffer(c, (16,), "float32", offset_factor=1)
            with T.block("root"):
                T.reads(A[0:16], B[0:16])
                T.writes(C[0:16])
                for i in range(16):
                    with T.block("add"):
                        vi = T.axis.spatial(16, i)
                        C[vi] = A[vi] + B[vi]

        @T.prim_func
        def impl(a: T.handle, b: T.handle, c: T.handle):
            A = T.match_buffer(a, (16,), "float32", offset_factor=1)
            B = T.match_buffer(b, (16,), "float32", offset_factor=1)
            C = T.match_buffer(c, (16,), "float32", offset_factor=1)
            with T.block("root"):
                T.reads(A[0:16], B[0:16])
                T.writes(C[0:16])
                T.evaluate(T.call_extern("int32", "add16", C.access_ptr("w"), A.access_ptr("r"), B.access_ptr("r")))

        tir.TensorIntrin.register("test_add16", desc, impl)
        sch = tir.Schedule(Added)
        _, inner = sch.split(sch.get_loops("C")[0], [None, 16])
        sch.tensorize(inner, "test_add16")
        self.assertIn('T.call_extern("int32", "add16"', sch.mod.script())
        sator.ir.assert_structural_equal(tir.TensorIntrin.get("test_add16").desc, desc)
        self.assertIsNone(tir.TensorIntrin.get("test_none", allow_missing=True))


if __name__ == "__main__":
    unittest.main()
