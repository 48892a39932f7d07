"""Losses and steps of optimizers, compiled and compared with NumPy; a loss behind a model."""
import unittest

import numpy as np

import sator
from sator import relax
from sator.relax.training import AppendLoss, loss, optimizer
from sator.script import ir as I, relax as R

RNG = np.random.default_rng(5)


def tensor(*shape, dtype="float32"):
    return relax.TensorStructInfo(shape, dtype)


def random(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


def run(program, *args, name=None):
    """What a function gives, compiled: the one of a module, or a function alone."""
    mod = program if isinstance(program, sator.IRModule) else sator.IRModule.from_expr(program)
    return relax.VirtualMachine(relax.build(mod, target="llvm"), sator.cpu())[name or next(iter(mod.functions))](*args)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


REDUCED = {"mean": np.mean, "sum": np.sum, "none": lambda x: x}


class Losses(unittest.TestCase):
    def close(self, got, wanted):
        self.assertEqual(got.shape, np.shape(wanted))
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=1e-6)

    def test_differences(self):
        p, t = random(3, 5), random(3, 5)
        for make, elements in ((loss.L1Loss, np.abs(p - t)), (loss.MSELoss, (p - t) ** 2)):
            for reduction, reduce in REDUCED.items():
                with self.subTest(make.__name__, reduction=reduction):
                    self.close(run(make(reduction)(tensor(3, 5), tensor(3, 5)), p, t), reduce(elements))

    def test_cross_entropy(self):
        p, t, w = random(6, 5), np.array([1, 0, 4, 2, 1, 3]), np.abs(random(5)) + 0.1
        for ignored in (-100, 1):
            used = w[t] * (t != ignored)
            elements = -log_softmax(p)[np.arange(6), t] * used
            for reduction, wanted in (("mean", elements.sum() / used.sum()), ("sum", elements.sum()), ("none", elements)):
                with self.subTest(ignored=ignored, reduction=reduction):
                    func = loss.CrossEntropyLoss(reduction, ignored)(tensor(6, 5), tensor(6, dtype="int64"), tensor(5))
                    self.close(run(func, p, t, w), wanted)
        func = loss.CrossEntropyLoss()(tensor(6, 5), tensor(6, dtype="int64"))
        self.close(run(func, p, t), -log_softmax(p)[np.arange(6), t].mean())

    def test_marked_classes(self):
        p, t, w = random(6, 5), np.array([1, 0, 4, 2, 1, 3]), np.abs(random(5)) + 0.1
        marked = np.eye(5, dtype="int64")[t]
        infos = tensor(6, 5), tensor(6, 5, dtype="int64"), tensor(5)
        for reduction, reduce in REDUCED.items():
            self.close(run(loss.CategoricalCrossEntropyLoss(reduction)(*infos), p, marked, w), reduce(-log_softmax(p) * marked * w))
        used = w[t] * (t != 1)
        elements = -log_softmax(p)[np.arange(6), t] * used
        self.close(run(loss.CategoricalCrossEntropyLoss("mean", 1)(*infos), p, marked, w), elements.sum() / used.sum())

    def test_variables_are_not_shared(self):
        x = relax.Var("x", tensor(3))
        func = loss.L1Loss()(x, x)
        self.assertEqual([p.name_hint for p in func.params], ["x", "x"])
        self.assertFalse(any(p.same_as(x) for p in func.params))

    def test_wrong_use(self):
        for words, kind, wrong in (
            ("l1_loss: reduction = 'avg'\n  needs: one of mean, sum, none", ValueError, lambda: loss.L1Loss("avg")),
            ("predictions: 3 is a int\n  needs: a relax.Var or struct info", TypeError, lambda: loss.L1Loss()(3, tensor(3))),
            ("targets of dtype float32\n  needs: integers", TypeError, lambda: loss.CategoricalCrossEntropyLoss()(tensor(3, 5), tensor(3, 5))),
            ("relax.training.SetupTrainer: no pass makes gradients", sator.TVMError, lambda: relax.training.SetupTrainer),
        ):
            with self.assertRaises(kind) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))


def sgd(o, p, g, state):
    return p - o.lr * (g + o.weight_decay * p), []


def momentum(o, p, g, state):
    g = g + o.weight_decay * p
    v = o.momentum * state[0] + (1 - o.dampening) * g
    return p - o.lr * (g + o.momentum * v if o.nesterov else v), [v]


def adam(o, p, g, state, t):
    g = g + o.weight_decay * p
    m, v = o.beta1 * state[0] + (1 - o.beta1) * g, o.beta2 * state[1] + (1 - o.beta2) * g * g
    return p - o.lr * (m / (1 - o.beta1**t)) / (np.sqrt(v / (1 - o.beta2**t)) + o.eps), [m, v]


class Steps(unittest.TestCase):
    def check(self, made, step, dtype="float64", tolerance=1e-12):
        """Three steps, compiled and in NumPy."""
        shapes = [(3, 4), (4,)]
        made.init([relax.Var(n, tensor(*s, dtype=dtype)) for n, s in zip("wb", shapes)])
        self.assertEqual((made.dtype, str(made.state[0].numpy())), (dtype, "0"))
        func = relax.VirtualMachine(relax.build(sator.IRModule({made.name: made.get_function()})), sator.cpu())[made.name]
        params = wanted = [random(*s, dtype=dtype) for s in shapes]
        held, state = [[np.zeros(s) for _ in range(made._moments)] for s in shapes], made.state
        for t in range(1, 4):
            grads = [random(*s, dtype=dtype) for s in shapes]
            params, state = func(tuple(params), tuple(grads), tuple(state))
            more = (t,) if isinstance(made, optimizer.Adam) else ()
            wanted, held = zip(*(step(made, p, g, h, *more) for p, g, h in zip(wanted, grads, held)))
            for p, w in zip(params, wanted):
                np.testing.assert_allclose(p.numpy(), w, rtol=tolerance, atol=tolerance)
        self.assertEqual(state[0].numpy(), 3)

    def test_sgd(self):
        self.check(optimizer.SGD(0.1), sgd)
        self.check(optimizer.SGD(0.1, 0.02), sgd)
        self.check(optimizer.SGD(0.1, 0.02), sgd, "float32", 1e-6)

    def test_momentum(self):
        self.check(optimizer.MomentumSGD(0.01, 0.9), momentum)
        self.check(optimizer.MomentumSGD(0.01, 0.9, 0.85, 0.02), momentum)
        self.check(optimizer.MomentumSGD(0.01, 0.9, 0.85, 0.02, True), momentum)

    def test_adam(self):
        self.check(optimizer.Adam(0.01), adam)
        self.check(optimizer.Adam(0.01, (0.8, 0.85), 1e-7, 0.1), adam)
        self.check(optimizer.Adam(0.01), adam, "float32", 1e-5)

    def test_state_of_half_floats(self):
        for dtype in ("float16", "bfloat16"):
            made = optimizer.Adam(0.01).init(relax.Var("x", tensor(3, dtype=dtype)))
            self.assertEqual([s.dtype for s in made.state], ["int64", dtype, dtype, dtype, dtype])

    def test_wrong_use(self):
        x = relax.Var("x", tensor(3))
        for words, kind, wrong in (
            ("SGD.get_function before init\n  needs: the parameters", RuntimeError, lambda: optimizer.SGD(0.1).get_function()),
            ("SGD.init: the parameter x occurs twice", ValueError, lambda: optimizer.SGD(0.1).init([x, x])),
            ("y is float64, x is float32\n  needs: parameters of one dtype", ValueError,
             lambda: optimizer.SGD(0.1).init([x, relax.Var("y", tensor(3, dtype="float64"))])),
            ("SGD.init: the parameter n is", ValueError, lambda: optimizer.SGD(0.1).init(relax.Var("n", tensor(3, dtype="int32")))),
            ("SGD.init: 3 is a int", ValueError, lambda: optimizer.SGD(0.1).init(3)),
            ("SGD.init: no parameters", ValueError, lambda: optimizer.SGD(0.1).init([])),
            ("needs: a tensor whose sizes are numbers", ValueError,
             lambda: optimizer.Adam(0.1).init(relax.Var("x", tensor(sator.tir.Var("n", "int64"))))),
        ):
            with self.assertRaises(kind) as raised:
                wrong()
            self.assertIn(words, str(raised.exception))

    def test_one_s_own(self):
        class Signs(optimizer.Optimizer):
            def _update(self, bb, name, param, grad, moments, scalars):
                return bb.emit(relax.op.subtract(param, relax.op.sign(grad))), []

        func = Signs("signs").init(relax.Var("x", tensor(3))).get_function()
        x, g = random(3), random(3)
        (stepped,), _ = run(func, (x,), (g,), (np.zeros((), "int64"),))
        np.testing.assert_allclose(stepped.numpy(), x - np.sign(g))
        with self.assertRaisesRegex(NotImplementedError, "Optimizer has no _update"):
            optimizer.Optimizer("none").init(relax.Var("x", tensor(3))).get_function()


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 5), "float32")):
        with R.dataflow():
            y = R.matmul(x, w)
            s = R.sum(y)
            R.output(y, s)
        return y, s


class Appended(unittest.TestCase):
    def test_a_model_of_any_size(self):
        predictions = relax.TensorStructInfo((sator.tir.Var("m", "int64"), 5), "float32")
        mod = AppendLoss("main", loss.MSELoss("sum")(predictions, predictions))(Model)
        self.assertEqual(list(mod.functions), ["main", "main_loss"])
        x, w, t = random(3, 4), random(4, 5), random(3, 5)
        error, s = run(mod, x, w, t, name="main_loss")
        np.testing.assert_allclose(error.numpy(), ((x @ w - t) ** 2).sum(), rtol=1e-5)
        np.testing.assert_allclose(s.numpy(), (x @ w).sum(), rtol=1e-4)

    def test_what_does_not_fit(self):
        for words, func, outputs in (
            ("result 0 is R.Tensor((n, 4)", loss.L1Loss()(tensor(3, 4), tensor(3, 4)), 1),
            ("the loss: its result is", loss.L1Loss("none")(tensor(3, 5), tensor(3, 5)), 1),
            ("main has 2 results\n  needs: at least 3", loss.L1Loss()(tensor(3, 5), tensor(3, 5)), 3),
        ):
            with self.subTest(words), self.assertRaises(sator.TVMError) as raised:
                AppendLoss("main", func, outputs)(Model)
            self.assertIn(words.split(" R.")[0], str(raised.exception))
        with self.assertRaisesRegex(ValueError, "the module has no function forward"):
            AppendLoss("forward", loss.L1Loss()(tensor(3), tensor(3)))(Model)


if __name__ == "__main__":
    unittest.main()
