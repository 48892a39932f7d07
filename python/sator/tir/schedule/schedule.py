"""Schedules: a module, rewritten step by step by primitives that keep its meaning, and the trace of these steps."""
from sator import _core
from sator.error import ScheduleError  # noqa: F401
from sator.extend import extends

BlockRV, LoopRV, ExprRV = _core.BlockRV, _core.LoopRV, _core.PrimExpr


class Trace:
    """The steps of a schedule. Its text is Python; it replays on a schedule of the same program."""

    def __init__(self, schedule):
        self._of = schedule.copy()

    @property
    def insts(self):
        """One text per step."""
        return self._of._steps()

    def as_python(self):
        return [line for line in self._of._trace().splitlines() if line]

    def apply_to_schedule(self, sch, remove_postproc=False):
        """Takes the same steps on another schedule. Errors: those of the steps."""
        sch._apply_trace(self._of)

    def show(self, style=None):
        print(self)

    def __str__(self):
        return self._of._trace()

    __repr__ = __str__


_init = _core.Schedule.__init__


@extends(_core.Schedule)
class Schedule:
    __module__ = "sator.tir.schedule.schedule"

    def __init__(self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        _init(self, mod)

    @property
    def trace(self):
        """The steps so far."""
        return Trace(self)

    def show(self, *_args, **_options):
        """Prints the module and the steps."""
        self.mod.show()
        self.trace.show()
