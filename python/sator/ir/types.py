"""Types: of scalars and pointers, and of what is made of other types. Two of the same parts are equal."""
from sator import _core


class Type:
    """What all types are."""

    _fields = ()

    def _text(self, language):
        return f"{type(self).__name__}()"

    def __eq__(self, other):
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self._fields)

    def __hash__(self):
        return hash((type(self).__name__, *(getattr(self, name) for name in self._fields)))

    def __repr__(self):
        return self._text("T")

    def _relax_script(self):
        """The type as a graph writes it."""
        return self._text("R")


class PrimType(Type):
    """The type of scalars of a dtype, which tir.Var takes as it takes the dtype."""

    _fields = ("dtype",)

    def __init__(self, dtype):
        self.dtype = str(dtype)

    def _variable(self, name):
        return _core.make_var(name, self.dtype, False)

    def _text(self, language):
        return f"T.{self.dtype}" if language == "T" else f'R.Prim("{self.dtype}")'


class PointerType(Type):
    """The type of pointers to elements of a PrimType: tir.Var("p", ir.PointerType(ir.PrimType("float32"), "shared"))."""

    _fields = ("element_type", "storage_scope")

    def __init__(self, element_type, storage_scope=""):
        if not isinstance(element_type, PrimType):
            raise TypeError(f"PointerType: {element_type!r} is a {type(element_type).__name__}\n  needs: ir.PrimType(dtype)")
        self.element_type, self.storage_scope = element_type, storage_scope

    def _variable(self, name):
        return _core.pointer(name, self.element_type.dtype, self.storage_scope or "global")

    def _text(self, language):
        scope = f', "{self.storage_scope}"' if self.storage_scope else ""
        return f'T.handle("{self.element_type.dtype}"{scope})'


class TupleType(Type):
    """The type of tuples, from the types of their items."""

    _fields = ("fields",)

    def __init__(self, fields):
        self.fields = _types("TupleType", "fields", fields)

    def _text(self, language):
        inside = ", ".join(t._text(language) for t in self.fields)
        return f"{language}.Tuple({inside})" if self.fields or language == "T" else "R.Tuple"


class FuncType(Type):
    """The type of functions, from the types of their parameters and of their result."""

    _fields = ("arg_types", "ret_type")

    def __init__(self, arg_types, ret_type):
        self.arg_types = _types("FuncType", "arg_types", arg_types)
        (self.ret_type,) = _types("FuncType", "ret_type", [ret_type])

    def _text(self, language):
        inside = ", ".join(t._text(language) for t in self.arg_types) + ("," if len(self.arg_types) == 1 else "")
        return f"{language}.Callable(({inside}), {self.ret_type._text(language)})"


def _types(call, name, values):
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, Type) for v in values):
        raise TypeError(f"{call}: {name} = {values!r} is a {type(values).__name__}\n  needs: {'a list of types' if name != 'ret_type' else 'a type'}")
    return tuple(values)
