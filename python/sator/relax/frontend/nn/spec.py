"""What a model's methods take."""


class Int:
    """A number: a symbolic size of the function."""

    def __repr__(self):
        return "int"


class Tensor:
    """A tensor. shape: integers, or names of symbolic sizes."""

    def __init__(self, shape, dtype):
        self.shape, self.dtype = list(shape), dtype

    def __repr__(self):
        return f"Tensor([{', '.join(map(str, self.shape))}], \"{self.dtype}\")"


class Object:
    """A value that is no tensor."""

    def __init__(self, object_type=None):
        self.object_type = object_type


class Tuple:
    """Several values as one argument."""

    def __init__(self, name, elements):
        self.name, self.elements = name, elements


def _spec_of(given):
    if isinstance(given, (tuple, list)):
        return type(given)(map(_spec_of, given))
    return Int() if given in (int, Int, "int") else given


class MethodSpec:
    """A method: its arguments' names and what they are.

    param_mode    "plain": parameters behind the inputs; "packed": as one tuple; "none"
    effect_mode   the same for states (nn.Effect), which come between inputs and parameters
    """

    def __init__(self, method, arg_names, arg_specs, param_mode="plain", effect_mode="plain"):
        self.method, self.arg_names, self.arg_specs = method, list(arg_names), list(arg_specs)
        self.param_mode, self.effect_mode = param_mode, effect_mode

    @staticmethod
    def from_raw(spec, method):
        """From {argument: spec, "$": {"param_mode": ...}}. Errors: an argument without a spec and without a default."""
        import inspect

        if isinstance(spec, MethodSpec):
            return spec
        config = dict(spec.get("$", {}))
        parameters = inspect.signature(method).parameters
        names = [n for n, p in parameters.items() if n in spec or p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        missing = [n for n in names if n not in spec]
        if missing:
            raise ValueError(f"{method.__name__}: no spec of the argument {missing[0]}\n"
                             f"  needs: one of each of {', '.join(names)}")
        return MethodSpec(method, names, [_spec_of(spec[n]) for n in names],
                          config.get("param_mode", "plain"), config.get("effect_mode", "plain"))


    @staticmethod
    def from_torch(args_torch, method):
        """From arguments as torch has them: tensors and integers. Errors: TypeError for others, and for another number of arguments."""
        import inspect

        names = list(inspect.signature(method).parameters)
        if len(names) != len(args_torch):
            raise TypeError(f"{method.__name__}: {len(args_torch)} arguments\n  needs: {len(names)}: {', '.join(names)}")
        return MethodSpec(method, names, [_spec_of_value(n, a) for n, a in zip(names, args_torch)])


def _spec_of_value(name, value):
    if isinstance(value, int) and not isinstance(value, bool):
        return Int()
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Tensor([int(e) for e in value.shape], str(value.dtype).removeprefix("torch."))
    raise TypeError(f"the argument {name} is a {type(value).__name__}\n  needs: a tensor or an integer")


class ModuleSpec:
    """The methods of a model that are exported."""

    def __init__(self, module, method_names, method_specs):
        self.module, self.method_names, self.method_specs = module, list(method_names), list(method_specs)

    @staticmethod
    def from_raw(spec, module):
        """From {method: {argument: spec}}."""
        if isinstance(spec, ModuleSpec):
            return spec
        names = list(spec)
        return ModuleSpec(module, names, [MethodSpec.from_raw(spec[n], getattr(module, n)) for n in names])
