"""Schedules of tensor programs."""
from sator.tir.block_scope import BlockScope, Dependency, DepKind, StmtSRef  # noqa: F401
from sator.tir.schedule.schedule import BlockRV, ExprRV, Instruction, InstructionKind, LoopRV, Schedule, ScheduleError, Trace  # noqa: F401
from sator.tir.schedule.state import ScheduleDebugMask, ScheduleState  # noqa: F401


def __getattr__(name):
    if name == "testing":
        import importlib

        return importlib.import_module("sator.tir.schedule.testing")
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
