"""Classes of the extension with methods written here."""


def extends(cls):
    """Adds what a class body defines to the class `cls` of the extension, and is that class.

        @extends(_core.tir.PrimFunc)
        class PrimFunc:
            def with_attr(self, key, value): ...
    """

    def add(body):
        for name, value in vars(body).items():
            if name not in ("__dict__", "__weakref__", "__slots__", "__qualname__"):
                setattr(cls, name, value)
        return cls

    return add


def add_constructors(space):
    """Gives every class of nodes in `space` a constructor that takes its fields, by position or by name."""
    from sator import _core

    for cls in list(vars(space).values()):
        if isinstance(cls, type) and hasattr(cls, "_kind") and "__init__" not in vars(cls):
            setattr(cls, "__init__", _constructor(cls, _core))


def _constructor(cls, core):
    fields = cls._fields

    def __init__(self, *args, **kwargs):
        names = _names(cls)
        given = dict(zip(fields, args))
        for key, value in kwargs.items():
            if key in ("span",):
                continue
            if names.get(key) is None or names[key] in given:
                raise TypeError(f"{cls.__name__} has no field {key}\n  needs: {cls.__name__}({', '.join(fields)})")
            given[names[key]] = value
        for name, value in getattr(cls, "_defaults", {}).items():
            given.setdefault(name, value)
        if "sinfo" in fields:
            given.setdefault("sinfo", None)
        missing = [f for f in fields if f not in given]
        if missing or len(args) > len(fields):
            raise TypeError(f"{cls.__name__}: missing {', '.join(missing) or 'nothing'}, given {len(args)} by position"
                            f"\n  needs: {cls.__name__}({', '.join(fields)})")
        core.Object.__init__(self, core.make(cls, [given[f] for f in fields]))

    __init__.__doc__ = f"{cls.__name__}({', '.join(fields)})"
    return __init__


def _names(cls):
    """Field by each of its names."""
    properties = {name: value for name, value in vars(cls).items() if isinstance(value, property)}
    fields = {properties[f].fget: f for f in cls._fields}
    return {name: fields[p.fget] for name, p in properties.items() if p.fget in fields}
