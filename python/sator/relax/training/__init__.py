"""What training needs beside gradients: losses, steps of optimizers, a loss behind a model.

Each is a graph: build it alone, or put it into a module with `mod["SGD"] = optimizer.get_function()`. The gradients are the user's own: no pass
makes them.
"""
from sator.error import TVMError
from sator.relax.training import loss, optimizer, utils  # noqa: F401
from sator.relax.training.utils import AppendLoss  # noqa: F401

# What TVM makes of gradients.
_NEED_GRADIENTS = ("SetupTrainer", "Trainer", "setup_trainer", "trainer")


def __getattr__(name):
    if name in _NEED_GRADIENTS:
        raise TVMError(f"error: relax.training.{name}: no pass makes gradients\n  needs: a backward pass that is written as a graph of its own\n"
                       "  hint:  AppendLoss gives the loss of a model, optimizer.SGD(lr).init(params).get_function() a step")
    from sator import paths

    raise paths.missing(__name__, name, [*globals(), *_NEED_GRADIENTS])
