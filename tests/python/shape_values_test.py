"""Shapes as values: what a graph makes of the extents of its arguments."""
import unittest

import numpy as np

import sator
from sator import relax
from sator.script import ir as I
from sator.script import relax as R
from sator.script import tir as T


class ShapeValues(unittest.TestCase):
    def test_as_tensors(self):
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((2,), "int64"):
                n = T.int64()
                y = R.shape_to_tensor(R.shape([n + 1, 4]))
                z = R.multiply(y, R.shape_to_tensor(R.shape_of(x)))
                return z

        vm = relax.VirtualMachine(relax.build(Module), sator.cpu())
        for n in (0, 5):
            self.assertEqual(vm["main"](np.zeros((n, 4), "float32")).numpy().tolist(), [(n + 1) * n, 16])


if __name__ == "__main__":
    unittest.main()
