"""Formulas of ops over tensors of te: TVM v0.17's with its arguments, and each op of graphs that it has not, by its name."""
from sator import _core, paths
from sator.topi import image, nn, signatures, tag, utils  # noqa: F401
from sator.topi.formulas import formula_of
from sator.topi.indexing import *  # noqa: F403
from sator.topi.scattering import *  # noqa: F403
from sator.topi.sequences import *  # noqa: F403
from sator.topi.tensors import *  # noqa: F403
from sator.topi.tensors import all_ as all, any_ as any  # noqa: F401, A004

paths.keep_functions(__name__)


def __getattr__(name):
    return formula_of(name, name)


def __dir__():
    ops = {name for name, _ in _core.ops() if "." not in name} - signatures.MISSING
    return sorted({*globals(), *ops, *(name for name in signatures.ROWS if "." not in name)})
