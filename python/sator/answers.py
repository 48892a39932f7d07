"""Errors of this package's own functions in words: what Python says under a function that took an argument for something else.

    AttributeError: 'NoneType' object has no attribute 'struct_info'

becomes the same exception with the call, its arguments and the first sentence of its help. Only where the user's own code made the call, and where
a line of this package raised it: what a callback of the user's raises arrives as it was raised.
"""
import enum
import functools
import importlib.abc
import importlib.machinery
import opcode
import sys
import types

# Where frames count (the decorators look for the caller's variables), or calls are many and the user's own.
_AS_THEY_ARE = ("sator.script", "sator.relax.expr_functor", "sator.words", "sator.answers", "sator.paths", "sator.refused", "sator.extend", "sator.error",
                "sator.compat", "sator.relax.operators")
_DUNDERS = ("__init__", "__call__", "__getitem__", "__setitem__", "__contains__", "__delitem__", "__and__", "__or__", "__xor__", "__rshift__")


def spoken(function):
    """The function with errors in words."""
    if isinstance(function, staticmethod):
        return staticmethod(spoken(function.__func__))
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (TypeError, AttributeError, LookupError, ValueError, ArithmeticError) as error:
            if type(error) not in _CLASSES or "needs:" in str(error) or _is_ours(sys._getframe(1)) or not _raised_by_us(error):
                raise
            raise _CLASSES[type(error)](_in_words(function, args, kwargs, error)) from error

    return call


_CLASSES = {**{c: c for c in (TypeError, AttributeError, IndexError, ValueError)},
            **{c: ValueError for c in (UnicodeEncodeError, OverflowError, ZeroDivisionError)}}
_RAISE = opcode.opmap["RAISE_VARARGS"]
# Under whose functions an error of ours may be raised.
_LIBRARIES = {*sys.stdlib_module_names, "numpy", "ml_dtypes"} - {"__main__"}


def _is_ours(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0] == "sator"


def _raised_by_us(error):
    """Whether an error arose under lines of this package: in one of them, or in a library that it called.

    One without such lines is about the number of arguments; what a line raises on purpose has its own words.
    """
    at, last = error.__traceback__.tb_next, None
    while at is not None:
        root = at.tb_frame.f_globals.get("__name__", "").partition(".")[0]
        if root != "sator" and root not in _LIBRARIES:
            return False
        at, last = at.tb_next, at
    return last is not None and not (_is_ours(last.tb_frame) and last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE)


def _in_words(function, args, kwargs, error):
    is_method = "." in function.__qualname__.replace("<locals>.", "")
    shown = [_short(a) for a in args[is_method:]] + [f"{k}={_short(v)}" for k, v in kwargs.items()]
    name = function.__qualname__.removesuffix(".__init__").lstrip("_")
    does = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
    return (f"{name}({', '.join(shown)}): {error}\n  needs: {name}{_parameters(function, is_method)}\n"
            f"  hint:  help({name}) says what each is" + (f": {does}" if does else ""))


def _parameters(function, is_method):
    """`(x, axis=None)`, without the object of a method."""
    import inspect

    taken = inspect.signature(function)
    return str(taken.replace(parameters=list(taken.parameters.values())[is_method:], return_annotation=taken.empty))


def _short(value):
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  (the value is the user's)
        text = type(value).__name__
    text = " ".join(text.split())
    return text if len(text) <= 40 else f"{text[:37]}..."


def give_words(space, module):
    """Wraps what `module` defines among the names of a module or class."""
    for name, value in list(vars(space).items()):
        is_public = not name.startswith("_") or isinstance(space, type) and name in _DUNDERS or isinstance(value, type)
        if not is_public or getattr(getattr(value, "__func__", value), "__module__", None) != module:
            continue
        if isinstance(value, (types.FunctionType, staticmethod)):
            setattr(space, name, spoken(value))
        elif isinstance(value, type) and not isinstance(space, type) and not issubclass(value, (enum.Enum, tuple, BaseException)):
            give_words(value, module)


class _Loader(importlib.abc.Loader):
    def __init__(self, loader):
        self._loader = loader

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        give_words(module, module.__name__)

    def __getattr__(self, name):  # what inspect and linecache ask a loader for
        return getattr(self._loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("sator.") or name == "sator._core" or name.startswith(_AS_THEY_ARE):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader)
        return spec


def install():
    """From now on, for every module of this package."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
