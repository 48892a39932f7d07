"""Types of expressions of graphs: what struct_info says without sizes. `expr.checked_type` gives an expression's."""
from sator import _core
from sator.extend import extends
from sator.ir.types import FuncType, PrimType, TupleType, Type

R = _core.relax


class ShapeType(Type):
    """The type of shapes of ndim sizes; -1: of any number."""

    _fields = ("ndim",)

    def __init__(self, ndim=-1):
        self.ndim = _rank("ShapeType", ndim)

    def _text(self, language):
        return f"R.Shape(ndim={self.ndim})"


class ObjectType(Type):
    """The type of any value."""

    def _text(self, language):
        return "R.Object"


class PackedFuncType(Type):
    """The type of functions of which only a name is known."""

    def _text(self, language):
        return "R.PackedFunc"


class DynTensorType(Type):
    """The type of tensors of ndim dimensions, -1: of any number, and of a dtype, "": of any."""

    _fields = ("ndim", "dtype")

    def __init__(self, ndim=-1, dtype="float32"):
        self.ndim, self.dtype = _rank("DynTensorType", ndim), str(dtype)

    def _text(self, language):
        dtype = f', dtype="{self.dtype}"' if self.dtype not in ("", "void") else ""
        return f"R.Tensor(ndim={self.ndim}{dtype})"


def _rank(call, ndim):
    if not isinstance(ndim, int) or ndim < -1:
        raise TypeError(f"{call}: ndim = {ndim!r} is a {type(ndim).__name__}\n  needs: a number of dimensions, an integer from -1")
    return ndim


def _type_of(info):
    """The type that struct_info says."""
    if isinstance(info, R.ShapeStructInfo):
        return ShapeType(info.ndim)
    if isinstance(info, R.PrimStructInfo):
        return PrimType(info.dtype)
    if isinstance(info, R.TensorStructInfo):
        return DynTensorType(info.ndim, info.dtype)
    if isinstance(info, R.TupleStructInfo):
        return TupleType([_type_of(field) for field in info.fields])
    if isinstance(info, R.FuncStructInfo):
        return PackedFuncType() if info.params is None else FuncType([_type_of(p) for p in info.params], _type_of(info.ret))
    return ObjectType()


class _Typed:
    __module__ = "sator.relax"

    @property
    def checked_type(self):
        """What struct_info says without sizes, a type. Errors: ValueError where there is none yet."""
        if self.struct_info is None:
            raise ValueError(f"the type of this {type(self).__name__} is not known\n  needs: struct_info, which relax.BlockBuilder().normalize(expr) infers")
        return _type_of(self.struct_info)

    @property
    def _checked_type_(self):
        return None if self.struct_info is None else _type_of(self.struct_info)


extends(_core.RelaxExpr)(_Typed)
extends(R.Function)(_Typed)
