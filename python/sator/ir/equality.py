"""Whether two programs are the same, and where they first differ."""
from sator import _core


def structural_equal(lhs, rhs, map_free_vars=False):
    """Whether two programs state the same: names do not matter, definitions are matched by position."""
    lhs, rhs = _program(lhs), _program(rhs)
    return type(lhs) is type(rhs) and _core.structural_equal(lhs, rhs, map_free_vars)


def structural_hash(node):
    """Equal programs have equal hashes."""
    return _core.structural_hash(_program(node))


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Does nothing where two programs are the same.
    Errors: ValueError that shows the first line in which they differ, underlined in both.
    """
    if structural_equal(lhs, rhs, map_free_vars):
        return
    lhs, rhs = _program(lhs), _program(rhs)
    if type(lhs) is not type(rhs):
        raise ValueError(f"the left side is a {type(lhs).__name__}, the right side a {type(rhs).__name__}")
    raise ValueError("the programs differ" + first_difference(lhs.script(), rhs.script()))


def first_difference(left, right):
    """The first line in which two texts differ, from both, each with the difference underlined."""
    a, b = left.splitlines(), right.splitlines()
    for number, (x, y) in enumerate(zip(a + [""] * len(b), b + [""] * len(a)), 1):
        if x == y:
            continue
        column = next((i for i, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
        return "".join(f"\n  {side}, line {number}\n  |  {line}\n  |  {' ' * column}{'^' * max(1, len(line) - column)}"
                       for side, line in (("left", x), ("right", y)))
    return ": their texts are the same, so what differs is not printed (a span, a free variable, the order of attributes)"


def _program(value):
    return value if isinstance(value, _core.Object) else _core.expr(value)
