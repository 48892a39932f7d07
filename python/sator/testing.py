"""What tests of TVM's users call."""


def assert_allclose(actual, desired, rtol=1e-7, atol=1e-7, verbose=True):
    """numpy.testing.assert_allclose of tensors and arrays, whose shapes have to be the same."""
    import numpy

    actual, desired = (x.numpy() if hasattr(x, "numpy") else numpy.asanyarray(x) for x in (actual, desired))
    numpy.testing.assert_allclose(actual.shape, desired.shape)
    numpy.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=verbose)


def main():
    """Runs the tests of the file that calls it, by pytest where that is installed, else by unittest."""
    import sys

    try:
        import pytest
    except ImportError:
        import unittest

        unittest.main(module="__main__")
        return
    sys.exit(pytest.main([sys.argv[0], *sys.argv[1:]]))
