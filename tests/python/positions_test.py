"""Positions of extremes, sorting, unique values and elements that are not 0, beside NumPy, on sizes that end in the middle of a vector."""
import unittest

import numpy as np
import sator
from sator import relax
from sator.script import relax as R

RNG = np.random.default_rng(0)
SHAPES = [((1,), 0), ((5,), 0), ((5000,), 0), ((50, 33), 0), ((33, 224), 1), ((3, 65, 20), 1), ((2, 2500), 1), ((2500, 3), 0)]
DTYPES = ["float32", "float64", "float16", "int32", "int64", "int8", "uint8"]


def compiled(f, *arrays):
    """f(x) of tensors with the arrays' types as a function of arrays"""
    params = [relax.Var(f"x{i}", R.Tensor(a.shape, str(a.dtype))) for i, a in enumerate(arrays)]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(f(*params)))
    return relax.VirtualMachine(relax.build(builder.get(), target="llvm"), sator.cpu())["main"]


def drawn(shape, dtype, few=False):
    """numbers with many equal ones; floats with zeros of both signs and infinities"""
    if "int" in dtype:
        least, most = (0, 5) if few else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return RNG.integers(least, most, shape, endpoint=True, dtype=dtype)
    x = RNG.integers(-40, 40, shape).astype(dtype) if few else RNG.normal(size=shape).astype(dtype)
    flat = x.reshape(-1)
    flat[:: max(1, x.size // 7)] = -0.0
    if not few:
        flat[3 :: max(1, x.size // 3)] = [np.inf, -np.inf, np.inf, -np.inf][: len(flat[3 :: max(1, x.size // 3)])]
    return x


class Extremes(unittest.TestCase):
    def check(self, x, axis, keepdims=False):
        for op, reference in ((relax.op.argmax, np.argmax), (relax.op.argmin, np.argmin)):
            got = compiled(lambda v: op(v, axis, keepdims), x)(x).numpy()
            np.testing.assert_array_equal(got, reference(x, axis=axis, keepdims=keepdims), f"{reference} {x.shape} {axis}")

    def test_the_first_of_equal_ones(self):
        for k, dtype in enumerate(DTYPES):
            for shape, axis in (((1003,), 0), ((37, 211), 1), ((5, 70, 9), 1), ((5, 7, 129), None)):
                k += 1
                with self.subTest(dtype=dtype, shape=shape, axis=axis):
                    self.check(drawn(shape, dtype, few=k % 2 == 0), axis)
        self.check(drawn((5, 7, 129), "float32"), 1, keepdims=True)
        self.check(drawn((5, 7, 129), "float32"), None, keepdims=True)

    def test_parts_of_a_large_reduction(self):
        for dtype in ("float32", "int64"):
            for k, shape in enumerate(((100000,), (100, 1000), (100003,), (6, 5, 40, 61))):
                self.check(drawn(shape, dtype, few=k % 2 == 0), None)

    def test_long_lines(self):
        """Lines that are searched in parts of 1,024: whole ones, with a rest, along any axis, an extreme anywhere"""
        for dtype in ("float32", "int8", "uint8", "float16"):
            for k, (shape, axis) in enumerate((((8192,), 0), ((2, 9000), 1), ((9217, 3), 0), ((2, 8193, 5), 1), ((97, 101), None))):
                with self.subTest(dtype=dtype, shape=shape, axis=axis):
                    self.check(drawn(shape, dtype, few=k % 2 == 0), axis, keepdims=k % 2 == 0)
        for at in (0, 1023, 1024, 8191, 8192, 9999):
            for value in (np.nan, np.inf, -np.inf):
                x = np.zeros((2, 10000), "float32")
                x[1, at:] = value
                with self.subTest(at=at, value=value):
                    self.check(x, 1)
                    self.check(x, None)
        for value in (np.nan, -np.inf, np.inf):
            self.check(np.full(8200, value, "float32"), 0)

    def test_a_nan_comes_before_all(self):
        for dtype in ("float32", "float16"):
            x = drawn((19, 301), dtype)
            x[3, 40:300:7] = np.nan
            x[5, 0] = x[7, 300] = np.nan
            for axis in (0, 1, None):
                self.check(x, axis)
        for value in (np.nan, -np.inf, np.inf):
            self.check(np.full((3, 50), value, "float32"), 1)


class Sorted(unittest.TestCase):
    def test_values_and_orders(self):
        for dtype in DTYPES:
            for shape, axis in SHAPES if dtype in ("float32", "int64") else SHAPES[-4:]:
                x = drawn(shape, dtype)
                if "float" in dtype:
                    x.reshape(-1)[-1] = np.nan
                with self.subTest(dtype=dtype, shape=shape, axis=axis):
                    up = np.sort(x, axis=axis)
                    np.testing.assert_array_equal(compiled(lambda v: relax.op.sort(v, axis), x)(x).numpy(), up)
                    down = compiled(lambda v: relax.op.sort(v, axis, descending=True), x)(x).numpy()
                    np.testing.assert_array_equal(down, np.flip(up, axis))
                    order = compiled(lambda v: relax.op.argsort(v, axis, dtype="int64"), x)(x).numpy()
                    np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))

    def test_unique(self):
        for dtype in DTYPES + ["bool"]:
            for few in (False, True):
                x = RNG.random(3001) < 0.5 if dtype == "bool" else drawn((3001,), dtype, few)
                wanted = np.unique(x, True, True, True)
                got = compiled(lambda v: relax.op.unique(v, return_index=True, return_inverse=True, return_counts=True), x)(x)
                for a, b in zip(got, wanted):
                    np.testing.assert_array_equal(a.numpy(), b, dtype)
                alone = compiled(lambda v: relax.op.unique(v), x)(x).numpy()
                np.testing.assert_array_equal(alone, wanted[0])
                if "float" in dtype:  # the first zero's sign stands for all
                    self.assertEqual(np.signbit(alone[alone == 0])[0], np.signbit(x[x == 0])[0])
                in_order = compiled(lambda v: relax.op.unique(v, sorted=False), x)(x).numpy()
                np.testing.assert_array_equal(in_order, x[np.sort(wanted[1])])

    def test_elements_that_are_not_0(self):
        for dtype in DTYPES + ["bool"]:
            for shape in ((1000,), (13, 77), (3, 5, 41), (4, 0)):
                x = RNG.random(shape) < 0.5 if dtype == "bool" else drawn(shape, dtype, few=True) if np.prod(shape) else np.zeros(shape, dtype)
                np.testing.assert_array_equal(compiled(relax.op.nonzero, x)(x).numpy(), np.array(np.nonzero(x)))


class Powers(unittest.TestCase):
    def test_of_integers(self):
        for dtype in ("int32", "int64", "int8", "uint8", "uint32"):
            low = 0 if dtype[0] == "u" else -12
            x, y = RNG.integers(low, 12, (7, 31)).astype(dtype), RNG.integers(0, 70, (7, 31)).astype(dtype)
            np.testing.assert_array_equal(compiled(relax.op.power, x, y)(x, y).numpy(), np.power(x, y), dtype)
        x, y = np.array([1, -1, -1, 2, 0, -3], "int32"), np.array([-5, -4, -3, -1, -1, -2], "int32")
        np.testing.assert_array_equal(compiled(relax.op.power, x, y)(x, y).numpy(), [1, 1, -1, 0, 0, 0])


class Sliced(unittest.TestCase):
    def test_steps_of_a_slice(self):
        for axis, start, end, step in ((0, 2, 40, 3), (1, 1, 99, 7), (1, -60, -1, 1), (0, 0, 53, 2)):
            x = drawn((53, 101), "float32")
            at = [slice(None)] * 2
            at[axis] = slice(start, end, step)
            src = drawn(x[tuple(at)].shape, "float32")
            wanted = x.copy()
            wanted[tuple(at)] = src
            got = compiled(lambda v, s: relax.op.slice_scatter(v, s, start, end, step, axis), x, src)(x, src).numpy()
            np.testing.assert_array_equal(got, wanted)


if __name__ == "__main__":
    unittest.main()
