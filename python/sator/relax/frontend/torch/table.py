"""The tables of converters, and what converters ask of values."""
import difflib

from sator import _core, relax

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


def is_expr(value):
    return isinstance(value, _core.RelaxExpr)


def dtype(value):
    return value.struct_info.dtype


def shape(value):
    return list(value.struct_info.shape.values)


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
