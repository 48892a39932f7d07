"""Sizes that are different symbols: a run whose sizes fit gives what NumPy gives, another one is refused in words."""
import unittest

import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R, tir as T

random = np.random.default_rng(3)


def floats(*shape):
    return random.standard_normal(shape).astype("float32")


def positive(*shape):
    return np.abs(floats(*shape)) + np.float32(0.5)


def tensor(array, sizes):
    extents = "".join(f'"{s}", ' if isinstance(s, str) else f"{s}, " for s in sizes)
    return f'R.Tensor(({extents}), "{array.dtype}")'


def program(expression, arrays, sizes):
    params = ", ".join(f"a{i}: {tensor(a, s)}" for i, (a, s) in enumerate(zip(arrays, sizes)))
    symbols = sorted({s for shape in sizes for s in shape if isinstance(s, str)})
    lines = [f"        {s} = T.int64()" for s in symbols] + [f"        y = {expression}", "        return y"]
    head = ["@I.ir_module", "class Module:", "    @R.function", f"    def main({params}):"]
    return sator.script.parse("\n".join(head + lines) + "\n")


def compiled(expression, arrays, sizes):
    return relax.VirtualMachine(relax.build(program(expression, arrays, sizes)), sator.cpu())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    scores = np.einsum("bshd,bthd->bhst", q, k) / np.sqrt(np.float32(q.shape[-1]))
    return np.einsum("bhst,bthd->bshd", softmax(scores), v)


def conv1d(x, w):
    width = x.shape[2] - w.shape[2] + 1
    windows = np.stack([x[:, :, i : i + width] for i in range(w.shape[2])], -1)
    return np.einsum("ncwk,fck->nfw", windows, w)


def conv1d_transpose(x, w):
    out = np.zeros((x.shape[0], w.shape[1], x.shape[2] + w.shape[2] - 1), "float32")
    for k in range(w.shape[2]):
        out[:, :, k : k + x.shape[2]] += np.einsum("ncw,cf->nfw", x, w[:, :, k])
    return out


def layer_norm(x, gamma, beta):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * gamma + beta


def rms_norm(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w


def group_norm(x, gamma, beta, groups):
    grouped = x.reshape(x.shape[0], groups, -1)
    grouped = (grouped - grouped.mean(-1, keepdims=True)) / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)
    return grouped.reshape(x.shape) * gamma[:, None] + beta[:, None]


def pixel_shuffle(x, r):
    n, c, h, w = x.shape
    return x.reshape(n, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // (r * r), h * r, w * r)


def scattered(x, indices, updates):
    out = x.copy()
    np.put_along_axis(out, indices, updates, 1)
    return out


def slice_scattered(x, src):
    out = x.copy()
    out[:, 0:4] = src
    return out


def take_gradient(grad, x, indices):
    out = np.zeros_like(x)
    np.add.at(out, indices, grad)
    return out


def nll_gradient(grad, x, targets, weights):
    out = np.zeros_like(x)
    out[np.arange(len(targets)), targets] = -weights[targets] / weights[targets].sum() * grad
    return out


def multinomial(prob, uniform, rows):
    sums = np.cumsum(prob, 1)[rows[:, 0]]
    return np.minimum((sums <= uniform).sum(1, keepdims=True), prob.shape[1] - 1)


X = floats(4, 8)
IMAGE = floats(1, 8, 3, 2)
QUERY = floats(1, 3, 2, 4)
PROBABILITIES = np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]], "float32")
HALF = np.array(0.5, "float32")
NM, PQ = ("n", "m"), ("p", "q")

# expression; symbolic shapes; arguments that fit; NumPy's result; arguments that do not fit; what the refusal names.
CASES = [
    ("R.matmul(a0, a1)", (NM, PQ), (X, floats(8, 5)), np.matmul, (X, floats(4, 5)), "m == p does not hold: 8 and 4"),
    ("R.matmul(a0, a1)", (("b", "m", 8), ("c", 8, "q")), (floats(2, 4, 8), floats(2, 8, 5)), np.matmul,
     (floats(2, 4, 8), floats(3, 8, 5)), "b == c does not hold: 2 and 3"),
    ("R.linear(a0, a1)", (NM, PQ), (X, floats(5, 8)), lambda x, w: x @ w.T, (X, floats(3, 5)),
     "m == q does not hold: 8 and 5"),
    ("R.linear(a0, a1, a2)", (NM, PQ, ("r",)), (X, floats(5, 8), floats(5)), lambda x, w, b: x @ w.T + b,
     (X, floats(5, 8), floats(4)), "p == r does not hold: 5 and 4"),
    ("R.einsum((a0, a1), 'ij,jk->ik')", (NM, PQ), (X, floats(8, 5)), np.matmul, (X, floats(3, 5)),
     "m == p does not hold: 8 and 3"),
    ("R.add(a0, a1)", (NM, ("n", "q")), (X, X), np.add, (X, floats(4, 3)), "m == q does not hold: 8 and 3"),
    ("R.add(a0, a1)", (NM, ("n", "q")), (X, X), np.add, (X, floats(4, 1)), "m == q does not hold: 8 and 1"),
    ("R.multiply(a0, a1)", (NM, (4, 8)), (X, X), np.multiply, (floats(4, 1), X), "m == 8 does not hold: 1 and 8"),
    ("R.where(a0, a1, a2)", (NM, NM, ("n", "q")), (X > 0, X, -X), np.where, (X > 0, X, floats(4, 3)),
     "m == q does not hold: 8 and 3"),
    ("R.ewise_fma(a0, a1, a2)", (NM, PQ, NM), (X, X, X), lambda x, y, z: x * y + z, (X, floats(4, 3), X),
     "q == m does not hold: 3 and 8"),
    ("R.concat((a0, a1), axis=0)", (NM, PQ), (X, floats(2, 8)), lambda *t: np.concatenate(t, 0), (X, floats(2, 3)),
     "q == m does not hold: 3 and 8"),
    ("R.stack((a0, a1))", (NM, PQ), (X, -X), lambda *t: np.stack(t), (X, floats(3, 2)),
     "p == n does not hold: 3 and 4"),
    ("R.broadcast_to(a0, (4, 9))", (NM,), (floats(4, 9),), lambda x: x, (X,), "m == 9 does not hold: 8 and 9"),
    ("R.reshape(a0, (5, 8))", (NM,), (floats(4, 10),), lambda x: x.reshape(5, 8), (X,),
     "n * m == 40 does not hold: 32 and 40"),
    ("R.reshape(a0, (3, -1))", (NM,), (floats(6, 2),), lambda x: x.reshape(3, -1), (X,), "does not hold: 32 and 30"),
    ("R.squeeze(a0, [0])", (NM,), (floats(1, 8),), lambda x: x[0], (X,), "n == 1 does not hold: 4 and 1"),
    ("R.strided_slice(a0, [1], [2], [7], assume_inbound=True)", (NM,), (X,), lambda x: x[:, 2:7], (floats(4, 3),),
     "does not hold: 3 and 7"),
    ("R.nn.layer_norm(a0, a1, a2, axes=[1])", (NM, ("p",), ("q",)), (X, floats(8), floats(8)), layer_norm,
     (X, floats(3), floats(5)), "m == p does not hold: 8 and 3"),
    ("R.nn.layer_norm(a0, a1, a2, axes=[1])", (NM, ("p",), ("q",)), (X, floats(8), floats(8)), layer_norm,
     (X, floats(8), floats(5)), "m == q does not hold: 8 and 5"),
    ("R.nn.rms_norm(a0, a1, axes=[1])", (NM, ("p",)), (X, floats(8)), rms_norm, (X, floats(3)),
     "m == p does not hold: 8 and 3"),
    ("R.nn.batch_norm(a0, a1, a2, a3, a4, axis=1)[0]", (NM, *[(s,) for s in "pqrs"]),
     (X, floats(8), floats(8), floats(8), positive(8)),
     lambda x, gamma, beta, mean, var: (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * gamma + beta,
     (X, floats(8), floats(8), floats(8), positive(3)), "does not hold: 8 and 3"),
    ("R.nn.group_norm(a0, a1, a1, num_groups=3, channel_axis=1, axes=[2])", (("n", "c", 5), ("c",)),
     (floats(2, 6, 5), floats(6)), lambda x, g: group_norm(x, g, g, 3), (floats(2, 4, 5), floats(4)),
     "c % 3 == 0 does not hold: 1 and 0"),
    ("R.nn.group_norm(a0, a1, a1, num_groups=3, channel_axis=1, axes=[2])", ((2, 6, "w"), ("c",)),
     (floats(2, 6, 5), floats(6)), lambda x, g: group_norm(x, g, g, 3), (floats(2, 6, 5), floats(4)),
     "c == 6 does not hold: 4 and 6"),
    ("R.nn.conv1d(a0, a1)", (("n", "c", 9), (3, "d", 3)), (floats(1, 4, 9), floats(3, 4, 3)), conv1d,
     (floats(1, 2, 9), floats(3, 4, 3)), "c == d does not hold: 2 and 4"),
    ("R.nn.conv1d_transpose(a0, a1)", (("n", "c", 9), ("d", 2, 3)), (floats(1, 4, 9), floats(4, 2, 3)),
     conv1d_transpose, (floats(1, 2, 9), floats(4, 2, 3)), "c == d does not hold: 2 and 4"),
    ("R.nn.attention(a0, a1, a2)", ((1, "s", 2, 4), (1, "t", 2, 4), (1, "u", 2, 4)),
     (QUERY, floats(1, 5, 2, 4), floats(1, 5, 2, 4)), attention, (QUERY, floats(1, 5, 2, 4), floats(1, 2, 2, 4)),
     "t == u does not hold: 5 and 2"),
    ("R.nn.attention(a0, a1, a2)", ((1, 3, "h", 4), (1, 5, "g", 4), (1, 5, "g", 4)),
     (QUERY, floats(1, 5, 2, 4), floats(1, 5, 2, 4)), attention, (QUERY, floats(1, 5, 3, 4), floats(1, 5, 3, 4)),
     "does not hold: 2 and 0"),
    ("R.gather_elements(a0, a1, axis=1)", (NM, PQ), (X, np.arange(8).reshape(4, 2)),
     lambda x, i: np.take_along_axis(x, i, 1), (X, np.zeros((9, 2), "int64")), "does not hold: 4 and 9"),
    ("R.scatter_elements(a0, a1, a2, axis=1)", (NM, PQ, ("r", "s")), (X, np.arange(8).reshape(4, 2), floats(4, 2)),
     scattered, (X, np.zeros((4, 2), "int64"), floats(1, 1)), "p == r does not hold: 4 and 1"),
    ("R.scatter_elements(a0, a1, a2, axis=1)", (NM, PQ, PQ), (X, np.arange(8).reshape(4, 2), floats(4, 2)),
     scattered, (X, np.zeros((9, 2), "int64"), floats(9, 2)), "does not hold: 4 and 9"),
    ("R.slice_scatter(a0, a1, 0, 4, 1, axis=1)", (NM, PQ), (X, floats(4, 4)), slice_scattered, (X, floats(4, 3)),
     "does not hold: 3 and 4"),
    ("R.nn.prelu(a0, a1, axis=1)", (NM, ("p",)), (X, floats(8)), lambda x, a: np.where(x > 0, x, x * a),
     (X, floats(3)), "m == p does not hold: 8 and 3"),
    ("R.nn.cross_entropy_with_logits(a0, a1)", (NM, PQ), (X, X), lambda x, y: -(x * y).sum() / 4, (X, floats(3, 3)),
     "n == p does not hold: 4 and 3"),
    ("R.nn.nll_loss(a0, a1)", (NM, ("p",)), (X, np.arange(4)), lambda x, t: -x[np.arange(4), t].mean(),
     (X, np.arange(3)), "n == p does not hold: 4 and 3"),
    ("R.nn.pixel_shuffle(a0, 2)", ((1, "c", 3, 2),), (IMAGE,), lambda x: pixel_shuffle(x, 2), (floats(1, 5, 3, 2),),
     "c % 4 == 0 does not hold: 1 and 0"),
    ("R.grad.take_backward(a0, a1, a2, axis=0)", (PQ, NM, ("k",)), (floats(2, 8), X, np.array([3, 1])), take_gradient,
     (floats(3, 8), X, np.array([3, 1])), "p == k does not hold: 3 and 2"),
    ("R.grad.nll_loss_backward(a0, a1, a2, a3)", ((), NM, ("p",), ("q",)), (HALF, X, np.arange(4), positive(8)),
     nll_gradient, (HALF, X, np.arange(3), positive(8)), "p == n does not hold: 3 and 4"),
    ("R.topk(a0, k=3, ret_type='values')", (NM,), (X,), lambda x: -np.sort(-x)[:, :3], (floats(4, 2),),
     "does not hold: 2 and 3"),
    ("R.multinomial_from_uniform(a0, a1, a2)", (NM, ("p", 1), ("r", 1)),
     (PROBABILITIES, np.array([[0.3], [0.1]], "float32"), np.array([[0], [1]])), multinomial,
     (PROBABILITIES, np.array([[0.3], [0.1]], "float32"), np.array([[0]])), "p == r does not hold: 2 and 1"),
]


class SymbolicSizes(unittest.TestCase):
    def test_every_op(self):
        for expression, sizes, fitting, numpy_op, unfit, words in CASES:
            with self.subTest(expression, sizes=sizes, words=words):
                vm = compiled(expression, fitting, sizes)
                np.testing.assert_allclose(vm["main"](*fitting).numpy(), numpy_op(*fitting), rtol=1e-4, atol=1e-5)
                with self.assertRaises(Exception) as refused:
                    vm["main"](*unfit)
                self.assertIn(words, str(refused.exception))
                name = expression.split("(")[0].split(".")[-1]
                self.assertIn("matmul" if name == "linear" and "r" not in words else "add" if name == "linear" else name,
                              str(refused.exception))

    def test_known_sizes_without_a_formula(self):
        """What is left although its sizes are known is left for another reason, which the error names."""
        other_layout = 'R.nn.conv1d_transpose(a0, a1, data_layout="NWC")'
        kernels = floats(2, 6, 2), floats(2, 3, 3)
        for expression, arrays, sizes, words in [
            (other_layout, kernels, [a.shape for a in kernels], "it is lowered for data in NCW and kernels in IOW only"),
            ("R.squeeze(a0)", (X,), [NM], "the shape of its result is not known"),
        ]:
            with self.assertRaises(Exception) as refused:
                relax.build(program(expression, arrays, sizes))
            self.assertIn(words, str(refused.exception))

    def test_sizes_that_wrap(self):
        """n * 2**62 elements of no tensor: their count for n = 4 is 0 in 64 bits."""

        @I.ir_module
        class Large:
            @R.function
            def main(x: R.Tensor(("n",), "int8")):
                n = T.int64()
                y = R.zeros((n * 4611686018427387904,), "int8")
                return y

        vm = relax.VirtualMachine(relax.build(Large))
        for n in (2, 4):
            with self.assertRaisesRegex(sator.TVMError, r"main: the size n \* 4611686018427387904 exceeds 64 bits"):
                vm["main"](np.zeros(n, "int8"))


if __name__ == "__main__":
    unittest.main()
