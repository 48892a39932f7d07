"""Walks over tensor programs."""
from sator import _core


def post_order_visit(node, visit):
    """Calls `visit` for every node of a statement or expression, children first, each once."""
    seen, stack = set(), [(node, False)]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            visit(part)
        elif part.handle() not in seen:
            seen.add(part.handle())
            stack.append((part, True))
            stack.extend((child, False) for child in reversed(_core.children(part)))


def pre_order_visit(node, visit):
    """Calls `visit` for every node, parents first; where it gives False, the node's children are left out."""
    if visit(node) is not False:
        for child in _core.children(node):
            pre_order_visit(child, visit)


def substitute(node, vmap):
    """The expression or statement with values in the places of variables: vmap is {variable: value}."""
    return _core.substitute(node, dict(vmap))
