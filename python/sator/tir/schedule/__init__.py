"""Schedules of tensor programs."""
from sator.tir.schedule.schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError, ScheduleState, StmtSRef, Trace  # noqa: F401


def __getattr__(name):
    if name == "testing":
        import importlib

        return importlib.import_module("sator.tir.schedule.testing")
    from sator import paths

    deep = paths.submodule(__name__, name)
    if deep is not None:
        return deep
    raise paths.missing(__name__, name, globals())
