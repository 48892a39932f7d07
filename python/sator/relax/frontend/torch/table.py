"""The tables of converters, and what converters ask of values."""
import difflib

from sator import _core, relax
from sator.error import TVMError

FUNCTIONS, METHODS = {}, {}


def converter(*names, method=True):
    """Enters a converter under names of functions, and of methods too."""
    def add(function):
        for name in names:
            FUNCTIONS[name] = function
            if method:
                METHODS[name] = function
        return function

    return add


def find(name, *tables):
    """The converter of a name, or None. One that changes its argument, relu_, has the value of the one that does not."""
    for known in (name, name[:-1] if name.endswith("_") and not name.endswith("__") else name, name.removeprefix("special_")):
        for table in tables:
            if known in table:
                return table[known]
    return None


def nearest(name, names):
    """Words for an error: which names are nearest."""
    near = difflib.get_close_matches(name, names, 3)
    return f", such as {', '.join(near)}" if near else ""


class Unknown:
    """What stands for a value that no converter makes: who uses it says so."""

    def __init__(self, words):
        self.words = words


def is_expr(value):
    return isinstance(value, _core.RelaxExpr)


def dtype(value):
    return value.struct_info.dtype


def shape(value):
    """Extents: integers, and expressions where they are symbolic."""
    return [getattr(extent, "value", extent) for extent in value.struct_info.shape.values]


def is_known(*extents):
    return all(isinstance(e, int) for e in extents)


def is_one(extent):
    return isinstance(extent, int) and extent == 1


def known(extent, what):
    """An extent that must be a number. Errors: it is symbolic."""
    if not is_known(extent):
        raise TVMError(f"error: {what} of a dimension of {extent} elements\n  needs: an extent that is a number\n"
                       "  hint:  export the model with this size fixed")
    return extent


def rank(value):
    return len(shape(value))


def apply(reader, name, *args, **options):
    """The bound value of an op of the graph."""
    return reader.emit(getattr(relax.op, name)(*args, **options))


def const_like(value, x):
    """A number in the dtype of a tensor."""
    return relax.const(value, dtype(x))


def per_dimension(count, *values):
    """One number for all dimensions, or one of each."""
    return [list(v) * (count if len(v) == 1 else 1) if isinstance(v, (list, tuple)) else [v] * count for v in values]


def as_batch(reader, x, count, compute):
    """What `compute` gives for images of `count` dimensions: [channels, ...] is a batch of one."""
    if rank(x) != count + 1:
        return compute(x)
    return relax.op.squeeze(reader.emit(compute(apply(reader, "expand_dims", x, 0))), 0)
