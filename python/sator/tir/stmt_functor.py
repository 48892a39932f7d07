"""Walks over tensor programs."""
from sator import _core


def post_order_visit(stmt, fvisit):
    """Calls `fvisit` for every statement and expression of one, parts first, each once; what buffers are made of is not visited."""
    if not isinstance(stmt, _core.Object):
        raise TypeError(f"post_order_visit: {stmt!r} is a {type(stmt).__name__}\n  needs: a part of a program")
    seen, stack = set(), [(stmt, False)]
    while stack:
        part, is_done = stack.pop()
        if is_done:
            if isinstance(part, (_core.Stmt, _core.PrimExpr)):
                fvisit(part)
        elif part.handle() not in seen and not (isinstance(part, _core.tir.Buffer) and part is not stmt):
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


def ir_transform(stmt, preorder, postorder, only_enable=None):
    """The statement with nodes replaced.

    preorder      node -> what takes its place, whose parts are not visited, or None to go on
    postorder     node -> what takes its place, after its parts were rewritten, or None to keep it
    only_enable   names of the kinds of nodes that both are asked about, ["tir.For"]; all where it is None
    """
    kinds = None if only_enable is None else {name.split(".")[-1] for name in only_enable}
    done = {}

    def visit(node):
        if node.handle() not in done:
            done[node.handle()] = (rewritten(node), node)  # the node is kept, so that its handle stays its own
        return done[node.handle()][0]

    def rewritten(node):
        asked = kinds is None or type(node).__name__ in kinds
        if asked and preorder is not None:
            replaced = preorder(node)
            if replaced is not None:
                return replaced
        node = _core.map_children(node, visit)
        replaced = postorder(node) if asked and postorder is not None else None
        return node if replaced is None else replaced

    return visit(stmt)


def renew_defs(func):
    """The same function with variables and buffers of its own: nothing that it defines is defined elsewhere."""
    return _core.fresh_function(func)
