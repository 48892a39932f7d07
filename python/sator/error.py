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


class InternalError(TVMError):
    """A mistake of the compiler's own."""
