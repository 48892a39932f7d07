"""Values as TVM's runtime calls them."""
import re

from sator import _core

_CODES = {"int": 0, "uint": 1, "float": 2, "handle": 3, "bfloat": 4, "bool": 1, "e4m3_float": 6, "e5m2_float": 7}


class DataType(str):
    """A dtype by its text, and its parts: DataType("int8x4") has type_code 0, bits 8, lanes 4."""

    @property
    def _parts(self):
        found = re.fullmatch(r"([a-z_]+(?:\d+m\d+_float)?|e\dm\d_float)(\d*)(?:x(\d+))?", self)
        if found is None:
            raise ValueError(f"{self} has no fixed number of lanes\n  needs: a dtype such as float32 or int8x4")
        kind, bits, lanes = found.groups()
        return kind, int(bits or (1 if kind == "bool" else 64)), int(lanes or 1)

    type_code = property(lambda self: _CODES[self._parts[0]], doc="TVM's number of the kind.")
    bits = property(lambda self: self._parts[1], doc="Bits of one lane.")
    lanes = property(lambda self: self._parts[2], doc="Values in a vector, 1 of a scalar.")

    def itemsize(self):
        """Bytes of all lanes."""
        return (self.bits * self.lanes + 7) // 8


def convert(value):
    """A Python value as the compiler holds it: numbers as constants; lists and dictionaries of such."""
    if isinstance(value, (list, tuple)):
        return [convert(v) for v in value]
    if isinstance(value, dict):
        return {k: convert(v) for k, v in value.items()}
    return _core.expr(value) if isinstance(value, (bool, int, float)) else value
