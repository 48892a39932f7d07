"""Schedules: a module, rewritten step by step by primitives that keep its meaning, and the trace of these steps."""
import json

from sator import _core
from sator.error import ScheduleError  # noqa: F401
from sator.extend import extends

BlockRV, LoopRV, ExprRV = _core.BlockRV, _core.LoopRV, _core.PrimExpr


class Trace:
    """The steps of a schedule. Its text is Python; it replays on a schedule of the same program."""

    def __init__(self, trace):
        self._trace = trace

    @property
    def insts(self):
        """One text per step."""
        return self._trace.insts()

    def as_python(self):
        return [line for line in self._trace.text().splitlines() if line]

    def as_json(self, remove_postproc=False):
        """As TVM writes traces: [[[kind, inputs, attributes, results], ...], [[index of a step, its decision], ...]]; index maps are
        texts, "lambda i, j: (j, i)"."""
        return json.loads((self.simplified(True) if remove_postproc else self)._trace.json())

    @staticmethod
    def apply_json_to_schedule(json_obj, sch):
        """Takes the steps of a trace that as_json wrote, here or in TVM. Errors: another form; those of the steps."""
        sch._apply_json(json.dumps(json_obj))

    def simplified(self, remove_postproc=False):
        """Without steps whose results nobody uses and that change nothing; with remove_postproc also without those from
        enter_postproc on."""
        return Trace(self._trace.simplified(remove_postproc))

    def apply_to_schedule(self, sch, remove_postproc=False, decision_provider=None):
        """Takes the same steps, with the same decisions, on another schedule. Errors: those of the steps."""
        if decision_provider is not None:
            raise TypeError("decisions are those of the trace\n  needs: decision_provider=None\n  hint:  edit as_json()")
        (self.simplified(True) if remove_postproc else self)._trace.apply_to(sch)

    def show(self, style=None):
        print(self)

    def __str__(self):
        return self._trace.text()

    __repr__ = __str__


_init = _core.Schedule.__init__


@extends(_core.Schedule)
class Schedule:
    __module__ = "sator.tir.schedule.schedule"

    def __init__(self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        _init(self, mod, seed=seed)

    @property
    def trace(self):
        """The steps so far."""
        return Trace(self._trace)

    def show(self, *_args, **_options):
        """Prints the module and the steps."""
        self.mod.show()
        self.trace.show()
