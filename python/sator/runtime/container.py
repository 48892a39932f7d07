"""Values of the runtime, where TVM's users look for them."""
from sator.runtime.shape import ShapeTuple  # noqa: F401

Array, Map, String = list, dict, str  # Python's own


def ADT(tag, fields):  # noqa: N802
    """A tuple as a function of Python's gives it to a program. Errors: ValueError for a tag other than 0, which no program has."""
    if tag != 0:
        raise ValueError(f"a value with the tag {tag}\n  needs: the tag 0, of tuples")
    return tuple(fields)
