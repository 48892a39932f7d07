"""Any node as JSON: each once, by number, so that variables that are one stay one. Modules and functions stand as TVMScript in save_json instead.

    {"sator": 1, "kind": "Add", "nodes": [["tir.Var", ["n", ...]], ["tir.Add", [{"node": 0}, ...]]]}     the last node is the whole
"""
import base64

from sator import _core


def nodes_of(root):
    """The nodes below a node, those that others need first, and itself: [class, [value of each field]]."""
    numbers, rows = {}, []
    stack = [(root, None)]
    while stack:
        node, fields = stack.pop()
        if node.handle() in numbers:
            continue
        if fields is None:
            fields = _core.fields(node)
            stack.append((node, fields))
            stack.extend((n, None) for value in fields for n in _nodes_in(value))
        else:
            numbers[node.handle()] = len(rows)
            cls = type(node)
            rows.append([f"{cls.__module__.split('.')[1]}.{cls.__name__}", [_to_json(v, numbers) for v in fields]])
    return rows


def node_from(rows):
    """The last node of nodes_of's. Errors: ValueError for what is no such list."""
    made = []
    for name, fields in rows:
        space, _, kind = name.partition(".")
        cls = getattr(getattr(_core, space, None), kind, None)
        if not isinstance(cls, type):
            raise ValueError(f"there is no node {name}\n  needs: a text that sator.ir.save_json wrote")
        try:
            made.append(_core.make(cls, [_from_json(v, made) for v in fields]))
        except (IndexError, KeyError, TypeError) as error:
            raise ValueError(f"{name} is made of other parts: {error}\n  needs: a text that sator.ir.save_json wrote") from None
    return made[-1]


def _nodes_in(value):
    if isinstance(value, _core.Object):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nodes_in(key)
            yield from _nodes_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _nodes_in(item)


def _to_json(value, numbers):
    if isinstance(value, _core.Object):
        return {"node": numbers[value.handle()]}
    if isinstance(value, _core.NDArray):
        array = value.numpy()
        return {"array": base64.b64encode(array.tobytes()).decode(), "dtype": value.dtype, "shape": list(array.shape)}
    if isinstance(value, dict):
        return {"items": [[_to_json(k, numbers), _to_json(v, numbers)] for k, v in value.items()]}
    if isinstance(value, (list, tuple)):
        items = [_to_json(v, numbers) for v in value]
        if items and all(isinstance(v, tuple) and len(v) == 2 for v in value):
            return {"items": items}
        return items
    return value


def _from_json(value, made):
    if isinstance(value, list):
        return [_from_json(v, made) for v in value]
    if not isinstance(value, dict):
        return value
    if "node" in value:
        return made[value["node"]]
    if "array" in value:
        import numpy

        from sator import nd

        out = nd.empty(value["shape"], value["dtype"])
        flat = numpy.frombuffer(base64.b64decode(value["array"]), dtype=out.numpy().dtype)
        return out.copyfrom(flat.reshape(value["shape"]))
    return {_from_json(k, made): _from_json(v, made) for k, v in value["items"]}
