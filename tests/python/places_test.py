"""Places in schedules: dependences of blocks, statements that are replaced, decisions of traces, the first difference of two programs."""
import unittest

import numpy as np

import sator
from sator import ir, relax, te, tir
from sator.runtime.object_path import ObjectPath
from sator.script import tir as T
from sator.tir.block_scope import DepKind

ROOT = ObjectPath.root()


@T.prim_func
def twice(A: T.Buffer((16, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    B = T.alloc_buffer((16, 8))
    for i, j in T.grid(16, 8):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = A[v, w] * T.float32(2)
    for i, j in T.grid(16, 8):
        with T.block("C"):
            v, w = T.axis.remap("SS", [i, j])
            C[v, w] = B[v, w] + T.float32(1)
    for i, j in T.grid(16, 8):
        with T.block("D"):
            v, w = T.axis.remap("SS", [i, j])
            B[v, w] = C[v, w]


class Places(unittest.TestCase):
    def scope(self, of):
        blocks = {}
        tir.stmt_functor.post_order_visit(of.mod["main"].body, lambda n: blocks.update({n.name_hint: n}) if isinstance(n, tir.Block) else None)
        return {name: of.get_sref(block) for name, block in blocks.items()}

    def test_how_blocks_depend_on_each_other(self):
        """B is read by C; D reads C's, and writes B's buffer, which B wrote and C read. Of a schedule's state and of the program alone."""
        for made in (tir.ScheduleState(twice, debug_mask="all"), tir.BlockDependenceInfo(twice)):
            places = self.scope(made)
            scope = made.get_block_scope(places["root"])
            found = {name: {(d.dst.stmt.name_hint, d.kind) for d in scope.get_deps_by_src(places[name])} for name in "BCD"}
            self.assertEqual(found, {"B": {("C", DepKind.RAW), ("D", DepKind.WAW)}, "C": {("D", DepKind.RAW), ("D", DepKind.WAR)}, "D": set()})
            (only,) = scope.get_deps_by_dst(places["C"])
            self.assertEqual((only.src, only.kind), (places["B"], DepKind.RAW))
        self.assertEqual(places["B"].parent, places["root"])
        self.assertIsNone(made.get_sref(tir.Schedule(te.create_prim_func([te.placeholder((4,))])).mod["main"].body.block))

    def test_a_statement_in_another_s_place(self):
        """A loop gives way to a loop: its variable's handle goes on; a block to a block: the handle too, where it says so; the rest is gone."""
        sch = tir.Schedule(twice)
        block, (i, _) = sch.get_block("C"), sch.get_loops("C")
        state, loop = sch.state, sch.get(i)
        inner = sch.get_sref(loop.body)
        made = tir.For(loop.loop_var, loop.min, loop.extent, tir.ForKind.PARALLEL, loop.body)
        state.replace(sch.get_sref(i), made)
        self.assertEqual((sch.get(i).kind, inner.stmt.extent), (tir.ForKind.PARALLEL, 8))
        with self.assertRaisesRegex(TypeError, "replace: a For for a Block\n  needs: a Block"):
            state.replace(sch.get_sref(block), made)
        old = sch.get(block)
        store = old.body
        larger = tir.BufferStore(store.buffer, store.value + tir.const(1.0, "float32"), store.indices)
        fresh = tir.Block(old.iter_vars, old.reads, old.writes, "C", larger)
        state.replace(sch.get_sref(block), fresh, {old: fresh})
        self.assertEqual(sch.get(block).name_hint, "C")
        a, c = np.random.rand(16, 8).astype("float32"), np.zeros((16, 8), "float32")
        sator.build(sch.mod)(a, c)
        np.testing.assert_allclose(c, (a * 2 + 1) + 1, rtol=3e-7)
        gone = sch.get_sref(sch.mod["main"].body.block.body[2])
        fresh = tir.Block([], [], [], "root", tir.Evaluate(0))
        state.replace(sch.get_sref(sch.mod["main"].body.block), fresh)
        self.assertIsNone(gone.stmt)
        with self.assertRaisesRegex(tir.ScheduleError, "the statement is gone"):
            state.replace(gone, made)

    def test_decisions_are_asked_for(self):
        """Every step is shown with the handles of the schedule that it is taken on; what chooses does as the function says."""
        sch = tir.Schedule(twice, seed=1)
        i, j = sch.get_loops(sch.get_block("C"))
        tiles = sch.sample_perfect_tile(i, 2, decision=[4, 4])
        outer, _ = sch.split(i, tiles)
        sch.annotate(outer, "unroll", sch.sample_categorical([1, 2, 3], [0.25, 0.5, 0.25], decision=1))
        seen = []

        def provider(inst, handles, others, decision):
            seen.append((inst.kind.name, len(handles), decision))
            return {"SamplePerfectTile": [2, 8], "SampleCategorical": 2}.get(inst.kind.name)

        other = tir.Schedule(twice)
        sch.trace.apply_to_schedule(other, remove_postproc=False, decision_provider=provider)
        self.assertEqual(seen[2:], [("SamplePerfectTile", 1, [4, 4]), ("Split", 3, None), ("SampleCategorical", 0, 1), ("Annotate", 2, None)])
        i_0, i_1, _ = other.get_loops("C")
        self.assertEqual([other.get(i_0).extent, other.get(i_1).extent, other.get(i_0).annotations["unroll"]], [2, 8, 3])
        self.assertEqual(other.trace.get_decision(other.trace.insts[2]), [2, 8])


class Differences(unittest.TestCase):
    def both(self, a, b, free=False):
        """The paths, which are the same whichever side comes first."""
        found, other = ir.get_first_structural_mismatch(a, b, free), ir.get_first_structural_mismatch(b, a, free)
        self.assertEqual(found, other and other[::-1])
        return found and [str(path) for path in found]

    def test_the_first_place(self):
        x, y, z = (tir.Var(name, "int32") for name in "xyz")
        func = tir.PrimFunc([x], tir.Evaluate(x + 1))
        self.assertIsNone(self.both(func, tir.PrimFunc([y], tir.Evaluate(y + 1))))
        self.assertEqual(self.both(func, tir.PrimFunc([y], tir.Evaluate(y + 2))), ["<root>.body.value.b.value"] * 2)
        self.assertEqual(self.both(func, tir.PrimFunc([y, z], tir.Evaluate(y + 1))), ["<root>.params[<missing element #1>]", "<root>.params[1]"])
        self.assertEqual(self.both(func, tir.PrimFunc([tir.Var("f", "float32")], tir.Evaluate(0))), ["<root>.params[0].dtype"] * 2)
        self.assertEqual(self.both(x, y), ["<root>"] * 2)
        self.assertIsNone(self.both(x, y, True))
        self.assertEqual(self.both([1, x], [1, x + 1]), ["<root>[1]"] * 2)

    def test_in_modules_and_graphs(self):
        a = relax.Var("a", relax.TensorStructInfo((4,), "float32"))
        funcs = [relax.Function([a], relax.SeqExpr([relax.BindingBlock([relax.VarBinding(v, op(a, a))])], v), relax.TensorStructInfo((4,), "float32"))
                 for v in [relax.Var("v", relax.TensorStructInfo((4,), "float32"))] for op in (relax.op.add, relax.op.multiply)]
        self.assertEqual(self.both(*(ir.IRModule({"main": f}) for f in funcs)), ['<root>.functions[I.GlobalVar("main")].body.blocks[0].bindings[0].value.op'] * 2)
        with self.assertRaisesRegex(ValueError, r"the programs differ at <root>\.body\.block\.body\.seq\[0\]\.extent\.value\n  left, line 7\n"):
            ir.assert_structural_equal(twice, twice.with_body(tir.stmt_functor.ir_transform(
                twice.body, None, lambda n: tir.For(n.loop_var, n.min, 5, n.kind, n.body) if n.extent == 16 else None, ["tir.For"])))


class Declarations(unittest.TestCase):
    def test_a_function_that_is_still_to_come(self):
        """A function has a body; a variable with its struct info stands for one that another place of the module will have."""
        x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
        with self.assertRaisesRegex(sator.TVMError, r"a function has a body\n.*\n  hint:  GlobalVar\("):
            relax.Function.create_empty([x], x.struct_info)
        later = relax.GlobalVar("later", relax.FuncStructInfo([x.struct_info], x.struct_info))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            y = bb.emit(relax.Call(later, [x]))
            bb.emit_func_output(y)
        self.assertEqual(y.struct_info, x.struct_info)


class Ops(unittest.TestCase):
    def test_attributes_that_somebody_noted(self):
        op = ir.Op.get("relax.nn.relu")
        self.assertFalse(op.has_attr("of_the_places_test"))
        op.set_attr("of_the_places_test", 3)
        self.assertEqual((op.has_attr("of_the_places_test"), op.get_attr("of_the_places_test"), ir.Op.get("relax.nn.relu").get_attr("of_the_places_test")), (True, 3, 3))
        op.reset_attr("of_the_places_test")
        self.assertIsNone(op.get_attr("of_the_places_test"))


if __name__ == "__main__":
    unittest.main()
