"""What tests of graphs call."""
from sator.relax.testing import ast_printer, transform, vm  # noqa: F401
from sator.relax.testing.ast_printer import dump_ast  # noqa: F401
from sator.relax.testing.nn import *  # noqa: F401,F403


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
