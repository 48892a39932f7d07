"""Whether two programs are the same, and where they first differ."""
import keyword
import re

from sator import _core
from sator.ir.types import Type


def structural_equal(lhs, rhs, map_free_vars=False):
    """Whether two programs, expressions, types, tensors, or lists and dictionaries of them state the same: names do not matter,
    definitions are matched by position, tensors by their elements."""
    if isinstance(lhs, Type):
        return lhs == rhs
    lhs, rhs = _program(lhs), _program(rhs)
    return type(lhs) is type(rhs) and _core.structural_equal(lhs, rhs, map_free_vars)


def structural_hash(node, map_free_vars=False):
    """Equal programs have equal hashes, those that are equal up to their free variables too."""
    return _core.structural_hash(_program(node))


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Does nothing where two programs are the same.
    Errors: ValueError that shows the first line in which they differ, underlined in both, and the path to the place.
    """
    if structural_equal(lhs, rhs, map_free_vars):
        return
    if isinstance(lhs, Type):
        raise ValueError(f"the types differ\n  left:  {lhs}\n  right: {rhs}")
    lhs, rhs = _program(lhs), _program(rhs)
    if type(lhs) is not type(rhs):
        raise ValueError(f"the left side is a {type(lhs).__name__}, the right side a {type(rhs).__name__}")
    from sator.ir.mismatch import get_first_structural_mismatch

    place = get_first_structural_mismatch(lhs, rhs, map_free_vars)
    named = f" at {place[0]}" if place and len(place[0]) > 1 else ""
    raise ValueError(f"the programs differ{named}" + first_difference(lhs.script(), rhs.script()))


_TOKEN = re.compile(r"""(?P<name>(?<![\w.])[A-Za-z_]\w*(?![\w=(]|=\S))|"[^"]*"|\w+|\S""")
_WORDS = {"T", "R", "I", "cls", *keyword.kwlist}


def first_difference(left, right):
    """The first line in which two programs differ, from both, each with the difference underlined. Names of variables do not count
    as long as one side's stand for the other's."""
    a, b = left.splitlines(), right.splitlines()
    pairs = list(enumerate(zip(a + [""] * len(b), b + [""] * len(a)), 1))
    names, back = {}, {}
    for number, (x, y) in pairs:
        at = _differs(x, y, names, back)
        if at is not None:
            return _underlined(number, (x, at[0]), (y, at[1]))
    for number, (x, y) in pairs:
        if x != y:
            column = next((i for i, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
            return _underlined(number, (x, column), (y, column))
    return ": their texts are the same, so what differs is not printed (a span, a free variable, the order of attributes)"


def _differs(x, y, names, back):
    """Where two lines differ, a column of each, or None. Learns which names stand for which."""
    left, right = list(_TOKEN.finditer(x)), list(_TOKEN.finditer(y))
    for s, t in zip(left, right):
        a, b = s.group(), t.group()
        both = s["name"] and t["name"] and a not in _WORDS and b not in _WORDS
        if (names.setdefault(a, b) != b or back.setdefault(b, a) != a) if both else a != b:
            return s.start(), t.start()
    if len(left) == len(right):
        return None
    n = min(len(left), len(right))
    return tuple(side[n].start() if n < len(side) else len(line) for side, line in ((left, x), (right, y)))


def _underlined(number, left, right):
    return "".join(f"\n  {side}, line {number}\n  |  {line}\n  |  {' ' * column}{'^' * max(1, len(line) - column)}"
                   for side, (line, column) in (("left", left), ("right", right)))


def _program(value):
    if isinstance(value, (list, tuple)):  # one node, so that a variable is the same one in all of them
        return _core.make(_core.ir.Array, [[_program(v) for v in value]])
    if isinstance(value, dict):
        return _core.make(_core.ir.Dict, [{key: _program(v) for key, v in value.items()}])
    if isinstance(value, _core.NDArray):
        from sator import relax

        return relax.const(value)
    if hasattr(type(value), "_node"):  # R.Tensor((4,), "float32") outside of a program
        return value._node()
    return value if isinstance(value, _core.Object) else _core.expr(value)
