"""Models written as modules, as in PyTorch, and exported to a graph.

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(784, 10)

        def forward(self, x: nn.Tensor):
            return nn.op.relu(self.fc(x))

    mod, params = MLP().export_tvm({"forward": {"x": nn.spec.Tensor((1, 784), "float32")}})
"""
from sator.relax.frontend.nn import op, spec  # noqa: F401
from sator.relax.frontend.nn.core import (  # noqa: F401
    Effect, Module, ModuleDict, ModuleList, Object, Parameter, Tensor, get_default_dtype, set_default_dtype, wrap_nested)
from sator.relax.frontend.nn.modules import (  # noqa: F401
    GELU, Attention, Conv1D, Conv2D, Conv3D, ConvTranspose1D, Embedding, GroupNorm, Identity, IOEffect, KVCache, LayerNorm, Linear, ReLU, RMSNorm,
    SiLU, TimestepEmbedding, Timesteps)
from sator.relax.frontend.nn.op import *  # noqa: F401,F403
from sator.relax.frontend.nn.visitor import Mutator  # noqa: F401


def __getattr__(name):
    from sator import paths

    raise paths.missing(__name__, name, globals())
