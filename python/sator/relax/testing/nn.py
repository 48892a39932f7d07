"""Layers that emit their graph into the function that is being built, as v0.17's relax.testing has them; relax.frontend.nn has more."""
from sator import _core, paths, relax, topi


def _builder():
    builder = relax.BlockBuilder.current()
    if builder is None:
        raise RuntimeError("a layer is called outside of a function\n  needs: `with relax.BlockBuilder().function(name):` around the call")
    return builder


def emit(expr, name_hint=""):
    """Binds an expression in the function that is being built."""
    return _builder().emit(expr, name_hint)


def emit_te(func, *args, **kwargs):
    """emit_te of the builder at work."""
    return _builder().emit_te(func, *args, **kwargs)


def _variable(kind, shape, dtype, name):
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"{kind}: shape = {shape!r} is a {type(shape).__name__}\n  needs: a list or a tuple")
    builder = relax.BlockBuilder.current()
    return relax.Var(name if builder is None else builder.get_unique_name(name), relax.TensorStructInfo(shape, dtype))


def Placeholder(shape, dtype="float32", name="data"):  # noqa: N802
    """A variable that is an input."""
    return _variable("Placeholder", shape, dtype, name)


def Parameter(shape, dtype="float32", name="param"):  # noqa: N802
    """A variable that is a weight: Module.parameters() finds it."""
    return _variable("Parameter", shape, dtype, name)


class Module:
    """A layer: `forward` emits it. Variables among its attributes are its parameters."""

    def parameters(self):
        """The parameters, of its parts too."""
        return _parameters(vars(self))

    def forward(self, input):  # noqa: A002
        """What the layer makes of its input."""
        raise NotImplementedError(f"{type(self).__name__} has no method forward")

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


def _parameters(value):
    if isinstance(value, _core.relax.Var):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [p for part in parts for p in _parameters(part)]


def init_params(mod):
    """Zeros for the parameters of `main` whose names do not begin with data. Errors: TypeError for a shape that is not known."""
    import numpy

    from sator import nd

    out = []
    if "main" not in mod.functions:
        raise TypeError("init_params: the module has no function main\n  needs: main, a graph")
    for p in mod["main"].params:
        if not p.name_hint.startswith("data"):
            shape = getattr(p.struct_info, "shape", None)
            if shape is None or not all(isinstance(getattr(e, "value", None), int) for e in shape.values):
                raise TypeError(f"init_params: the shape of {p.name_hint} is not known\n  needs: integers")
            out.append(nd.array(numpy.zeros([e.value for e in shape.values], "float32")))
    return out


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *modules):
        self.modules = modules

    def forward(self, input):  # noqa: A002
        """The input through each layer in turn."""
        for module in self.modules:
            input = module(input)  # noqa: A001
        return input


class ReLU(Module):
    """topi.nn.relu."""

    def forward(self, input):  # noqa: A002
        """max(input, 0)."""
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """topi.nn.log_softmax."""

    def forward(self, input):  # noqa: A002
        """The logarithm of softmax over the last axis."""
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """input @ weight + bias: weight is [in_features, out_features]."""

    def __init__(self, in_features, out_features, bias=True):
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input):  # noqa: A002
        """[..., in_features] -> [..., out_features]."""
        y = emit_te(topi.matmul, input, self.weight)
        return y if self.bias is None else emit_te(topi.add, y, self.bias)


__getattr__ = paths.lookup(__name__)
