"""Graphs of PyTorch, of torch.fx and of torch.export. They are read by their nodes' names: torch itself is not imported."""
from sator.relax.frontend.torch.exported import from_exported_program  # noqa: F401
from sator.relax.frontend.torch.fx import from_fx  # noqa: F401


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
