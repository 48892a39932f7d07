"""Compiled models that take and give the tensors of torch."""
from sator import nd, relax
from sator.relax.frontend.nn import spec as specs
from sator.runtime.shape import ShapeTuple


class TorchModule:
    """A compiled model: `module["forward"](x)`. What Module.jit gives.

    spec, vm   the methods, and the machine that runs them
    params     the values of the parameters
    effects    the states of the model (nn.Effect) after the last call, or None
    """

    def __init__(self, spec, vm, params, out_format="torch"):
        self.spec, self.vm, self.params, self._out_format = spec, vm, params, out_format
        self.effects = vm["_initialize_effect"]() if vm._machine.has("_initialize_effect") else None

    def __getitem__(self, method_name):
        """A method as a function. Errors: ValueError, there is none of that name."""
        if method_name not in self.spec.method_names:
            raise ValueError(f"the model has no method {method_name}\n  needs: one of {', '.join(self.spec.method_names)}")
        method = self.spec.method_specs[self.spec.method_names.index(method_name)]
        run = self.vm[method_name]

        def call(*args):
            if len(args) != len(method.arg_names):
                raise TypeError(f"{method_name}: {len(args)} arguments\n  needs: {len(method.arg_names)}: {', '.join(method.arg_names)}")
            given = [_given(n, s, a) for n, s, a in zip(method.arg_names, method.arg_specs, args)]
            if self.effects is None or method.effect_mode == "none":
                outputs = run(*given, *self._behind(method))
            else:
                states = [self.effects] if method.effect_mode == "packed" else self.effects
                outputs, self.effects = run(*given, *states, *self._behind(method))
            return self._result(outputs)

        call.__name__ = method_name
        return call

    def _behind(self, method):
        return [self.params] if method.param_mode == "packed" else [] if method.param_mode == "none" else self.params

    def _result(self, value):
        if isinstance(value, nd.NDArray):
            return value._numpy() if self._out_format == "numpy" else _torch().from_dlpack(value)
        return [self._result(v) for v in value] if isinstance(value, (list, tuple)) else value


def compiled(spec, mod, params, device, pipeline, out_format):
    if out_format not in ("torch", "numpy"):
        raise ValueError(f"jit: out_format = {out_format!r}\n  needs: \"torch\" or \"numpy\"")
    if out_format == "torch":
        _torch()
    empty = [name for name, p in params if p.data is None]
    if empty:
        raise ValueError(f"jit: the parameter {empty[0]} has no value\n  needs: values of all parameters\n"
                         "  hint:  model.load_state_dict({name: array}), or param.data = array")
    if isinstance(device, str):
        from sator.runtime.device import device as named

        device = named(device)
    vm = relax.VirtualMachine(relax.build(mod, "llvm", pipeline=pipeline), device)
    return TorchModule(spec, vm, [p.data for _, p in params], out_format)


def _torch():
    try:
        import torch
    except ImportError:
        raise ImportError("jit: out_format=\"torch\", and there is no torch\n  needs: the package torch\n"
                          "  hint:  out_format=\"numpy\" gives NumPy's arrays") from None
    return torch


def _given(name, spec, value):
    if isinstance(spec, specs.Int):
        if not isinstance(value, int):
            raise TypeError(f"the argument {name} is a {type(value).__name__}\n  needs: an integer")
        return ShapeTuple([value])
    if isinstance(spec, (specs.Tuple, tuple, list)):
        elements = getattr(spec, "elements", spec)
        return [_given(f"{name}[{i}]", s, v) for i, (s, v) in enumerate(zip(elements, value))]
    if hasattr(value, "detach"):  # torch's: one that is trained does not give its memory away
        value = value.detach().contiguous()
    return value
