"""Modules: functions by name."""
from sator import _core
from sator.extend import extends

_functions = _core.ir.IRModule.functions.fget


class FunctionName(str):
    """The name of a function of a module: a text that also answers as relax.GlobalVar does."""

    __slots__ = ()
    name_hint = property(str)
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other.name_hint if isinstance(other, _core.relax.GlobalVar) else other)

    def __ne__(self, other):
        return str.__ne__(self, other.name_hint if isinstance(other, _core.relax.GlobalVar) else other)


@extends(_core.ir.IRModule)
class IRModule:
    """Functions by name. What the compiler holds is never changed; this object may come to hold another module.

    functions          {name: tir.PrimFunc or relax.Function}
    type_definitions   of TVM, for Relay's types: None
    attrs              {name: value}
    """

    __module__ = "sator.ir.module"

    def __init__(self, functions=None, type_definitions=None, attrs=None, global_infos=None):
        if type_definitions:
            raise TypeError(f"IRModule: type_definitions = {type_definitions!r}\n  needs: None, types are not defined\n  hint:  IRModule(functions, attrs={{...}})")
        if functions is not None and not hasattr(functions, "items"):
            raise TypeError(f"IRModule: {functions!r} is a {type(functions).__name__}\n  needs: a dictionary {{name: function}}")
        named = {_name_of(key): func for key, func in (functions or {}).items()}
        _core.Object.__init__(self, _core.module(named, attrs, global_infos))

    @staticmethod
    def from_expr(expr, functions=None):
        """A module of one function, called `main` unless the function says otherwise, and of the others in `functions`, {name: function}."""
        return IRModule({**(functions or {}), expr.attrs.get("global_symbol", "main"): expr})

    @property
    def functions(self):
        """The functions by name, in the order of the names."""
        return _Functions({FunctionName(name): func for name, func in _functions(self).items()})

    def functions_items(self):
        """The functions as a list of (name, function), in the order of the names."""
        return list(self.functions.items())

    def items(self):
        """The functions as (name, function)."""
        return self.functions.items()

    def keys(self):
        """The names."""
        return self.functions.keys()

    def values(self):
        """The functions."""
        return self.functions.values()

    def get(self, name, default=None):
        """The function of a name, or `default`."""
        return self.functions.get(_name_of(name), default)

    def __getitem__(self, name):
        return self.functions[_name_of(name)]

    def __delitem__(self, name):
        """Takes a function out, in this object. Errors: there is no such function."""
        self[name]
        self._become(_core.module({n: f for n, f in self.functions.items() if n != _name_of(name)}, self.attrs, self.global_infos))

    def __setitem__(self, name, func):
        self.update_func(name, func)

    def __contains__(self, name):
        return _name_of(name) in self.functions

    def __len__(self):
        return len(self.functions)

    def __iter__(self):
        return iter(self.functions)

    def get_global_vars(self):
        """The names of all functions, as relax.GlobalVar."""
        return [self.get_global_var(name) for name in self.functions]

    def get_global_var(self, name):
        """The name of a function as it stands in calls. Errors: there is no such function."""
        return _core.global_var(name, self[name])

    def update_func(self, var, func):
        """Adds a function, or replaces the one of that name, in this object. `var`: a GlobalVar or a name."""
        self._become(_core.module({**self.functions, _name_of(var): func}, self.attrs, self.global_infos))

    def update(self, other):
        """Adds the functions of another module or dictionary, in this object."""
        functions = other.functions if isinstance(other, IRModule) else {_name_of(k): v for k, v in other.items()}
        self._become(_core.module({**self.functions, **functions}, self.attrs, self.global_infos))

    def clone(self):
        """Another object of the same module."""
        return _core.module(self.functions, self.attrs, self.global_infos)

    def get_attr(self, attr_key):
        """The attribute of a name, or None."""
        return self.attrs.get(attr_key)

    def update_global_info(self, name, global_info):
        """Adds an entry of global_infos, a list such as [VDevice("llvm")], or replaces the one of that name, in this object."""
        self._become(_core.module(self.functions, self.attrs, {**self.global_infos, name: list(global_info)}))

    def without_attr(self, attr_key):
        """The module without an attribute. This object stays as it is."""
        return _core.with_attr(self, attr_key, None)

    def with_attr(self, attr_key, attr_value):
        """The module with an attribute. This object stays as it is."""
        return _core.with_attr(self, attr_key, attr_value)

    def with_attrs(self, attr_map):
        """The module with the attributes of a dictionary. This object stays as it is."""
        out = self
        for key, value in attr_map.items():
            out = _core.with_attr(out, key, value)
        return out


class _Functions(dict):
    """Functions by name; the name may be a relax.GlobalVar."""

    def __missing__(self, key):
        name = _name_of(key)
        if name is not key and name in self:
            return self[name]
        raise ValueError(f"the module has no function {name}\n  needs: one of {', '.join(self) or 'none: it is empty'}")


def _name_of(key):
    if not isinstance(key, str) and not hasattr(key, "name_hint"):
        raise TypeError(f"{key!r} is a {type(key).__name__}\n  needs: the name of a function")
    return str(getattr(key, "name_hint", key))
