"""Graphs of PyTorch. A torch.fx graph is read by its nodes' names: torch itself is not imported."""
from sator.relax.frontend.torch.fx import from_fx  # noqa: F401
