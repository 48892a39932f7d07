"""Models written as modules of relax.frontend.nn: their graphs, and what they compute, against NumPy."""
import contextlib
import io
import unittest

import numpy as np

import sator
from sator import relax
from sator.relax.frontend import nn


class Modules(unittest.TestCase):
    def test_a_model_with_named_parameters(self):
        class Block(nn.Module):
            def __init__(self):
                self.fc = nn.Linear(8, 8)
                self.norm = nn.LayerNorm(8)

            def forward(self, x: nn.Tensor):
                return nn.op.relu(self.norm(self.fc(x))) + x * 2

        class Model(nn.Module):
            def __init__(self):
                self.blocks = nn.ModuleList([Block(), Block()])
                self.head = nn.Linear(8, 3, bias=False)

            def forward(self, x: nn.Tensor):
                return self.head(self.blocks(x))

        mod, params = Model().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})
        names = [n for n, _ in params]
        self.assertEqual(names, [f"blocks.{i}.{p}" for i in (0, 1) for p in ("fc.weight", "fc.bias", "norm.weight", "norm.bias")] + ["head.weight"])
        self.assertEqual(mod["forward"].attrs["num_input"], 1)
        rng = np.random.default_rng(0)
        w = {n: rng.standard_normal(tuple(p.shape)).astype("float32") for n, p in params}
        x = rng.standard_normal((5, 8)).astype("float32")
        h = x
        for i in (0, 1):
            y = h @ w[f"blocks.{i}.fc.weight"].T + w[f"blocks.{i}.fc.bias"]
            y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
            h = np.maximum(y * w[f"blocks.{i}.norm.weight"] + w[f"blocks.{i}.norm.bias"], 0) + h * 2
        vm = relax.VirtualMachine(relax.build(mod))
        np.testing.assert_allclose(vm["forward"](x, *w.values()).numpy(), h @ w["head.weight"].T, rtol=1e-3, atol=1e-3)

    def test_the_exported_program(self):
        with self.assertRaises(sator.TVMError) as caught:  # its parameters are float32
            nn.Linear(4, 6).export_tvm({"forward": {"x": nn.spec.Tensor((2, 4), "float16")}})
        self.assertIn("matmul", caught.exception.what)
        model = nn.Linear(4, 6)
        model.to("float16")
        mod, params = model.export_tvm({"forward": {"x": nn.spec.Tensor((2, 4), "float16")}})
        self.assertEqual([p.dtype for _, p in params], ["float16", "float16"])
        wanted = sator.script.parse("""
@R.function
def forward(x: R.Tensor((2, 4), "float16"), weight: R.Tensor((6, 4), "float16"), bias: R.Tensor((6,), "float16")):
    R.func_attr({"num_input": 1})
    with R.dataflow():
        permute_dims = R.permute_dims(weight)
        matmul = R.matmul(x, permute_dims)
        add = R.add(matmul, bias)
        gv = add
        R.output(gv)
    return gv
""")
        sator.ir.assert_structural_equal(mod["forward"].without_attr("global_symbol"), wanted.without_attr("global_symbol"))

    def test_values_packed_parameters_and_sizes(self):
        model = nn.Embedding(10, 4)
        table = np.arange(40, dtype="float32").reshape(10, 4)
        model.load_state_dict({"weight": table})
        np.testing.assert_array_equal(model.weight.data.numpy(), table)
        with self.assertRaises(KeyError):
            model.load_state_dict({})
        with self.assertRaises(ValueError):
            model.weight.data = table[:3]
        mod, _ = model.export_tvm({"forward": {"x": nn.spec.Tensor((2, 3), "int32"), "$": {"param_mode": "packed"}}})
        x = np.array([[1, 2, 3], [9, 0, 1]], "int32")
        got = relax.VirtualMachine(relax.build(mod))["forward"](x, [table])
        np.testing.assert_array_equal(got.numpy(), table[x])

        class Takes(nn.Module):
            def forward(self, x: nn.Tensor, n: int):
                return nn.op.reshape(x, [n, 2])

        mod, _ = Takes().export_tvm({"forward": {"x": nn.spec.Tensor(("m",), "float32"), "n": int}})
        self.assertIn("R.Shape", mod.script())
        with self.assertRaises(ValueError):
            Takes().export_tvm({"forward": {"x": nn.spec.Tensor((2,), "float32")}})

    def test_formulas_and_programs(self):
        from sator import te
        from sator.script import tir as T

        @T.prim_func(private=True)
        def twice(x: T.Buffer((T.int64(4),), "float32"), y: T.Buffer((T.int64(4),), "float32")):
            for i in range(T.int64(4)):
                with T.block("y"):
                    vi = T.axis.spatial(T.int64(4), i)
                    y[vi] = x[vi] * T.float32(2)

        class Own(nn.Module):
            def forward(self, x: nn.Tensor):
                y = nn.op.tensor_expr_op(lambda a: te.compute(a.shape, lambda i: a[i] + 1, name="one_more"), "one_more", [x])
                return nn.op.tensor_ir_op(twice, "twice", [y], nn.Tensor.placeholder((4,), "float32"))

        mod, _ = Own().export_tvm({"forward": {"x": nn.spec.Tensor((4,), "float32")}})
        x = np.arange(4, dtype="float32")
        np.testing.assert_array_equal(relax.VirtualMachine(relax.build(mod))["forward"](x).numpy(), (x + 1) * 2)

    def test_caches_grow_from_call_to_call(self):
        class Cached(nn.Module):
            def __init__(self):
                self.k, self.v = nn.KVCache(4, [2, 3]), nn.KVCache(4, [2, 3])
                self.w = nn.Parameter((3, 3), "float32")

            def forward(self, x: nn.Tensor, total: sator.tir.Var):
                self.k.append(nn.op.matmul(x, self.w))
                self.v.append(x)
                return self.k.view(total) + self.v.view(total)

        model = Cached()
        spec = {"forward": {"x": nn.spec.Tensor(["n", 2, 3], "float32"), "total": int}}
        with self.assertRaisesRegex(ValueError, "the parameter w has no value"):
            model.jit(spec, out_format="numpy")
        model.w.data = np.eye(3, dtype="float32") * 2
        for mode in ("plain", "packed"):
            compiled = model.jit({"forward": {**spec["forward"], "$": {"effect_mode": mode, "param_mode": mode}}}, out_format="numpy")
            rows = [np.random.default_rng(n).random((n, 2, 3), "float32") for n in (3, 1, 5, 1)]  # room for 4, then 8, then 16
            for i, x in enumerate(rows):
                seen = np.concatenate(rows[:i + 1])
                np.testing.assert_allclose(compiled["forward"](x, len(seen)), seen * 3, rtol=1e-6)
        with self.assertRaisesRegex(sator.TVMError, r"the shape \[3, 2, 3\] of a cache that holds \[13, 2, 3\]"):
            compiled["forward"](rows[0], 3)
        with self.assertRaisesRegex(TypeError, "rows of float16\n  needs: float32"):
            nn.KVCache(4, [2, 3], "float32").append(nn.Tensor.placeholder((1, 2, 3), "float16"))

    def test_debug_functions_run_in_order(self):
        class Shown(nn.Module):
            def forward(self, x: nn.Tensor):
                nn.op.debug_func("test.seen", x, 3, 2.5, "before")
                y = x * 2.0
                nn.op.debug_func("test.seen", y, 4, 0.5, "after")
                nn.op.print_(y)
                return y

        seen = []
        sator.register_func("test.seen", lambda line, x, *rest: seen.append((line.rpartition(":")[0], x.numpy().tolist(), *rest)), override=True)
        spec = {"forward": {"x": nn.spec.Tensor([2], "float32")}}
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            Shown().jit(spec, out_format="numpy", debug=True)["forward"](np.ones(2, "float32"))
        self.assertEqual(seen, [(__file__, [1, 1], 3, 2.5, "before"), (__file__, [2, 2], 4, 0.5, "after")])
        self.assertIn("shape = (2,), dtype = float32", printed.getvalue())
        with self.assertRaisesRegex(RuntimeError, "debug=True"):
            Shown().export_tvm(spec)

    def test_modules_by_name(self):
        class Model(nn.Module):
            def __init__(self):
                self.parts = nn.ModuleDict({"a": nn.Linear(3, 3, bias=False), "b": nn.ReLU()})

            def forward(self, x: nn.Tensor):
                for part in self.parts:
                    x = part(x)
                return x

        model = Model()
        self.assertEqual([n for n, _ in model.named_parameters()], ["parts.a.weight"])
        self.assertEqual((list(model.parts.keys()), "a" in model.parts, len(model.parts), model.parts.get("c")), (["a", "b"], True, 2, None))
        model.load_state_dict({"parts.a.weight": -np.eye(3, dtype="float32")})
        x = np.array([[1, -2, 3]], "float32")
        got = model.jit({"forward": {"x": nn.spec.Tensor((1, 3), "float32")}}, out_format="numpy")["forward"](x)
        np.testing.assert_array_equal(got, [[0, 2, 0]])

    def test_tuples_with_integers(self):
        class Rows(nn.Module):
            def forward(self, x):
                return nn.op.reshape(x[0] + x[1], [x[2], 2])

        spec = {"forward": {"x": (nn.spec.Tensor((4,), "float32"), nn.spec.Tensor((4,), "float32"), int)}}
        got = Rows().jit(spec, out_format="numpy")["forward"]((np.ones(4, "float32"), np.arange(4, dtype="float32"), 2))
        np.testing.assert_array_equal(got, [[1, 2], [3, 4]])

    def test_sampling(self):
        # The examples of TVM's documentation of these functions.
        class Model(nn.Module):
            def draw(self, p, u):
                return nn.op.multinomial_from_uniform(p, u)

            def top(self, p, order, top_p, top_k, u):
                return nn.op.sample_top_p_top_k_from_sorted_prob(p, order, top_p, top_k, u)

            def likely(self, p, ordered, top_p, top_k):
                return nn.op.renormalize_top_p_top_k_prob(p, ordered, top_p, top_k)

        def tensor(shape, dtype="float32"):
            return nn.spec.Tensor(shape, dtype)

        def f32(values):
            return np.array(values, "float32")

        column, table = tensor([2, 1]), tensor([2, 3])
        model = Model().jit({"draw": {"p": table, "u": column},
                             "top": {"p": table, "order": tensor([2, 3], "int64"), "top_p": column, "top_k": tensor([2, 1], "int64"), "u": column},
                             "likely": {"p": tensor([2, "v"]), "ordered": tensor([2, "v"]), "top_p": column, "top_k": tensor([2, 1], "int32")}},
                            out_format="numpy")
        self.assertEqual(model["draw"](f32([[.2, .3, .5], [.3, .4, .3]]), f32([[.4], [.9]])).tolist(), [[1], [2]])
        ordered, order = f32([[.5, .4, .1], [.4, .3, .3]]), np.array([[2, 1, 0], [2, 0, 1]])
        self.assertEqual(model["top"](ordered, order, f32([[.6], [.9]]), np.array([[3], [2]]), f32([[.5], [.6]])).tolist(), [[2], [0]])
        kept = model["likely"](f32([[.1, .4, .5], [.3, .3, .4]]), ordered, f32([[.6], [.9]]), np.array([[3], [1]], "int32"))
        np.testing.assert_allclose(kept, [[0, 4 / 9, 5 / 9], [0, 0, 1]], rtol=1e-6)

    def test_images_and_steps(self):
        class Model(nn.Module):
            def larger(self, x):
                return nn.op.interpolate(x, scale_factor=2)

            def steps(self, s):
                return nn.op.get_timestep_embedding(s, 7, True, 0.5, 3, 1000)

            def volumes(self, x, w, b):
                return nn.op.conv3d(x, w, b, stride=2)

            def widths(self, x, w):
                return nn.op.conv1d_transpose(x, w, stride=2)

        def tensor(*shape, dtype="float32"):
            return nn.spec.Tensor(shape, dtype)

        model = Model().jit({"larger": {"x": tensor(1, 1, 2, 3)}, "steps": {"s": tensor(3, dtype="int32")},
                             "volumes": {"x": tensor(1, 1, 4, 4, 4), "w": tensor(2, 1, 2, 2, 2), "b": tensor(2)},
                             "widths": {"x": tensor(1, 1, 3), "w": tensor(1, 1, 2)}}, out_format="numpy")
        x = np.arange(6, dtype="float32").reshape(1, 1, 2, 3)
        np.testing.assert_array_equal(model["larger"](x), x.repeat(2, 2).repeat(2, 3))
        s = np.array([1, 5, 20], "int32")
        angles = 3 * s[:, None] * np.exp(-np.log(1000) * np.arange(3) / 2.5)
        np.testing.assert_allclose(model["steps"](s), np.concatenate([np.cos(angles), np.sin(angles), np.zeros((3, 1))], 1), atol=1e-5)
        v = np.arange(64, dtype="float32").reshape(1, 1, 4, 4, 4)
        cubes = v.reshape(2, 2, 2, 2, 2, 2).sum((1, 3, 5))
        got = model["volumes"](v, np.stack([np.ones((1, 2, 2, 2)), np.zeros((1, 2, 2, 2))]).astype("float32"), np.array([1, 7], "float32"))
        np.testing.assert_array_equal(got[0], [cubes + 1, np.full((2, 2, 2), 7)])
        w = model["widths"](np.array([[[1, 2, 3]]], "float32"), np.array([[[10, 100]]], "float32"))
        np.testing.assert_array_equal(w, [[[10, 100, 20, 200, 30, 300]]])


def compiled(model, spec, *inputs):
    """What a model gives with random parameters, and the parameters."""
    rng = np.random.default_rng(1)
    mod, params = model.export_tvm({"forward": spec})
    values = {name: rng.standard_normal(tuple(p.shape)).astype(p.dtype) for name, p in params}
    return relax.VirtualMachine(relax.build(mod))["forward"](*inputs, *values.values()).numpy(), values


def silu(x):
    return x / (1 + np.exp(-x))


class Diffusion(unittest.TestCase):
    """The layers of diffusion models, against their formulas in NumPy."""

    def test_time_steps(self):
        steps = np.array([0, 3, 10], "float32")
        for channels, flip in ((8, False), (7, True)):
            got, _ = compiled(nn.Timesteps(channels, flip), {"x": nn.spec.Tensor([3], "float32")}, steps)
            half = channels // 2
            angles = steps[:, None] * np.exp(-np.log(10000) * np.arange(half) / (half - 1))
            expected = np.concatenate([np.cos(angles), np.sin(angles)] if flip else [np.sin(angles), np.cos(angles)], -1)
            np.testing.assert_allclose(got, np.pad(expected, ((0, 0), (0, channels % 2))), rtol=1e-5, atol=1e-6)

    def test_embedding_of_a_time_step(self):
        x, c = floats(5, 16), floats(5, 12)
        model = nn.TimestepEmbedding(16, 8, out_dim=6, post_act_fn="silu", cond_proj_dim=12)
        got, p = compiled(model, {"sample": nn.spec.Tensor([5, 16], "float32"), "condition": nn.spec.Tensor([5, 12], "float32")}, x, c)
        hidden = silu((x + c @ p["cond_proj.weight"].T) @ p["linear_1.weight"].T + p["linear_1.bias"])
        np.testing.assert_allclose(got, silu(hidden @ p["linear_2.weight"].T + p["linear_2.bias"]), rtol=1e-4, atol=1e-4)
        with self.assertRaisesRegex(ValueError, 'needs: "silu"'):
            nn.TimestepEmbedding(16, 8, act_fn="relu")

    def test_attention(self):
        x, z = floats(2, 5, 16), floats(2, 7, 12)

        def expected(x, z, p, scale):
            q, k, v = ((a @ p[f"to_{n}.weight"].T).reshape(2, -1, 2, 4).transpose(0, 2, 1, 3) for n, a in zip("qkv", (x, z, z)))
            scores = np.exp(q @ k.transpose(0, 1, 3, 2) * scale)
            mixed = (scores / scores.sum(-1, keepdims=True)) @ v
            return mixed.transpose(0, 2, 1, 3).reshape(2, -1, 8) @ p["to_out.0.weight"].T + p["to_out.0.bias"]

        spec = {"hidden_states": nn.spec.Tensor([2, "n", 16], "float32"), "encoder_hidden_states": nn.spec.Tensor([2, "m", 12], "float32")}
        got, p = compiled(nn.Attention(16, 12, heads=2, dim_head=4), spec, x, z)
        np.testing.assert_allclose(got, expected(x, z, p, 0.5), rtol=1e-4, atol=1e-4)

        model = nn.Attention(16, heads=2, dim_head=4, norm_num_groups=4, scale_qk=False)
        got, p = compiled(model, {"hidden_states": nn.spec.Tensor([2, 5, 16], "float32")}, x * np.float32(0.1))
        groups = (x * np.float32(0.1)).reshape(2, 5, 4, 4)
        normed = (groups - groups.mean((1, 3), keepdims=True)) / np.sqrt(groups.var((1, 3), keepdims=True) + 1e-5)
        normed = normed.reshape(2, 5, 16) * p["group_norm.weight"] + p["group_norm.bias"]
        np.testing.assert_allclose(got, expected(normed, normed, p, 1.0), rtol=1e-3, atol=1e-3)


class Mutators(unittest.TestCase):
    def test_layers_are_replaced_by_their_paths(self):
        class Model(nn.Module):
            def __init__(self):
                self.layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU(), nn.ModuleList([nn.Linear(4, 4)])])
                self.heads = nn.ModuleDict({"a": nn.Linear(4, 2)})
                self.gain = nn.Parameter((4,))

        seen = []

        class Narrow(nn.Mutator):
            def visit_module(self, name, node):
                if isinstance(node, nn.Linear):
                    seen.append(name)
                    return nn.Identity()
                return self.visit(name, node)

            def visit_param(self, name, node):
                seen.append(name)
                return nn.Parameter((8,))

        model = Narrow().visit("", Model())
        self.assertEqual(seen, ["layers.0", "layers.2.0", "heads.a", "gain"])
        self.assertEqual([type(m).__name__ for m in (model.layers[0], model.layers[1], model.layers[2][0], model.heads["a"])],
                         ["Identity", "ReLU", "Identity", "Identity"])
        self.assertEqual(model.gain.shape, [8])

    def test_specs_of_torch_s_arguments(self):
        spec = nn.spec.MethodSpec.from_torch([np.zeros((2, 4), "float32"), 3], lambda x, n: x)
        self.assertEqual((spec.arg_names, repr(spec.arg_specs)), (["x", "n"], '[Tensor([2, 4], "float32"), int]'))
        with self.assertRaisesRegex(TypeError, "needs: 2: x, n"):
            nn.spec.MethodSpec.from_torch([3], lambda x, n: x)


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


if __name__ == "__main__":
    unittest.main()
