"""Programs of torch.export: results against torch's logits, and against NumPy."""
import types
import unittest
import warnings

import numpy as np

import sator
from frontend_test import REFERENCE, Node, run, safetensors
from sator import relax
from sator.relax.frontend import detach_params
from sator.relax.frontend.torch import from_exported_program


class Operator:
    """An operator of ATen without torch: known by its text, aten.add.Tensor."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return "aten." + self.name


class Extent:
    """A symbolic extent as torch holds it: an expression over symbols."""

    def __init__(self, text, *symbols):
        self.text, self.node = text, types.SimpleNamespace(expr=types.SimpleNamespace(free_symbols=symbols))

    def __str__(self):
        return self.text


def record(**fields):
    return types.SimpleNamespace(**fields)


def getitem(values, at):
    return values[at]


def exported(inputs, rows, outputs, weights=None, changed=()):
    """What torch.export.export gives. inputs: {name: (shape, dtype)}; weights: {name: array}, BUFFER where it begins with b_; rows: (name, operator or
    function, arguments, options), in which names stand for nodes; changed: names of buffers that the program changes."""
    weights = weights or {}
    nodes = {}
    for name in (*weights, *inputs):
        nodes[name] = Node("placeholder", name, name)
        nodes[name].users = {None: None}
        if name in inputs:
            shape, dtype = inputs[name]
            nodes[name].meta = {"val": record(shape=shape, dtype="torch." + dtype)}

    def value(arg):
        if isinstance(arg, str) and arg in nodes:
            return nodes[arg]
        return type(arg)(value(a) for a in arg) if isinstance(arg, (list, tuple)) else arg

    for name, target, args, *options in rows:
        target = Operator(target) if isinstance(target, str) else target
        nodes[name] = Node("call_function", name, target, [value(a) for a in args], {k: value(v) for o in options for k, v in o.items()})
    nodes["output"] = Node("output", "output", "output", [tuple(nodes[n] for n in outputs)])

    def kind(name):
        return record(name="USER_INPUT" if name in inputs else "BUFFER" if name.startswith("b_") else "PARAMETER")

    signature = record(input_specs=[record(kind=kind(n), arg=record(name=n), target=n.replace("_", ".")) for n in (*weights, *inputs)],
                       output_specs=[record(kind=record(name="BUFFER_MUTATION"), target=n) for n in changed]
                       + [record(kind=record(name="USER_OUTPUT"), target=None) for _ in outputs])
    return record(graph=record(nodes=list(nodes.values())), graph_signature=signature,
                  state_dict={n.replace("_", "."): w for n, w in weights.items()}, constants={})


def fashion_mlp(batch):
    w = safetensors(REFERENCE / "models/fashion-mlp/model.safetensors")
    rows = [("flatten", "flatten.using_ints", ("x", 1)), ("linear", "linear.default", ("flatten", "p_fc1", "p_bias1")), ("relu_", "relu_.default", ("linear",)),
            ("linear_1", "linear.default", ("relu_", "p_fc2", "p_bias2"))]
    return exported({"x": ((batch, 28, 28), "float32")}, rows, ["linear_1"],
                    {"p_fc1": w["fc1.weight"], "p_bias1": w["fc1.bias"], "p_fc2": w["fc2.weight"], "p_bias2": w["fc2.bias"]})


class ProgramTest(unittest.TestCase):
    def check(self, arrays, rows, wanted, weights=None, **options):
        """Each row's value beside the wanted one, of the same shape and dtype."""
        inputs = {name: (a.shape, str(a.dtype)) for name, a in arrays.items()}
        mod = from_exported_program(exported(inputs, rows, list(wanted), weights), **options)
        got = run(mod, *arrays.values())
        for name, value in zip(wanted, got if len(wanted) > 1 else [got[0]]):
            with self.subTest(name):
                value, expected = value.numpy(), np.asarray(wanted[name])
                self.assertEqual((value.shape, value.dtype), (expected.shape, expected.dtype))
                np.testing.assert_allclose(value, expected, rtol=2e-5, atol=2e-6)


class FromExportedProgram(ProgramTest):
    def test_a_network_gives_torch_s_logits(self):
        expected = safetensors(REFERENCE / "models/fashion-mlp/expected.safetensors")
        images, logits = expected["input_u8"].astype("float32") / 255, expected["logits"]
        mod = from_exported_program(fashion_mlp(16), unwrap_unit_return_tuple=True)
        self.assertEqual([p.name_hint for p in mod["main"].params], ["x"])
        np.testing.assert_allclose(run(mod, images).numpy(), logits, rtol=1e-4, atol=1e-4)
        mod, params = detach_params(from_exported_program(fashion_mlp(Extent("s77", "s77")), keep_params_as_input=True))
        self.assertEqual([p.name_hint for p in mod["main"].params], ["x", "p_fc1", "p_bias1", "p_fc2", "p_bias2"])
        self.assertEqual(mod["main"].attrs["num_input"], 1)
        self.assertIn('R.Tensor(("s77", 28, 28)', mod.script())
        for count in (1, 5):
            got, = run(mod, images[:count], *(np.array(p) for p in params["main"]))
            np.testing.assert_allclose(got.numpy(), logits[:count], rtol=1e-4, atol=1e-4)

    def test_operators_whose_arguments_are_others_than_the_functions(self):
        rng = np.random.default_rng(3)
        x, ids = rng.standard_normal((3, 4), "float32"), np.array([[2, 0], [-1, 1]])
        table, small = rng.standard_normal((5, 4), "float32"), np.array([1e-7, -3e-8, 0.5, 3e7], "float32")
        e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
        self.check(
            {"x": x, "ids": ids, "near": abs(ids), "small": small},
            [("rows", "embedding.default", ("p_table", "near")), ("soft", "_softmax.default", ("x", 1, False)), ("rsub", "rsub.Scalar", ("x", 2, 3)),
             ("part", "slice.Tensor", ("x", 1, 1, 9223372036854775807, 2)), ("last", "select.int", ("x", 0, -1)), ("taken", "index.Tensor", ("x", [None, "ids"])),
             ("pairs", "index.Tensor", ("x", ["ids", "ids"])), ("least", "clamp_min.default", ("x", 0.25)), ("log1p", "log1p.default", ("small",)),
             ("half", "_to_copy.default", ("x",), {"dtype": "torch.float16"}), ("positive", "gt.Scalar", ("x", 0)), ("negated", "bitwise_not.default", ("positive",)),
             ("both", "__and__.Tensor", ("positive", "negated")), ("some", "any.dim", ("positive", 1)), ("every", "all.default", ("positive",)),
             ("same", "squeeze.dim", ("x", 0)), ("diff", "diff.default", ("x", 2, 0)), ("copies", "repeat.default", ("x", [2, 1])),
             ("filled", "full.default", ([2], 1.5), {"dtype": "torch.float64"}), ("turned", "t.default", ("x",)), ("square", "mm.default", ("x", "turned")),
             ("product", "addmm.default", ("x", "square", "x"), {"beta": 2, "alpha": 0.5}),
             ("_best", "topk.default", ("x", 2)), ("best", getitem, ("_best", 0)), ("summed", "div_.Tensor", ("best", 2)), ("where", getitem, ("_best", 1))],
            {"rows": table[abs(ids)], "soft": (e / e.sum(1, keepdims=True)).astype("float32"), "rsub": 2 - 3 * x, "part": x[:, 1::2], "last": x[-1], "taken": x[:, ids],
             "pairs": x[ids, ids], "least": np.maximum(x, np.float32(0.25)), "log1p": np.log1p(small), "half": x.astype("float16"), "positive": x > 0,
             "negated": ~(x > 0), "both": np.zeros((3, 4), bool), "some": (x > 0).any(1), "every": np.bool_((x > 0).all()), "same": x, "diff": np.diff(x, 2, 0),
             "copies": np.tile(x, (2, 1)), "filled": np.full(2, 1.5), "product": 2 * x + np.float32(0.5) * (x @ x.T) @ x,
             "summed": -np.sort(-x, 1)[:, :2] / 2, "where": np.argsort(-x, 1)[:, :2]},
            {"p_table": table})

    def test_layers_as_the_core_of_aten_has_them(self):
        rng = np.random.default_rng(4)
        x, w, b = (rng.standard_normal(s, "float32") for s in ((2, 2, 6), (3, 2, 3), (3,)))
        mean, var, scale, shift = (rng.random(3, "float32") + 0.5 for _ in range(4))
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
        conv = np.stack([np.einsum("nck,ock->no", padded[:, :, i:i + 3], w) for i in range(0, 6, 2)], -1) + b[:, None]
        normed = (conv - mean[:, None]) / np.sqrt(var[:, None] + 1e-3) * scale[:, None] + shift[:, None]
        centred = x - x.mean(-1, keepdims=True)
        layer = centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        self.check({"x": x},
                   [("conv", "convolution.default", ("x", "p_w", "p_b", [2], [1], [1], False, [0], 1)),
                    ("_bn", "_native_batch_norm_legit_no_training.default", ("conv", "p_scale", "p_shift", "b_mean", "b_var", 0.1, 1e-3)), ("bn", getitem, ("_bn", 0)),
                    ("_ln", "native_layer_norm.default", ("x", [6], None, None, 1e-5)), ("ln", getitem, ("_ln", 0)),
                    ("pad", "constant_pad_nd.default", ("x", [1, 2], 0.5))],
                   {"conv": conv, "bn": normed, "ln": layer, "pad": np.pad(x, ((0, 0), (0, 0), (1, 2)), constant_values=np.float32(0.5))},
                   {"p_w": w, "p_b": b, "p_scale": scale, "p_shift": shift, "b_mean": mean, "b_var": var})

    def test_dtypes(self):
        x, small, halves = np.array([-5, 5], "int64"), np.array([200, 200], "uint8"), np.array([0.1, 0.2], "float16")
        wide, big = np.array([1 / 3, 2 / 3]), np.array([2**40, 1])
        self.check({"x": x, "small": small, "halves": halves},
                   [("wide", "mul.Tensor", ("halves", "p_wide")), ("big", "add.Tensor", ("x", "p_big")), ("product", "prod.default", ("small",)),
                    ("clamped", "clamp.default", ("x", -2.5, 2.5)), ("crossed", "clamp.default", ("x", 1, -1)), ("third", "div.Tensor", ("x", -3)),
                    ("copy", "clone.default", ("halves",)), ("sum", "add_.Tensor", ("copy", "p_ones"))],
                   {"wide": halves * wide, "big": x + big, "product": np.int64(40000), "clamped": np.array([-2.5, 2.5], "float32"), "crossed": np.array([-1, -1]),
                    "third": (x / -3).astype("float32"), "sum": (halves + np.float32(1)).astype("float16")},
                   {"p_wide": wide, "p_big": big, "p_ones": np.ones(2, "float32")})

    def test_attention(self):
        rng = np.random.default_rng(5)
        q, kv = rng.standard_normal((2, 4, 5, 8), "float32"), rng.standard_normal((2, 2, 5, 8), "float32")
        seen = rng.random((5, 5)) > 0.4
        seen[:, 0], seen[3] = True, False

        def attend(q, k, v, mask):
            scores = np.where(mask, np.einsum("...qd,...kd->...qk", q, k) / np.sqrt(8), -np.inf)
            e = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e9))
            return np.einsum("...qk,...kd->...qd", e / np.maximum(e.sum(-1, keepdims=True), 1e-30), v).astype("float32")  # 0 where nothing is seen

        wide = np.repeat(kv, 2, 1)
        self.check({"q": q, "kv": kv, "flat": q[:, 0].copy(), "seen": seen},
                   [("causal", "scaled_dot_product_attention.default", ("q", "q", "q", None, 0.0, True)),
                    ("masked", "scaled_dot_product_attention.default", ("q", "q", "q", "seen")),
                    ("shared", "scaled_dot_product_attention.default", ("q", "kv", "kv"), {"enable_gqa": True}),
                    ("plain", "scaled_dot_product_attention.default", ("flat", "flat", "flat"))],
                   {"causal": attend(q, q, q, np.tri(5, dtype=bool)), "masked": attend(q, q, q, seen), "shared": attend(q, wide, wide, True),
                    "plain": attend(q[:, 0], q[:, 0], q[:, 0], True)})

    def test_symbolic_sizes(self):
        mod = from_exported_program(exported(
            {"x": ((Extent("s0", "s0"), 6), "float32"), "y": ((Extent("2*s0 + 1", "s0"),), "float32")},
            [("n", "sym_size.int", ("x", 0)), ("flat", "view.default", ("x", [-1])), ("twice", "repeat.default", ("x", ["n", 1])), ("scaled", "mul.Tensor", ("y", "n"))],
            ["flat", "twice", "scaled"]))
        for n in (1, 3):
            x, y = np.arange(6 * n, dtype="float32").reshape(n, 6), np.arange(2 * n + 1, dtype="float32")
            flat, twice, scaled = run(mod, x, y)
            np.testing.assert_array_equal(flat.numpy(), x.reshape(-1))
            np.testing.assert_array_equal(twice.numpy(), np.tile(x, (n, 1)))
            np.testing.assert_array_equal(scaled.numpy(), y * n)

    def test_ones_own_converters(self):
        for key in ("relu.default", "relu"):
            mod = from_exported_program(exported({"x": ((3,), "float32")}, [("y", "relu.default", ("x",))], ["y"]), unwrap_unit_return_tuple=True,
                                        custom_convert_map={key: lambda node, importer: importer.block_builder.emit(relax.op.negative(importer.retrieve_args(node)[0]))})
            np.testing.assert_array_equal(run(mod, np.ones(3, "float32")).numpy(), [-1, -1, -1])

    def test_what_is_refused(self):
        x = {"x": ((3,), "float32")}
        for program, words in (
                (exported(x, [("y", "dropout.default", ("x", 0.5, True))], ["y"]), "dropout of 0.5 in training"),
                (exported(x, [("y", "histc.default", ("x",))], ["y"]), "node y: the operator aten.histc.default has no converter"),
                (exported(x, [("y", "add_.Tensor", ("b_n", 1))], ["y"], {"b_n": np.zeros(1, "float32")}), r"aten.add_.Tensor changes b.n, which outlives the program"),
                (exported(x, [("y", "add_.Tensor", ("x", 1))], ["y"]), "aten.add_.Tensor changes x, which"),
                (exported(x, [("y", "add.Tensor", ("x", 1))], ["y"], changed=["running_mean"]), r"the program changes running_mean \(BUFFER_MUTATION\)"),
                (exported(x, [("y", "index.Tensor", ("x", ["p_m"]))], ["y"], {"p_m": np.array([True, False, True])}),
                 "index: a tensor of bool")):
            with self.subTest(words), self.assertRaisesRegex(sator.TVMError, words):
                from_exported_program(program)

    def test_torch_itself_where_it_is_installed(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        t = torch.nn
        torch.manual_seed(0)
        image, words = torch.randn(2, 4, 6, 8), torch.randint(0, 10, (2, 5))
        encoder = t.Sequential(t.Embedding(10, 16), t.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"), t.Linear(16, 10), t.LogSoftmax(-1))
        layers = t.Sequential(t.Conv2d(4, 8, 3, padding=1), t.BatchNorm2d(8), t.ReLU(inplace=True), t.MaxPool2d(2), t.ConvTranspose2d(8, 4, 2, 2), t.GroupNorm(2, 4),
                              t.InstanceNorm2d(4, affine=True), t.AdaptiveAvgPool2d(1), t.Flatten(), t.Dropout(), t.Linear(4, 3), t.Mish())
        for model, x in ((encoder, words), (layers, image), (t.Upsample(scale_factor=2, mode="bilinear"), image), (t.LSTM(8, 5), image[0])):
            for decomposes in (False, True):
                if isinstance(model, t.LSTM) and not decomposes:
                    continue
                with self.subTest(model=model, decomposes=decomposes), torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    wanted = model.eval()(x)
                    mod = from_exported_program(torch.export.export(model, (x,)), run_ep_decomposition=decomposes)
                    got = run(mod, x.numpy())[0].numpy()
                    np.testing.assert_allclose(got, (wanted[0] if isinstance(wanted, tuple) else wanted).numpy(), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
