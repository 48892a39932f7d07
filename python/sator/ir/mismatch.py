"""The first place in which two programs differ, as a path to it from either."""
import functools

from sator import _core
from sator.extend import names_of_fields
from sator.ir.equality import structural_equal
from sator.runtime.object_path import ObjectPath

# What defines variables, by field.
_DEFINES = {"For": ["loop_var"], "IterVar": ["var"], "LetStmt": ["var"], "Let": ["var"], "Allocate": ["buffer_var"], "PrimFunc": ["params", "buffer_map"],
            "Function": ["params"], "VarBinding": ["var"], "MatchCast": ["var", "struct_info"], "Block": ["alloc_buffers", "match_buffers"]}
_UNSEEN = {"Buffer": ("name",), "Block": ("name", "name_hint")}  # by equality


def get_first_structural_mismatch(lhs, rhs, map_free_vars=False):
    """None where both state the same; else two ObjectPaths, to the first place in which they differ, from the left and the right side.

    map_free_vars   whether variables that nothing defines stand for each other too
    """
    if structural_equal(lhs, rhs, map_free_vars):
        return None
    root = ObjectPath.root()
    return _Walk(lhs, rhs, map_free_vars).differ(lhs, rhs, root, root) or (root, root)


class _Walk:
    def __init__(self, lhs, rhs, map_free_vars):
        self.defined = [_defined(lhs), _defined(rhs)]
        self.map_free_vars = map_free_vars
        self.of_left, self.of_right = {}, {}

    def differ(self, a, b, left, right):
        """The paths to the first difference of two values, or None."""
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return self.lists(a, b, left, right)
        if hasattr(a, "items") and hasattr(b, "items") and not (hasattr(a, "_fields") and a._fields):
            return self.maps(a, b, left, right)
        if not isinstance(a, _core.Object) or not isinstance(b, _core.Object):
            return None if type(a) is type(b) and (a is b or bool(a == b)) else (left, right)
        if type(a) is not type(b):
            return left, right
        if isinstance(a, (_core.tir.Var, _core.relax.Var)):
            return self.variables(a, b, left, right)
        if isinstance(a, _core.relax.Op):
            return None if a == b else (left, right)
        for field in names_of_fields(type(a)):
            x, y = getattr(a, field), getattr(b, field)
            if field in _UNSEEN.get(type(a).__name__, ()):
                continue
            if isinstance(a, _core.ir.IRModule) and field == "functions":
                x, y = ({_named(str(name)): func for name, func in funcs.items()} for funcs in (x, y))
            if found := self.differ(x, y, left.attr(field), right.attr(field)):
                return found
        return None

    def lists(self, a, b, left, right):
        for i, (x, y) in enumerate(zip(a, b)):
            if found := self.differ(x, y, left.array_index(i), right.array_index(i)):
                return found
        if len(a) == len(b):
            return None
        n = min(len(a), len(b))
        return tuple(path.array_index(n) if len(side) > n else path.missing_array_element(n) for side, path in ((a, left), (b, right)))

    def maps(self, a, b, left, right):
        keys = {self.key(k, self.of_right): k for k in b}
        for k, value in a.items():
            other = keys.pop(self.key(k, None), None)
            if other is None:
                return left.map_value(k), right.missing_map_entry()
            if found := self.differ(value, b[other], left.map_value(k), right.map_value(other)):
                return found
        return (left.missing_map_entry(), right.map_value(next(iter(keys.values())))) if keys else None

    def key(self, k, of_right):
        """What tells a key of either side: a variable of the right one is the one that it stands for."""
        if isinstance(k, (_core.tir.Var, _core.relax.Var)):
            return (of_right or {}).get(k.handle(), k.handle())
        return str(k) if isinstance(k, _core.Object) else k

    def variables(self, a, b, left, right):
        x, y = a.handle(), b.handle()
        if x in self.of_left or y in self.of_right:
            return None if self.of_left.get(x) == y else (left, right)
        free = x not in self.defined[0], y not in self.defined[1]
        if any(free) and not (all(free) and (x == y or self.map_free_vars)):
            return left, right
        for field in ("dtype", "struct_info"):
            if hasattr(a, field) and (found := self.differ(getattr(a, field), getattr(b, field), left.attr(field), right.attr(field))):
                return found
        self.of_left[x], self.of_right[y] = y, x
        return None


@functools.cache
def _named(name):
    """One variable for each name, so that paths through modules are equal."""
    return _core.make(_core.relax.GlobalVar, [name, None])


def _defined(program):
    """The handles of the variables that a program defines."""
    out = set()

    def all_of(value):
        for v in value if isinstance(value, (list, tuple)) else [*value.keys(), *value.values()] if hasattr(value, "items") else [value]:
            if isinstance(v, (_core.tir.Var, _core.relax.Var)):
                out.add(v.handle())
            info = getattr(v, "struct_info", None) if isinstance(v, _core.relax.Var) else v if not isinstance(v, _core.tir.Var) else None
            for child in _core.children(info) if isinstance(info, _core.Object) else ():
                all_of(child)

    def visit(node):
        for field in _DEFINES.get(type(node).__name__, ()):
            all_of(getattr(node, field))
        for child in _core.children(node):
            visit(child)

    for part in program if isinstance(program, (list, tuple)) else [program]:
        if isinstance(part, _core.ir.IRModule):
            for func in part.functions.values():
                visit(func)
        elif isinstance(part, _core.Object):
            visit(part)
    return out
