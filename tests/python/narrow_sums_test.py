"""Sums of 16-bit floats: whole before they are rounded, as NumPy's in float64 rounded once."""
import unittest

import numpy as np

import sator
from sator import relax, tir
from sator.relax import op

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

TYPES = {"float16": (np.dtype("float16"), 2.0**-10)}
if ml_dtypes:
    TYPES["bfloat16"] = (np.dtype(ml_dtypes.bfloat16), 2.0**-7)


def run(formula, *arrays, symbolic=False):
    bb = relax.BlockBuilder()
    sizes = {}

    def extent(n):
        return sizes.setdefault(n, tir.Var(f"n{n}", "int64")) if symbolic else n

    params = [relax.Var(f"x{i}", relax.TensorStructInfo([extent(n) for n in x.shape], str(x.dtype))) for i, x in enumerate(arrays)]
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(formula(*params)))
    return relax.VirtualMachine(relax.build(bb.get()), sator.cpu())["main"](*arrays).numpy()


class Sums(unittest.TestCase):
    def test_near_the_rounded_result(self):
        def softmax(x):
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

        rng = np.random.default_rng(0)
        for name, (dtype, step) in TYPES.items():
            x, w = (rng.standard_normal(shape).astype(dtype) for shape in ((7, 3001), (3001, 5)))
            image = rng.standard_normal((1, 5, 17, 19)).astype(dtype)
            wide, matrix = x.astype("float64"), w.astype("float64")
            for what, formula, arrays, expected in (
                    ("sum", lambda a: op.sum(a, axis=-1), [x], wide.sum(-1)),
                    ("sum of columns", lambda a: op.sum(a, axis=0), [x], wide.sum(0)),
                    ("sum of all", op.sum, [x], wide.sum()),
                    ("mean", lambda a: op.mean(a, axis=-1), [x], wide.mean(-1)),
                    ("variance", lambda a: op.variance(a, axis=-1), [x], wide.var(-1)),
                    ("matmul", op.matmul, [x, w], wide @ matrix),
                    ("matmul, turned", lambda a, b: op.matmul(a, op.permute_dims(b)), [x, w.T.copy()], wide @ matrix),
                    ("softmax", op.nn.softmax, [x], softmax(wide)),
                    ("average", lambda a: op.nn.avg_pool2d(a, pool_size=(17, 19)), [image], image.astype("float64").mean((2, 3), keepdims=True))):
                for symbolic in (False, True):
                    error = np.abs(run(formula, *arrays, symbolic=symbolic).astype("float64") - expected).max()
                    self.assertLess(error, step * np.abs(expected).max(), f"{what} of {name}, symbolic: {symbolic}")
            ones = np.ones((2, 5000), dtype)
            self.assertEqual(run(lambda a, b: op.matmul(a, op.permute_dims(b)), ones, ones)[0, 0], dtype.type(5000))

    def test_counts_are_not_rounded(self):
        """90,000 is inf in float16; 257 is 256 in bfloat16."""
        for name, (dtype, step) in TYPES.items():
            line = (np.arange(257) % 5 + 100).astype(dtype)
            square = np.full((1, 1, 300, 300), 1.5, dtype)
            for symbolic in (False, True):
                for what, formula, x, expected in (
                        ("mean", lambda a: op.mean(a, axis=None), square, 1.5),
                        ("mean of 257", lambda a: op.mean(a, axis=None), np.full(257, 3, dtype), 3),
                        ("variance", lambda a: op.variance(a, axis=None), line, line.astype("float64").var()),
                        ("pool", lambda a: op.nn.avg_pool2d(a, pool_size=(300, 300)), square, 1.5),
                        ("adaptive pool", lambda a: op.nn.adaptive_avg_pool2d(a, output_size=(1, 1)), square, 1.5)):
                    error = np.abs(run(formula, x, symbolic=symbolic).astype("float64") - expected).max()
                    self.assertLess(error, step * expected, f"{what} of {name}, symbolic: {symbolic}")

    def test_truth_values_are_no_numbers(self):
        bits = np.array([True, True, False])
        for formula in (op.sum, lambda a: op.add(a, a)):
            with self.assertRaisesRegex(sator.TVMError, "of truth values would be a truth value"):
                run(formula, bits)
        self.assertEqual(run(lambda a: op.sum(op.astype(a, "int32")), bits), 2)


if __name__ == "__main__":
    unittest.main()
