"""What tensor programs and graphs share: modules, equality, structure."""
from sator import _core, show  # noqa: F401
from sator.extend import add_constructors

BaseFunc, Object, PrimExpr = _core.BaseFunc, _core.Object, _core.PrimExpr
Array, Dict, Range, VDevice = _core.ir.Array, _core.ir.Dict, _core.ir.Range, _core.ir.VDevice

from sator.ir.equality import assert_structural_equal, structural_equal, structural_hash  # noqa: E402,F401
from sator.ir.module import IRModule  # noqa: E402,F401


@show.extends(Range)
class _Range:
    def __init__(self, begin, end=None, span=None):
        low, extent = (0, begin) if end is None else (begin, _core.binary("-", end, begin))
        Object.__init__(self, _core.make(Range, [low, extent]))

    @staticmethod
    def from_min_extent(low, extent, span=None):
        return _core.make(Range, [low, extent])


VDevice._defaults = {"target": "llvm", "index": 0, "memory_scope": "global"}
add_constructors(_core.ir)


def __getattr__(name):
    if name == "Op":
        from sator import relax

        return relax.Op
    if name == "transform":
        from sator import transform

        return transform
    raise AttributeError(f"module 'sator.ir' has no attribute {name!r}")
