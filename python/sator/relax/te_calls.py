"""Functions over te's tensors, called with expressions of graphs."""
from sator import _core


def te_call(core, name, func, args, kwargs):
    """The call_tir of the program that `func` defines: expressions of graphs among the arguments become te's tensors, and those of symbolic
    sizes expressions of the program's own sizes."""
    given = []

    def taken(value):
        if _is_of_graph(value):
            given.append(value)
            return _Place(len(given) - 1)
        if isinstance(value, (list, tuple)) and any(map(_is_of_graph, value)):
            return [taken(v) for v in value]
        return value

    def put(value, tensors):
        if isinstance(value, _Place):
            return tensors[value.index]
        return [put(v, tensors) for v in value] if isinstance(value, list) else value

    places, named = [taken(a) for a in args], {k: taken(v) for k, v in kwargs.items()}
    return core.call_te(name, given, lambda tensors: func(*(put(p, tensors) for p in places),
                                                          **{k: put(p, tensors) for k, p in named.items()}))


def _is_of_graph(value):
    return isinstance(value, _core.RelaxExpr) or isinstance(value, _core.PrimExpr) and bool(_core.undefined_vars(value))


class _Place:
    def __init__(self, index):
        self.index = index
