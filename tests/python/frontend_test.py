"""Graphs from torch.fx: results against torch's logits, and against NumPy."""
import ast
import json
import re
import unittest
from pathlib import Path

import numpy as np

import sator
from sator import relax, tir
from sator.relax.frontend import detach_params
from sator.relax.frontend.torch import from_fx

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    dtypes = {"F32": "<f4", "I32": "<i4", "U8": "u1"}
    return {n: np.frombuffer(data[8 + size + t["data_offsets"][0]:8 + size + t["data_offsets"][1]], dtypes[t["dtype"]]).reshape(t["shape"])
            for n, t in json.loads(data[8:8 + size]).items()}


class Named:
    """Something of torch's that is known by its name."""

    def __init__(self, name):
        self.__name__ = name


class Node:
    def __init__(self, op, name, target, args=(), kwargs=None):
        self.op, self.name, self.target, self.args, self.kwargs = op, name, target, tuple(args), dict(kwargs or {})


class Graph:
    def __init__(self, nodes):
        self.nodes = nodes


class Stored:
    """A traced model without torch: the nodes that torch.fx wrote to a file, and the modules that they name."""

    def __init__(self, nodes, modules):
        self.graph, self._modules = Graph(nodes), modules

    @staticmethod
    def read(path, modules):
        nodes = {}

        def value(text):
            if text in nodes:
                return nodes[text]
            return ast.literal_eval(text)

        for row in json.loads(path.read_text()):
            target = row["target"]
            if row["op"] == "call_function":
                # "<function relu at 0x...>", "<built-in method flatten of ...>"; F.max_pool2d is a dispatcher, told by its node's name
                (name,) = re.findall(r"<(?:function|built-in method|built-in function) ([\w.<>]+)", target)
                target = Named(re.sub(r"_\d+$", "", row["name"]) if "boolean_dispatch" in name else name)
            nodes[row["name"]] = Node(row["op"], row["name"], target, [value(a) for a in row["args"]],
                                      {k: value(v) for k, v in row["kwargs"].items()})
        return Stored(list(nodes.values()), modules)

    def named_modules(self):
        return list(self._modules.items())

    def named_parameters(self):
        for path, module in self._modules.items():
            for name in ("weight", "bias"):
                if getattr(module, name, None) is not None:
                    yield f"{path}.{name}", getattr(module, name)


class Linear:
    def __init__(self, weight, bias=None):
        self.weight, self.bias = weight, bias


class Conv2d:
    def __init__(self, weight, bias, padding):
        self.weight, self.bias, self.padding = weight, bias, padding
        self.stride, self.dilation, self.groups = (1, 1), (1, 1), 1


def run(mod, *args):
    return relax.VirtualMachine(relax.build(mod))["main"](*args)


def fashion_mlp():
    w = safetensors(REFERENCE / "models/fashion-mlp/model.safetensors")
    layers = {n: Linear(w[f"{n}.weight"], w[f"{n}.bias"]) for n in ("fc1", "fc2")}
    return Stored.read(REFERENCE / "models/fashion-mlp/fx_graph.json", layers)


class FromFx(unittest.TestCase):
    def setUp(self):
        expected = safetensors(REFERENCE / "models/fashion-mlp/expected.safetensors")
        self.images, self.logits = expected["input_u8"].astype("float32") / 255, expected["logits"]

    def test_the_stored_graph_gives_torch_s_logits(self):
        mod = from_fx(fashion_mlp(), [((16, 28, 28), "float32")])
        np.testing.assert_allclose(run(mod, self.images).numpy(), self.logits, rtol=1e-4, atol=1e-4)

    def test_weights_as_parameters_and_a_symbolic_batch(self):
        n = tir.Var("n", "int64")
        mod = from_fx(fashion_mlp(), [((n, 28, 28), "float32")], keep_params_as_input=True)
        mod, params = detach_params(mod)
        self.assertEqual(mod["main"].attrs["num_input"], 1)
        self.assertEqual([p.name_hint for p in mod["main"].params], ["inp_0", "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"])
        for count in (1, 5):
            got = run(mod, self.images[:count], *(np.array(p) for p in params["main"]))
            np.testing.assert_allclose(got.numpy(), self.logits[:count], rtol=1e-4, atol=1e-4)

    def test_the_course_s_maps(self):
        """Input shapes and converters as the slides write them."""
        asked = []

        def map_param(param):
            return relax.const(param, "float32")

        def map_nn_linear_op(bb, node_map, node, nn_mod):
            asked.append(node.target)
            x = node_map[node.args[0]]
            y = bb.emit(relax.op.matmul(x, relax.op.permute_dims(map_param(nn_mod.weight))))
            return bb.emit(relax.op.add(y, map_param(nn_mod.bias)))

        mod = from_fx(fashion_mlp(), input_shapes=[(16, 28, 28)], call_module_map={Linear: map_nn_linear_op}, call_function_map={})
        self.assertEqual(asked, ["fc1", "fc2"])
        np.testing.assert_allclose(run(mod, self.images).numpy(), self.logits, rtol=1e-4, atol=1e-4)

    def test_the_stored_convolutional_graph(self):
        rng = np.random.default_rng(7)
        w = {n: (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype("float32") for n, s in {
            "conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "fc1": (64, 32 * 7 * 7), "fc2": (10, 64)}.items()}
        b = {n: rng.standard_normal(v.shape[0]).astype("float32") * 0.1 for n, v in w.items()}
        modules = {n: Conv2d(w[n], b[n], (1, 1)) if n.startswith("conv") else Linear(w[n], b[n]) for n in w}
        mod = from_fx(Stored.read(REFERENCE / "models/fashion-cnn/fx_graph.json", modules), [((2, 1, 28, 28), "float32")])
        x = self.images[:2].reshape(2, 1, 28, 28)

        def conv(x, w, b):
            p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
            windows = np.lib.stride_tricks.sliding_window_view(p, (3, 3), axis=(2, 3))
            return np.einsum("nchwij,ocij->nohw", windows, w) + b[None, :, None, None]

        def pool(x):
            n, c, h, w_ = x.shape
            return x.reshape(n, c, h // 2, 2, w_ // 2, 2).max((3, 5))

        h = pool(np.maximum(conv(x, w["conv1"], b["conv1"]), 0))
        h = pool(np.maximum(conv(h, w["conv2"], b["conv2"]), 0)).reshape(2, -1)
        h = np.maximum(h @ w["fc1"].T + b["fc1"], 0) @ w["fc2"].T + b["fc2"]
        np.testing.assert_allclose(run(mod, x).numpy(), h, rtol=1e-3, atol=1e-3)

    def graph(self, make, *shapes, dtype="float32", modules=None):
        """One function of its inputs: `make` gets nodes and gives the last one."""
        inputs = [Node("placeholder", f"x{i}", f"x{i}") for i in range(len(shapes))]
        made = []

        def call(name, *args, op="call_function", **kwargs):
            made.append(Node(op, f"n{len(made)}", Named(name) if op == "call_function" else name, args, kwargs))
            return made[-1]

        result = make(call, *inputs)
        return Stored([*inputs, *made, Node("output", "output", "output", (result,))], modules or {}), [(s, dtype) for s in shapes]

    def test_functions_and_methods(self):
        rng = np.random.default_rng(3)
        x, y = rng.standard_normal((2, 3, 4)).astype("float32"), rng.standard_normal((2, 3, 4)).astype("float32")
        e = np.exp(x - x.max(-1, keepdims=True))
        rows = (
            (lambda c, a, b: c("add", a, b, alpha=2), x + 2 * y),
            (lambda c, a, b: c("sub", 1.0, a), 1 - x),
            (lambda c, a, b: c("mul", c("truediv", a, 4), b), x / 4 * y),
            (lambda c, a, b: c("softmax", a, dim=-1), e / e.sum(-1, keepdims=True)),
            (lambda c, a, b: c("transpose", a, 1, 2, op="call_method"), x.transpose(0, 2, 1)),
            (lambda c, a, b: c("matmul", a, c("transpose", b, 1, 2)), x @ y.transpose(0, 2, 1)),
            (lambda c, a, b: c("view", a, c("size", a, 0, op="call_method"), -1, op="call_method"), x.reshape(2, -1)),
            (lambda c, a, b: c("flatten", a, 1), x.reshape(2, 12)),
            (lambda c, a, b: c("cat", [a, b], dim=1), np.concatenate([x, y], 1)),
            (lambda c, a, b: c("stack", [a, b], dim=0), np.stack([x, y])),
            (lambda c, a, b: c("getitem", c("chunk", a, 2, -1), 1), x[:, :, 2:]),
            (lambda c, a, b: c("getitem", a, (slice(None), 1, slice(0, 3, 2))), x[:, 1, 0:3:2]),
            (lambda c, a, b: c("getitem", a, (Ellipsis, -1)), x[..., -1]),
            (lambda c, a, b: c("getitem", a, (slice(None), None, 0)), x[:, None, 0]),
            (lambda c, a, b: c("mean", a, [1], True, op="call_method"), x.mean(1, keepdims=True)),
            (lambda c, a, b: c("clamp", a, min=-0.5, max=0.5), np.clip(x, -0.5, 0.5)),
            (lambda c, a, b: c("where", c("lt", a, b), a, b), np.minimum(x, y)),
            (lambda c, a, b: c("unsqueeze", c("permute", a, 2, 0, 1, op="call_method"), 0), x.transpose(2, 0, 1)[None]),
            (lambda c, a, b: c("neg", c("rsqrt", c("exp", a))), -1 / np.sqrt(np.exp(x))),
            (lambda c, a, b: c("einsum", "bij,bkj->bik", a, b), np.einsum("bij,bkj->bik", x, y)),
        )
        for i, (make, wanted) in enumerate(rows):
            with self.subTest(row=i):
                model, info = self.graph(make, x.shape, y.shape)
                np.testing.assert_allclose(run(from_fx(model, info), x, y).numpy(), wanted, rtol=1e-4, atol=1e-5)

    def test_torch_s_arithmetic(self):
        """Remainders are floored, numbers of a higher kind promote integers, quotients of integers are float32, sums int64: torch.result_type."""
        x, f = np.array([-5, -1, 1, 5], "int32"), np.array([-0.75, 0.25, 0.5, 2.25], "float32")
        rows = (
            (x, lambda c, a: c("mod", a, 3), np.array([1, 2, 1, 2], "int32")),
            (x, lambda c, a: c("remainder", a, -3), np.array([-2, -1, -2, -1], "int32")),
            (x, lambda c, a: c("fmod", a, 3), np.array([-2, -1, 1, 2], "int32")),
            (f, lambda c, a: c("remainder", a, 0.5), np.array([0.25, 0.25, 0, 0.25], "float32")),
            (x, lambda c, a: c("div", a, 2, rounding_mode="floor"), np.array([-3, -1, 0, 2], "int32")),
            (x, lambda c, a: c("div", a, 2, rounding_mode="trunc"), np.array([-2, 0, 0, 2], "int32")),
            (f, lambda c, a: c("div", a, 0.5, rounding_mode="trunc"), np.array([-1, 0, 1, 4], "float32")),
            (f, lambda c, a: c("div", a, 0.5, rounding_mode="floor"), np.array([-2, 0, 1, 4], "float32")),
            (x, lambda c, a: c("truediv", a, 2), np.array([-2.5, -0.5, 0.5, 2.5], "float32")),
            (x, lambda c, a: c("mul", a, 2.5), np.array([-12.5, -2.5, 2.5, 12.5], "float32")),
            (x, lambda c, a: c("add", a, c("float", a, op="call_method")), np.array([-10, -2, 2, 10], "float32")),
            (x, lambda c, a: c("pow", a, 3), np.array([-125, -1, 1, 125], "int32")),
            (x, lambda c, a: c("and_", c("rshift", a, 1), 3), np.array([1, 3, 0, 2], "int32")),
            (x, lambda c, a: c("where", c("gt", a, 0), a, 0.5), np.array([0.5, 0.5, 1, 5], "float32")),
            (x, lambda c, a: c("sum", a), np.array(0, "int64")),
            (x, lambda c, a: c("cumsum", a, 0), np.array([-5, -6, -5, 0], "int64")),
            (x, lambda c, a: c("getitem", c("split", a, 3), 0), np.array([-5, -1, 1], "int32")),
            (x, lambda c, a: c("getitem", c("split", a, 3), 1), np.array([5], "int32")),
            (x, lambda c, a: c("getitem", c("chunk", a, 3), 1), np.array([1, 5], "int32")),
            (x, lambda c, a: c("max", a), np.array(5, "int32")),
            (x, lambda c, a: c("getitem", c("max", a, 0), 1), np.array(3, "int64")),
            (x, lambda c, a: c("getattr", c("min", a, 0), "values"), np.array(-5, "int32")),
            (f, lambda c, a: c("round", c("mul", a, 0.66), decimals=1), np.array([-0.5, 0.2, 0.3, 1.5], "float32")),
            (x, lambda c, a: c("min", a, c("neg", a)), np.array([-5, -1, -1, -5], "int32")),
            (x.astype("int8"), lambda c, a: c("to", c("float", a, op="call_method"), c("getattr", a, "dtype"), op="call_method"), x.astype("int8")),
            (x.astype("int16"), lambda c, a: c("to", c("float", a, op="call_method"), a, op="call_method"), x.astype("int16")),
            (x, lambda c, a: c("type", a, "torch.LongTensor", op="call_method"), x.astype("int64")),
            (x, lambda c, a: c("getitem", a, [0, -1]), x[[0, -1]]),
            (x, lambda c, a: c("mul", a, c("truediv", c("getitem", c("getattr", a, "shape"), 0), 8)), (x / 2).astype("float32")),
            (x.reshape(2, 2), lambda c, a: c("getattr", a, "T"), x.reshape(2, 2).T),
        )
        for i, (value, make, wanted) in enumerate(rows):
            with self.subTest(row=i):
                model, info = self.graph(make, value.shape, dtype=str(value.dtype))
                got = run(from_fx(model, info), value).numpy()
                self.assertEqual(got.dtype, wanted.dtype)
                np.testing.assert_array_equal(got, wanted)

    def test_batch_norm_of_a_model_in_eval(self):
        """The running statistics in eval(), those of the batch in training."""
        class BatchNorm2d:
            num_batches_tracked, momentum, eps = 0, 0.1, 1e-5
            weight, bias = np.array([3, 2], "float32"), np.array([1, -1], "float32")
            running_mean, running_var = np.array([0.5, -2], "float32"), np.array([2, 0.25], "float32")

            def __init__(self, training):
                self.training = training

        x = np.random.default_rng(5).standard_normal((3, 2, 4, 4)).astype("float32")
        for training in (False, True):
            m = BatchNorm2d(training)
            model, info = self.graph(lambda c, a: c("bn", a, op="call_module"), x.shape, modules={"bn": m})
            mean, var = (x.mean((0, 2, 3)), x.var((0, 2, 3))) if training else (m.running_mean, m.running_var)
            mean, scale, bias = (v[None, :, None, None] for v in (mean, m.weight / np.sqrt(var + m.eps), m.bias))
            np.testing.assert_allclose(run(from_fx(model, info), x).numpy(), (x - mean) * scale + bias, rtol=1e-4, atol=1e-5)

    def test_images(self):
        x = np.arange(8, dtype="float32").reshape(1, 2, 2, 2)
        rows = (
            (lambda c, a: c("interpolate", a, scale_factor=2), x.repeat(2, 2).repeat(2, 3)),
            (lambda c, a: c("interpolate", a, size=(2, 3), mode="bilinear", align_corners=True), np.stack([x[..., 0], x.mean(-1), x[..., 1]], -1)),
            (lambda c, a: c("interpolate", a, scale_factor=1.3), x[:, :, [0, 0]][..., [0, 0]]),  # of elements 0 and floor(1 / 1.3)
            (lambda c, a: c("index_select", a, 1, relax.const(np.array([1, 0]))), x[:, [1, 0]]),
            (lambda c, a: c("getitem", a, (slice(None), slice(1, 2), relax.const(np.array([1, 0])))), x[:, 1:2, [1, 0]]),
            (lambda c, a: c("getitem", a, (0, Ellipsis, relax.const(np.array([[1, -2]])), None)), x[0][:, :, [[1, 0]], None]),
        )
        for i, (make, wanted) in enumerate(rows):
            with self.subTest(row=i):
                model, info = self.graph(make, x.shape)
                np.testing.assert_allclose(run(from_fx(model, info), x).numpy(), wanted, rtol=1e-6)

        class ConvTranspose2d:
            weight, bias = np.arange(2 * 3 * 2 * 2, dtype="float32").reshape(2, 3, 2, 2), np.array([1, 2, 3], "float32")
            stride, padding, output_padding, dilation, groups = (2, 2), (0, 0), (0, 0), (1, 1), 1

        model, info = self.graph(lambda c, a: c("up", a, op="call_module"), x.shape, modules={"up": ConvTranspose2d()})
        wanted = np.einsum("ncij,cokl->noikjl", x, ConvTranspose2d.weight).reshape(1, 3, 4, 4) + ConvTranspose2d.bias[:, None, None]
        np.testing.assert_allclose(run(from_fx(model, info), x).numpy(), wanted, rtol=1e-6)

    def test_activations_and_tensors(self):
        x = np.array([[-3, -0.5, 0.25, 2], [4, -1, 1, -2]], "float32")
        below, softplus = np.minimum(x, 0), np.log1p(np.exp(x))
        method = {"op": "call_method"}
        rows = (
            (lambda c, a: c("elu", a, 0.5), np.where(x > 0, x, 0.5 * np.expm1(below))),
            (lambda c, a: c("celu", a, 2.0), np.where(x > 0, x, 2 * np.expm1(below / 2))),
            (lambda c, a: c("softplus", a), softplus),
            (lambda c, a: c("mish", a), x * np.tanh(softplus)),
            (lambda c, a: c("logsigmoid", a), -np.log1p(np.exp(-x))),
            (lambda c, a: c("softsign", a), x / (1 + abs(x))),
            (lambda c, a: c("hardtanh", a, -0.5, 1.5), np.clip(x, -0.5, 1.5)),
            (lambda c, a: c("asinh", c("sinh", c("atan", a))), np.arctan(x)),
            (lambda c, a: c("prelu", a, c("full", (4,), 0.25)), np.where(x > 0, x, x / 4)),
            (lambda c, a: c("norm", a, dim=1, keepdim=True), np.sqrt((x * x).sum(1, keepdims=True))),
            (lambda c, a: c("norm", a, float("inf"), 0), abs(x).max(0)),
            (lambda c, a: c("normalize", a, dim=0), x / np.sqrt((x * x).sum(0))),
            (lambda c, a: c("rms_norm", a, (4,), eps=0.0), x / np.sqrt((x * x).mean(1, keepdims=True))),
            (lambda c, a: c("var", a, 1, **method), x.var(1, ddof=1)),
            (lambda c, a: c("std", a, 1, correction=0, **method), x.std(1)),
            (lambda c, a: c("getitem", c("sort", a, descending=True), 0), -np.sort(-x)),
            (lambda c, a: c("getitem", c("sort", a, 0), 1), np.argsort(x, 0)),
            (lambda c, a: c("getattr", c("topk", a, 2, largest=False), "indices"), np.argsort(x)[:, :2]),
            (lambda c, a: c("pad", a, (1, 0, 0, 2), value=7), np.pad(x, ((0, 2), (1, 0)), constant_values=7)),
            (lambda c, a: c("pad", a, (1, 0, 0, 1), mode="reflect"), np.pad(x, ((0, 1), (1, 0)), "reflect")),
            (lambda c, a: c("pad", a, (2, 1), mode="replicate"), np.pad(x, ((0, 0), (2, 1)), "edge")),
            (lambda c, a: c("pad", a, (2, 1), mode="circular"), np.pad(x, ((0, 0), (2, 1)), "wrap")),
            (lambda c, a: c("flip", a, [0, 1]), x[::-1, ::-1]),
            (lambda c, a: c("roll", a, (1, -1), (0, 1)), np.roll(x, (1, -1), (0, 1))),
            (lambda c, a: c("roll", a, 3), np.roll(x, 3)),
            (lambda c, a: c("getitem", c("unbind", a, 1), 2), x[:, 2]),
            (lambda c, a: c("narrow", a, 1, 1, 2, **method), x[:, 1:3]),
            (lambda c, a: c("unflatten", a, 1, (2, 2)), x.reshape(2, 2, 2)),
            (lambda c, a: c("outer", c("getitem", a, 0), c("getitem", a, 1)), np.outer(x[0], x[1])),
            (lambda c, a: c("add", c("new_ones", a, 4, **method), c("arange", 4)), np.arange(1, 5, dtype="float32")),
            (lambda c, a: c("mul", c("ones_like", a), c("dim", a, **method)), np.full((2, 4), 2, "float32")),
            (lambda c, a: c("max_pool1d", c("unsqueeze", a, 1), 2), x.reshape(2, 1, 2, 2).max(-1)),
            (lambda c, a: c("instance_norm", c("unsqueeze", a, 1), eps=0.0),
             ((x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True))[:, None]),
            (lambda c, a: c("mse_loss", a, c("zeros_like", a)), (x * x).mean()),
        )
        for i, (make, wanted) in enumerate(rows):
            with self.subTest(row=i):
                model, info = self.graph(make, x.shape)
                got = run(from_fx(model, info), x).numpy()
                self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape))
                np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)

    def test_losses_of_classes(self):
        x = np.random.default_rng(7).standard_normal((3, 4, 2)).astype("float32")
        classes = np.array([[0, 3], [2, 1], [1, 1]])
        likelihood = np.log(np.exp(x) / np.exp(x).sum(1, keepdims=True))
        each = -np.take_along_axis(likelihood, classes[:, None], 1)[:, 0]
        for reduction, wanted in (("mean", each.mean()), ("sum", each.sum()), ("none", each)):
            model, info = self.graph(lambda c, a, b: c("cross_entropy", a, b, reduction=reduction), x.shape, classes.shape)
            got = run(from_fx(model, [info[0], (classes.shape, "int64")]), x, classes).numpy()
            np.testing.assert_allclose(got, wanted, rtol=1e-4)
        model, info = self.graph(lambda c, a, b: c("cross_entropy", a, b), x.shape, x.shape)
        with self.assertRaisesRegex(sator.TVMError, "needs: classes as integers"):
            from_fx(model, info)

    def test_what_is_changed_in_place(self):
        x = np.array([[-1, 2]], "float32")
        method = {"op": "call_method"}

        def changed(c, a):
            b = c("mul", a, 2)
            c("add_", b, 1, **method)
            c("relu", b, inplace=True)
            return c("add", b, a)

        model, info = self.graph(changed, x.shape)
        np.testing.assert_array_equal(run(from_fx(model, info), x).numpy(), np.maximum(x * 2 + 1, 0) + x)

        def through_a_view(c, a):
            b = c("mul", a, 2)
            c("zero_", c("getitem", b, 0), **method)
            return b

        def under_a_view(c, a):
            b = c("mul", a, 2)
            view = c("view", b, -1, **method)
            c("add_", b, 1, **method)
            return view

        for make in (through_a_view, under_a_view):
            model, info = self.graph(make, x.shape)
            with self.assertRaisesRegex(sator.TVMError, "shares its elements, is used later"):
                from_fx(model, info)

    def test_converters_in_tvm_s_form(self):
        model, info = self.graph(lambda c, a: c("tanh", c("erf", a)), (2,))
        seen = []

        def own(node, importer):
            seen.append(importer.retrieve_args(node))
            return importer.block_builder.emit(relax.op.negative(importer.env[node.args[0]]))

        x = np.array([1, -2], "float32")
        got = run(from_fx(model, info, custom_convert_map={"erf": own}), x).numpy()
        np.testing.assert_allclose(got, np.tanh(-x), rtol=1e-5)
        self.assertEqual(len(seen), 1)

    def test_what_has_no_converter_is_named(self):
        class LSTM:
            pass

        for make, words in ((lambda c, a: c("rnn", a, op="call_module"), "the module LSTM has no converter"),
                            (lambda c, a: c("gelu", a, tanh=True), "gelu got an unexpected keyword argument 'tanh'"),
                            (lambda c, a: c("pad", a, (1, 1), mode="symmetric"), 'pad_mode "symmetric"'),
                            (lambda c, a: c("exp", a, out=a), "writes to a tensor that is given as out")):
            model, info = self.graph(make, (2, 2), modules={"rnn": LSTM()})
            with self.assertRaisesRegex(sator.TVMError, words):
                from_fx(model, info)
        model, info = self.graph(lambda c, a: c("fft2", a), (2, 2))
        with self.assertRaises(sator.TVMError) as caught:
            from_fx(model, info)
        self.assertIn("fft2", str(caught.exception))
        self.assertIn("call_function_map", str(caught.exception))
        with self.assertRaises(sator.TVMError) as caught:
            from_fx(model, [])
        self.assertIn("x0", str(caught.exception))

    def test_torch_itself_where_it_is_installed(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                                    torch.nn.Linear(4 * 14 * 14, 10)).eval()
        x = torch.rand(2, 1, 28, 28)
        mod = from_fx(torch.fx.symbolic_trace(model), [((2, 1, 28, 28), "float32")])
        with torch.no_grad():
            np.testing.assert_allclose(run(mod, x.numpy()).numpy(), model(x).numpy(), rtol=1e-4, atol=1e-4)
        t = torch.nn
        image, row, volume = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 9), torch.randn(2, 4, 5, 6, 7)
        for module, x in ((t.ELU(0.7), image), (t.Softplus(2, 5), image), (t.PReLU(4), image), (t.InstanceNorm2d(4), image),
                          (t.InstanceNorm1d(4, affine=True, track_running_stats=True), row), (t.Upsample(scale_factor=2, mode="bilinear"), image),
                          (t.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2), row), (t.ConvTranspose2d(4, 6, 3, 2, 1, 1), image), (t.Conv3d(4, 6, 3, 2, 1), volume),
                          (t.RMSNorm(8), image), (t.PixelShuffle(2), image), (t.AvgPool1d(3, 2, 1), row), (t.MaxPool3d(2), volume)):
            with self.subTest(module=module), torch.no_grad():
                model = t.Sequential(module).eval()
                mod = from_fx(torch.fx.symbolic_trace(model), [(tuple(x.shape), "float32")])
                np.testing.assert_allclose(run(mod, x.numpy()).numpy(), model(x).numpy(), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
