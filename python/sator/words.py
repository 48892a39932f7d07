"""Errors of calls into the compiler in words: which argument is what, and what it needs."""
import functools
import re
import sys

_TYPES = {"str": "a text", "int": "an integer", "float": "a number", "bool": "True or False", "list": "a list", "dict": "a dictionary",
          "Object": "a part of a program", "object": "a value", "Mapping": "a dictionary", "Sequence": "a list", "NDArray": "a tensor",
          "Tensor": "a tensor of te", "None": "None"}


def wrap(module):
    """Gives the functions and methods of the extension errors in words. Called once, when it is loaded."""
    for name, value in list(vars(module).items()):
        kind = type(value).__name__
        if kind == "nb_func":
            setattr(module, name, _spoken(value))
        elif kind == "module" and value.__name__.startswith(module.__name__):
            wrap(value)
        elif isinstance(value, type) and value.__module__.startswith("sator"):
            _wrap_class(value)


def _wrap_class(cls):
    for name, value in list(vars(cls).items()):
        # Operators give other types their turn; nanobind sees to that.
        if type(value).__name__ in ("nb_method", "nb_func") and (name == "__init__" or not name.startswith("__")):
            setattr(cls, name, _spoken(value))


def _spoken(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            words = str(error)
            if "incompatible function arguments" in words:
                raise TypeError(_in_words(words, args, kwargs)) from None
            if "needs:" in words or error.__traceback__.tb_next is not None:  # in words already, or what a callback raised
                raise
            name = _caller() or getattr(function, "__name__", "the call")
            raise TypeError(f"{name}: {words}\n  needs: a value that {name} takes\n  hint:  help({name}) says what each argument is") from None

    call.__nb_signature__ = getattr(function, "__nb_signature__", None)  # which type stubs are made of
    return call


def make(cls, *args):
    """An object of a class of the extension: nanobind makes it without asking the class's `__init__`, which `wrap` wraps."""
    try:
        return cls(*args)
    except TypeError as error:
        words = str(error)
        if "incompatible function arguments" not in words:
            raise
        raise TypeError(_in_words(words, (None, *args), {})) from None


def _in_words(words, args, kwargs):
    """From nanobind's `NAME(): incompatible function arguments...  1. NAME(PARAMETER: TYPE, ...) -> ...`."""
    written = re.search(r"\n {4}1\. (\w+)\((.*)\) -> ", words)
    parameters = _parameters(written.group(2)) if written else []
    caller = _caller() or (written.group(1) if written else "the call")
    given = list(zip(parameters, args)) + [(p, kwargs[p[0]]) for p in parameters if p[0] in kwargs]
    for (name, kinds), value in given:
        if name != "self" and kinds and not any(_is(value, kind) for kind in kinds):
            shown = repr(value)[:80]
            if isinstance(value, str) and "str" in kinds:
                return (f"{caller}: {shown} holds half of a surrogate pair, which no text in UTF-8 does\n  needs: a text of characters\n"
                        "  hint:  text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') makes it one")
            what = f"{caller}: {'' if name.startswith('arg') else name + ' = '}{shown} is a {type(value).__name__}"
            return f"{what}\n  needs: {' or '.join(_TYPES.get(k, k) for k in kinds)}"
    names = ", ".join(name for name, _ in parameters if name != "self")
    return f"{caller}: {len(args)} arguments, and by name {', '.join(kwargs) or 'none'}\n  needs: ({names})"


def _parameters(text):
    """[(name, [the last part of each type])] of a signature as nanobind writes it."""
    depth, parts, start = 0, [], 0
    for i, c in enumerate(text + ","):
        depth += (c in "[(") - (c in "])")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    out = []
    for part in parts:
        if part in ("/", "*", ""):
            continue
        name, _, kind = part.split(" = ")[0].partition(": ")
        out.append((name.lstrip("*"), [] if part.startswith("*") or not kind else [re.sub(r"\[.*", "", k).split(".")[-1] for k in kind.split(" | ")]))
    return out


def _is(value, kind):
    if kind == "object":
        return value is not None
    if kind in ("int", "float") and isinstance(value, (int, float)) and not isinstance(value, str):
        return kind == "float" or isinstance(value, int)
    if kind == "str" and isinstance(value, str):
        return not any("\ud800" <= c <= "\udfff" for c in value)
    if kind == "None":
        return value is None
    return any(cls.__name__ == kind for cls in type(value).__mro__) or kind in ("Mapping", "Sequence", "Callable") and value is not None


def _caller():
    """What the user called: the outermost function of this package below his own code."""
    frame, found = sys._getframe(3), None
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sator."):
        code = frame.f_code
        owner = frame.f_locals.get("self")
        if not code.co_name.startswith("<") and frame.f_globals["__name__"] != "sator.answers":
            found = type(owner).__name__ if code.co_name == "__init__" and owner is not None else code.co_name
        frame = frame.f_back
    return None if found == "call" else found
