"""Graphs from elsewhere: torch.fx graphs (`torch`), models written as modules (`nn`)."""
import importlib

from sator.relax.frontend.common import detach_params  # noqa: F401


def __getattr__(name):
    if name in ("torch", "nn"):
        return importlib.import_module("sator.relax.frontend." + name)
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, [*globals(), "torch", "nn"])
