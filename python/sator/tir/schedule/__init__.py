"""Schedules of tensor programs."""
from sator.tir.schedule.schedule import BlockRV, ExprRV, LoopRV, Schedule, ScheduleError, Trace  # noqa: F401
