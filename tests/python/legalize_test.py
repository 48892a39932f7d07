"""LegalizeOps with functions of the user's, ops of one's own with a builder, and tensor programs over symbolic sizes."""
import unittest
import warnings

import numpy as np

import sator
from sator import relax, te, tir, topi
from sator.relax.frontend import nn
from sator.script import ir as I, relax as R

X = np.array([-1.5, 0, 2, 3.25], "float32")
TWICE = "legalize_test.twice"


def of(expression, *params):
    """A module whose main gives the expression."""
    bb = relax.BlockBuilder()
    with bb.function("main", list(params)):
        with bb.dataflow():
            out = bb.emit_output(expression)
        bb.emit_func_output(out)
    return bb.get()


def run(mod, *args):
    return relax.VirtualMachine(relax.build(mod, "llvm"), sator.cpu())["main"](*args).numpy()


def x4():
    return relax.Var("x", R.Tensor((4,), "float32"))


def ops_of(mod):
    return [b.value.op.name for block in mod["main"].body.blocks for b in block.bindings if isinstance(b.value, relax.Call)]


class CustomLegalization(unittest.TestCase):
    def test_a_function_of_the_users_comes_before_the_compilers(self):
        x = x4()
        given = {"relax.nn.relu": lambda bb, call: bb.call_te(topi.nn.leaky_relu, call.args[0], 0.5, primfunc_name_hint="leaky")}
        for make in (lambda: relax.transform.LegalizeOps(given), lambda: relax.transform.LegalizeOps(customize_legalize_map=given)):
            mod = make()(of(relax.op.exp(relax.op.nn.relu(x)), x))
            self.assertEqual(set(mod.functions), {"main", "leaky", "tir_exp"})
            np.testing.assert_allclose(run(mod, X), np.exp(np.where(X > 0, X, X * 0.5)), rtol=1e-6)

    def test_ops_that_it_emits_or_nests_are_legalized_too(self):
        x = x4()

        def relu(bb, call):
            square = bb.emit(relax.op.multiply(call.args[0], call.args[0]))
            return relax.op.add(relax.op.exp(relax.op.negative(square)), call.args[0])

        mod = relax.transform.LegalizeOps({"relax.nn.relu": relu})(of(relax.op.nn.relu(x), x))
        self.assertEqual(set(ops_of(mod)), {"relax.call_tir"})
        self.assertTrue(relax.analysis.well_formed(mod))
        np.testing.assert_allclose(run(mod, X), np.exp(-X * X) + X, rtol=1e-5)

    def test_the_call_itself_means_that_it_stays(self):
        x = x4()
        mod = relax.transform.LegalizeOps({"relax.exp": lambda bb, call: call})(of(relax.op.sqrt(relax.op.exp(x)), x))
        self.assertEqual(ops_of(mod), ["relax.exp", "relax.call_tir"])

    def test_an_outer_function_in_the_place_of_a_pure_op_is_pure(self):
        x = x4()
        sator.register_func("legalize_test.halve", lambda a: sator.nd.array(a.numpy() / 2), override=True)
        made = relax.transform.LegalizeOps({"relax.exp": lambda bb, call: relax.Call(relax.ExternFunc("legalize_test.halve"), call.args, None,
                                                                                     [call.struct_info])})(of(relax.op.exp(x), x))
        self.assertEqual(ops_of(made), ["relax.call_pure_packed"])
        np.testing.assert_array_equal(run(made, X), X / 2)

    def test_it_is_not_asked_where_extents_are_unknown(self):
        x = relax.Var("x", R.Tensor("float32", ndim=1))
        mod = relax.transform.LegalizeOps({"relax.exp": lambda bb, call: self.fail("asked")})(of(relax.op.exp(x), x))
        self.assertEqual(ops_of(mod), ["relax.exp"])

    def test_errors_of_the_function_arrive_and_wrong_names_are_refused(self):
        x = x4()

        def broken(bb, call):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            relax.transform.LegalizeOps({"relax.exp": broken})(of(relax.op.exp(x), x))
        with self.assertRaisesRegex(sator.TVMError, "relu"):
            relax.transform.LegalizeOps({"relax.nn.rellu": broken})
        with self.assertRaisesRegex(sator.TVMError, "needs: a function"):
            relax.transform.LegalizeOps({"relax.exp": 3})

    def test_the_builder_ends_with_the_call(self):
        x, kept = x4(), []
        relax.transform.LegalizeOps({"relax.exp": lambda bb, call: kept.append(bb) or relax.op.sqrt(call.args[0])})(of(relax.op.exp(x), x))
        with self.assertRaises(Exception):
            kept[0].emit(relax.op.exp(x))


class OwnOps(unittest.TestCase):
    def setUp(self):
        sator.ir.register_op_attr(TWICE, "FInferStructInfo", lambda call, bb: call.args[0].struct_info)
        sator.ir.register_op_attr(TWICE, "FPurity", True)

    def tearDown(self):
        for key in ("FInferStructInfo", "FLegalize", "FPurity", "FNormalize", "RequiresArgumentShapes"):
            sator.ir.reset_op_attr(TWICE, key)

    def twice(self, x):
        return of(relax.Call(sator.ir.Op.get(TWICE), [x]), x)

    def test_the_builder_makes_tensor_programs_and_bindings(self):
        formula = lambda a: te.compute(a.shape, lambda i: a[i] * 2)  # noqa: E731
        ways = {"call_te": lambda bb, call: bb.call_te(formula, call.args[0]),
                "emit_te": lambda bb, call: bb.emit_te(formula, call.args[0]),
                "emit": lambda bb, call: bb.emit(relax.op.add(call.args[0], call.args[0])),
                "normalize": lambda bb, call: bb.normalize(relax.op.add(call.args[0], call.args[0]))}
        for name, way in ways.items():
            sator.ir.register_op_attr(TWICE, "FLegalize", way)
            mod = relax.transform.LegalizeOps()(self.twice(x4()))
            self.assertNotIn(TWICE, ops_of(mod), name)
            np.testing.assert_array_equal(run(mod, X), 2 * X, err_msg=name)

    def test_symbolic_sizes(self):
        sator.ir.register_op_attr(TWICE, "FLegalize", lambda bb, call: bb.call_te(topi.add, call.args[0], call.args[0]))
        x = relax.Var("x", R.Tensor((tir.Var("n", "int64"),), "float32"))
        np.testing.assert_array_equal(run(self.twice(x), X), 2 * X)

    def test_extents_are_asked_for_unless_the_op_needs_none(self):
        asked = []
        sator.ir.register_op_attr(TWICE, "FLegalize", lambda bb, call: asked.append(1) or relax.op.add(call.args[0], call.args[0]))
        x = relax.Var("x", R.Tensor("float32", ndim=1))
        for needs, times in ((True, 0), (False, 1)):
            sator.ir.register_op_attr(TWICE, "RequiresArgumentShapes", needs)
            relax.transform.LegalizeOps()(self.twice(x))
            self.assertEqual(len(asked), times)

    def test_a_warning_names_ops_that_nothing_replaces(self):
        mod = self.twice(x4())
        with self.assertWarnsRegex(UserWarning, TWICE):
            relax.transform.LegalizeOps(enable_warning=True)(mod)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            relax.transform.LegalizeOps()(mod)


class SymbolicArguments(unittest.TestCase):
    """A size that no argument's shape binds is an argument of its own, as in TVM's call_tir(..., tir_vars=R.shape([k]))."""

    def check(self, call_of):
        k = tir.Var("k", "int64")
        x, s = x4(), relax.Var("s", R.Shape([k]))
        bb = relax.BlockBuilder()
        with bb.function("main", [x, s]):
            bb.emit_func_output(bb.emit(call_of(bb, x, k)))
        mod = bb.get()
        self.assertTrue(relax.analysis.well_formed(mod))
        call = next(b.value for block in mod["main"].body.blocks for b in block.bindings)
        self.assertTrue(call.args[2].values[0].same_as(k))
        np.testing.assert_array_equal(run(mod, X, (7,)), X + 7)

    @staticmethod
    def formula(a, q):
        return te.compute(a.shape, lambda i: a[i] + q.astype("float32"))

    def test_call_te_and_emit_te(self):
        self.check(lambda bb, x, k: bb.call_te(self.formula, x, k))
        self.check(lambda bb, x, k: bb.call_te(self.formula, x, q=k + 0))
        self.check(lambda bb, x, k: bb.call_te(lambda a, qs: self.formula(a, qs[0]), x, [k]))
        self.check(lambda bb, x, k: bb.emit_te(self.formula, x, k) and bb.call_te(self.formula, x, k))

    def test_tensor_expr_op(self):
        class Shifted(nn.Module):
            def forward(self, x, y):
                return nn.op.tensor_expr_op(SymbolicArguments.formula, "shifted", [x, y.shape[0]])

        mod, _ = Shifted().export_tvm({"forward": {"x": nn.spec.Tensor([4], "float32"), "y": nn.spec.Tensor(["k"], "float32")}})
        self.assertTrue(relax.analysis.well_formed(mod))
        vm = relax.VirtualMachine(relax.build(mod, "llvm"), sator.cpu())
        out = vm["forward"](X, np.zeros(9, "float32"))
        np.testing.assert_array_equal((out[0] if isinstance(out, (tuple, list)) else out).numpy(), X + 9)


if __name__ == "__main__":
    unittest.main()
