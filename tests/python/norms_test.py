"""Norms of rows whose mean is large beside their deviation: errors are those of float32, not of a difference of squares."""
import unittest

import numpy as np

import sator
from sator import relax
from sator.script import ir as I, relax as R


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor(("n", 34), "float32"), g: R.Tensor((34,), "float32"), b: R.Tensor((34,), "float32")):
        y = R.nn.layer_norm(x, g, b, axes=[-1], epsilon=1e-5)
        return y


@I.ir_module
class Group:
    @R.function
    def main(x: R.Tensor((5, 6, 34), "float32"), g: R.Tensor((6,), "float32"), b: R.Tensor((6,), "float32")):
        y = R.nn.group_norm(x, g, b, num_groups=3, channel_axis=1, axes=[2], epsilon=1e-5)
        return y


def normed(x, axes):
    wide = x.astype("float64")
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)


class Norms(unittest.TestCase):
    def check(self, module, shape, parameters, expected):
        vm = relax.VirtualMachine(relax.build(module, target="llvm"), sator.cpu())
        random = np.random.default_rng(1)
        for offset in (0, 3, 100, 1000, 1e5):
            x = (offset + 0.4 * random.standard_normal(shape)).astype("float32")
            ones, zeros = np.ones(parameters, "float32"), np.zeros(parameters, "float32")
            got = vm["main"](*(sator.nd.array(a) for a in (x, ones, zeros))).numpy()
            # Some twenty additions, one after the other, round the mean; the deviation divides what it is off.
            self.assertLess(np.abs(got - expected(x)).max(), 20 * 2**-24 * offset / 0.4 + 2e-6, offset)

    def test_rows(self):
        self.check(Layer, (50, 34), 34, lambda x: normed(x, (1,)))

    def test_groups_of_channels(self):
        self.check(Group, (5, 6, 34), 6, lambda x: normed(x.reshape(5, 3, 2, 34), (2, 3)).reshape(5, 6, 34))


if __name__ == "__main__":
    unittest.main()
