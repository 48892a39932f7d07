"""T, R and I: the languages of scripts, as Python sees them.

Inside of a decorated function their names are read by the compiler. Outside a call such as T.int32(5) or T.exp(x) is its value, and
an annotation such as T.Buffer((4,), "float32") is made when somebody uses it.
"""
from sator import _core

# What stands in annotations: sizes may be texts there, which have a meaning only beside a function.
_ANNOTATIONS = {"Buffer", "Ptr", "Tensor", "Shape", "Prim", "Object", "Tuple", "Callable", "match_buffer"}


# What opens a scope in the program that calls the function where it stands: there it is made.
_SCOPES = {"T.decl_buffer", "T.allocate", "T.allocate_const", "T.alloc_buffer"}
_programs = []  # the functions that programs are calling just now


def called_by_a_program(function, args, kwargs):
    """What a function gives that a program calls while it is read; scopes that it opens are the program's."""
    _programs.append(function)
    try:
        return function(*args, **kwargs)
    finally:
        _programs.pop()


class Name:
    """A name of a language: T.grid, R.nn.softmax."""

    def __init__(self, path):
        self._language = path

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return Name(f"{self._language}.{name}")

    def __call__(self, *args, **kwargs):
        if self._language == "T.meta_var":
            return MetaVar(*args, **kwargs)
        value = Annotation(self._language, args, kwargs)
        if _programs and self._language in _SCOPES:
            value._noted = True
            return value
        return value if self._language.split(".")[-1] in _ANNOTATIONS else value._value()

    def __getitem__(self, index):
        return Annotation(self._language, index if isinstance(index, tuple) else (index,), {})

    def __or__(self, other):
        return self

    def __repr__(self):
        return self._language


def _buffer(args, kwargs):
    """A buffer outside of a program, by the arguments of T.Buffer and T.decl_buffer."""
    from sator import tir

    order = ("shape", "dtype", "data", "strides", "elem_offset", "scope", "align", "offset_factor", "buffer_type", "axis_separators")
    given = {**dict(zip(order, args)), **kwargs}
    if "align" in given:
        given["data_alignment"] = given.pop("align")
    return tir.decl_buffer(**given)


class MetaVar:
    """What a function that a program calls gives back to have it written out wherever its name stands, instead of bound to a variable."""

    def __init__(self, value):
        self._meta_value = value

    def __iter__(self):
        return (MetaVar(v) for v in self._meta_value)


class Annotation:
    """A call of a language that is not made yet."""

    def __init__(self, path, args, kwargs):
        self._call = path, args, kwargs
        self._made = None

    def _value(self):
        path, args, kwargs = self._call
        if path in ("T.Buffer", "T.decl_buffer"):
            return _buffer(args, kwargs)
        device = next((v for v in (*args, *kwargs.values()) if isinstance(v, _core.ir.VDevice)), None)
        if device is not None and path == "R.Tensor":
            return self._on(device)
        names = {f"_{i}": a for i, a in enumerate(args)}
        names.update({f"_{k}": v for k, v in kwargs.items()})
        words = [f"_{i}" for i in range(len(args))] + [f"{k}=_{k}" for k in kwargs]
        return _core.evaluate(f"{path}({', '.join(words)})", lambda name: (names[name],) if name in names else None)

    def _on(self, device):
        """A tensor's struct info on a device that no module lists."""
        path, args, kwargs = self._call
        plain = Annotation(path, [a for a in args if a is not device], {k: v for k, v in kwargs.items() if v is not device})._value()
        target = device.target
        kind = dict(target.config)["kind"] if hasattr(target, "config") else target.value.split(" ")[0]
        name = f"{kind}:{device.index}"
        return _core.make(_core.relax.TensorStructInfo, [plain.shape, plain.dtype, plain.ndim, name])

    def __getitem__(self, index):
        return self._node()[index]

    def _node(self):
        if self._made is None:
            self._made = self._value()
        return self._made

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._node(), name)

    def __repr__(self):
        path, args, kwargs = self._call
        words = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
        return f"{path}({', '.join(words)})"
