"""Formulas of ops over tensors of te. Each op of graphs that has a formula is here by its name; some have TVM's names besides."""
from sator import _core
from sator.topi import nn, tag, utils  # noqa: F401
from sator.topi.formulas import formula_of, left_shift, matmul, right_shift  # noqa: F401

_OTHER_NAMES = {"transpose": "permute_dims", "identity": "astype", "cast": "astype", "concatenate": "concat",
                "power": "power", "argmax": "argmax"}


def __getattr__(name):
    return formula_of(name, _OTHER_NAMES.get(name, name))


def __dir__():
    return sorted([*globals(), *(name for name, _ in _core.ops() if "." not in name)])
