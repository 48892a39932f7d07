"""Operators and calls as functions: tir.add(x, y), tir.call_intrin(dtype, name, x)."""
import enum

from sator import _core


class CallEffectKind(enum.IntEnum):
    """What a call may do beside giving a value; the numbers are TVM's."""

    ExprAnnotation, Pure, ReadState, UpdateState, SpecialCallArg, EmbedInfo, ControlJump = range(7)
    Opaque = UpdateState


def add(lhs, rhs, span=None):
    """lhs + rhs."""
    return _core.binary("+", lhs, rhs)


def subtract(lhs, rhs, span=None):
    """lhs - rhs."""
    return _core.binary("-", lhs, rhs)


def multiply(lhs, rhs, span=None):
    """lhs * rhs."""
    return _core.binary("*", lhs, rhs)


def divide(lhs, rhs, span=None):
    """lhs / rhs, of reals."""
    return _core.binary("/", lhs, rhs)


def sum(expr, axis, where=None, init=None):  # noqa: A001
    """The sum over reduction axes, in te.compute: te.sum."""
    from sator import te

    return te.sum(expr, axis, where, init)


def call_intrin(dtype, func_name, *args, span=None):
    """A call of a builtin by its full name: call_intrin("float32", "tir.exp", x). Errors: there is none of the name."""
    from sator import tir

    return tir.Call(dtype, str(getattr(func_name, "name", func_name)), list(args))


def get_vscale_expr(dtype, min_size=128):
    """The lanes of a scalable vector of at least `min_size` bits: vscale() times those of one such vector."""
    from sator import tir
    from sator.runtime.values import DataType

    return tir.vscale() * (int(min_size) // DataType(str(dtype)).bits)


def floordiv(lhs, rhs, span=None):
    """The quotient of two expressions, rounded down."""
    from sator import tir

    return tir.floordiv(lhs, rhs, span)


def cast(src, dtype, span=None):
    """An expression or a tensor of te in another dtype."""
    return src.astype(dtype)
