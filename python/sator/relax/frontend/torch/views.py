"""Tensors that are changed in place: who else sees the change."""
from sator.error import TVMError

# Functions and methods whose result lies in the memory of their first argument.
_VIEWS = {"view", "reshape", "flatten", "permute", "transpose", "swapaxes", "t", "squeeze", "unsqueeze", "expand", "getitem", "chunk", "split", "narrow",
          "select", "unbind", "unflatten", "detach", "contiguous", "view_as", "slice", "alias", "expand_as", "reshape_as", "split_with_sizes", "Flatten", "Unflatten", "Identity"}
_OPERATORS = {"iadd", "isub", "imul", "itruediv", "ifloordiv", "iand", "ior", "ixor"}
_APART = {"topk", "sort", "max", "min"}  # their results are tensors of their own
_PURE = {"and_", "or_", "not_", "is_"}  # of Python's module operator


class Views:
    """Which nodes of a graph share their elements, and where each is used last. `called`: the name of what a node calls."""

    def __init__(self, nodes, called):
        self._called = called
        self._order, self._last, self._owner = {}, {}, {}
        for at, node in enumerate(nodes):
            self._order[node] = at
            for used in _nodes_in([node.args, node.kwargs]):
                self._last[used] = at

    def changed_by(self, node, modules):
        """The node whose tensor a node changes, or None. Errors: a view of it, or what it is a view of, is used behind this node."""
        first = node.args[0] if node.args and is_node(node.args[0]) else None
        if first is None:
            return None
        name = self._called(node)
        module = modules.get(node.target) if node.op == "call_module" else None
        is_call = node.op in ("call_method", "call_function")
        if not (is_call and (name.endswith("_") and not name.endswith("__") and name not in _PURE or name in _OPERATORS)
                or node.kwargs.get("inplace") is True or getattr(module, "inplace", False) is True):
            is_part = not (name == "getitem" and self._called(first) in _APART)
            if is_part and (type(module).__name__ if module is not None else name) in _VIEWS:
                self._owner[node] = self._owner.get(first, first)
            return None
        owner, at = self._owner.get(first, first), self._order[node]
        for other in self._order:
            if other not in (first, node) and self._owner.get(other, other) is owner and self._order[other] < at < self._last.get(other, -1):
                raise TVMError(f"error: node {node.name}: {name} changes {first.name} in place, and {other.name}, which shares its elements, is used "
                               "later\n  needs: no view of a tensor that is changed\n  hint:  use the result of a function that is not in place"
                               "; of torch.export: run_ep_decomposition=True")
        self._owner[node] = owner
        return first


def is_node(arg):
    return hasattr(arg, "op") and hasattr(arg, "target") and hasattr(arg, "args")


def _nodes_in(value):
    if is_node(value):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _nodes_in(item)
    elif isinstance(value, dict):
        yield from _nodes_in(list(value.values()))
    elif isinstance(value, slice):
        yield from _nodes_in([value.start, value.stop, value.step])
