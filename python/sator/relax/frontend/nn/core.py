"""Tensors, parameters and modules."""
from sator import _core, relax, tir

_default_dtype = "float32"
_builders = []  # the innermost exported function's builder is the last
_io_effects = []  # beside them: the IOEffect of an export with debug=True, or None


def get_default_dtype():
    """The dtype of parameters that name none."""
    return _default_dtype


def set_default_dtype(dtype):
    """Sets the dtype of parameters that name none."""
    global _default_dtype
    _default_dtype = dtype


def current_builder():
    """The builder of the function that is exported. Errors: none is."""
    if not _builders:
        raise RuntimeError("an op is called outside of export_tvm\n  needs: a method of a module that is exported")
    return _builders[-1]


class Tensor:
    """A value of the exported graph: only its shape and dtype are known."""

    def __init__(self, *, _expr):
        self._expr = _expr

    @staticmethod
    def from_const(data):
        """A tensor that is known already."""
        return Tensor(_expr=relax.const(data))

    @staticmethod
    def from_scalar(data, dtype):
        """A number as a tensor without dimensions."""
        return Tensor(_expr=relax.const(data, dtype))

    @staticmethod
    def from_struct_info(struct_info, name="tensor"):
        """A tensor of which this is known, as a placeholder."""
        return Tensor(_expr=relax.Var(name, struct_info))

    @staticmethod
    def placeholder(shape, dtype, name="tensor"):
        """A tensor that is given. shape: integers, expressions, or names of symbolic sizes."""
        extents = [tir.Var(e, "int64") if isinstance(e, str) else e for e in shape]
        return Tensor(_expr=relax.Var(name, relax.TensorStructInfo(tuple(extents), dtype)))

    @property
    def shape(self):
        """The extents: integers where they are known, else expressions."""
        return [e.value if isinstance(e, tir.IntImm) else e for e in self._expr.struct_info.shape.values]

    @property
    def ndim(self):
        """How many dimensions."""
        return len(self._expr.struct_info.shape.values)

    @property
    def dtype(self):
        """Of an element."""
        return self._expr.struct_info.dtype

    def __repr__(self):
        return f'Tensor({self.shape}, "{self.dtype}")'

    # Operators and methods are the ops of the same name.

    def _with(self, name, *args, **kwargs):
        from sator.relax.frontend.nn import op

        return getattr(op, name)(self, *args, **kwargs)

    def _swapped(self, name, other):
        from sator.relax.frontend.nn import op

        return getattr(op, name)(op.as_tensor(other, self.dtype), self)

    def __add__(self, other):
        return self._with("add", other)

    def __sub__(self, other):
        return self._with("subtract", other)

    def __mul__(self, other):
        return self._with("multiply", other)

    def __truediv__(self, other):
        return self._with("divide", other)

    def __radd__(self, other):
        return self._with("add", other)

    def __rsub__(self, other):
        return self._swapped("subtract", other)

    def __rmul__(self, other):
        return self._with("multiply", other)

    def __rtruediv__(self, other):
        return self._swapped("divide", other)

    def __lt__(self, other):
        return self._with("less", other)

    def __le__(self, other):
        return self._with("less_equal", other)

    def __gt__(self, other):
        return self._with("greater", other)

    def __ge__(self, other):
        return self._with("greater_equal", other)

    def astype(self, dtype):
        """In another dtype."""
        return self._with("astype", dtype)

    def maximum(self, other):
        """The larger of both, element by element."""
        return self._with("maximum", other)

    def minimum(self, other):
        """The smaller of both, element by element."""
        return self._with("minimum", other)

    def reshape(self, *shape):
        """The same elements under another shape; -1 is what is left."""
        return self._with("reshape", list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else list(shape))

    def permute_dims(self, *axes):
        """The dimensions in this order, or reversed."""
        axes = list(axes[0]) if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else list(axes)
        return self._with("permute_dims", axes or None)

    def repeat(self, repeats, axis=None):
        """Each element `repeats` times along the axis, or of the flat tensor."""
        return self._with("repeat", repeats, axis)


class Parameter(Tensor):
    """A weight of a model; `data` is its value, or None."""

    def __init__(self, shape, dtype=None):
        super().__init__(_expr=Tensor.placeholder(shape, dtype or get_default_dtype(), "param")._expr)
        self._data = None
        self.attrs = {}

    @property
    def data(self):
        """Its value as an NDArray, or None. Errors: ValueError where one of another shape is set."""
        return self._data

    @data.setter
    def data(self, value):
        from sator import nd

        array = value if value is None or isinstance(value, _core.NDArray) else nd.array(value)
        if array is not None and tuple(array.shape) != tuple(self.shape):
            raise ValueError(f"a value of shape {tuple(array.shape)} for a parameter of shape {tuple(self.shape)}")
        self._data = array

    def to(self, dtype=None):
        """Another dtype. Errors: it has a value already."""
        if dtype is not None:
            if self._data is not None:
                raise ValueError("a parameter with a value keeps its dtype")
            self._expr = Tensor.placeholder(self.shape, dtype, "param")._expr


class Object:
    """A value of the exported graph that is no tensor: a cache, for one."""

    def __init__(self, *, _expr=None, _name="object"):
        self._expr = relax.Var(_name, relax.ObjectStructInfo()) if _expr is None else _expr


class Effect:
    """State that a model's methods read and change: each takes it as arguments behind its own, and gives it back behind its result.

    The exported module's function `_initialize_effect` makes it. A class of your own has the methods below.
    """

    def emit_init(self, name_hint, bb):
        """Emits the first state; gives a list of variables."""
        raise NotImplementedError(f"{type(self).__name__} has no method emit_init")

    def create(self, name_hint):
        """The parameters of a method that hold the state: a list of variables."""
        raise NotImplementedError(f"{type(self).__name__} has no method create")

    def set_state(self, state_vars):
        """Says which variables hold the state now."""
        raise NotImplementedError(f"{type(self).__name__} has no method set_state")

    def finalize(self):
        """The variables that hold the state at the end of a method."""
        raise NotImplementedError(f"{type(self).__name__} has no method finalize")

    def to(self, dtype=None):
        """Another dtype, where the state has one."""


class Module:
    """Parts of a model, with their parameters; `forward` is what calling it does."""

    def __call__(self, *args, **kwargs):
        if not hasattr(self, "forward"):
            raise NotImplementedError(f"{type(self).__name__} has no method forward")
        return self.forward(*args, **kwargs)

    def named_parameters(self, prefix=""):
        """Pairs of a dotted name and a parameter."""
        yield from _named(self, prefix, Parameter)

    def parameters(self):
        """The parameters, of all parts."""
        for _, param in self.named_parameters():
            yield param

    def state_dict(self, *, prefix="", destination=None):
        """The parameters by their names."""
        out = {} if destination is None else destination
        out.update(self.named_parameters(prefix))
        return out

    def load_state_dict(self, state_dict, strict=True):
        """Sets the parameters' values: arrays by name. Gives the names that are missing, and those that nobody has.

        Errors: KeyError for either, if strict.
        """
        own = dict(self.named_parameters())
        missing, more = [n for n in own if n not in state_dict], [n for n in state_dict if n not in own]
        if strict and (missing or more):
            raise KeyError(f"missing: {', '.join(missing) or 'none'}; not in the model: {', '.join(more) or 'none'}")
        for name, value in state_dict.items():
            if name in own:
                own[name].data = value.data if isinstance(value, Parameter) else value
        return missing, more

    def to(self, dtype=None):
        """Another dtype for all parameters."""
        for param in self.parameters():
            param.to(dtype)
        for _, module in _named(self, "", Module):
            if hasattr(module, "dtype") and dtype is not None:
                module.dtype = dtype
        for _, effect in _named(self, "", Effect):
            effect.to(dtype)
        return self

    def export_tvm(self, spec, debug=False, allow_extern=False):
        """The module of the model's methods, and its parameters as pairs of a name and a Parameter.

        spec    {method: {argument: nn.spec.Tensor(shape, dtype), ...}, ...}; an int argument may be given as the type `int`
        debug   whether nn.op.debug_func and print_ are there: each method then has one more state, an Effect
        """
        from sator.relax.frontend.nn.exporter import export

        mod, params = export(self, spec, debug)
        return (mod, params, []) if allow_extern else (mod, params)

    def jit(self, spec, device="cpu", pipeline="default_build", out_format="torch", debug=False):
        """The model compiled, with the values of its parameters: `model.jit(spec)["forward"](x)`; states stay in it from call to call.

        spec         as of export_tvm
        out_format   "torch": results are torch's tensors; "numpy": NumPy's arrays. Either shares the machine's memory
        Errors: ValueError for a parameter without a value, or another format; as of relax.build.
        """
        from sator.relax.frontend.nn import spec as specs, torch as compiled

        spec = specs.ModuleSpec.from_raw(spec, self)
        mod, params = self.export_tvm(spec, debug)
        return compiled.compiled(spec, mod, params, device, pipeline, out_format)


def _named(owner, prefix, wanted):
    """Attributes of a kind, at any depth, with their dotted names."""
    items = enumerate(owner.modules) if isinstance(owner, ModuleList) else owner.modules.items() if isinstance(owner, ModuleDict) else vars(owner).items()
    for name, value in items:
        path = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, wanted):
            yield path, value
        if isinstance(value, Module):
            yield from _named(value, path, wanted)


class ModuleList(Module):
    """Modules in a row; calling it calls one after the other."""

    def __init__(self, modules):
        self.modules = list(modules)

    def __iter__(self):
        return iter(self.modules)

    def __getitem__(self, index):
        return self.modules[index]

    def __setitem__(self, index, module):
        self.modules[index] = module

    def __len__(self):
        return len(self.modules)

    def append(self, module):
        """Adds a module at the end."""
        self.modules.append(module)

    def forward(self, x):
        """x through each module in turn."""
        for module in self.modules:
            x = module(x)
        return x


class ModuleDict(Module):
    """Modules by name; iterating gives the modules."""

    def __init__(self, modules=None):
        self.modules = dict(modules or {})

    def __iter__(self):
        return iter(self.modules.values())

    def __getitem__(self, key):
        return self.modules[key]

    def __setitem__(self, key, module):
        self.modules[key] = module

    def __delitem__(self, key):
        del self.modules[key]

    def __len__(self):
        return len(self.modules)

    def __contains__(self, key):
        return key in self.modules

    def keys(self):
        """The names."""
        return self.modules.keys()

    def values(self):
        """The modules."""
        return self.modules.values()

    def items(self):
        """Pairs of a name and a module."""
        return self.modules.items()

    def get(self, key, default=None):
        """The module of a name, or `default`."""
        return self.modules.get(key, default)

    def pop(self, key):
        """Takes a module out. Errors: KeyError, there is none of that name."""
        return self.modules.pop(key)

    def update(self, modules):
        """Adds modules by name, or puts them in the place of others."""
        self.modules.update(modules)

    def clear(self):
        """Takes all modules out."""
        self.modules.clear()


def wrap_nested(expr, name):
    """Binds an expression of a graph, and gives it as a Tensor, or tuples of them."""
    builder = current_builder()
    if not isinstance(expr, _core.relax.Var):
        expr = builder.emit(expr, name)
    info = expr.struct_info
    if isinstance(info, _core.relax.TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, _core.relax.TupleStructInfo):
        return tuple(wrap_nested(relax.TupleGetItem(expr, i), f"{name}_{i}") for i in range(len(info.fields)))
    return Object(_expr=expr)
