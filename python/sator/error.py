"""The exceptions of the compiler, under TVM's names and with TVM's bases.

Each carries the parts of its message: `what` happened, the `program` with the offender underlined, `where` in the work, what it
`needs`, and a `hint` at one way on.
"""


class TVMError(RuntimeError):
    """The user's mistake."""

    what = needs = hint = program = where = ""


class DiagnosticError(TVMError):
    """A mistake in a program's text; `line` and `column` say where."""

    line = column = 0


class ScheduleError(TVMError):
    """A step that a schedule cannot take."""


class UseError(TVMError, ValueError):
    """A call of a builder or a schedule in an order, or with arguments, that it cannot take."""


class InternalError(TVMError):
    """A mistake of the compiler's own."""


class OpError(TVMError):
    """A mistake about an operation."""


class OpNotImplemented(OpError, NotImplementedError):
    """An operation that is not there."""


class OpAttributeRequired(OpError, AttributeError):
    """An attribute that an operation needs."""


class OpAttributeInvalid(OpError, AttributeError):
    """An attribute that an operation cannot have."""


class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute that is not there."""


class RPCError(TVMError):
    """A mistake on another machine. Programs run on this one."""


class RPCSessionTimeoutError(RPCError, TimeoutError):
    """Another machine that did not answer."""
