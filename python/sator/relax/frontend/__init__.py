"""Graphs from elsewhere: torch.fx graphs (`torch`), models written as modules (`nn`)."""
import importlib

from sator.relax.frontend.common import detach_params  # noqa: F401


def __getattr__(name):
    if name in ("torch", "nn"):
        return importlib.import_module("sator.relax.frontend." + name)
    raise AttributeError(f"module 'sator.relax.frontend' has no attribute {name!r}")
