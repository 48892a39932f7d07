"""What tests of TVM's users call; what needs pytest is in pytest_tools.py."""
from sator.pytest_tools import (  # noqa: F401
    CompareBeforeAfter, Feature, assert_prim_expr_equal, check_bool_expr_is_true, check_numerical_grads, device_enabled, enabled_targets,
    exclude_targets, feature, fixture, known_failing_targets, parameter, parametrize_targets, requires_package)

__path__ = []  # TVM's modules below are found by sator.paths


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


def slow(func):
    """A test that takes long: it runs like any other."""
    return func


def skip_if_32bit(reason=""):
    """A test that needs 64 bits, which are here."""
    return reason if callable(reason) else lambda func: func


def nop(*_args):
    """Does nothing."""


def echo(x):
    """What is given."""
    return x


def __getattr__(name):
    if name.startswith(("requires_", "uses_")):
        return feature(name)
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
