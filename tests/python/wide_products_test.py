"""Products of numbers of 64 bits, and of a right operand whose rows lie multiples of 4 KB apart, beside NumPy."""
import unittest

import numpy as np
import sator
from sator import relax
from sator.script import relax as R

RNG = np.random.default_rng(0)


def product(a, b):
    params = [relax.Var(name, R.Tensor(v.shape, str(v.dtype))) for name, v in (("a", a), ("b", b))]
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(relax.op.matmul(*params)))
    return relax.VirtualMachine(relax.build(builder.get(), target="llvm"), sator.cpu())["main"](a, b).numpy()


class WideProducts(unittest.TestCase):
    def test_any_shape(self):
        for dtype in ("float64", "int64"):
            for m, k, n in ((70, 65, 512), (64, 64, 1024), (63, 64, 512), (1, 100, 512), (5, 3, 64), (100, 33, 500), (13, 40, 7)):
                a, b = RNG.integers(-1000, 1000, (m, k)).astype(dtype), RNG.integers(-1000, 1000, (k, n)).astype(dtype)
                with self.subTest(dtype=dtype, shape=(m, k, n)):
                    np.testing.assert_array_equal(product(a, b), a @ b)  # of whole numbers, exact in any order

    def test_rows_4_kb_apart(self):
        for dtype, n in (("float32", 1024), ("int32", 2048), ("int8", 4096)):
            a, b = RNG.integers(-3, 4, (67, 70)).astype(dtype), RNG.integers(-3, 4, (70, n)).astype(dtype)
            with self.subTest(dtype=dtype):
                np.testing.assert_array_equal(product(a, b), a @ b)


if __name__ == "__main__":
    unittest.main()
