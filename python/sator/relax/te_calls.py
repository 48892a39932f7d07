"""Functions over te's tensors, called with expressions of graphs."""
from sator import _core


def te_call(core, name, func, args, kwargs):
    """The call_tir of the program that `func` defines: expressions of graphs among the arguments, in lists and dictionaries
    too, become te's tensors, and those of symbolic sizes expressions of the program's own sizes."""
    given = []

    def taken(value):
        if _is_of_graph(value):
            given.append(value)
            return _Place(len(given) - 1)
        if isinstance(value, (list, tuple)) and _has_any(value):
            return [taken(v) for v in value]
        if isinstance(value, dict) and _has_any(value):
            return {k: taken(v) for k, v in value.items()}
        return value

    def put(value, tensors):
        if isinstance(value, _Place):
            return tensors[value.index]
        if isinstance(value, dict):
            return {k: put(v, tensors) for k, v in value.items()}
        return [put(v, tensors) for v in value] if isinstance(value, list) else value

    places, named = [taken(a) for a in args], {k: taken(v) for k, v in kwargs.items()}
    return core.call_te(name, given, lambda tensors: func(*(put(p, tensors) for p in places),
                                                          **{k: put(p, tensors) for k, p in named.items()}))


def _is_of_graph(value):
    return isinstance(value, _core.RelaxExpr) or isinstance(value, _core.PrimExpr) and bool(_core.undefined_vars(value))


def _has_any(values):
    """Whether an expression of graphs is among these, or in a list or dictionary among them."""
    values = values.values() if isinstance(values, dict) else values
    return any(_has_any(v) if isinstance(v, (list, tuple, dict)) else _is_of_graph(v) for v in values)


class _Place:
    def __init__(self, index):
        self.index = index
