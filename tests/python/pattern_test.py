"""Patterns of graphs: what they match, what stands in the place of it, and what a backend of Python's makes of it."""
import unittest

import numpy as np

import sator
from sator import relax, tir, transform
from sator.relax import dpl
from sator.relax.dpl import PatternContext, is_const, is_op, is_tuple, is_var, rewrite_bindings, rewrite_call, wildcard
from sator.script import ir as I, relax as R


@I.ir_module
class Layers:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), w: R.Tensor((8, 8), "float32"), b: R.Tensor((8,), "float32")):
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(lv, b)
            lv2 = R.nn.relu(lv1)
            lv3 = R.matmul(lv2, w)
            lv4 = R.add(lv3, lv3)
            R.output(lv4)
        return lv4


def bindings(func):
    return [b for block in func.body.blocks for b in block.bindings]


def run(mod, *args):
    return relax.VirtualMachine(relax.build(mod)).__getitem__("main")(*args).numpy()


def arguments():
    rng = np.random.default_rng(1)
    return [rng.standard_normal(s).astype("float32") for s in ((4, 8), (8, 8), (8,))]


def expected(x, w, b):
    return 2 * (np.maximum(x @ w + b, 0) @ w)


class Matching(unittest.TestCase):
    def setUp(self):
        self.main = Layers["main"]
        self.values = relax.analysis.get_var2val(self.main)
        self.lines = bindings(self.main)

    def test_an_op_with_its_arguments_through_variables(self):
        x, w, b = wildcard(), wildcard(), wildcard()
        product = is_op("relax.matmul")(x, w)
        pattern = is_op("relax.nn.relu")(is_op("relax.add")(product, b))
        found = pattern.extract_matched_expr(self.lines[2].value, self.values)
        self.assertTrue(found[x].same_as(self.main.params[0]))
        self.assertTrue(found[b].same_as(self.main.params[2]))
        self.assertTrue(found[product].same_as(self.lines[0].var))
        self.assertIsNone(pattern.extract_matched_expr(self.lines[1].value, self.values))
        self.assertFalse(pattern.match(self.lines[2].value))  # without values it sees one call

    def test_one_object_is_one_value(self):
        x, y = wildcard(), wildcard()
        self.assertTrue(is_op("relax.add")(x, x).match(self.lines[4].value))
        self.assertFalse(is_op("relax.add")(x, x).match(self.lines[1].value))
        self.assertTrue(is_op("relax.add")(x, y).match(self.lines[4].value))
        self.assertTrue(is_op("relax.add")(x, x.dup()).match(self.lines[1].value))

    def test_attributes_by_their_numbers(self):
        x = relax.Var("x", relax.TensorStructInfo((2, 3, 4), "float32"))
        split, mean, norm = relax.op.split(x, 2, axis=2), relax.op.mean(x, [0, 2]), relax.op.nn.leakyrelu(x, 0.1)
        for call, same, other in ((split, {"axis": 2}, {"axis": 1}), (split, {"axis": tir.IntImm("int64", 2)}, {"axis": tir.IntImm("int64", 1)}),
                                  (mean, {"axis": [0, 2], "keepdims": False}, {"axis": [0]}), (norm, {"alpha": 0.1}, {"alpha": 0.2})):
            with self.subTest(same):
                self.assertTrue(wildcard().has_attr(same).match(call))
                self.assertFalse(wildcard().has_attr(other).match(call))

    def test_words(self):
        call = self.lines[0].value
        self.assertTrue(is_op("relax.matmul")(is_var("x"), is_var("w")).match(call))
        self.assertFalse(is_op("relax.matmul")(is_var("y"), wildcard()).match(call))
        self.assertTrue((is_op("relax.add")(wildcard(), wildcard()) | is_op("relax.matmul")(wildcard(), wildcard())).match(call))
        self.assertFalse((~is_op("relax.matmul")(wildcard(), wildcard())).match(call))
        self.assertTrue((wildcard() & is_var("x")).match(self.main.params[0]))
        self.assertTrue(is_op("relax.matmul")(is_var("x"), varg_default_wildcard=True).match(call))
        self.assertFalse(is_op("relax.matmul")(is_var("x")).match(call))
        self.assertTrue(wildcard().has_dtype("float32").match(self.main.params[0]))
        self.assertFalse(wildcard().has_dtype("float16").match(self.main.params[0]))
        self.assertTrue(wildcard().has_shape((4, 8)).match(self.main.params[0]))
        self.assertFalse(wildcard().has_shape((4, 9)).match(self.main.params[0]))
        self.assertTrue(wildcard().has_struct_info(R.Tensor((4, 8), "float32")).match(self.main.params[0]))
        self.assertTrue(is_const().match(relax.const(1.0)))
        self.assertFalse(is_const().match(self.main.params[0]))
        self.assertTrue(dpl.is_expr(relax.const(1.0)).match(relax.const(1.0)))
        self.assertFalse(dpl.is_expr(relax.const(1.0)).match(relax.const(2.0)))
        pair = relax.Tuple([relax.const(1), self.main.params[0]])
        self.assertTrue(is_tuple([is_const(), is_var("x")]).match(pair))
        self.assertFalse(is_tuple([is_var("x"), is_const()]).match(pair))
        self.assertTrue(is_tuple([is_var("x"), is_const()], unordered=True).match(pair))
        self.assertTrue(dpl.is_shape([2, 3]).match(relax.ShapeExpr([2, 3])))
        with self.assertRaises(sator.TVMError) as caught:
            is_op("relax.matmuls")
        self.assertIn("matmul", caught.exception.hint)

    def test_who_uses_whom(self):
        block = self.main.body.blocks[0]
        with PatternContext() as ctx:
            relu = is_op("relax.nn.relu")(wildcard())
            product = is_op("relax.matmul")(relu, wildcard())
            relu >> product
        found = ctx.match_dfb(block)
        self.assertTrue(found[product].same_as(self.lines[3].var))
        self.assertTrue(found[relu].same_as(self.lines[2].var))
        with PatternContext() as ctx:
            is_op("relax.matmul")(is_op("relax.add")(wildcard(), wildcard()), wildcard())
        self.assertIsNone(ctx.match_dfb(block))
        with PatternContext() as ctx:
            w = is_var("w")
            product = is_op("relax.matmul")(wildcard(), w)
        self.assertTrue(ctx.match_dfb(block)[product].same_as(self.lines[0].var))
        with ctx:
            w >> product  # two products use it
        self.assertIsNone(ctx.match_dfb(block))


class Rewriting(unittest.TestCase):
    def test_a_call(self):
        x = wildcard()
        twice = is_op("relax.add")(x, x)
        new = rewrite_call(twice, lambda call, found: relax.op.multiply(found[x], relax.const(2.0)), Layers["main"])
        self.assertIn("R.multiply(", new.script())
        args = arguments()
        np.testing.assert_allclose(run(sator.IRModule({"main": new}), *args), expected(*args), rtol=1e-4, atol=1e-4)

    def test_a_rewriter_that_declines_changes_nothing(self):
        x = wildcard()
        self.assertTrue(rewrite_call(is_op("relax.add")(x, x), lambda call, found: call, Layers["main"]).same_as(Layers["main"]))

    def test_endless_rewriting_is_an_error(self):
        x, y = wildcard(), wildcard()
        with self.assertRaises(ValueError) as caught:
            rewrite_call(is_op("relax.nn.relu")(x), lambda call, found: relax.op.nn.relu(relax.op.add(found[x], relax.const(1.0))), Layers["main"])
        self.assertIn("rewritten", str(caught.exception))

    def test_what_a_rewriter_raises_arrives(self):
        def rewriter(call, found):
            raise KeyError("mine")

        with self.assertRaises(KeyError):
            rewrite_call(is_op("relax.nn.relu")(wildcard()), rewriter, Layers["main"])

    def test_three_products_of_one_input_become_one(self):
        @I.ir_module
        class QKV:
            @R.function
            def main(x: R.Tensor((4, 8), "float32"), q: R.Tensor((8, 6), "float32"), k: R.Tensor((8, 6), "float32"),
                     v: R.Tensor((8, 6), "float32")):
                with R.dataflow():
                    lv0 = R.matmul(x, q)
                    lv1 = R.matmul(x, k)
                    lv2 = R.matmul(x, v)
                    out = (lv0, lv1, lv2)
                    R.output(out)
                return out

        with PatternContext() as ctx:
            inp, q, k, v = (wildcard() for _ in range(4))
            products = [is_op("relax.matmul")(inp, w) for w in (q, k, v)]

        def rewriter(found, values):
            weights = relax.op.concat([found[q], found[k], found[v]], axis=1)
            product = relax.op.matmul(found[inp], weights)
            return {found[p]: relax.op.strided_slice(product, axes=[1], begin=[6 * i], end=[6 * (i + 1)]) for i, p in enumerate(products)}

        new = rewrite_bindings(ctx, rewriter, QKV["main"])
        self.assertEqual(new.script().count("R.strided_slice("), 3)
        mod = relax.transform.EliminateCommonSubexpr()(sator.IRModule({"main": new}))
        self.assertEqual(mod.script().count("R.matmul("), 1)
        rng = np.random.default_rng(0)
        x, *ws = (rng.standard_normal(s).astype("float32") for s in ((4, 8), (8, 6), (8, 6), (8, 6)))
        for got, w in zip(relax.VirtualMachine(relax.build(mod))["main"](x, *ws), ws):
            np.testing.assert_allclose(got.numpy(), x @ w, rtol=1e-4, atol=1e-5)


def matmul_bias():
    x, w, b = wildcard(), wildcard(), wildcard()
    product = is_op("relax.matmul")(x, w)
    return is_op("relax.add")(product, b), {"lhs": x, "rhs": w, "bias": b, "root": product}


class Backends(unittest.TestCase):
    def grouped(self, check=None):
        pattern, parts = matmul_bias()
        return relax.transform.FuseOpsByPattern([("mine.matmul_bias", pattern, parts, check)], bind_constants=False,
                                                annotate_codegen=True)(Layers)

    def test_groups_by_pattern(self):
        mod = self.grouped()
        backends = [f.attrs.get("Codegen") for f in mod.functions.values()]
        self.assertEqual(backends.count("mine"), 2)  # a sum with a bias, and one of a product with itself

    def test_a_check_sees_the_parts(self):
        seen = []

        def check(context):
            seen.append(context)
            return context.annotated_expr["bias"].struct_info.shape.values[0] == 8 and len(context.annotated_expr["bias"].struct_info.shape) == 1

        mod = self.grouped(check)
        self.assertEqual([f.attrs.get("Codegen") for f in mod.functions.values()].count("mine"), 1)
        self.assertTrue(seen[0].annotated_expr["lhs"].same_as(Layers["main"].params[0]))
        self.assertEqual(len(seen[0].matched_bindings), 2)
        self.assertEqual(seen[0].matched_expr.op.name, "relax.add")

    def test_a_backend_of_python_s(self):
        calls, asked = [], []

        def codegen(functions, options, constant_names):
            asked.append((functions, options))

            def run(x, w, *rest):
                bias, out = rest if len(rest) == 2 else (None, rest[0])
                calls.append(x.shape)
                product = x.numpy() @ w.numpy()
                out.copyfrom(product + (product if bias is None else bias.numpy()))

            return [run] * len(functions)

        sator.register_func("relax.ext.mine", codegen, override=True)
        mod = transform.RunCodegen({"mine": {"level": 3}})(self.grouped())
        self.assertFalse([f for f in mod.functions.values() if f.attrs.get("Codegen")])
        self.assertEqual(mod.script().count("R.call_dps_packed("), 2)
        ((functions, options),) = asked
        self.assertEqual(options, {"level": 3})
        self.assertEqual(len(functions), 2)
        self.assertIn("mine.matmul_bias", functions[0].script())
        args = arguments()
        np.testing.assert_allclose(run(mod, *args), expected(*args), rtol=1e-4, atol=1e-4)
        self.assertEqual(calls, [(4, 8), (4, 8)])

    def test_a_backend_that_gives_compiled_modules(self):
        def codegen(functions, options, constant_names):
            out = []
            for func in functions:
                inner = sator.IRModule({"main": func.body.blocks[0].bindings[0].value.function.without_attr("Composite")})
                lowered = relax.transform.FuseTIR()(relax.transform.FuseOps()(relax.transform.AnnotateTIROpPattern()(
                    relax.transform.LegalizeOps()(inner))))
                (program,) = [f for f in lowered.functions.values() if isinstance(f, tir.PrimFunc)]
                out.append(sator.build(program))
            return out

        sator.register_func("relax.ext.mine", codegen, override=True)
        args = arguments()
        np.testing.assert_allclose(run(transform.RunCodegen()(self.grouped()), *args), expected(*args), rtol=1e-4, atol=1e-4)

    def test_a_backend_that_nobody_registered(self):
        groups = transform.FuseOpsByPattern([("nobody.matmul", is_op("relax.matmul")(wildcard(), wildcard()))], annotate_codegen=True)(Layers)
        with self.assertRaisesRegex(sator.TVMError, r'no function is registered as relax.ext.nobody\n  needs: sator.register_func\("relax.ext.nobody", f\)'):
            transform.RunCodegen()(groups)
        own = transform.RunCodegen()(transform.FuseOpsByPattern(backend="dnnl")(Layers))
        args = arguments()
        np.testing.assert_allclose(run(own, *args), expected(*args), rtol=1e-4, atol=1e-4)

    def test_patterns_and_a_backend_together_are_refused(self):
        with self.assertRaises(sator.TVMError) as caught:
            transform.FuseOpsByPattern([("mine.matmul", is_op("relax.matmul")(wildcard(), wildcard()))], backend="dnnl")
        self.assertIn("one of them", str(caught.exception))

    def test_a_backend_that_gives_too_few_functions(self):
        sator.register_func("relax.ext.mine", lambda functions, options, names: [], override=True)
        with self.assertRaises(sator.TVMError) as caught:
            transform.RunCodegen()(self.grouped())
        self.assertIn("relax.ext.mine", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
