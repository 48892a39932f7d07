"""Python's operators on expressions of graphs: `x + y` is the call of an op, `t[0]` an item of a tuple, `f(x)` a call."""
from sator import _core
from sator.extend import extends


def _call(name, swapped=False):
    def operator(self, other):
        from sator import relax

        if isinstance(other, (int, float)):
            other = relax.const(other, getattr(self.struct_info, "dtype", None))
        elif hasattr(other, "__array__"):
            raise TypeError(f"{name} of {self} and a {type(other).__name__}\n  needs: expressions or numbers\n  hint:  relax.const(array)")
        elif not isinstance(other, _core.RelaxExpr):
            return NotImplemented
        function = getattr(relax.op, name)
        return function(other, self) if swapped else function(self, other)

    return operator


@extends(_core.RelaxExpr)
class _Operators:
    __array_ufunc__ = None  # NumPy leaves an operator with an array to us, and does not make an array of expressions

    __add__, __radd__ = _call("add"), _call("add", True)
    __sub__, __rsub__ = _call("subtract"), _call("subtract", True)
    __mul__, __rmul__ = _call("multiply"), _call("multiply", True)
    __truediv__, __rtruediv__ = _call("divide"), _call("divide", True)
    __floordiv__, __rfloordiv__ = _call("floor_divide"), _call("floor_divide", True)
    __pow__ = _call("power")
    __mod__ = _call("mod")
    __lt__, __gt__, __le__, __ge__ = _call("less"), _call("greater"), _call("less_equal"), _call("greater_equal")

    def __neg__(self):
        from sator import relax

        return relax.op.negative(self)

    def astype(self, dtype):
        """Converted to another dtype."""
        from sator import relax

        return relax.op.astype(self, dtype)

    def __call__(self, *args, attrs=None):
        return _core.graph_call(self, list(args), attrs, None)

    def __getitem__(self, index):
        if not isinstance(index, int):
            raise TypeError(f"{self}[{index!r}]\n  needs: an integer, the number of an item of a tuple")
        info = self.struct_info
        if isinstance(info, _core.relax.TupleStructInfo) and not 0 <= index < len(info.fields):
            raise IndexError(f"item {index} of a tuple of {len(info.fields)}")
        if isinstance(info, (_core.relax.TensorStructInfo, _core.relax.ShapeStructInfo, _core.relax.PrimStructInfo)):
            raise TypeError(f"{self} is no tuple\n  needs: a tuple, whose items are taken by number\n"
                            "  hint:  relax.op.take or relax.op.strided_slice give parts of a tensor")
        return _core.tuple_get(self, index)

    def __iter__(self):
        info = self.struct_info
        if not isinstance(info, _core.relax.TupleStructInfo):
            raise TypeError(f"{self} is no tuple of known length\n  needs: a tuple, whose items are counted")
        return (self[index] for index in range(len(info.fields)))
