"""What expressions have in common, for isinstance: TVM's abstract classes."""
import abc

from sator import _core

tir = _core.tir
ExprOp = PrimExprWithOp = _core.PrimExpr
EqualOp, NotEqualOp = tir.EQ, tir.NE  # what `==` and `!=` of expressions give


class ConstExpr(abc.ABC):
    """A number or a text."""


class BinaryOpExpr(abc.ABC):
    """Arithmetic of two expressions, `a` and `b`."""


class CmpExpr(abc.ABC):
    """A comparison of two expressions, `a` and `b`."""


class LogicalExpr(abc.ABC):
    """Conditions joined, or the opposite of one."""


for _family, _classes in ((ConstExpr, (tir.IntImm, tir.FloatImm, tir.StringImm)),
                          (BinaryOpExpr, (tir.Add, tir.Sub, tir.Mul, tir.Div, tir.Mod, tir.FloorDiv, tir.FloorMod, tir.Min, tir.Max)),
                          (CmpExpr, (tir.EQ, tir.NE, tir.LT, tir.LE, tir.GT, tir.GE)), (LogicalExpr, (tir.And, tir.Or, tir.Not))):
    for _class in _classes:
        _family.register(_class)
