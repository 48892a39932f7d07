"""Graphs of PyTorch. A torch.fx graph is read by its nodes' names: torch itself is not imported."""
from sator.relax.frontend.torch.fx import from_fx  # noqa: F401


def __getattr__(name):
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
