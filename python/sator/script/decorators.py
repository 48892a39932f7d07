"""The decorators: they read a function's source, and ask Python for the names that the program does not define."""
import inspect
import linecache
import sys
import textwrap
import types

import sator.relax
import sator.tir  # noqa: F401  (these give nodes their methods)
from sator import _core
from sator.script.macros import written_out


def parse(program, extra_vars=None, check_well_formed=True):
    """The program of a text: a module where it is a class or several functions, else the function.

    program       TVMScript
    extra_vars    {name: value} that the text may use
    Errors: DiagnosticError with line and column.
    """
    if not isinstance(extra_vars, (dict, type(None))):
        raise TypeError(f"parse: extra_vars = {extra_vars!r} is a {type(extra_vars).__name__}\n  needs: a dictionary {{name: value}}")
    source, names = written_out(program, dict(extra_vars or {}))
    module = _core.parse(source, "", lambda name: (names[name],) if name in names else None, {}, check_well_formed)
    is_module = any(line.startswith("class ") for line in source.splitlines())
    functions = module.functions
    return next(iter(functions.values())) if len(functions) == 1 and not is_module else module


def from_source(source, **options):
    """As parse."""
    return parse(source, **options)


def ir_module(cls=None, *, check_well_formed=True):
    """Makes a module of a class whose functions are decorated with T.prim_func or R.function."""

    def decorate(cls):
        if not inspect.isclass(cls):
            raise TypeError(f"I.ir_module decorates a class, not a {type(cls).__name__}\n  needs: a class of functions")
        return _read(cls, sys._getframe(1 if from_call else 2), check_well_formed)

    from_call = cls is None
    return decorate if from_call else decorate(cls)


def prim_func(func=None, *, private=False, check_well_formed=True, s_tir=False):
    """Makes a tensor program of a function: an object of tir.PrimFunc. Inside of a module's class it leaves the function as it is."""
    return _function(func, check_well_formed)


def function(func=None, *, pure=True, private=False, check_well_formed=True):
    """Makes a graph of a function: an object of relax.Function. Inside of a module's class it leaves the function as it is."""
    return _function(func, check_well_formed)


def _function(func, check_well_formed):
    from_call = func is None

    def decorate(func):
        if not inspect.isfunction(func):
            raise TypeError(f"the decorator makes a program of a function, not of a {type(func).__name__}\n  needs: a function")
        frame = sys._getframe(1 if from_call else 3)
        if _is_module_body(frame):
            return func
        module = _read(func, frame, check_well_formed)
        functions = module.functions
        return functions[func.__name__] if func.__name__ in functions else next(iter(functions.values()))  # it has another global_symbol

    return decorate if from_call else decorate(func)


def _is_module_body(frame):
    """Whether the frame is the body of a class that is decorated as a module."""
    if "__qualname__" not in frame.f_locals or "__module__" not in frame.f_locals:
        return False
    line = frame.f_code.co_firstlineno
    while True:
        text = linecache.getline(frame.f_code.co_filename, line, frame.f_globals).strip()
        if not text.startswith("@"):
            return False
        if "ir_module" in text:
            return True
        line += 1


def _read(thing, frame, check_well_formed):
    """The module of a function's or a class's source."""
    try:
        lines, first, file = _class_source(thing, frame) or (*inspect.getsourcelines(thing), inspect.getsourcefile(thing) or "")
    except (OSError, TypeError):
        raise _no_source(thing) from None
    # Empty lines before, so that errors name the file's lines.
    text = "\n" * (first - 1) + textwrap.dedent("".join(lines))
    indent = len(lines[0]) - len(lines[0].lstrip())
    text, names = written_out(text, _names_around(thing, frame))
    languages = {name: value._language for name, value in names.items()
                 if isinstance(getattr(value, "_language", None), str) and isinstance(value, types.ModuleType)}
    languages.update(_decorators_by_name(names))
    return _core.parse(text, file, _lookup(names), languages, check_well_formed, True, indent)


def _class_source(thing, frame):
    """Lines, the number of the first and the file of a class, by the code that made it: in a notebook's cell classes have no file."""
    if not inspect.isclass(thing):
        return None
    bodies = [c for c in frame.f_code.co_consts if inspect.iscode(c) and c.co_name == thing.__name__ and c.co_firstlineno <= frame.f_lineno]
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    if not bodies or not lines:
        return None
    first = max(c.co_firstlineno for c in bodies)
    return inspect.getblock(lines[first - 1:]), first, frame.f_code.co_filename


def _no_source(thing):
    from sator.error import DiagnosticError

    return DiagnosticError(f"error: the source of {thing.__name__} cannot be read\n  needs: a function in a file or a notebook's "
                           "cell\n  hint:  give the text to sator.script.parse")


def _names_around(thing, frame):
    """What the source may name: globals, the variables of the functions around, what a function has captured."""
    names = dict(frame.f_globals)
    scopes = []
    outer = frame
    while outer is not None and outer.f_globals is frame.f_globals:
        scopes.append(outer.f_locals)
        outer = outer.f_back
    for scope in reversed(scopes):
        names.update(scope)
    if inspect.isfunction(thing):
        names.update(inspect.getclosurevars(thing).nonlocals)
    return names


def _decorators_by_name(names):
    """Decorators that were imported by themselves: `from sator.script.tir import prim_func`."""
    meanings = {ir_module: "I.ir_module", prim_func: "T.prim_func", function: "R.function"}
    return {name: meanings[value] for name, value in names.items() if inspect.isfunction(value) and value in meanings}


_BUILTINS = {"min": min, "max": max, "len": len, "sum": sum, "int": int, "float": float, "str": str, "abs": abs, "bool": bool,
             "list": list, "tuple": tuple, "zip": zip, "enumerate": enumerate}
_READ_BY_THE_COMPILER = {"range", "len", "cls"}


def _lookup(names):
    def find(name):
        if name in names:
            return (names[name],)
        if name in _BUILTINS and name not in _READ_BY_THE_COMPILER:
            return (_BUILTINS[name],)
        return None

    return find
