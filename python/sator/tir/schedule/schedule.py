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


def _walk_statements(node, visit):
    visit(node)
    for child in _core.children(node):
        if isinstance(child, _core.Stmt):
            _walk_statements(child, visit)


class StmtSRef:
    """The place of a block or a loop in the program of a schedule: `stmt` is what stands there now."""

    def __init__(self, schedule, handle=None, stmt=None):
        self._schedule, self._handle, self._stmt = schedule, handle, stmt

    @property
    def stmt(self):
        """The tir.Block or tir.For. Errors: a later step replaced it."""
        return self._stmt if self._handle is None else self._schedule.get(self._handle)

    def same_as(self, other):
        """Whether both are one place of one schedule."""
        return self._schedule is other._schedule and self.stmt.same_as(other.stmt)


_init = _core.Schedule.__init__


@extends(_core.Schedule)
class Schedule:
    __module__ = "sator.tir.schedule.schedule"

    def __init__(self, mod, *, seed=None, debug_mask="none", error_render_level="detail", enable_check=True):
        _init(self, mod, seed=seed)

    def get_sref(self, rv_or_stmt):
        """The place of a block or a loop, told by its handle or by its statement. Errors: the schedule's program has no such statement."""
        if isinstance(rv_or_stmt, (BlockRV, LoopRV)):
            self.get(rv_or_stmt)
            return StmtSRef(self, rv_or_stmt)
        found = []
        for func in self.mod.functions.values():
            _walk_statements(func, lambda node: found.append(node) if node.same_as(rv_or_stmt) else None)
        if not found:
            raise ScheduleError("the statement is not in the schedule's program\n  needs: a block or a loop of sch.mod")
        return StmtSRef(self, stmt=rv_or_stmt)

    @property
    def trace(self):
        """The steps so far."""
        return Trace(self._trace)

    def show(self, *_args, **_options):
        """Prints the module and the steps."""
        self.mod.show()
        self.trace.show()
