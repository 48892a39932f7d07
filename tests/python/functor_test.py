"""Visitors and mutators of graphs: which method is called when. The orders are those of TVM v0.17's relax.expr_functor."""
import unittest

import numpy as np

import sator
from build_test import Layer
from sator import relax, tir
from sator.relax import PyExprMutator, PyExprVisitor
from sator.relax.expr_functor import mutator, visitor
from sator.script import ir as I, relax as R, tir as T

HOOKS = ("visit_var_", "visit_dataflow_var_", "visit_call_", "visit_op_", "visit_constant_", "visit_shape_expr_", "visit_seq_expr_", "visit_if_",
         "visit_tuple_", "visit_var_binding_", "visit_match_cast_", "visit_binding_block_", "visit_dataflow_block_", "visit_var_def_",
         "visit_dataflow_var_def_", "visit_function_")


@R.function
def program(x: R.Tensor((2,), "float32")):
    lv = R.add(x, R.const(1.0))
    with R.dataflow():
        a = R.exp(lv)
        gv = a
        R.output(gv)
    return gv


def logging(base):
    """A class that notes the call of every hook before it does what `base` does."""
    calls = []

    def hook(name):
        def called(self, node):
            calls.append(name.removeprefix("visit_").removesuffix("_"))
            return getattr(base, name)(self, node)

        return called

    made = type("Logging", (base,), {name: hook(name) for name in HOOKS})
    return made, calls


class Orders(unittest.TestCase):
    def test_a_visitor_calls_every_hook(self):
        cls, calls = logging(PyExprVisitor)
        cls().visit_expr(program)
        self.assertEqual(calls, ["function", "var_def", "seq_expr",
                                 "binding_block", "var_binding", "call", "op", "var", "shape_expr", "constant", "shape_expr", "var_def",
                                 "dataflow_block", "var_binding", "call", "op", "var", "shape_expr", "shape_expr", "dataflow_var_def", "var_def",
                                 "var_binding", "dataflow_var", "shape_expr", "var_def",
                                 "var", "shape_expr", "shape_expr"])

    def test_a_mutator_calls_every_hook_and_changes_nothing(self):
        cls, calls = logging(PyExprMutator)
        self.assertTrue(cls().visit_expr(program).same_as(program))
        self.assertEqual(calls, ["function", "var_def", "shape_expr", "seq_expr",
                                 "binding_block", "var_binding", "call", "op", "var", "constant", "shape_expr", "var_def", "shape_expr",
                                 "dataflow_block", "var_binding", "call", "op", "var", "shape_expr", "dataflow_var_def", "var_def", "shape_expr",
                                 "var_binding", "dataflow_var", "var_def", "shape_expr",
                                 "var"])

    def test_branches_are_seq_exprs(self):
        x = relax.Var("x", R.Tensor((2,), "float32"))
        cls, calls = logging(PyExprVisitor)
        cls().visit_expr(relax.If(relax.Var("c", R.Tensor((), "bool")), x, x))
        self.assertEqual([c for c in calls if c != "shape_expr"], ["if", "var", "seq_expr", "var", "seq_expr", "var"])

    def test_a_match_cast_shows_the_shape_that_it_asks_for(self):
        n = tir.Var("n", "int64")
        cls, calls = logging(PyExprVisitor)
        x = relax.Var("x", R.Tensor("float32", ndim=1))
        cls().visit_binding(relax.MatchCast(relax.Var("y", R.Tensor((n,), "float32")), x, R.Tensor((n,), "float32")))
        self.assertEqual(calls, ["match_cast", "var", "shape_expr", "var_def"])

    def test_walks_see_statements_and_expressions(self):
        seen = []
        tir.stmt_functor.post_order_visit(Layer["mm"].body, seen.append)
        self.assertEqual([n for n in seen if not isinstance(n, (tir.Stmt, tir.PrimExpr))], [])
        self.assertIsInstance(seen[-1], tir.BlockRealize)


class Rewrites(unittest.TestCase):
    def test_hooks_of_blocks_and_sequences_give_what_stands_there(self):
        @mutator
        class Doubles(PyExprMutator):
            def visit_dataflow_block_(self, block):
                self.builder_._begin_dataflow_block()
                for binding in block.bindings:
                    self.visit_binding(binding)
                return self.builder_._end_block()

            def visit_seq_expr_(self, seq):
                new = super().visit_seq_expr_(seq)
                return relax.SeqExpr(new.blocks, relax.Tuple([new.body, new.body]))

        new = Doubles().visit_expr(program)
        self.assertEqual(len(new.ret_struct_info.fields), 2)
        vm = relax.VirtualMachine(relax.build(sator.IRModule({"main": new.with_attr("global_symbol", "main")}), "llvm"), sator.cpu())
        x = np.array([0.5, 1], "float32")
        for y in vm["main"](x):
            np.testing.assert_allclose(y.numpy(), np.exp(x + 1), rtol=1e-6)

    def test_a_parameter_of_another_shape_is_followed_through_the_function(self):
        @mutator
        class OtherShape(PyExprMutator):
            def visit_var_def_(self, var):
                return relax.Var("wide", R.Tensor((5,), "float32")) if var.name_hint == "x" else super().visit_var_def_(var)

        new = OtherShape().visit_expr(program)
        self.assertEqual([p.name_hint for p in new.params], ["wide"])
        self.assertEqual([int(d) for d in new.ret_struct_info.shape], [5])

    def test_shapes_inside_of_struct_info_are_rewritten(self):
        n, m = tir.Var("n", "int64"), tir.Var("m", "int64")

        @mutator
        class Sizes(PyExprMutator):
            def visit_shape_expr_(self, shape):
                return relax.ShapeExpr([m if v.same_as(n) else v for v in shape.values])

        x = relax.Var("x", R.Tensor((n, 4), "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit(relax.op.exp(x)))
        new = Sizes().visit_expr(bb.get()["main"])
        self.assertTrue(new.params[0].struct_info.shape[0].same_as(m))
        self.assertTrue(new.ret_struct_info.shape[0].same_as(m))

    def test_variables_by_their_vid(self):
        x, y = (relax.Var(name, R.Tensor((2,), "float32")) for name in "xy")
        self.assertEqual((x.vid, x.vid.name_hint), (x.vid, "x"))
        self.assertNotEqual(x.vid, relax.Var("x", R.Tensor((2,), "float32")).vid)
        for key in (x.vid, x):
            rewrite = PyExprMutator()
            rewrite.set_var_remap(key, y)
            self.assertTrue(rewrite.get_var_remap(key).same_as(y))
            self.assertTrue(rewrite.visit_expr(relax.op.exp(x)).args[0].same_as(y))
        with self.assertRaisesRegex(TypeError, "needs: a relax.Var, or its vid"):
            PyExprMutator().set_var_remap("x", y)

    def test_a_binding_of_the_users_own_is_looked_up(self):
        seen = []

        @mutator
        class LooksUp(PyExprMutator):
            def visit_call_(self, call):
                call = super().visit_call_(call)
                seen.extend(self.lookup_binding(a) for a in call.args if isinstance(a, relax.Var))
                return call

            def visit_var_binding_(self, binding):
                value, var = self.visit_expr(binding.value), self.visit_var_def(binding.var)
                new = self.with_struct_info(var, value.struct_info)
                self.set_var_remap(binding.var.vid, new)
                self.builder_.emit_normalized(relax.VarBinding(new, value))

        new = LooksUp().visit_expr(program)
        sator.ir.assert_structural_equal(new, program)
        self.assertEqual([v if v is None else v.op.name for v in seen], [None, "relax.add"])

    def test_classes_inherit_from_marked_ones(self):
        @visitor
        class Base(PyExprVisitor):
            pass

        self.assertTrue(issubclass(visitor(type("Leaf", (Base._cls,), {})), Base))

    def test_functions_made_of_their_parts_give_what_their_body_does(self):
        x, y = relax.Var("x", R.Tensor((2, 3), "float32")), relax.Var("y", R.Tensor((2, 3), "float32"))
        body = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(y, relax.BlockBuilder().normalize(relax.op.add(x, x)))])], y)
        for stated in (None, R.Object(), R.Tensor(ndim=2, dtype="float32")):
            self.assertEqual(relax.Function([x], x, stated).ret_struct_info, x.struct_info)
        self.assertEqual(relax.Function([x], body, R.Tensor(ndim=2, dtype="float32")).ret_struct_info, relax.TensorStructInfo(ndim=2, dtype="float32"))
        f = relax.Function([x], body)
        self.assertEqual(f.ret_struct_info, x.struct_info)
        program = relax.build(sator.IRModule({"main": f}))
        np.testing.assert_array_equal(relax.VirtualMachine(program)["main"](np.ones((2, 3), "float32")).numpy(), np.full((2, 3), 2))
        with self.assertRaisesRegex(ValueError, "without ret_struct_info, of a body of which nothing is known"):
            v = relax.Var("v")
            relax.Function([v], relax.SeqExpr([], v))
        for parts, words in (((None, x.struct_info), "the body None is a NoneType"), ((x, 3), "ret_struct_info 3 is a int")):
            with self.assertRaisesRegex(TypeError, words):
                relax.Function([x], *parts)


if __name__ == "__main__":
    unittest.main()
