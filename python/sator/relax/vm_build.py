"""relax.build, and the two steps that TVM's takes: the graphs' code, then the tensor programs' beside it."""
from sator.driver import Executable, relax_build as build  # noqa: F401


def _vmcodegen(builder, mod, exec_mode="bytecode"):
    """Notes a module whose graphs are calls of the machine's functions; _vmlink compiles them. It gives the module."""
    if exec_mode not in ("bytecode", "compiled"):
        raise ValueError(f"exec_mode {exec_mode}\n  needs: bytecode or compiled; both are the machine's bytecode here")
    builder._module = mod
    return mod


def _vmlink(builder, target, tir_mod=None, ext_libs=None, params=None, system_lib=False):
    """The program of a builder that _vmcodegen was given."""
    return build(builder._module, target)
