"""Ops of graphs as functions: relax.op.add(x, y), relax.op.nn.relu(x). Each gives a call that is not bound yet."""
import inspect as _inspect  # relax.op.inspect is ops
import sys
import types

from sator import _core, paths
from sator.relax.op_docs import DOCS
from sator.script.language import Name

__path__ = []  # TVM's modules below are found by sator.paths
_SIGNATURES = dict(_core.ops())


class Space:
    """Ops whose names begin alike: relax.op.nn."""

    def __init__(self, prefix):
        self._prefix = prefix

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = _named(f"{self._prefix}.{name}")
        if value is None:
            raise paths.missing(f"{__name__}.{self._prefix}", name, dir(self))
        setattr(self, name, value)
        return value

    def __dir__(self):
        begin = self._prefix + "."
        return sorted({n[len(begin):].split(".")[0] for n in _SIGNATURES if n.startswith(begin)})

    def __repr__(self):
        return f"<ops {self._prefix}.*>"


def _argument(value):
    """Functions of Python's stand for index maps: layout_transform(x, lambda n, c: (c, n))."""
    if isinstance(value, types.FunctionType):
        return _core.index_map(value, None)
    return value


def _named(path):
    """The op or the ops of a name, or None where R has none."""
    if path not in _SIGNATURES and not any(n == path or n.startswith(path + ".") for n in _core.graph_names()):
        return None
    if path not in _SIGNATURES and any(n.startswith(path + ".") for n in _SIGNATURES):
        return Space(path)
    call = Name("R." + path)

    def op(*args, **kwargs):
        return call(*map(_argument, args), **{k: _argument(v) for k, v in kwargs.items()})

    op.__name__, op.__qualname__, op.__module__ = path.split(".")[-1], path, __name__
    if path in _SIGNATURES:
        op.__signature__ = _signature(_SIGNATURES[path], _core.op_defaults(path))
    words = DOCS.get(path)
    op.__doc__ = f"{_SIGNATURES.get(path, path + '(...)')}: the call of the op R.{path}." + (f"\n\n{words}" if words else "")
    return op


def _signature(text, defaults):
    """Of "add(x1, x2)"; defaults: {parameter: what an op takes in its place}."""
    parameters = [word.partition("=") for word in text.partition("(")[2].rstrip(")").split(", ") if word]
    seen_default, out = False, []
    for name, has_default, default in parameters:
        kind = _inspect.Parameter.KEYWORD_ONLY if seen_default and not has_default else _inspect.Parameter.POSITIONAL_OR_KEYWORD
        seen_default |= bool(has_default)
        kind = out[-1].kind if out and out[-1].kind == _inspect.Parameter.KEYWORD_ONLY else kind
        out.append(_inspect.Parameter(name, kind, default=defaults.get(name) if has_default else _inspect.Parameter.empty))
    return _inspect.Signature(out)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    value = None if name in _SIGNATURES else paths.submodule(__name__, name)
    if value is None:
        value = _named(name)
    if value is None:
        raise paths.missing(__name__, name, __dir__())
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__():
    return sorted({n.split(".")[0] for n in _SIGNATURES})
