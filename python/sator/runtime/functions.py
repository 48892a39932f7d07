"""Functions of Python's that compiled programs call by name."""
from sator import _core


def register_func(func_name, f=None, override=False):
    """Gives a function a name by which programs call it, R.call_packed("name", ...); as a decorator too.

    It gets tensors as NDArray, and returns a tensor, a number, a text, a list or None. Machines made afterwards know it.
    Errors: the name is taken, and `override` is not set.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)

    def register(function):
        if not callable(function):
            raise TypeError(f"register_func: {function!r} is a {type(function).__name__}\n  needs: a function")
        _core.register_func(func_name, function, override)
        return function

    return register if f is None else register(f)


def get_global_func(name, allow_missing=False):
    """The function of a name. Errors: ValueError where there is none, and none is not allowed."""
    found = _core.registered_func(name)
    if found is None and not allow_missing:
        raise ValueError(f"no function is registered as {name}\n  needs: sator.register_func({name!r}, f) before")
    return found


def list_global_func_names():
    """The names of all registered functions, sorted."""
    return _core.registered_funcs()


def remove_global_func(name):
    """Takes a function's name away; programs that call it fail from now on. Errors: ValueError where there is none."""
    if not _core.remove_func(name):
        raise ValueError(f"no function is registered as {name}\n  needs: one of list_global_func_names()")


class _OfFunctions(type):
    def __instancecheck__(cls, value):
        return super().__instancecheck__(value) or any(value is _core.registered_func(name) for name in _core.registered_funcs())


class PackedFunc(metaclass=_OfFunctions):
    """What programs call and what calls programs: functions of a built module, and Python's that register_func gave a name."""
