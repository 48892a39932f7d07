"""TVM's modules that are not here: they can be imported, and each of their names raises an error that says what there is instead."""
import types

from sator.error import TVMError

_SEARCH = ("schedules are not searched by measuring", "sator.dlight.ApplyDefaultSchedule() schedules by the compiler's rules, sator.tir.Schedule by hand")
_HERE = ("programs run on this machine", "sator.build(mod).export_library(path) here, sator.runtime.load_module(path) there")
NAMES = {
    "autotvm": _SEARCH,
    "auto_scheduler": _SEARCH,
    "relay": ("graphs are Relax's", "sator.relax: BlockBuilder, frontend.torch.from_fx, or @R.function"),
    "rpc": _HERE,
    "micro": _HERE,
    "contrib": ("libraries of kernels are not called", "kernels are the compiler's own; relax.transform.FuseOpsByPattern and RunCodegen call a library of yours"),
}


def error(path):
    """The error of a name below a refused module."""
    why, instead = NAMES[path.partition(".")[0]]
    return TVMError(f"error: {path}: {why}\n  needs: a name that sator has\n  hint:  {instead}")


class Module(types.ModuleType):
    """A module that can be imported and has nothing."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise error(f"{self.__name__.removeprefix('sator.')}.{name}")
