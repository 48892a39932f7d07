"""Schedules of tensor programs."""
from sator.tir.schedule.schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError, ScheduleState, StmtSRef, Trace  # noqa: F401
